/**
 * Each call on the disk fails once and then works again, during each act of clients and of the operator: the service
 * takes changes again, or says that it does not; what was acknowledged is there, now and after a restart; what was not
 * is there whole or not at all; and after the restart everything goes on.
 */
import assert from 'node:assert/strict'
import { cpSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { ANA, call, PASSWORD, startProtected, tokenOf } from '../support/accounts.ts'
import { admin } from '../support/admin.ts'
import { breakDisk } from '../support/faulty-files.ts'
import { freshFolder, startService, Steps, within, type Scope } from '../support/service.ts'

const CODES = (process.env['CODES'] ?? 'EIO').split(',')

interface Service { readonly url: string, readonly folder: string, readonly token: string }

/** What an act came to: whether it was acknowledged, and the statuses that a client may be given. */
type Act = (t: Scope, service: Service) => Promise<boolean>

const request = (method: string, path: string, body?: unknown): Act => async (t, { url, token }) => {
  const { status } = await call(t, url, method, path, { token, body })
  assert.ok([200, 500, 503].includes(status), `${path}: ${status}`)
  return status === 200
}
const commanded = (words: string): Act => async (_t, { folder }) => {
  const { code, error } = await admin(folder, words.replace('FOLDER', folder))
  assert.ok(code === 0 || (code === 1 || code === 3) && /^error: [^\n]+$/m.test(error), `${words}: ${code} ${error}`)
  assert.doesNotMatch(error, /^\s+at /m, 'a sentence, not a stack')
  return code === 0
}

/** The entries as JSON that an act leaves of `[1, 2, 3]` when it is done; undefined: it changes none. */
interface Row { readonly act: Act, readonly makes?: number, readonly changes?: string }
const ENTRY = { password: 'p', sistema: 's', usuario: 'new' }
const ACTS: { readonly [what: string]: Row } = {
  'a create': { act: request('POST', '/api/createPassword', ENTRY), makes: 1 },
  'an update': { act: request('POST', '/api/updatePassword/1', { usuario: 'new' }), makes: 0, changes: 'new' },
  'a delete': { act: request('POST', '/api/deletePassword/1'), makes: -1 },
  'a login': { act: request('POST', '/api/login', { email: ANA, password: PASSWORD }) },
  'a history': { act: request('GET', '/api/historyPassword/1') },
  'an import': { act: commanded('import FOLDER/../import.jsonl'), makes: 3 },
  'a purge': { act: commanded('entry purge 1 --yes'), makes: -1 },
  'a backup': { act: commanded('journal backup FOLDER/../backup.jsonl') },
  'a rotation': { act: commanded('key rotate') }
}
const IMPORT = Array.from({ length: 3 }, (_, n) => JSON.stringify({ password: `i${n}`, sistema: 's', usuario: `i${n}`,
  status: 1 }) + '\n').join('')

async function listed(t: Scope, { url, token }: Service): Promise<any[]> {
  const { status, json } = await call(t, url, 'GET', '/api/listPassword', { token })
  assert.equal(status, 200, 'reads go on')
  return json
}

/** Holds the entries against those before, an act that may or must have been done, and what was acknowledged since. */
function assertEntries(entries: readonly any[], { makes = 0, changes }: Row, isDone: boolean | undefined, added: number,
  what: string): boolean {
  const made = entries.length - 3 - added
  const isMade = makes === 0 ? entries[0]?.usuario === changes : made === makes
  assert.ok(made === makes || made === 0, `${what}: ${made} more entries`)
  if (isDone !== undefined && (makes !== 0 || changes !== undefined)) assert.equal(isMade, isDone, what)
  return isMade
}

/** Does an act while the call with that number fails; gives whether there was one. */
async function failsOnce(t: Scope, seed: string, token: string, row: Row, at: number, code: string): Promise<boolean> {
  const home = freshFolder(t)
  const folder = join(home, 'data')
  cpSync(seed, folder, { recursive: true })
  writeFileSync(join(home, 'import.jsonl'), IMPORT)
  const running = new Steps()
  const service = { token, folder, url: (await startService(running,
    { auth: 'bearer', data: folder, 'extra-routes': 'on', 'login-limit': '0' })).url }
  const disk = breakDisk(t, { at, code })
  const isDone = await row.act(t, service)
  const asked = disk.calls.length
  disk.heal()
  const what = `call ${at}, ${disk.failed}: ${code}`
  const [health, create] = [await call(t, service.url, 'GET', '/healthz'),
    await call(t, service.url, 'POST', '/api/createPassword', { token, body: ENTRY })]
  // It says that it takes changes where it does, and that it does not where it does not.
  assert.equal(health.status === 200, create.status === 200,
    `${what}: health is ${health.status} ${health.text}, a create ${create.status}`)
  const added = create.status === 200 ? 1 : 0
  const isMade = assertEntries(await listed(t, service), row, isDone, added, `${what}, while it runs`)
  if (disk.failed === undefined) assert.deepEqual([isDone, added], [true, 1], `${what}: nothing has failed`)
  await running.end()
  await within(async scope => {
    const again = { ...service, url: (await startService(scope, { auth: 'bearer', data: folder })).url }
    // What was answered 500 may be found after a restart.
    assertEntries(await listed(t, again), row, isMade || undefined, added, `${what}, after a restart`)
    assert.equal((await call(t, again.url, 'POST', '/api/createPassword', { token, body: ENTRY })).status, 200,
      `${what}: changes after a restart`)
    assert.deepEqual(readdirSync(folder).filter(name => name.endsWith('.part')), [], `${what}: a half of a file`)
  })
  return at <= asked
}

describe('each call on the disk fails once, and works again', () => {
  for (const [what, row] of Object.entries(ACTS)) {
    for (const code of CODES) {
      test(`during ${what}, by ${code}: the service goes on, or says that it does not`, async t => {
        const seed = freshFolder(t)
        let token = ''
        await within(async scope => {
          const started = await startProtected(scope, {})
          token = await tokenOf(started)
          for (const usuario of ['a', 'b', 'c']) await call(scope, started.url, 'POST', '/api/createPassword',
            { token, body: { ...ENTRY, usuario } })
          cpSync(started.folder, seed, { recursive: true, filter: path => !path.endsWith('.sock') })
        })
        for (let at = 1, hasFailed = true; hasFailed; at++) {
          await within(async scope => { hasFailed = await failsOnce(scope, seed, token, row, at, code) })
        }
      })
    }
  }
})
