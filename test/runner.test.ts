/** What a run of tests prints: `run.ts` and its reporter. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { lastLine, report } from './support/reporter.ts'

const TEST = fileURLToPath(new URL('.', import.meta.url))

async function textOf(events: readonly object[], leftOut: readonly string[]): Promise<string> {
  const all = (async function* () { yield* events })()
  let text = ''
  for await (const piece of report(all as never, leftOut)) text += piece
  return text
}

function ended(type: string, file: string, name: string, more: object = {}): object {
  const details = { duration_ms: 500, error: new Error('outer', { cause: new Error('because') }) }
  return { type: `test:${type}`, data: { name, file: `${TEST}${file}`, nesting: 0, details, ...more } }
}

test('a file has a line, a failure its cause, and the last line says what was skipped and why', async () => {
  const text = await textOf([
    ended('pass', 'a/b.test.ts', 'one'), ended('pass', 'a/b.test.ts', 'two', { skip: 'no etcd' }),
    ended('fail', 'c.test.ts', 'three'), ended('fail', 'c.test.ts', 'four', { todo: 'later' }),
    { type: 'test:diagnostic', data: { message: 'skipped 1' } }, { type: 'test:stderr', data: { message: 'said\n' } }
  ], ['etcd', 'page'])
  assert.match(text, /^✔ a\/b\.test\.ts: 2 tests, 1\.0 s\n✖ c\.test\.ts: three\n  Error: because\n(    .*\n)+said\n/)
  assert.match(text, /\n✖ c\.test\.ts: 2 tests, 1\.0 s\n\nfailed:\n✖ c\.test\.ts: three\n\nℹ skipped 1\n/)
  assert.ok(text.endsWith('\nskipped: 1 test (no etcd); test/etcd, test/page (npm test runs them)\n'))
  assert.doesNotMatch(text, /node:internal/)
  assert.equal(lastLine(new Map(), []), 'skipped: nothing\n')
})

test('a folder that is not there ends the run before it begins', () => {
  const { status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', `${TEST}run.ts`, 'htpp'], { encoding: 'utf8' })
  assert.equal(status, 2)
  assert.match(stderr, /^there is no test\/htpp, but core and \., api,/)
})
