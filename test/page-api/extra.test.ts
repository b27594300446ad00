/** The routes of `EXTRA_ROUTES`: off by default, guarded and limited like the contract's. */
import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import type { DurableJournal } from '../../src/journal/journal.ts'
import { historyRoutes } from '../../src/parts/page-api/history-routes.ts'
import { historyReader, type Change } from '../../src/parts/page-api/history.ts'
import { LIST_PAGE_ENTRIES } from '../../src/limits.ts'
import { SETTINGS } from '../../src/settings.ts'
import { forOperator } from '../../src/parts/operator/socket/operator-changes.ts'
import { ANA, call, startProtected, tokenOf } from '../support/accounts.ts'
import { freshStore } from '../support/stores.ts'
import { compact, importEntries } from '../support/rewrite.ts'
import { send, startService, within, type Started } from '../support/service.ts'
import { Accounts } from '../../src/accounts/accounts.ts'
import { createEntry, deleteEntry, restoreEntry, updateEntry } from '../../src/entries/entry-commands.ts'

const ROUTES = [
  ['deletedPasswords', 'GET', '/api/deletedPasswords', 'password:deleted', undefined],
  ['olderDeletedPasswords', 'GET', '/api/deletedPasswords/1', 'password:deleted', undefined],
  ['restorePassword', 'POST', '/api/restorePassword/1', 'password:restore', undefined],
  ['historyPassword', 'GET', '/api/historyPassword/1', 'password:history', undefined]
] as const
const NO_PAGE = !('page' in SETTINGS) && 'there is no page'
const SECRETS = { password: 'p', sistema: 's', usuario: 'u', notas: 'n' }
const UNKNOWN = { message: 'contraseña no encontrada', status: 404 }

async function filled(t: TestContext, flags: Record<string, string> = {}): Promise<Started> {
  const started = await startService(t, { 'extra-routes': 'on', ...flags })
  const { store } = started.service
  await importEntries(store, [{ sistema: 'a', usuario: 'b', password: 'imported', status: 1 }])
  await createEntry(store, { sistema: 's', usuario: 'u', password: 'first' }, null)
  await updateEntry(store, 2, { password: 'second' }, null)
  await deleteEntry(store, 2, null)
  return started
}

function timeOf({ store }: Started['service'],
  id: number): string { return new Date(store.state.deletions.get(id)!.ms).toISOString() }

test('without EXTRA_ROUTES=on there is none of them', async t => {
  const { url } = await startService(t)
  for (const [, method, path] of ROUTES) assert.equal((await send(url, method, path)).status, 404, path)
})

test('with the page what was deleted is served all the same, and no history', { skip: NO_PAGE }, async t => {
  const { url } = await startService(t, { page: 'on' })
  const answers = await Promise.all(ROUTES.map(([, method, path]) => send(url, method, path)))
  assert.deepEqual(answers.map(({ json }) => json.message), [undefined, undefined, UNKNOWN.message, 'Not Found'])
})

test('what an operator has deleted is listed with the name of the account', async t => {
  const { url, service } = await filled(t)
  await deleteEntry(forOperator(service.store, 'eva'), 1, null)
  assert.deepEqual((await send(url, 'GET', '/api/deletedPasswords')).json.passwords.map((row: any) => row.deletedBy),
    [undefined, 'operator:eva'])
})

test('a deleted entry is listed and restored, and its history read, newest first', async t => {
  const { url, service } = await filled(t)
  assert.deepEqual((await send(url, 'GET', '/api/deletedPasswords')).json,
    { passwords: [{ id: 2, sistema: 's', usuario: 'u', status: 0, deleted: timeOf(service, 2) }], status: 200 })
  const old = await fetch(`${url}/api/restorePassword/2`, { method: 'POST', headers: { 'If-Match': '"0"' } })
  assert.deepEqual([old.status, service.store.state.entries.get(2)?.status], [412, 0])
  assert.deepEqual((await send(url, 'POST', '/api/restorePassword/2')).json,
    { message: 'contraseña restaurada', status: 200 })
  assert.equal(service.store.state.entries.get(2)?.status, 1)
  assert.deepEqual((await send(url, 'GET', '/api/deletedPasswords')).json, { passwords: [], status: 200 })
  const { history } = (await send(url, 'GET', '/api/historyPassword/2')).json
  assert.deepEqual(history.map(({ change, fields, values, by }: any) => [change, fields, values, by]), [
    ['restored', [], {}, null], ['deleted', [], {}, null], ['updated', ['password'], {}, null],
    ['created', ['password', 'sistema', 'usuario'], { sistema: 's', usuario: 'u' }, null]
  ])
  const former = await Promise.all(history.map(({ version }: { version: number }) =>
    send(url, 'GET', `/api/formerPassword/2/${version}`)))
  assert.deepEqual(former.map(({ json }) => json), [
    UNKNOWN, UNKNOWN, { password: 'second', status: 200 }, { password: 'first', status: 200 }
  ])
  assert.deepEqual(history.map(({ version }: { version: number }) => version), [4, 3, 2, 1],
    'they tell nothing of other entries')
  for (const version of ['5', '999', 'x', '0']) {
    assert.deepEqual((await send(url, 'GET', `/api/formerPassword/2/${version}`)).json, UNKNOWN, version)
  }
  for (const { time } of history) assert.match(time, /^\d{4}-\d\d-\d\dT/)
  const imported = (await send(url, 'GET', '/api/historyPassword/1')).json.history
  assert.deepEqual(imported.map(({ change, fields }: { change: string, fields: object }) => [change, fields]),
    [['created', ['password', 'sistema', 'usuario']]])
  for (const id of ['3', '0', 'x']) {
    assert.deepEqual((await send(url, 'POST', `/api/restorePassword/${id}`)).json, UNKNOWN)
    assert.deepEqual((await send(url, 'GET', `/api/historyPassword/${id}`)).json, UNKNOWN)
  }
})

test('a history shows what is no secret, as each change set it; former secrets are answered one at a time', async t => {
  const { url, service: { store } } = await startService(t, { 'extra-routes': 'on' })
  const first = { password: 'SECRET', sistema: 's', usuario: 'u', url: 'https://s.example', notas: 'NOTES', grupo: 'a' }
  await createEntry(store, { ...first, otp: 'JBSWY3DPEHPK3PXP' }, null)
  await updateEntry(store, 1, { url: '', notas: '', grupo: 'b' }, null)
  const answer = await send(url, 'GET', '/api/historyPassword/1')
  assert.deepEqual(answer.json.history.map(({ fields, values }: any) => [fields, values]), [
    [['url', 'notas', 'grupo'], { url: '', grupo: 'b' }],
    [['password', 'sistema', 'usuario', 'url', 'notas', 'grupo', 'otp'],
      { sistema: 's', usuario: 'u', url: 'https://s.example', grupo: 'a' }]
  ])
  for (const secret of ['SECRET', 'NOTES', 'JBSW']) assert.ok(!answer.text.includes(secret), secret)
  const former = await Promise.all(['Password/1/2', 'Password/1/1', 'Notes/1/2', 'Notes/1/1', 'Notes/1/3', 'Notes/9/1']
    .map(async rest => (await send(url, 'GET', `/api/former${rest}`)).json))
  assert.deepEqual(former, [UNKNOWN, { password: 'SECRET', status: 200 }, { notas: '', status: 200 },
    { notas: 'NOTES', status: 200 }, UNKNOWN, UNKNOWN])
})

test('a history names who has created, changed, deleted and restored an entry', async t => {
  const started = await startProtected(t, { 'extra-routes': 'on', journal: 'file' },
    { [ANA]: ['*'], 'eva@example.org': ['*'] })
  const token = await tokenOf(started)
  const ask = (method: string, path: string, body?: object): Promise<any> =>
    call(t, started.url, method, path, { token, ...body && { body } })
  await ask('POST', '/api/createPassword', { sistema: 's', usuario: 'u', password: 'p' })
  await ask('POST', '/api/updatePassword/1', { password: 'q' })
  await ask('POST', '/api/deletePassword/1')
  await ask('POST', '/api/restorePassword/1')
  const { json } = await ask('GET', '/api/historyPassword/1')
  assert.deepEqual(json.history.map(({ change, by }: { change: string, by: unknown }) => [change, by]),
    ['restored', 'deleted', 'updated', 'created'].map(change => [change, ANA]))
  const other = await tokenOf(started, 'eva@example.org')
  await started.service.accounts!.removeUser(ANA)
  const later = await call(t, started.url, 'GET', '/api/historyPassword/1', { token: other })
  assert.deepEqual(later.json.history.map(({ by }: { by: string }) => by), ['#1', '#1', '#1', '#1'],
    'a removed user is a number')
})

test('who deleted an entry, and when, is kept until it is restored', async t => {
  const { service: { store } } = await filled(t)
  assert.deepEqual([...store.state.deletions.keys()], [2])
  await restoreEntry(store, 2, null)
  assert.equal(store.state.deletions.size, 0)
})

test('a journal in memory has no history', async t => {
  const { url } = await filled(t, { journal: 'memory' })
  assert.equal((await send(url, 'GET', '/api/historyPassword/1')).status, 404)
})

test('one history is read at a time, and others are answered meanwhile', async t => {
  const { url, service } = await filled(t)
  await Promise.all(Array.from({ length: 5_000 }, (_, i) =>
    createEntry(service.store, { sistema: `${i}`, usuario: 'u', password: 'p' }, null)))
  const asked = ['/api/historyPassword/1', '/api/historyPassword/2', '/api/getPassword/1'].map(path =>
    send(url, 'GET', path))
  const order: number[] = []
  asked.forEach((one, i) => { void one.then(() => order.push(i)) })
  const [first, second, get] = await Promise.all(asked)
  assert.deepEqual([first!.status, second!.status, get!.status], [200, 503, 200])
  assert.equal(second!.headers.get('retry-after'), '1')
  assert.equal(order.at(-1), 0)
})

test('a former value is not answered to whom its entry goes out of sight while it is looked up', async t => {
  const { service: { store } } = await filled(t)
  for (const operation of ['formerPassword', 'formerNotes']) {
    await createEntry(store, { ...SECRETS, grupo: 'a' }, null)
    const { handle } = historyRoutes(store, store.journal as DurableJournal).find(one => one.operation === operation)!
    const id = store.state.entries.size
    const call = { id, version: 1, session: { user: 1, groups: ['a'] } } as never
    assert.equal((await handle(call)).status, 200)
    const looking = handle(call)
    const data = { id, grupo: 'b' }
    store.state.apply({ seq: 0, time: store.state.recorded, type: 'fields.updated', by: null, data })
    assert.equal((await looking).status, 404, operation)
  }
})

test('each asks for an ability of its own, and counts against the rate limit', async t => {
  const started = await startProtected(t, { 'extra-routes': 'on', 'login-limit': '0' }) // 0: none
  await createEntry(started.service.store, { sistema: 's', usuario: 'u', password: 'p' }, null)
  for (const [operation, method, path, ability, body] of ROUTES) {
    const without = { token: await tokenOf(started, ANA, ['password:read']), body }
    assert.equal((await call(t, started.url, method, path)).status, 401, operation)
    assert.equal((await call(t, started.url, method, path, without)).status, 403, operation)
    assert.equal((await call(t, started.url, method, path,
      { token: await tokenOf(started, ANA, [ability]), body })).status, 200, operation)
  }
  const limited = await startService(t, { 'extra-routes': 'on', 'rate-limit': '1' })
  await send(limited.url, 'GET', '/api/deletedPasswords')
  assert.equal((await send(limited.url, 'GET', '/api/deletedPasswords')).status, 429)
})

test('what ABILITIES says of deletedPasswords holds for both of its paths, unless the second is named too', async t => {
  for (const [abilities, expected] of [
    ['deletedPasswords=vault:trash', [403, 403]], ['deletedPasswords=password:read', [200, 200]],
    ['deletedPasswords=any', [200, 200]],
    ['olderDeletedPasswords=password:read', [403, 200]],
    ['olderDeletedPasswords=vault:trash,deletedPasswords=any', [200, 403]]
  ] as const) {
    const started = await startProtected(t, { 'extra-routes': 'on', abilities })
    await createEntry(started.service.store, { sistema: 's', usuario: 'u', password: 'p' }, null)
    const token = await tokenOf(started, ANA, ['password:read'])
    const answers = await Promise.all(['', '/1'].map(rest =>
      call(t, started.url, 'GET', `/api/deletedPasswords${rest}`, { token })))
    assert.deepEqual(answers.map(({ status }) => status), expected, abilities)
  }
})

/** `ABILITIES`, what a caller has, and the status of each operation on an entry that is there. */
const CONFIGURED: readonly (readonly [setting: string, has: string, listPassword: number, getPassword: number,
  listEntries: number, oneTimeCode: number, historyPassword: number, formerPassword: number,
  formerNotes: number, whoKnows: number])[] = [
  ['', 'password:read', 200, 200, 200, 200, 403, 403, 403, 403],
  ['', 'entry:list', 403, 403, 200, 403, 403, 403, 403, 403],
  ['', 'password:history', 403, 403, 403, 403, 200, 200, 200, 200],
  ['', 'entry:knowledge', 403, 403, 403, 403, 403, 403, 403, 200],
  ['listPassword=x', 'x', 200, 403, 200, 403, 403, 403, 403, 403],
  ['listPassword=x', 'entry:list', 403, 403, 200, 403, 403, 403, 403, 403],
  ['listPassword=x', 'password:read', 403, 200, 200, 200, 403, 403, 403, 403],
  ['getPassword=y', 'y', 403, 200, 403, 200, 403, 403, 403, 403],
  ['listPassword=x,getPassword=y', 'x', 200, 403, 200, 403, 403, 403, 403, 403],
  ['listPassword=any', 'password:create', 200, 403, 200, 403, 403, 403, 403, 403],
  ['listPassword=x,listEntries=z', 'x', 200, 403, 403, 403, 403, 403, 403, 403],
  ['listPassword=x,listEntries=z', 'z', 403, 403, 200, 403, 403, 403, 403, 403],
  ['historyPassword=h', 'h', 403, 403, 403, 403, 200, 200, 200, 200],
  ['historyPassword=h', 'password:history', 403, 403, 403, 403, 403, 403, 403, 200],
  ['historyPassword=h,formerPassword=f', 'h', 403, 403, 403, 403, 200, 403, 403, 200],
  ['historyPassword=h,whoKnows=k', 'h', 403, 403, 403, 403, 200, 200, 200, 403],
  ['historyPassword=any', 'password:create', 403, 403, 403, 403, 200, 200, 200, 200]
]

test('who may call an operation by the ability that ABILITIES asks for may call those that tell less', async () => {
  const paths = ['listPassword', 'getPassword/1', 'listEntries', 'oneTimeCode/1', 'historyPassword/1',
    'formerPassword/1/1', 'formerNotes/1/1', 'whoKnows/1']
  for (const [setting, has, ...expected] of CONFIGURED) {
    await within(async scope => {
      const started = await startProtected(scope, { 'extra-routes': 'on', ...setting && { abilities: setting } })
      const fields = { ...SECRETS, otp: 'JBSWY3DPEHPK3PXP' }
      await createEntry(started.service.store, fields, null)
      // As an older configuration gave it: perhaps no operation asks for it any more.
      const { token } = (await new Accounts(started.service.store).issue(ANA, [has], undefined))!
      const statuses = []
      for (const path of paths) statuses.push((await call(scope, started.url, 'GET', `/api/${path}`, { token })).status)
      assert.deepEqual(statuses, expected, `ABILITIES=${setting}, ${has}`)
    })
  }
})

test('the deleted entries are as many as a mebibyte takes, and at least one; older ones come below an id', async t => {
  const { url, service: { store } } = await startService(t, { 'extra-routes': 'on', 'max-body-bytes': '3000000' })
  const fields = { password: 'p', sistema: 'ñ'.repeat(30_000), usuario: 'u' }
  for (let id = 1; id <= 30; id++) {
    await createEntry(store, { ...fields, usuario: `${id}` }, null)
    await deleteEntry(store, id, null)
  }
  const deleted = await send(url, 'GET', '/api/deletedPasswords')
  assert.deepEqual(deleted.json.passwords.map(({ id }: { id: number }) => id),
    Array.from({ length: 17 }, (_, i) => 30 - i))
  const older = await send(url, 'GET', '/api/deletedPasswords/14')
  assert.deepEqual(older.json.passwords.map(({ id }: { id: number }) => id),
    Array.from({ length: 13 }, (_, i) => 13 - i))
  assert.deepEqual((await send(url, 'GET', '/api/deletedPasswords/1')).json, { passwords: [], status: 200 })
  for (const id of ['31', '32', '999999999999999']) {
    assert.deepEqual((await send(url, 'GET', `/api/deletedPasswords/${id}`)).json.passwords[0].id, 30, id)
  }
  for (const id of ['0', '1000000000000000', 'x', '-1']) {
    assert.deepEqual((await send(url, 'GET', `/api/deletedPasswords/${id}`)).json, UNKNOWN, id)
  }
  assert.ok(Buffer.byteLength(deleted.text) < 1_100_000)
  await createEntry(store, { ...fields, sistema: 'x'.repeat(2_000_000) }, null)
  await deleteEntry(store, 31, null)
  assert.equal((await send(url, 'GET', '/api/deletedPasswords')).json.passwords.length, 1)
})

test('deleted entries at the edges of pages are listed, also behind pages that have none', async t => {
  const { url, service: { store } } = await startService(t, { 'extra-routes': 'on' })
  const last = 6 * LIST_PAGE_ENTRIES
  const deleted = [1, LIST_PAGE_ENTRIES, LIST_PAGE_ENTRIES + 1, 3 * LIST_PAGE_ENTRIES, last]
  await importEntries(store, Array.from({ length: last }, (_, i) =>
    ({ sistema: 's', usuario: 'u', password: 'p', status: deleted.includes(i + 1) ? 0 : 1 } as const)))
  const idsOf = async (path: string): Promise<readonly number[]> =>
    (await send(url, 'GET', `/api/deletedPasswords${path}`)).json.passwords.map(({ id }: { id: number }) => id)
  assert.deepEqual(await idsOf(''), deleted.toReversed())
  for (let i = 0; i < deleted.length; i++) {
    for (const id of [deleted[i]!, deleted[i]! + 1].filter(id => id <= last)) {
      assert.deepEqual(await idsOf(`/${id}`), deleted.filter(one => one < id).toReversed(), `below ${id}`)
    }
  }
})

test('a history has so many changes, so much text and so much time; of a longer journal there is none', async t => {
  const store = await freshStore(t)
  const journal = store.journal as DurableJournal
  const read = (id: number, given: object = {}, nowMs = (): number => 0): Promise<readonly Change[] | undefined> =>
    historyReader({ ...journal, location: () => ({ ...journal.location(), ...given }) }, nowMs)(id)
  await Promise.all(Array.from({ length: 2 }, () => createEntry(store, { sistema: 's', usuario: 'u', password: 'p' },
    null)))
  await Promise.all(Array.from({ length: 600 }, (_, i) => updateEntry(store, 1, { password: `${i}` }, null)))
  for (let i = 0; i < 30; i++) await updateEntry(store, 2, { password: `${i}`.padEnd(100_000, 'x') }, null)
  const [many, long] = [await read(1), await read(2)]
  assert.deepEqual([many?.length, many?.[0]?.fields.password], [500, '599'])
  assert.deepEqual([long?.length, long?.[0]?.fields.password?.slice(0, 2)], [20, '29'])
  await updateEntry(store, 2, { password: 'x'.repeat(2_200_000) }, null)
  assert.equal((await read(2))?.length, 1, 'one at least')
  let timeMs = 0
  assert.equal(await read(1, {}, () => timeMs++ === 0 ? 0 : 10_001), undefined)
  assert.equal(await read(1, { bytes: 2 ** 30 }), undefined)
  await deleteEntry(forOperator(store, 'root'), 2, null)
  assert.equal((await read(2))?.[0]?.by, 'operator:root')
  await compact(store, false)
  assert.deepEqual((await read(1))?.map(({ change }) => change), ['kept'])
})
