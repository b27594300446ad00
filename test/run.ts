/**
 * Runs the tests: all of them, or those of the folders of `test` that are named (`npm test -- http api`), or with
 * `core` those that need no browser, no etcd and no second build.
 */
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { run } from 'node:test'
import { fileURLToPath } from 'node:url'
import { report } from './support/reporter.ts'

const TEST = fileURLToPath(new URL('.', import.meta.url))
/** They need a browser or etcd, or build the program again, or measure it. */
const NOT_CORE = ['bench', 'build', 'etcd', 'page']

/** `.` is the folder `test` itself. */
const folderOf = (file: string): string => file.includes('/') ? file.slice(0, file.indexOf('/')) : '.'

const all = readdirSync(TEST, { recursive: true }).map(String).filter(file => file.endsWith('.test.ts')).sort()
const folders = [...new Set(all.map(folderOf))].sort()
const named = process.argv.slice(2)
const isCore = named.length === 1 && named[0] === 'core'
const asked = isCore ? folders.filter(name => !NOT_CORE.includes(name)) : named.length === 0 ? folders : named
const unknown = asked.find(name => !folders.includes(name))
if (unknown !== undefined) {
  console.error(`there is no test/${unknown}, but core and ${folders.join(', ')}`)
  process.exit(2)
}

// The longest first, so that it does not run alone at the end.
const isLongest = (file: string): number => Number(file === 'page/chromium.test.ts')
const files = all.filter(file => asked.includes(folderOf(file))).sort((a, b) => isLongest(b) - isLongest(a))
  .map(file => join(TEST, file))
// One more than there are cores: some wait most of their time.
const events = run({ files, concurrency: availableParallelism() + 1 })
events.on('test:fail', ({ todo }) => { if (todo === undefined) process.exitCode = 1 })
for await (const text of report(events, folders.filter(name => !asked.includes(name)))) process.stdout.write(text)
