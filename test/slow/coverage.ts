/**
 * Line and branch coverage, by Node's own means: `npm run test:coverage`. The tests that run the sources in their own
 * process are measured, so what only a child runs (`server.ts`, `admin.ts`, `operator/`) is not counted. Node counts
 * lines of JavaScript, which is why sources and tests are compiled first. Fails when a test does.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { compileTree } from '../support/compiled.ts'

const ROOMS = ['api', 'csv', 'http', 'journal', 'json', 'metrics', 'store']

const tree = compileTree()
try {
  const files = ROOMS.flatMap(room => readdirSync(join(tree, 'test', room)).filter(name => name.endsWith('.test.js'))
    .map(name => join('test', room, name)))
  const flags = ['--test', '--experimental-test-coverage', '--test-reporter=tap']
  const { stdout, status } = spawnSync(process.execPath, [...flags, ...files], {
    cwd: tree, encoding: 'utf8', maxBuffer: 2 ** 28, stdio: ['ignore', 'pipe', 'inherit']
  })
  for (const [line] of stdout.matchAll(/^ *not ok .*$/gm)) console.log(line)
  const from = stdout.indexOf('# start of coverage report')
  const isSource = (line: string): boolean => !/^# (test|dist|\.\.)/.test(line)
  if (from >= 0) console.log(stdout.slice(from).split('\n').filter(isSource).join('\n'))
  process.exitCode = status === 0 && from >= 0 ? 0 : 1
} finally {
  rmSync(tree, { recursive: true, force: true })
}
