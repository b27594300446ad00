/** Whoever is answered with a password that is new to them is in the journal before the answer is sent. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { createEntry, deleteEntry, restoreEntry, updateEntry } from '../../src/entries/entry-commands.ts'
import type { Tells } from '../../src/entries/entry.ts'
import { disclosed, markRecording } from '../../src/knowledge/disclosure.ts'
import { knowersOf } from '../../src/knowledge/exposure.ts'
import { sessionFor } from '../../src/rights/rights.ts'
import { breakDisk, holdAppend } from '../support/faulty-files.ts'
import { ANA, call, startProtected, tokenOf } from '../support/accounts.ts'
import { until } from '../support/program.ts'
import type { RawAnswer } from '../support/raw.ts'
import { startService, type Started } from '../support/service.ts'

const BEA = 'bea@example.org'
const USERS = { [ANA]: ['*'], [BEA]: ['*'] }
const FIELDS = { password: 'P1', sistema: 's', usuario: 'u' }

interface Team {
  readonly started: Started
  /** Users 1 and 2. */
  ana(method: string, path: string, body?: unknown, fields?: readonly string[]): Promise<RawAnswer>
  bea(method: string, path: string, body?: unknown, fields?: readonly string[]): Promise<RawAnswer>
  /** User and data of the records of what was told. */
  told(): (readonly [by: number | null, data: any])[]
  knows(id: number): unknown[]
}

async function team(t: TestContext, flags: Record<string, string> = {}): Promise<Team> {
  const started = await startProtected(t, { 'extra-routes': 'on', ...flags }, USERS)
  const [ana, bea] = [await tokenOf(started), await tokenOf(started, BEA)]
  const { state } = started.service.store
  const as = (token: string): Team['ana'] => (method, path, body, fields = []) =>
    call(t, started.url, method, `/api/${path}`, { token, body, fields })
  return {
    started, ana: as(ana), bea: as(bea), knows: id => knowersOf(state, id, true).map(([knower]) => knower),
    told: () => recordsOf(started).filter(({ type }) => type === 'passwords.told').map(({ by }) => [by, undefined])
  }
}

function recordsOf({ folder }: Started): { readonly type: string, readonly by: number | null }[] {
  return readFileSync(join(folder, 'journal.jsonl'), 'utf8').trimEnd().split('\n').map(line => JSON.parse(line))
}

test('a first read is recorded before it is answered, and no read of the same password after it', async t => {
  const { ana, bea, told, knows } = await team(t)
  await ana('POST', 'createPassword', FIELDS)
  assert.deepEqual(knows(1), [1])
  for (let n = 0; n < 3; n++) assert.equal((await bea('GET', 'getPassword/1')).status, 200)
  assert.deepEqual([knows(1), told().length], [[1, 2], 1])
  assert.equal((await ana('GET', 'listPassword')).status, 200)
  assert.equal((await bea('GET', 'listPassword')).status, 200)
  assert.equal(told().length, 1, 'both know all of it')
  await ana('POST', 'updatePassword/1', { password: 'P2' })
  assert.deepEqual(knows(1), [1])
  await ana('POST', 'updatePassword/1', { password: 'P2', usuario: 'v' })
  await bea('GET', 'listPassword')
  await bea('GET', 'getPassword/1')
  assert.deepEqual([knows(1), told().length], [[1, 2], 2])
  await ana('POST', 'updatePassword/1', { password: 'P2' })
  assert.deepEqual(knows(1), [1, 2], 'the same value changes nothing')
})

test('all tokens of a user count as one person, also tokens of single groups', async t => {
  const { started, ana, told, knows } = await team(t)
  const { accounts } = started.service
  for (const grupo of ['a', 'b']) await ana('POST', 'createPassword', { ...FIELDS, password: grupo, grupo })
  const tokens = [await accounts!.issue(BEA, undefined, undefined, 'all'),
    await accounts!.issue(BEA, ['password:read'], undefined, 'of a', ['a']),
    await accounts!.issue(BEA, ['password:read'], 5, 'also of a', ['a'])]
  const got = async (n: number, id: number): Promise<number> =>
    (await call(t, started.url, 'GET', `/api/getPassword/${id}`, { token: tokens[n]!.token })).status
  assert.deepEqual([await got(1, 1), await got(1, 2)], [200, 404])
  assert.deepEqual([await got(2, 1), await got(0, 1)], [200, 200])
  assert.deepEqual([told().map(([by]) => by), knows(1), knows(2)], [[2], [1, 2], [1]])
  assert.equal(await got(0, 2), 200)
  assert.equal(told().length, 2)
  const { json } = await ana('GET', 'whoKnows/1')
  assert.deepEqual(json.knows.map(({ user }: any) => user.email), [ANA, BEA])
})

test('the journal grows by at most some 300 bytes for each user and password, however often that is read', async t => {
  const { started, ana, bea } = await team(t)
  const ENTRIES = 20
  for (let n = 0; n < ENTRIES; n++) await createEntry(started.service.store, { ...FIELDS, password: `p${n}` }, null)
  const bytes = (): number => readFileSync(join(started.folder, 'journal.jsonl')).length
  const before = bytes()
  // One at a time: no record is shared.
  for (const as of [ana, bea]) for (let id = 1; id <= ENTRIES; id++) await as('GET', `getPassword/${id}`)
  const grown = bytes() - before
  assert.ok(grown > 0 && grown <= 2 * ENTRIES * 310, `${grown / (2 * ENTRIES)} bytes each`)
  for (const as of [ana, bea]) {
    for (let id = 1; id <= ENTRIES; id++) await as('GET', `getPassword/${id}`)
    await as('GET', 'listPassword')
  }
  assert.equal(bytes() - before, grown)
})

test('an update tells the password that it leaves as it is, and one that changes nothing does, too', async t => {
  for (const body of [{ usuario: 'v' }, {}, { password: 'P1' }]) {
    const { ana, bea, told, knows } = await team(t)
    await ana('POST', 'createPassword', FIELDS)
    const { status, json } = await bea('POST', 'updatePassword/1', body)
    assert.deepEqual([status, json.password.password, knows(1), told().length], [200, 'P1', [1, 2], 1])
  }
})

/** User and body of updates of an entry with the password P1; what each is answered, and who knows it then. */
const TOGETHER: readonly (readonly [
  updates: readonly (readonly ['ana' | 'bea', object])[], passwords: readonly string[], knowers: readonly number[]
])[] = [
  [[['bea', { usuario: 'v' }], ['ana', { password: 'P2' }]], ['P1', 'P2'], [1]],
  [[['ana', { password: 'P2' }], ['bea', { usuario: 'v' }]], ['P2', 'P2'], [1, 2]],
  [[['bea', { usuario: 'v' }], ['ana', { password: 'P2' }], ['bea', { usuario: 'w' }]], ['P1', 'P2', 'P2'], [1, 2]],
  [[['bea', {}], ['ana', { password: 'P2' }], ['bea', {}]], ['P1', 'P2', 'P2'], [1, 2]]
]

test('updates that share a write are each made once, and tell the password that they are answered with', async t => {
  for (const [updates, passwords, knowers] of TOGETHER) {
    const { ana, bea, knows, started } = await team(t)
    for (let n = 0; n < 2; n++) await ana('POST', 'createPassword', FIELDS)
    const { reached, release } = holdAppend(t)
    const held = ana('POST', 'updatePassword/2', { usuario: 'held' })
    await reached
    const answers: Promise<RawAnswer>[] = []
    for (const [who, body] of updates) {
      answers.push({ ana, bea }[who]('POST', 'updatePassword/1', body))
      await until('it waits', () => started.service.store.status().waiting === answers.length)
    }
    release()
    await held
    const what = JSON.stringify(updates)
    assert.deepEqual((await Promise.all(answers)).map(({ json }) => json.password.password), passwords, what)
    assert.deepEqual(knows(1), knowers, what)
    const made = recordsOf(started).filter(({ type }) => type === 'entry.updated')
    assert.equal(made.length, 1 + updates.filter(([, body]) => Object.keys(body).length > 0).length, what)
  }
})

test('what tells no password is not recorded', async t => {
  const { ana, bea, told, started } = await team(t)
  await ana('POST', 'createPassword', { ...FIELDS, otp: 'JBSWY3DPEHPK3PXP' })
  await ana('POST', 'createPassword', FIELDS)
  await ana('POST', 'deletePassword/2')
  const asked: readonly (readonly [string, string, number, unknown?, (readonly string[])?])[] = [
    ['HEAD', 'getPassword/1', 200], ['HEAD', 'listPassword', 200], ['GET', 'getPassword/9', 404],
    ['GET', 'listEntries', 200],
    ['GET', 'deletedPasswords', 200], ['GET', 'deletedPasswords/2', 200], ['GET', 'oneTimeCode/1', 200],
    ['GET', 'historyPassword/1', 200],
    ['GET', 'whoKnows/1', 200], ['POST', 'updatePassword/1', 412, { usuario: 'x' }, ['If-Match: "other"']],
    ['POST', 'updatePassword/1', 400, { usuario: 7 }],
    ['POST', 'deletePassword/1', 200], ['POST', 'restorePassword/1', 200]
  ]
  for (const [method, path, status, body, fields] of asked) {
    assert.equal((await bea(method, path, body, fields)).status, status, `${method} ${path}`)
  }
  assert.deepEqual(told(), [])
  assert.deepEqual(knowersOf(started.service.store.state, 1, false).map(([knower]) => knower), [1])
})

test('equal reads at once make one record; a read beside a change tells what is recorded', async t => {
  const { ana, bea, told, knows } = await team(t)
  await ana('POST', 'createPassword', FIELDS)
  await Promise.all(Array.from({ length: 64 }, () => bea('GET', 'getPassword/1')))
  assert.deepEqual([knows(1), told().length], [[1, 2], 1])
  await ana('POST', 'createPassword', FIELDS)
  await Promise.all(Array.from({ length: 64 }, () => bea('GET', 'listPassword')))
  assert.deepEqual([knows(2), told().length], [[1, 2], 2])
  for (let n = 2; n < 40; n++) {
    const [read] = await Promise.all([
      bea('GET', 'getPassword/1'), ana('POST', 'updatePassword/1', { password: `P${n}` })
    ])
    const isNew = read!.json.passwords.password === `P${n}`
    assert.deepEqual(knows(1), isNew ? [1, 2] : [1], `change ${n}`)
  }
})

test('a former value is read once: another history that is read meanwhile refuses nobody who is recorded', async t => {
  const { ana, bea, knows, started: { service: { store } } } = await team(t)
  await createEntry(store, { ...FIELDS, grupo: 'a' }, null)
  for (let n = 0; n < 20; n++) {
    await Promise.all(Array.from({ length: 500 }, () => createEntry(store, FIELDS, null)))
  }
  const { reached, release } = holdAppend(t)
  const former = bea('GET', 'formerPassword/1/1')
  await reached
  const histories = [1, 2].map(() => ana('GET', 'historyPassword/2'))
  assert.equal((await Promise.race(histories)).status, 503, 'one is under way')
  release()
  assert.deepEqual([(await former).json, knows(1)], [{ password: FIELDS.password, status: 200 }, ['host', 2]])
  assert.deepEqual((await Promise.all(histories)).map(({ status }) => status).sort(), [200, 503])
})

test('a read is answered, and recorded, as of before the changes that share its write', async t => {
  const { knows, started: { service: { store, accounts } } } = await team(t)
  await accounts!.changeUser(BEA, undefined, undefined, ['a'])
  const { abilities, groups } = store.state.users.get(2)!
  const session = { user: 2, hash: '', token: {}, abilities, groups } as never
  const gone = {
    moved: (id: number) => updateEntry(store, id, { grupo: 'b' }, null),
    deleted: (id: number) => deleteEntry(store, id, null)
  }
  let id = 0
  for (const [how, go] of Object.entries(gone)) {
    await createEntry(store, { ...FIELDS, grupo: 'a' }, null)
    id++
    const list = (): { tells?: Tells } =>
      store.state.entries.list(['a']) === undefined ? {} : { tells: 'list' }
    const [answer] = await Promise.all([disclosed(store, session, 'listPassword', list), go(id)])
    assert.deepEqual([answer, knows(id)], [{ tells: 'list' }, ['host', 2]], how)
  }
  await createEntry(store, { ...FIELDS, grupo: 'a' }, null)
  id++
  const one = (): { tells?: Tells } => store.state.entries.grupo(id) === 'a' ? { tells: id } : {}
  const [answer] = await Promise.all([disclosed(store, session, 'getPassword', one), gone.moved(id)])
  assert.deepEqual([answer, knows(id)], [{ tells: id }, ['host', 2]], 'moved, and read by itself')
})

test('a password that is set in the write which records a list is recorded by the next list', async t => {
  const { knows, started: { service: { store } } } = await team(t)
  const session = sessionFor(store.state.users.get(2)!)
  await createEntry(store, FIELDS, null)
  const list = (): Promise<unknown> => disclosed(store, session, 'listPassword', () => ({ tells: 'list' }))
  await Promise.all([list(), updateEntry(store, 1, { password: 'P2' }, null)])
  assert.deepEqual(knows(1), ['host'])
  await list()
  assert.deepEqual(knows(1), ['host', 2])
})

test('the list of a caller with groups tells the entries of these groups, and later ones anew', async t => {
  const { bea, told, knows, started: { service: { store, accounts } } } = await team(t)
  await accounts!.changeUser(BEA, undefined, undefined, ['a', 'b'])
  const groups = ['a', 'b', 'c', undefined, 'b']
  for (const grupo of groups) await createEntry(store, { ...FIELDS, grupo }, null)
  await deleteEntry(store, 5, null)
  const beaKnows = (): boolean[] => groups.map((_, i) => knows(i + 1).includes(2))
  for (let n = 0; n < 2; n++) assert.equal((await bea('GET', 'listPassword')).status, 200)
  assert.deepEqual([beaKnows(), told().length], [[true, true, false, false, false], 1])
  for (const id of [1, 3]) await updateEntry(store, id, { grupo: 'b', password: 'P2' }, null)
  assert.deepEqual(beaKnows(), [false, true, false, false, false])
  await bea('GET', 'listPassword')
  assert.deepEqual([beaKnows(), told().length], [[true, true, true, false, false], 2])
  // Nothing is new about them but that they are in sight.
  await updateEntry(store, 4, { grupo: 'b' }, null)
  await restoreEntry(store, 5, null)
  await bea('GET', 'listPassword')
  assert.deepEqual([beaKnows(), told().length], [[true, true, true, true, true], 3])
})

test('whose token is revoked in the same write is told nothing, and is not recorded', async t => {
  const { knows, started: { service: { store, accounts } } } = await team(t)
  await createEntry(store, FIELDS, null)
  const session = accounts!.session((await accounts!.issue(BEA, undefined, undefined))!.token)!
  const read = (): { tells: Tells } => ({ tells: 1 })
  const [, told] = await Promise.allSettled([
    accounts!.revoke(session.hash, null), disclosed(store, session, 'getPassword', read)
  ])
  assert.equal(told.status === 'rejected' && told.reason.code, 'session-changed')
  assert.deepEqual(knows(1), ['host'])
})

test('two instances that begin at once say once that reads are recorded', async t => {
  const { service: { store } } = await startService(t)
  for (const [asksForTokens, recording] of [[true, 'begun'], [false, 'ended']] as const) {
    const begin = (): Promise<void> => markRecording(store, asksForTokens, assert.fail)
    const { records } = store.status()
    await Promise.all([begin(), begin()])
    await begin()
    assert.deepEqual([store.state.knowledge.recording, store.status().records], [recording, records + 1])
  }
})

test('without room users read what they know; all else is a failure that is sent without a password', async t => {
  const { ana, bea, knows } = await team(t)
  await ana('POST', 'createPassword', FIELDS)
  await bea('GET', 'listPassword')
  await ana('POST', 'updatePassword/1', { password: 'P2' })
  breakDisk(t, { of: 'append', code: 'ENOSPC', forGood: true })
  for (const path of ['getPassword/1', 'listPassword']) {
    const { status, json } = await bea('GET', path)
    assert.deepEqual([status, json], [500, { message: 'Error recording who is given a password', status: 500 }])
    assert.equal((await ana('GET', path)).status, 200, 'who knows it is answered')
    assert.equal((await bea('HEAD', path)).status, 200)
  }
  assert.equal((await bea('POST', 'updatePassword/1', {})).status, 500)
  assert.deepEqual(knows(1), [1])
})

test('a HEAD of an answer with passwords has no length; every other one has that of the GET', async t => {
  const { started: { service: { store } }, ana } = await team(t)
  await createEntry(store, FIELDS, null)
  const lengthOf = async (method: string, path: string): Promise<string | undefined> => {
    const answer = await ana(method, path)
    assert.equal(answer.status, 200, path)
    return answer.headers['content-length']
  }
  for (const path of ['getPassword/1', 'listPassword']) {
    assert.deepEqual([await lengthOf('HEAD', path), Number(await lengthOf('GET', path)) > 0], [undefined, true], path)
  }
  for (const path of ['listEntries', 'historyPassword/1']) {
    assert.equal(await lengthOf('HEAD', path), await lengthOf('GET', path), path)
  }
})

test('in one write, a read, another password and a change that sets nothing: the new password is recorded', async t => {
  const { knows, started: { service: { store } } } = await team(t)
  const session = (id: number) => sessionFor(store.state.users.get(id)!)
  await createEntry(store, FIELDS, null)
  const { reached, release } = holdAppend(t)
  const first = createEntry(store, FIELDS, null)
  await reached
  const [ana, bea] = [session(1), session(2)]
  const all = [
    disclosed(store, ana, 'getPassword', (): { readonly tells: Tells } => ({ tells: 1 })),
    updateEntry(store, 1, { password: 'P2' }, bea),
    updateEntry(store, 1, {}, ana, { tells: { reader: ana, operation: 'updatePassword' } })
  ] as const
  release()
  const [, , answered] = await Promise.all([...all, first])
  assert.equal(answered?.password, 'P2')
  assert.deepEqual(knows(1), [1, 2])
})

test('the first list of a token is recorded, whatever a narrower token of its user has listed', async t => {
  const { ana, knows, started } = await team(t)
  await createEntry(started.service.store, { ...FIELDS, grupo: 'Web' }, null)
  await createEntry(started.service.store, FIELDS, null)
  const { token } = (await started.service.accounts!.issue(ANA, undefined, undefined, undefined, ['Web']))!
  for (let n = 0; n < 2; n++) await call(t, started.url, 'GET', '/api/listPassword', { token })
  assert.deepEqual([knows(1), knows(2)], [['host', 1], ['host']])
  await ana('GET', 'listPassword')
  assert.deepEqual(knows(2), ['host', 1])
})
