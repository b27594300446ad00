/**
 * Runs the tests: without an argument those that a user's machine should run, with `core` of these what needs no
 * browser and no etcd, or those of the folders of `test` that are named (`npm test -- http api`). Each file has a
 * process of its own; one that ends early, loses tests or does not end fails the run.
 */
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { endOf, textOf } from './support/reporter.ts'
import { runFile, type FileResult } from './support/test-file.ts'

const TEST = fileURLToPath(new URL('.', import.meta.url))
/** Who runs the folders that a run without folders leaves out: they build the program again, or measure it, for minutes. */
const OF_CI = { command: '.ci/run', folders: ['bench', 'bounds', 'build'] }
/** They need a browser or etcd, or take long. */
const NOT_CORE = { command: 'npm test', folders: ['etcd', 'model', 'page'] }
/** The longest first, so that none runs alone at the end. */
const LONG = ['page/chromium', 'page/firefox', 'page/webkit', 'model/model', 'program/power-cut', 'build/parts', 'simulation/simulation',
  'etcd/instances', 'etcd/steps', 'program/disk', 'etcd/outage', 'program/hostile', 'embedding/embedding', 'program/restricted']

/** `.` is the folder `test` itself. */
const folderOf = (file: string): string => file.includes('/') ? file.slice(0, file.indexOf('/')) : '.'

const all = readdirSync(TEST, { recursive: true }).map(String).filter(file => file.endsWith('.test.ts')).sort()
const folders = [...new Set(all.map(folderOf))].sort()
const named = process.argv.slice(2)
const isCore = named.length === 1 && named[0] === 'core'
const leaves = named.length === 0 ? [OF_CI] : isCore ? [NOT_CORE, OF_CI] : []
const asked = named.length === 0 || isCore ? folders.filter(name => !leaves.some(one => one.folders.includes(name))) : named
const unknown = asked.find(name => !folders.includes(name))
if (unknown !== undefined) {
  console.error(`there is no test/${unknown}, but core and ${folders.join(', ')}`)
  process.exit(2)
}
if (leaves.length === 0) leaves.push({ command: 'npm test', folders: folders.filter(name => !asked.includes(name)) })

const rank = (file: string): number => {
  const at = LONG.indexOf(file.replace('.test.ts', ''))
  return at < 0 ? LONG.length : at
}
const waiting = all.filter(file => asked.includes(folderOf(file))).sort((a, b) => rank(a) - rank(b))
const results: FileResult[] = []
const worker = async (): Promise<void> => {
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    const result = await runFile(file)
    results.push(result)
    process.stdout.write(textOf(result))
  }
}
// One more than there are cores: some wait most of their time.
await Promise.all(Array.from({ length: availableParallelism() + 1 }, worker))
const { text, isGood } = endOf(results, new Map(leaves.map(({ command, folders }) => [command, folders])))
process.stdout.write(text)
process.exitCode = isGood ? 0 : 1
