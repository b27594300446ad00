/** Operations of an embedder for a user, and for itself. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Failure, openService, type Options, type Service } from '../../src/embedding/embedded-service.ts'
import { admin } from '../support/admin.ts'
import { atEnd, freshFolder } from '../support/service.ts'
import { event } from '../../src/store/events.ts'
import { fileStore } from '../support/stores.ts'

const ENTRY = { password: 'a', sistema: 'b', usuario: 'c' }
const SECRET = 'a long password 1'
const [ANA, BEA, CLEO] = ['ana@example.org', 'bea@example.org', 'cleo@example.org']
const [ana, bea, cleo] = [{ by: ANA }, { by: BEA }, { by: CLEO }]

/** Ana may do everything, Bea everything in group X, Cleo only list without secrets. */
async function team(t: TestContext, dataDir: string, options: Options = {}): Promise<Service> {
  const service = await openService({ dataDir, auth: 'bearer', page: false, ...options })
  atEnd(t, () => service.close())
  const { accounts } = service
  await accounts.addUser({ email: ANA, name: 'Ana', abilities: ['*'], password: SECRET, groups: null })
  await accounts.addUser({ email: BEA, name: 'Bea', abilities: ['*'], password: SECRET, groups: ['X'] })
  await accounts.addUser({ email: CLEO, name: 'Cleo', abilities: ['entry:list'], password: SECRET, groups: null })
  return service
}

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(() => 'done', error => error instanceof Failure ? error.code : error)

interface Told { readonly operation: string, readonly ids?: readonly number[], readonly list?: unknown }

/** Who was told what, as the journal has it. */
async function told(dataDir: string): Promise<readonly (readonly [by: string | null, ...Told[]])[]> {
  const { out } = await admin(dataDir, 'journal show --json')
  const records = out.trim().split('\n').map(line => JSON.parse(line) as { type: string, by: string | null,
    data: Told })
  return records.filter(({ type }) => type === 'passwords.told').map(({ by, data }) => [by, data])
}

test('a change is recorded with the user for whom it is made, and the host’s own with nobody', async t => {
  const service = await team(t, freshFolder(t))
  const { id } = await service.createPassword(ENTRY, ana)
  assert.equal(await service.updatePassword(id, { password: 'p2' }, bea), undefined, 'out of sight')
  await service.updatePassword(id, { grupo: 'X' })
  assert.deepEqual([await service.deletePassword(id, bea), await service.restorePassword(id, ana)], [true, true])
  assert.deepEqual((await service.historyPassword(id, bea))?.map(({ change, by }) => [change, by]), [
    ['restored', ANA], ['deleted', BEA], ['updated', null], ['unseen', null]
  ])
  assert.equal((await service.historyPassword(id))?.at(-1)?.by, ANA)
  assert.deepEqual([await service.historyPassword(9), await service.restorePassword(9)], [undefined, false])
})

test('a read is recorded once with its user, the host’s own with the host, a list without secrets never', async t => {
  const dataDir = freshFolder(t)
  const service = await team(t, dataDir)
  const one = await service.createPassword(ENTRY)
  const two = await service.createPassword({ ...ENTRY, grupo: 'X' })
  for (let n = 0; n < 2; n++) {
    assert.deepEqual(await service.listPassword(bea), [two])
    assert.deepEqual([await service.getPassword(1, bea), await service.getPassword(2, bea)], [undefined, two])
    assert.deepEqual([await service.getPassword(1, ana), await service.updatePassword(2, {}, ana)], [one, two])
    assert.deepEqual([await service.getPassword(1), await service.listPassword()], [one, [one, two]])
    assert.deepEqual((await service.listEntries(cleo)).map(({ id, grupo }) => [id, grupo]), [[1, undefined], [2, 'X']])
    assert.deepEqual((await service.listEntries(bea)).map(({ id }) => id), [2])
  }
  assert.deepEqual(await told(dataDir), [
    [BEA, { operation: 'listPassword', entryIds: [2] }], [ANA, { operation: 'getPassword', entryIds: [1] }],
    [ANA, { operation: 'updatePassword', entryIds: [2] }]
  ], 'the host knows what it has set')
  await service.updatePassword(1, { password: 'p2' }, ana)
  await service.getPassword(1)
  assert.deepEqual((await told(dataDir)).slice(3), [[null, { operation: 'getPassword', entryIds: [1] }]])
})

test('the abilities and groups of a user apply to everything that is done for the user', async t => {
  const service = await team(t, freshFolder(t))
  await service.createPassword({ ...ENTRY, otp: 'JBSWY3DPEHPK3PXP' })
  const asked = (options: { by: string }): Promise<unknown>[] => [
    service.listPassword(options), service.getPassword(1, options), service.createPassword(ENTRY, options),
    service.updatePassword(1, {}, options), service.deletePassword(1, options), service.restorePassword(1, options),
    service.historyPassword(1, options), service.oneTimeCode(1, options)
  ]
  for (const call of asked(cleo)) assert.equal(await codeOf(call), 'forbidden')
  for (const call of asked({ by: 'nobody@example.org' })) assert.equal(await codeOf(call), 'user-unknown')
  assert.deepEqual(await service.createPassword(ENTRY, bea), { id: 2, ...ENTRY, grupo: 'X', status: 1 })
  assert.equal(await codeOf(service.createPassword({ ...ENTRY, grupo: 'Y' }, bea)), 'input-invalid')
  assert.equal(await service.oneTimeCode(1, bea), undefined)
  const code = await service.oneTimeCode(1, ana)
  assert.match(code!.code, /^\d{6}$/)
  assert.deepEqual([Object.keys(code!), await service.oneTimeCode(2)], [['code', 'seconds'], undefined])
  await service.accounts.removeUser({ email: BEA })
  assert.equal(await codeOf(service.listEntries(bea)), 'user-unknown')
})

test('a user is found by the very letters of the address, but for the case of A to Z; a locked one is not', async t => {
  const dataDir = freshFolder(t)
  const store = await fileStore(dataDir)
  for (const email of [ANA, 'kim@example.org', 'ünal@example.org']) {
    await store.accounts.addUser(email, undefined, ['*'], null)
  }
  await store.commitAlone(() => [[event('password.changed', null, { id: 1, isLocked: true })], undefined])
  await store.close()
  const service = await openService({ dataDir, auth: 'bearer', page: false })
  atEnd(t, () => service.close())
  for (const [by, code] of [
    ['kim@example.org', 'done'], ['KIM@Example.org', 'done'], ['\u212aim@example.org', 'user-unknown'],
    ['ünal@example.org', 'done'], ['ÜNAL@example.org', 'user-unknown'], [ANA, 'user-unknown']
  ] as const) assert.equal(await codeOf(service.listPassword({ by })), code, by)
})

test('a move to another group takes the ability to delete', async t => {
  const service = await team(t, freshFolder(t), { abilities: 'listPassword=password:read' })
  await service.accounts.addUser({ email: 'd@example.org', abilities: ['password:update'], password: SECRET,
    groups: null })
  await service.createPassword(ENTRY)
  const by = { by: 'd@example.org' }
  assert.equal(await codeOf(service.updatePassword(1, { grupo: 'X' }, by)), 'move-forbidden')
  assert.equal((await service.updatePassword(1, { usuario: 'w' }, by))?.usuario, 'w')
})

test('a change is not made for a user whose rights have changed while it waited', async t => {
  const service = await team(t, freshFolder(t))
  const narrowed = service.accounts.changeUser({ email: ANA, abilities: ['entry:list'] })
  const made = service.createPassword(ENTRY, ana)
  assert.deepEqual([await narrowed, await codeOf(made)], [true, 'session-changed'])
  const moved = service.accounts.changeUser({ email: BEA, groups: ['X', 'Y'] })
  assert.deepEqual([await codeOf(service.createPassword({ ...ENTRY, grupo: 'X' }, bea)), await moved],
    ['session-changed', true])
  await service.accounts.changeUser({ email: BEA, groups: ['X'] })
  const renamed = service.accounts.changeUser({ email: BEA, name: 'B' })
  assert.equal(await codeOf(service.createPassword(ENTRY, bea)), 'done')
  await renamed
  const removed = service.accounts.removeUser({ email: BEA })
  assert.equal(await codeOf(service.createPassword(ENTRY, bea)), 'session-changed')
  await removed
  assert.equal((await service.listPassword()).length, 1)
})

test('in the open configuration nothing is recorded and nobody may be named; a history needs a file', async t => {
  const dataDir = freshFolder(t)
  const service = await openService({ dataDir, page: false })
  atEnd(t, () => service.close())
  await service.createPassword(ENTRY)
  for (const call of [service.createPassword(ENTRY, ana), service.getPassword(1, ana), service.listEntries(ana)]) {
    await assert.rejects(call, { code: 'setting-invalid', message: /by needs users/ })
  }
  assert.deepEqual([(await service.listPassword()).length, (await service.historyPassword(1))?.length], [1, 1])
  assert.deepEqual(await told(dataDir), [])
  const inMemory = await openService({ journal: 'memory', page: false })
  atEnd(t, () => inMemory.close())
  await inMemory.createPassword(ENTRY)
  assert.equal(await codeOf(inMemory.historyPassword(1)), 'operation-missing')
  assert.equal((await inMemory.listEntries()).length, 1)
})

test('handle says what it was given if that is no request of node:http', async t => {
  const service = await openService({ journal: 'memory', page: false })
  atEnd(t, () => service.close())
  const given: readonly unknown[][] = [[], [new Request('http://localhost/')], [new Request('http://localhost/'), {}]]
  for (const [request, response] of given) {
    assert.throws(() => service.handle(request as never, response as never), {
      code: 'request-foreign', message: /Bun\.serve, Deno\.serve/
    })
  }
})
