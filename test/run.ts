/**
 * Runs the tests. A file says by its name where it runs: `x.test.ts` everywhere, `x.ci.test.ts` only in CI,
 * `x.once.test.ts` on one Node, `x.newest.test.ts` on that one and on the newest, since it hardly depends on Node.
 *
 * Without an argument a run has all but what is CI's. `ci` is what is left out then, `all` is both; `portable` and
 * `newest` are for other Nodes and users. Other arguments name folders and files: `http`, `router`, `page/webkit`,
 * `test/http/router.test.ts`. Files of a folder share a process unless they are large; one that ends early, loses tests
 * or does not end fails the run.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { basename, join } from 'node:path'
import { buildTree, CACHE } from './support/compiled.ts'
import { endOf, textOf } from './support/reporter.ts'
import { runFiles, type FileResult } from './support/test-file.ts'
import { plainName, TEST, testFiles } from './support/test-names.ts'

/** What each file took in its fastest run. */
const COSTS = join(CACHE, 'costs.json')
/** Folders that look at the sources as they are, or build them; `.` is `test` itself. All others run compiled. */
const AS_WRITTEN = ['.', 'bounds', 'build', 'campaigns']
const CORES = availableParallelism()
/**
 * What a file counts that only waits: programs that it starts and ends by a kill are not in what it has used. CI's
 * files start browsers, clusters and compilers, and wait for them.
 */
const LEAST_SHARE = { quick: 1 / 4, ci: 1 / 2 }

interface Cost {
  readonly ms: number
  /** Of the processors; with `ms` it says how many of the cores a file uses. */
  readonly cpuMs: number
}

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

/** Imports of files that have a browser of their own, or their tests elsewhere. */
const ALONE = /support\/(webdriver|page)\.ts'|^import .*'\.\//m
/** Of a process for files of one folder: each takes a third of a second of a core to begin, and so do its programs. */
const SHARED = { cpuMs: 8_000, ms: 30_000 }

function knownCosts(): { readonly [file: string]: Cost } {
  return existsSync(COSTS) ? JSON.parse(readFileSync(COSTS, 'utf8')) : {}
}

/** Of a file that never ran: those of programs last longer, and leave the cores to others. */
function guessedCost(file: string): Cost {
  const text = readFileSync(join(TEST, file), 'utf8')
  const cpuMs = (has(file, 'ci') ? 10_000 : 0) + (has(file, 'once') ? 10_000 : 0) + text.length / 10
  return { cpuMs, ms: folderOf(file) === 'program' ? 4 * cpuMs : cpuMs }
}

/** Files that run in one process, and what they take together. */
interface Job extends Cost { readonly files: readonly string[] }

/** The longest first, so that none runs alone at the end. */
function jobsOf(files: readonly string[], known: { readonly [file: string]: Cost }): Job[] {
  const jobs: Job[] = []
  for (const file of files) {
    const { ms, cpuMs } = known[file] ?? guessedCost(file)
    const at = jobs.findIndex(job => folderOf(job.files[0]!) === folderOf(file) &&
      job.cpuMs + cpuMs < SHARED.cpuMs && job.ms + ms < SHARED.ms &&
      [file, job.files[0]!].every(one => !ALONE.test(readFileSync(join(TEST, one), 'utf8'))))
    const job = jobs[at] ?? { files: [], ms: 0, cpuMs: 0 }
    jobs[at < 0 ? jobs.length : at] = { files: [...job.files, file], ms: job.ms + ms, cpuMs: job.cpuMs + cpuMs }
  }
  return jobs.sort((a, b) => b.ms - a.ms)
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
const known = knownCosts()
const leastShare = LEAST_SHARE[kind === 'ci' || kind === 'all' ? 'ci' : 'quick']
const waiting = jobsOf(asked, known)
const tree = await buildTree().catch(({ message }: Error) => {
  console.error(message)
  process.exit(1)
})
const results: FileResult[] = []
const running = new Map<Promise<unknown>, Job>()

/** How many cores the files that run use. */
function usedCores(): number {
  return [...running.values()].reduce((sum, { ms, cpuMs }) => sum + Math.max(leastShare, cpuMs / ms), 0)
}

while (waiting.length > 0 || running.size > 0) {
  while (waiting.length > 0 && usedCores() < CORES) {
    const job = waiting.shift()!
    const root = AS_WRITTEN.includes(folderOf(job.files[0]!)) ? TEST : join(tree, 'test')
    const run = runFiles(job.files, undefined, root).then(done => {
      results.push(...done)
      process.stdout.write(done.map(textOf).join(''))
      running.delete(run)
    })
    running.set(run, job)
  }
  await Promise.race(running.keys())
}
// A run beside others takes longer, and says less about the cores.
const fastest = results.filter(({ path, ms }) => !(ms > (known[path]?.ms ?? ms))).map(({ path, ms, cpuMs }) =>
  [path, { ms, cpuMs }])
mkdirSync(CACHE, { recursive: true })
writeFileSync(COSTS, JSON.stringify({ ...knownCosts(), ...Object.fromEntries(fastest) }))
const { text, isGood } = endOf(results, leftOut)
process.stdout.write(text)
process.exitCode = isGood ? 0 : 1
