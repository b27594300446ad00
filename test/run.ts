/**
 * Runs the tests: without an argument those that a user's machine should run; with `core` of these what is quick and
 * needs no browser and no etcd; with `ci` what is left out without an argument; with `portable`, for other Nodes and
 * users, all that needs no browser and no etcd; or the folders and files of `test` that are named (`npm test -- http
 * page/webkit`). Each file has a process of its own; one that ends early, loses tests or does not end fails the run.
 */
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildTree } from './support/compiled.ts'
import { endOf, textOf } from './support/reporter.ts'
import { runFile, type FileResult } from './support/test-file.ts'

const TEST = fileURLToPath(new URL('.', import.meta.url))
/** What builds, measures or floods the program, compiles sources, cuts disks, tries every setting: once is enough. */
const ONCE = [
  'bench', 'bounds', 'build', 'embedding/documented', 'program/power-cut', 'tables/clocks', 'tables/settings',
  'tables/two-at-once'
]
/** What takes long, on any machine: damage, kills at each moment, floods, restrictions, terminals, shells, this run. */
const TRIALS = [
  'closings/left', 'journal/verifier', 'operator/salvage', 'program/completion', 'program/crash', 'program/hostile',
  'program/restricted', 'program/slow-reader', 'program/terminal', 'runner', 'tables/once'
]
/** Who runs what a run without names leaves out: these, etcd failing at each step, more browsers, half of the page. */
const OF_CI = {
  command: '.ci/run', names: [
    ...ONCE, ...TRIALS, 'etcd/behind', 'etcd/foreign', 'etcd/held', 'etcd/outage', 'etcd/steps', 'etcd/turns',
    'page/chromium-rest', 'page/firefox', 'page/webkit'
  ]
}
/** They need a browser or etcd, or live random lives. */
const NEEDY = { command: 'npm test', names: ['etcd', 'model', 'page'] }
/** They take half of the time of all that is not needy. */
const NOT_QUICK = {
  command: 'npm test', names: [
    'fuzz', 'program/compact', 'program/restore', 'program/transfer', 'simulation', 'store/compact'
  ]
}
/** What looks at the sources as they are, or builds them. All others run compiled, which takes 0.3 s less a file. */
const AS_WRITTEN = ['.', 'bench', 'bounds', 'build']
/** The longest first, so that none runs alone at the end. */
const LONG = [
  'page/webkit', 'page/firefox', 'page/chromium-rest', 'model/model', 'closings/left',
  'tables/settings', 'tables/answers', 'page/chromium', 'build/parts', 'etcd/behind', 'tables/clocks',
  'store/compact', 'program/transfer', 'etcd/instances', 'program/admin', 'program/power-cut', 'etcd/held',
  'etcd/turns', 'program/hostile', 'operator/salvage', 'program/terminal', 'etcd/foreign', 'program/lock',
  'program/stop', 'http/connections', 'program/output', 'journal/recover', 'etcd/keys', 'journal/verifier',
  'runner', 'program/disk', 'etcd/runbook', 'program/compact', 'etcd/outage', 'program/slow-reader',
  'store/withdrawn'
]

/** `.` is the folder `test` itself. */
const folderOf = (file: string): string => file.includes('/') ? file.slice(0, file.indexOf('/')) : '.'
const isOf = (file: string, names: readonly string[]): boolean =>
  names.some(name => name === folderOf(file) || `${name}.test.ts` === file)

const all = readdirSync(TEST, { recursive: true }).map(String).filter(file => file.endsWith('.test.ts')).sort()
const folders = [...new Set(all.map(folderOf))].sort()
const named = process.argv.slice(2)
const quick = { command: 'npm test', names: [...NEEDY.names, ...NOT_QUICK.names] }
/** What each kind of run leaves out, and who runs it. */
const KINDS: { readonly [kind: string]: readonly (typeof OF_CI)[] } = {
  core: [quick, OF_CI], ci: [], portable: [NEEDY, { command: '.ci/run', names: ONCE }]
}
const kind = named.length === 1 ? KINDS[named[0]!] : undefined
const unknown = kind !== undefined ? undefined : named.find(name => !all.some(file => isOf(file, [name])))
if (unknown !== undefined) {
  console.error(`there is no test/${unknown}, but ${Object.keys(KINDS).join(', ')} and ${folders.join(', ')}`)
  process.exit(2)
}
// A test of the page has run where one engine has run it: so all engines are asked.
const only = named[0] === 'ci' ? [...OF_CI.names, 'page/chromium'] : kind === undefined && named.length > 0 ? named : undefined
const others = { command: 'npm test', names: folders.filter(name => !named.includes(name)) }
const leaves = only !== undefined ? [others] : kind ?? [OF_CI]
const isAsked = (file: string): boolean =>
  only !== undefined ? isOf(file, only) : !leaves.some(({ names }) => isOf(file, names))

const rank = (file: string): number => {
  const at = LONG.indexOf(file.replace('.test.ts', ''))
  return at < 0 ? LONG.length : at
}
const waiting = all.filter(isAsked).sort((a, b) => rank(a) - rank(b))
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
// More than there are cores, since many wait most of their time; but not three browsers, builds and floods.
const more = only === undefined ? 2 : 1
await Promise.all(Array.from({ length: availableParallelism() + more }, worker))
const { text, isGood } = endOf(results, new Map(leaves.map(({ command, names }) => [command, names])))
process.stdout.write(text)
process.exitCode = isGood ? 0 : 1
