/**
 * The system's clock stands still, goes back, jumps ahead, between any two acts: everything that compares times goes
 * on. Changes and the operator's commands are done, files get names of their own, the journal is whole, and a token
 * lives as long as the clock says, but no clock that runs ahead for a while ends it for good.
 */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { ANA, call, PASSWORD, startProtected, tokenOf } from '../support/accounts.ts'
import { admin } from '../support/admin.ts'
import { fileStore, type FullStore } from '../support/stores.ts'
import { compact, reencrypt } from '../support/rewrite.ts'
import { freshFolder, startService, within, type Started } from '../support/service.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
const START_MS = Date.UTC(2026, 0, 31, 12)

/** What the clock shows at the nth act. */
const CLOCKS: { readonly [what: string]: (act: number) => number } = {
  'stands still': () => START_MS,
  'goes back an hour at each act': act => START_MS - act * 60 * MINUTE_MS,
  'jumps a year ahead, and back': act => START_MS + (act % 2) * 365 * DAY_MS,
  'is set to 1970 for a while': act => act > 2 && act < 9 ? act : START_MS + act,
  'is far ahead from some act on': act => START_MS + (act > 5 ? 20_000 * DAY_MS : 0)
}

/** A clock of the test's own for all that this process does. */
function ownClock(t: TestContext): { nowMs: number } {
  const clock = { nowMs: START_MS }
  t.mock.method(Date, 'now', () => clock.nowMs)
  return clock
}

/** What needs the service stopped is done here, by the test's own clock. */
const OFFLINE: { readonly [words: string]: (store: FullStore) => Promise<unknown> } = {
  'journal compact': store => compact(store), 'journal compact --drop-history --yes': store => compact(store, false),
  'key rewrite': store => reencrypt(store)
}

interface Running { url: string, service: Started['service'], readonly folder: string }

async function command(t: TestContext, started: Running, words: string): Promise<void> {
  const { [words]: act } = OFFLINE
  if (act === undefined) {
    const { code, error } = await admin(started.folder, words)
    return assert.equal(code, 0, `${words}: ${error}`)
  }
  await started.service.close()
  const store = await fileStore(started.folder, { wallMs: () => Date.now() })
  await act(store)
  await store.close()
  Object.assign(started, await startService(t, { ...FLAGS, data: started.folder }))
}

const FLAGS = { auth: 'bearer', 'login-limit': '0', 'extra-routes': 'on' }
const entry = (usuario: string): object => ({ password: 'p', sistema: 's', usuario })
const COMMANDS = [
  'key rotate', 'key rotate', 'journal compact', 'journal compact', 'key rewrite', 'key rewrite',
  'journal compact --drop-history --yes',
  'user edit ana@example.org --name Ana', 'token issue ana@example.org', 'journal backup FILE', 'journal verify'
]

for (const [what, clockAt] of Object.entries(CLOCKS)) {
  test(`a clock that ${what}: every change and command is done, and a restart finds all of it`, async t => {
    const clock = ownClock(t)
    const home = freshFolder(t)
    const started = { ...await startProtected(t, FLAGS) }
    const { folder } = started
    const token = await tokenOf(started)
    const names = (): string[] => readdirSync(folder).filter(name => !/\.sock$/.test(name)).sort()
    let acts = 0
    for (const words of COMMANDS) {
      clock.nowMs = clockAt(acts++)
      const made = await call(t, started.url, 'POST', '/api/createPassword', { token, body: entry(`u${acts}`) })
      assert.equal(made.status, 200)
      const read = await call(t, started.url, 'GET', `/api/getPassword/${acts}`, { token })
      clock.nowMs = clockAt(acts)
      const fields = [`If-Match: ${read.headers['etag']}`]
      const updated = await call(t, started.url, 'POST', `/api/updatePassword/${acts}`,
        { token, body: { sistema: `t${acts}` }, fields })
      assert.equal(updated.status, 200)
      assert.notEqual(updated.headers['etag'], read.headers['etag'])
      assert.equal((await call(t, started.url, 'POST', `/api/updatePassword/${acts}`,
        { token, body: { sistema: 'v' }, fields })).status, 412)
      const before = names()
      await command(t, started, words.replace('FILE', join(home, 'backup.jsonl')))
      // Neither command takes the name of a file that another has made.
      assert.deepEqual(before.filter(name => !names().includes(name)), [], words)
      assert.equal((await call(t, started.url, 'POST', '/api/login',
        { body: { email: ANA, password: PASSWORD } })).status, 200)
    }
    const shown = await call(t, started.url, 'GET', '/api/listPassword', { token })
    assert.equal(shown.json.length, COMMANDS.length)
    await started.service.close()
    clock.nowMs = clockAt(acts + 1)
    await within(async scope => {
      const again = await startService(scope, { ...FLAGS, data: folder })
      assert.equal((await call(scope, again.url, 'GET', '/api/listPassword', { token })).text, shown.text)
      assert.equal((await call(scope, again.url, 'POST', '/api/createPassword',
        { token, body: entry('after') })).status, 200)
    })
  })
}

/** A token of ten minutes, what the clock does, and what the token may then: at each time, and after a compaction. */
const LIVES: readonly (readonly [afterMinutes: number, status: number, command?: string])[] = [
  [0, 404], [9.9, 404], [10.1, 401], [5, 404], [20_000_000, 401], [5, 404], [-600_000, 404], [9.9, 404],
  [9, 404, 'journal compact'], [9.9, 404], [-600_000, 404, 'journal compact'], [9.9, 404], [10.1, 401],
  [11, 401, 'journal compact'], [12, 401]
]

test('a token ends when the clock says so; one that ran ahead or back ends or prolongs none for good', async t => {
  const clock = ownClock(t)
  const started = { ...await startProtected(t, FLAGS) }
  const [brief, long] = [await tokenOf(started, ANA, ['*'], 10), await tokenOf(started)]
  for (const [minutes, status, words] of LIVES) {
    clock.nowMs = START_MS + minutes * MINUTE_MS
    if (words !== undefined) await command(t, started, words)
    const ask = async (token: string): Promise<number> =>
      (await call(t, started.url, 'GET', '/api/listPassword', { token })).status
    assert.deepEqual([await ask(brief), await ask(long)], [status, 404], `${minutes} minutes after the login ${words ??
      ''}`)
  }
})
