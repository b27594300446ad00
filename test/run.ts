/**
 * Runs the tests. A file says by its name where it runs: `x.test.ts` everywhere, `x.ci.test.ts` only in CI,
 * `x.once.test.ts` on one Node, `x.newest.test.ts` on that one and on the newest, since it hardly depends on Node.
 *
 * Without an argument a run has all but what is CI's. `ci` is what is left out then, `all` is both; `portable` and
 * `newest` are for other Nodes and users. Other arguments name folders and files: `http`, `router`, `page/webkit`,
 * `test/http/router.test.ts`. Each file has a process of its own; one that ends early, loses tests or does not end
 * fails the run.
 */
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { basename, join } from 'node:path'
import { buildTree, CACHE } from './support/compiled.ts'
import { endOf, textOf } from './support/reporter.ts'
import { runFile, type FileResult } from './support/test-file.ts'
import { plainName, TEST, testFiles } from './support/test-names.ts'

/** What each file took in its last run, in milliseconds. */
const DURATIONS = join(CACHE, 'durations.json')
/** Folders that look at the sources as they are, or build them; `.` is `test` itself. All others run compiled. */
const AS_WRITTEN = ['.', 'bench', 'bounds', 'build']
/** More than there are cores, since many files wait most of their time. */
const WORKERS = availableParallelism() + 2

const all = testFiles()

const folderOf = (file: string): string => file.includes('/') ? file.slice(0, file.indexOf('/')) : '.'
const has = (file: string, ...marks: readonly string[]): boolean => marks.some(mark => file.includes(`.${mark}.`))

const KINDS: { readonly [kind: string]: (file: string) => boolean } = {
  '': file => !has(file, 'ci'),
  // A test of the page has run where one engine has run it: so all engines are asked.
  ci: file => has(file, 'ci') || file.startsWith('page/chromium'),
  all: () => true,
  portable: file => !has(file, 'once', 'newest'),
  newest: file => !has(file, 'once')
}

function isNamed(file: string, name: string): boolean {
  const asked = name.replace(/^(\.\/)?test\//, '').replace(/\/$/, '')
  const plain = plainName(file)
  return [folderOf(file), file, plain, basename(plain), plain + '.test.ts'].includes(asked)
}

function durations(): { readonly [file: string]: number } {
  return existsSync(DURATIONS) ? JSON.parse(readFileSync(DURATIONS, 'utf8')) : {}
}

/** The longest first, so that none runs alone at the end; files that never ran go by what their names and sizes say. */
function inOrder(files: readonly string[]): string[] {
  const known = durations()
  const guessed = (file: string): number => (has(file, 'ci') ? 20_000 : 0) + (has(file, 'once') ? 20_000 : 0) +
    statSync(join(TEST, file)).size / 10
  const lasting = new Map(files.map(file => [file, known[file] ?? guessed(file)]))
  return [...files].sort((a, b) => lasting.get(b)! - lasting.get(a)!)
}

const named = process.argv.slice(2)
const kind = named.length === 0 ? '' : named.length === 1 && Object.hasOwn(KINDS, named[0]!) ? named[0] : undefined
const unknown = kind === undefined ? named.find(name => !all.some(file => isNamed(file, name))) : undefined
if (unknown !== undefined) {
  const folders = [...new Set(all.map(folderOf))].sort()
  const kinds = Object.keys(KINDS).slice(1).join(', ')
  console.error(`there is no test/${unknown}; there are ${kinds} and the folders ${folders.join(', ')}`)
  process.exit(2)
}
const isAsked = kind !== undefined ? KINDS[kind]! : (file: string) => named.some(name => isNamed(file, name))
const asked = all.filter(isAsked)
const leftOut = kind === undefined ? [] : all.filter(file => !isAsked(file)).map(plainName)
const waiting = inOrder(asked)
const tree = await buildTree().catch(({ message }: Error) => {
  console.error(message)
  process.exit(1)
})
const results: FileResult[] = []
const worker = async (): Promise<void> => {
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    const result = await runFile(file, undefined, AS_WRITTEN.includes(folderOf(file)) ? TEST : join(tree, 'test'))
    results.push(result)
    process.stdout.write(textOf(result))
  }
}
await Promise.all(Array.from({ length: WORKERS }, worker))
mkdirSync(CACHE, { recursive: true })
writeFileSync(DURATIONS, JSON.stringify({ ...durations(),
  ...Object.fromEntries(results.map(({ path, ms }) => [path, ms])) }))
const { text, isGood } = endOf(results, leftOut)
process.stdout.write(text)
process.exitCode = isGood ? 0 : 1
