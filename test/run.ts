/**
 * Runs the tests: without an argument those that a user's machine should run, with `core` of these what needs no
 * browser and no etcd, or the folders and files of `test` that are named (`npm test -- http page/webkit`). Each file has
 * a process of its own; one that ends early, loses tests or does not end fails the run.
 */
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildTree } from './support/compiled.ts'
import { endOf, textOf } from './support/reporter.ts'
import { runFile, type FileResult } from './support/test-file.ts'

const TEST = fileURLToPath(new URL('.', import.meta.url))
/**
 * Who runs what a run without names leaves out, for it tries the program and not the machine: what builds the program,
 * measures it, floods it, asks more browsers, or the page for all that is rarer; what cuts disks, or kills it or holds its
 * messages to etcd at each step.
 */
const OF_CI = {
  command: '.ci/run', names: [
    'bench', 'bounds', 'build', 'etcd/behind', 'etcd/held', 'etcd/outage', 'etcd/steps', 'etcd/turns', 'page/chromium-rest',
    'page/firefox', 'page/webkit', 'program/compact-kill', 'program/crash', 'program/hostile', 'program/power-cut', 'program/slow-reader'
  ]
}
/** They need a browser or etcd, or take long. */
const NOT_CORE = { command: 'npm test', names: ['etcd', 'model', 'page'] }
/** What looks at the sources as they are, or builds them. All others run compiled: that takes a third of a second less a file. */
const AS_WRITTEN = ['.', 'bench', 'bounds', 'build']
/** The longest first, so that none runs alone at the end. */
const LONG = [
  'page/chromium', 'page/webkit', 'page/firefox', 'model/model', 'build/parts', 'etcd/behind', 'program/admin', 'etcd/instances',
  'program/power-cut', 'etcd/held', 'operator/salvage', 'http/connections', 'program/hostile', 'etcd/turns', 'program/restore',
  'etcd/foreign', 'program/disk', 'store/withdrawn', 'program/transfer', 'runner', 'program/lock', 'etcd/outage', 'store/compact'
]

/** `.` is the folder `test` itself. */
const folderOf = (file: string): string => file.includes('/') ? file.slice(0, file.indexOf('/')) : '.'
const isOf = (file: string, names: readonly string[]): boolean =>
  names.some(name => name === folderOf(file) || `${name}.test.ts` === file)

const all = readdirSync(TEST, { recursive: true }).map(String).filter(file => file.endsWith('.test.ts')).sort()
const folders = [...new Set(all.map(folderOf))].sort()
const named = process.argv.slice(2)
const isCore = named.length === 1 && named[0] === 'core'
const unknown = isCore ? undefined : named.find(name => !all.some(file => isOf(file, [name])))
if (unknown !== undefined) {
  console.error(`there is no test/${unknown}, but core and ${folders.join(', ')}`)
  process.exit(2)
}
const others = { command: 'npm test', names: folders.filter(name => !named.includes(name)) }
const leaves = named.length === 0 ? [OF_CI] : isCore ? [NOT_CORE, OF_CI] : [others]
const isAsked = (file: string): boolean =>
  named.length === 0 || isCore ? !leaves.some(({ names }) => isOf(file, names)) : isOf(file, named)

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
// One more than there are cores: some wait most of their time.
await Promise.all(Array.from({ length: availableParallelism() + 1 }, worker))
const { text, isGood } = endOf(results, new Map(leaves.map(({ command, names }) => [command, names])))
process.stdout.write(text)
process.exitCode = isGood ? 0 : 1
