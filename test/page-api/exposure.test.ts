/** Who knows a password and may be told it no more, and the list that counts them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEntry, deleteEntry, updateEntry } from '../../src/entries/entry-commands.ts'
import { SOCKET_OPERATIONS } from '../../src/parts/operator/socket/operation-table.ts'
import { purgeEntry } from '../../src/parts/operator/socket/operator-changes.ts'
import { event } from '../../src/store/events.ts'
import { Exposure, unrecordedOf, whoKnows } from '../../src/knowledge/exposure.ts'
import { listingOf, type ListForm } from '../../src/parts/page-api/listing.ts'
import { sessionFor } from '../../src/rights/rights.ts'
import type { FoundEntries } from '../../src/parts/commands/operation.ts'
import { PASSWORD, World } from '../support/accounts.ts'
import { importEntries } from '../support/rewrite.ts'
import type { FullStore } from '../support/stores.ts'

const FIELDS = { sistema: 's', usuario: 'u' }
const ABILITIES = new Map([['getPassword', ['password:read']], ['updatePassword', ['password:update']]])

/** Of each entry that the operator is shown as exposed. */
function shownToOperator(store: FullStore): readonly (readonly [id: number, exposed: number])[] {
  const call = { store, abilities: ABILITIES } as unknown as Parameters<typeof SOCKET_OPERATIONS.findEntries.run>[0]
  const { found, lists } = SOCKET_OPERATIONS.findEntries.run(call,
    { from: 1, text: undefined, among: 'active', isExposed: true }) as FoundEntries
  return found.map(({ id, exposedTo }) => [id, lists[exposedTo!]!.length])
}

interface Counting {
  readonly store: FullStore
  /** Its clock stands still by itself. */
  readonly world: World
  readonly list: ReturnType<typeof listingOf>
  /** Of each row that has one: id and `exposed`. */
  exposed(form?: ListForm): Promise<readonly (readonly [id: number, exposed: number])[]>
  tell(by: number, ...entryIds: readonly number[]): Promise<void>
  tag(form: ListForm): Promise<string>
}

async function counting(): Promise<Counting> {
  const world = new World()
  const store = world.open()
  const { state } = store
  await store.commit(() => [[event('recording.begun', null, {})], undefined])
  for (const [name, groups] of [['ana', undefined], ['bea', ['a']], ['carl', ['b']]] as const) {
    await store.accounts.addUser(`${name}@x.org`, name, ['password:read'], PASSWORD, groups)
  }
  const exposure = new Exposure(state, ABILITIES)
  const list = listingOf(state, exposure, true)
  const tell: Counting['tell'] = (by, ...entryIds) => store.commit(() =>
    [[event('passwords.told', by, { operation: 'getPassword', entryIds })], undefined])
  return {
    store, world, list, tell,
    exposed: async (form = 'exposed') => {
      const rows = JSON.parse((await list(form)).bytes.toString())
        .flatMap(({ id, exposed }: { id: number, exposed?: number }) => exposed === undefined ? [] : [[id, exposed]])
      if (form === 'reused exposed') {
        assert.deepEqual(shownToOperator(store), rows, 'the operator is shown the same')
      }
      return rows
    },
    tag: async form => (await list(form)).tag
  }
}

test('exposed counts who knows a password and was removed, lost the group, or may not read nor set it', async () => {
  const { store, exposed, tell, tag } = await counting()
  const { accounts } = store
  for (const grupo of ['a', 'b', undefined]) await createEntry(store, { ...FIELDS, password: `of ${grupo}`, grupo },
    null)
  await tell(1, 1, 2, 3)
  await tell(2, 1)
  await tell(3, 2)
  assert.deepEqual(await exposed(), [])
  const before = await tag('exposed')
  await accounts.changeUser('carl@x.org', undefined, undefined, ['a'])
  assert.deepEqual(await exposed(), [[2, 1]], 'out of sight')
  assert.notEqual(await tag('exposed'), before)
  await accounts.changeUser('bea@x.org', undefined, ['password:update'])
  assert.deepEqual(await exposed(), [[2, 1]], 'who may set it is answered with it')
  await accounts.changeUser('bea@x.org', undefined, ['password:create'])
  assert.deepEqual(await exposed(), [[1, 1], [2, 1]])
  await accounts.removeUser('ana@x.org')
  assert.deepEqual(await exposed(), [[1, 2], [2, 2], [3, 1]])
  await updateEntry(store, 2, { password: 'new' }, null)
  assert.deepEqual(await exposed(), [[1, 2], [3, 1]], 'nobody knows the new one')
  await updateEntry(store, 1, { grupo: 'b' }, null)
  await deleteEntry(store, 3, null)
  assert.deepEqual(await exposed(), [[1, 2]])
})

test('who knows an equal password counts, for who sees all, also if it is told by another entry later', async () => {
  const { store, exposed, tell } = await counting()
  for (const grupo of ['a', 'b']) await createEntry(store, { ...FIELDS, password: 'the same', grupo }, null)
  await createEntry(store, { ...FIELDS, password: 'another', grupo: 'b' }, null)
  assert.deepEqual(await exposed('reused exposed'), [])
  await tell(2, 1)
  assert.deepEqual([await exposed('reused exposed'), await exposed()], [[[2, 1]], []],
    'bea sees a, and knows what b has')
  assert.deepEqual(whoKnows(store.state, 2, false).knows.map(({ how }) => how), ['read', 'equal'])
  await deleteEntry(store, 1, null)
  assert.deepEqual(await exposed('reused exposed'), [[2, 1]], 'a deleted entry has the same')
  await updateEntry(store, 2, { password: 'its own' }, null)
  assert.deepEqual(await exposed('reused exposed'), [])
})

test('who knows a password from an entry that has another now still knows it of the entries that have it', async () => {
  const { store, exposed, tell } = await counting()
  const { state } = store
  const knowing = (id: number, byEntry: boolean): unknown[] =>
    whoKnows(state, id, byEntry).knows.map(({ how, ...who }) => ['user' in who ? who.user.name : who, how])
  for (const grupo of ['a', 'b']) await createEntry(store, { ...FIELDS, password: 'the same', grupo }, null)
  await tell(2, 1)
  await updateEntry(store, 1, { password: 'its own' }, null)
  assert.deepEqual(await exposed('reused exposed'), [[2, 1]])
  assert.deepEqual([await exposed(), knowing(2, true)], [[], [[{ host: true }, 'read']]],
    'others would be answered a guess')
  assert.deepEqual(knowing(2, false), [[{ host: true }, 'read'], ['bea', 'equal']])
  await createEntry(store, { ...FIELDS, password: 'the same', grupo: 'b' }, null)
  assert.deepEqual(await exposed('reused exposed'), [[2, 1], [3, 1]])
  await purgeEntry(store, 2)
  assert.deepEqual(await exposed('reused exposed'), [[3, 1]], 'a purged one was the same')
  await updateEntry(store, 3, { password: 'another' }, null)
  assert.deepEqual(await exposed('reused exposed'), [])
  await createEntry(store, { ...FIELDS, password: 'the same', grupo: 'b' }, null)
  assert.deepEqual(await exposed('reused exposed'), [[4, 1]], 'one that comes later, too')
})

test('who knew a password that an entry had between two lists counts, too', async () => {
  const { store, exposed } = await counting()
  const session = sessionFor(store.state.users.get(2)!)
  await createEntry(store, { ...FIELDS, password: 'the same', grupo: 'b' }, null)
  assert.deepEqual(await exposed('reused exposed'), [])
  await createEntry(store, { ...FIELDS, password: 'the same', grupo: 'a' }, session)
  await updateEntry(store, 2, { password: 'another' }, session)
  assert.deepEqual(await exposed('reused exposed'), [[1, 1]])
})

test('who is told a value that an entry had counts at the entry that has it now, also in a kept list', async () => {
  const { store, exposed } = await counting()
  await createEntry(store, { ...FIELDS, password: 'the same', grupo: 'a' }, null)
  await updateEntry(store, 1, { password: 'another' }, null)
  await createEntry(store, { ...FIELDS, password: 'the same', grupo: 'b' }, null)
  assert.deepEqual(await exposed('reused exposed'), [])
  const told = event('passwords.told', 2, { operation: 'formerPassword', password: 'the same' })
  await store.commit(() => [[told], undefined])
  assert.deepEqual(await exposed('reused exposed'), [[2, 1]])
})

test('whoever becomes an outsider counts, by whatever change: a user who is added, changed or removed', async () => {
  const { store, exposed, tell } = await counting()
  const { accounts } = store
  for (const grupo of ['a', 'b']) await createEntry(store, { ...FIELDS, password: 'the same', grupo }, null)
  const both = async (): Promise<unknown> => [await exposed('reused exposed'), await exposed()]
  await tell(1, 1)
  assert.deepEqual(await both(), [[], []])
  await accounts.changeUser('ana@x.org', undefined, undefined, ['a'])
  assert.deepEqual(await both(), [[[2, 1]], []], 'who had no list of groups')
  await accounts.changeUser('ana@x.org', undefined, undefined, null)
  assert.deepEqual(await both(), [[], []])
  await accounts.addUser('dora@x.org', 'dora', ['password:read'], PASSWORD, ['a'])
  await tell(4, 1)
  assert.deepEqual(await both(), [[[2, 1]], []], 'added since the list before')
  await accounts.changeUser('dora@x.org', undefined, undefined, ['b'])
  assert.deepEqual(await both(), [[[1, 1]], [[1, 1]]])
  await accounts.changeUser('dora@x.org', undefined, undefined, ['a', 'b'])
  assert.deepEqual(await both(), [[], []])
  await accounts.changeUser('dora@x.org', undefined, ['password:create'])
  assert.deepEqual(await both(), [[[1, 1], [2, 1]], [[1, 1]]])
  await accounts.changeUser('dora@x.org', undefined, ['password:read'])
  assert.deepEqual(await both(), [[], []])
  await accounts.removeUser('dora@x.org')
  assert.deepEqual(await both(), [[[1, 1], [2, 1]], [[1, 1]]])
})

test('what was read unrecorded from an entry with the same password is said of the other one', async () => {
  const { store, world } = await counting()
  const { state } = store
  await createEntry(store, { ...FIELDS, password: 'the same' }, null)
  await store.commit(() => [[event('recording.gap', null, { why: 'restored' })], undefined])
  world.nowMs += 1000
  await createEntry(store, { ...FIELDS, password: 'the same' }, null)
  const before = (byEntry: boolean, id = 2): unknown => whoKnows(state, id, byEntry).unrecordedBefore
  const set = new Date(state.entries.changedMs(2)!).toISOString()
  assert.deepEqual([before(true), before(false)], [undefined, set], 'when it was set, which is later')
  await updateEntry(store, 1, { password: 'another' }, null)
  assert.deepEqual([before(true), before(false), before(false, 1)], [undefined, set, undefined])
})

test('of each row of an import it is said that others may know its password, and of no other entry', async () => {
  const { store } = await counting()
  for (const count of [1, 3]) {
    await importEntries(store, Array.from({ length: count }, (_, n) =>
      ({ ...FIELDS, password: `${count} ${n}`, status: 1 })))
  }
  await createEntry(store, { ...FIELDS, password: 'p' }, null)
  assert.deepEqual(unrecordedOf(store.state, [1, 2, 3, 4, 5]), { [store.state.recorded]: [1, 2, 3, 4] })
})

test('rows that the same users know name them alike, as they are now; others name others', async () => {
  const { store, tell, list } = await counting()
  for (let id = 1; id <= 3; id++) await createEntry(store, { ...FIELDS, password: `p${id}` }, null)
  await tell(2, 1, 2)
  await tell(3, 3)
  const bea = { user: { id: 2, email: 'bea@x.org', name: 'bea' } }
  const carl = { user: { id: 3, email: 'carl@x.org', name: 'carl' } }
  const named = async (): Promise<unknown[]> =>
    JSON.parse((await list('exposed')).bytes.toString()).map((row: any) => [row.exposed, row.exposedTo])
  assert.deepEqual(await named(), [[1, [bea]], [1, [bea]], [1, [carl]]])
  await store.accounts.changeUser('bea@x.org', 'Bea "B"', undefined)
  const renamed = { user: { ...bea.user, name: 'Bea "B"' } }
  assert.deepEqual(await named(), [[1, [renamed]], [1, [renamed]], [1, [carl]]])
  await store.accounts.removeUser('carl@x.org')
  await tell(3, 1)
  const removed = { ...carl, removed: true }
  assert.deepEqual(await named(), [[2, [renamed, removed]], [1, [renamed]], [1, [removed]]])
})

test('of an entry whose password an import brings later, the time of the import is said, in a list too', async () => {
  const { store, world, list } = await counting()
  const { state } = store
  await createEntry(store, { ...FIELDS, password: 'the same' }, null)
  await list('reused exposed')
  world.nowMs += 2000
  await importEntries(store, [{ ...FIELDS, password: 'the same', status: 1 }])
  const { recorded } = state
  const said = async (): Promise<unknown[]> => JSON.parse((await list('reused exposed')).bytes.toString())
    .map((row: any) => row.unrecordedBefore)
  const asked = (): unknown[] => [1, 2].map(id => whoKnows(state, id, false).unrecordedBefore)
  assert.deepEqual([await said(), asked()], [[recorded, recorded], [recorded, recorded]])
  world.nowMs += 2000
  await updateEntry(store, 2, { password: 'another' }, null)
  assert.deepEqual([await said(), asked()], [[recorded, undefined], [recorded, undefined]])
  assert.equal(whoKnows(state, 1, true).unrecordedBefore, undefined, 'others would be answered a guess')
})

test('who may be told by the text of an entry alone learns nothing of an import that brings the same one', async () => {
  const { store, world } = await counting()
  await createEntry(store, { ...FIELDS, password: 'the same', grupo: 'a' }, null)
  await store.commit(() => [[event('recording.gap', null, { why: 'restored' })], undefined])
  const gap = store.state.recorded
  world.nowMs += 2000
  await importEntries(store, [{ ...FIELDS, password: 'the same', status: 1 }])
  const said = [false, true].map(byEntry => whoKnows(store.state, 1, byEntry).unrecordedBefore)
  assert.deepEqual(said, [store.state.recorded, gap])
})

test('who may still be told a password, by whichever operation, is not exposed to it', async () => {
  const { store, tell } = await counting()
  const telling = ['getPassword', 'listPassword', 'updatePassword', 'formerPassword']
  const exposure = new Exposure(store.state, new Map([...telling, 'listEntries'].map(one => [one, [`may:${one}`]])))
  await createEntry(store, { ...FIELDS, password: 'p' }, null)
  for (const one of [...telling, 'listEntries']) {
    const user = await store.accounts.addUser(`${one}@x.org`, one, [`may:${one}`], PASSWORD)
    await tell(user!.id, 1)
  }
  const { users } = store.state
  assert.deepEqual(exposure.of(1, false).map(id => users.get(id)!.name), ['listEntries'])
})

test('a gap that is recorded is said in each kept list that names the exposed', async () => {
  const { store, list } = await counting()
  await createEntry(store, { ...FIELDS, password: 'p', grupo: 'a' }, null)
  const forms = [['exposed', ['a']], ['exposed', undefined], ['reused exposed', undefined]] as const
  const said = async (): Promise<unknown[]> => {
    const listings = await Promise.all(forms.map(([form, groups]) => list(form, groups)))
    return listings.flatMap(({ bytes }) => JSON.parse(bytes.toString()).map((row: any) => row.unrecordedBefore))
  }
  assert.deepEqual(await said(), forms.map(() => undefined))
  await store.commit(() => [[event('recording.gap', null, { why: 'unrecorded' })], undefined])
  assert.deepEqual(await said(), forms.map(() => store.state.recorded))
})

test('before recording has begun, a list says what the answer on one entry says; without tokens nothing', async () => {
  const { store } = await counting()
  await createEntry(store, { ...FIELDS, password: 'p' }, null)
  await store.commit(() => [[event('recording.ended', null, {})], undefined])
  const said = await Promise.all([true, false].map(async hasTokens => {
    const list = listingOf(store.state, new Exposure(store.state, ABILITIES), hasTokens)
    return typeof JSON.parse((await list('exposed')).bytes.toString())[0].unrecordedBefore
  }))
  assert.deepEqual([typeof whoKnows(store.state, 1, false).unrecordedBefore, ...said],
    ['string', 'string', 'undefined'])
})

test('an answer names users, removed ones, operators and the host; what was not recorded is said', async () => {
  const { store, tell } = await counting()
  await createEntry(store, { ...FIELDS, password: 'p' }, null)
  await tell(1, 1)
  await store.accounts.removeUser('ana@x.org')
  await store.commit(() => [['', 'eva'].map(operator => {
    const data = { command: 'entry get', entries: 1, entryIds: [1], operator }
    return event('entries.disclosed', null, data)
  }), undefined])
  assert.deepEqual(whoKnows(store.state, 1, false), { knows: [
    { host: true, how: 'read' }, { user: { id: 1, email: 'ana@x.org', name: 'ana' }, how: 'read', removed: true },
    { operator: '', how: 'read' }, { operator: 'eva', how: 'read' }
  ] })
  await store.commit(() => [[event('recording.gap', null, { why: 'restored' })], undefined])
  assert.equal(whoKnows(store.state, 1, false).unrecordedBefore, store.state.recorded)
  await store.commit(() => [[event('recording.ended', null, {})], undefined])
  assert.match(whoKnows(store.state, 1, false).unrecordedBefore!, /^20/)
})

test('of entries that more users know than are named, each says its own number of them', async () => {
  const { store, tell, list } = await counting()
  for (const password of ['p1', 'p2']) await createEntry(store, { ...FIELDS, password }, null)
  for (const n of [1, 2, 3, 4, 5, 6, 7]) {
    const { id } = (await store.accounts.addUser(`u${n}@x.org`, undefined, [], null, []))!
    await tell(id, ...n < 7 ? [1, 2] : [2])
  }
  const rows = JSON.parse(String((await list('exposed')).bytes)) as { exposed: number, exposedTo: unknown[] }[]
  assert.deepEqual(rows.map(({ exposed, exposedTo }) => [exposed, exposedTo.length]), [[6, 5], [7, 5]])
})
