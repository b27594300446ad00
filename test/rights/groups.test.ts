/** Groups in the store: their names, what users and tokens see, and changes that are judged in their turn. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkpointOf } from '../../src/parts/operator/rewriting/checkpoint.ts'
import { createEntry, deleteEntry, restoreEntry, updateEntry } from '../../src/entries/entry-commands.ts'
import { CREATE_SHAPE, UPDATE_SHAPE } from '../../src/entries/entry-shapes.ts'
import type { NewUser } from '../../src/accounts/account-shapes.ts'
import { groupName } from '../../src/rights/groups.ts'
import { sees, type Groups, type Session } from '../../src/rights/rights.ts'
import { shaped } from '../../src/rights/validate.ts'
import { event } from '../../src/store/events.ts'
import { ANA, PASSWORD, World } from '../support/accounts.ts'
import { checkState } from '../support/check.ts'
import { importEntries } from '../support/rewrite.ts'
import type { FullStore } from '../support/stores.ts'

const FIELDS = { password: 'p', sistema: 's', usuario: 'u' }
const BOB = 'bob@example.org'

async function sessionOf(store: FullStore, email = ANA, groups?: Groups): Promise<Session> {
  const { token } = (await store.accounts.issue(email, undefined, undefined, undefined, groups))!
  return store.accounts.session(token)!
}

/** What one token allows now. */
function groupsNow({ state }: FullStore, { hash }: Session): Groups {
  const { user, groups } = state.tokens.get(hash)!
  return groups ?? state.users.get(user)!.groups
}

test('a name is one line of 1 to 64 characters, trimmed, without what parts lists or is not seen', () => {
  const names: readonly (readonly [string, string | undefined])[] = [
    ['Ops', 'Ops'], ['  Ops\t', 'Ops'], ['Redes y más', 'Redes y más'], ['e\u0301', 'é'], ['a/b', 'a/b'],
    ['x'.repeat(64), 'x'.repeat(64)], ['😀'.repeat(64), '😀'.repeat(64)], ['x'.repeat(65), undefined],
    ['', undefined], [' ', undefined], ['a,b', undefined], ['a@b', undefined], ['*', undefined],
    ['a\nb', undefined], ['a\u0000b', undefined], ['a\u200bb', undefined], ['a\u202eb', undefined],
    ['a\u2028b', undefined], ['a\ud800b', undefined]
  ]
  for (const [given, name] of names) assert.equal(groupName(given), name, JSON.stringify(given))
})

test('of new names that users of one write have, the first spelling stands for all of them', async () => {
  const store = new World().open()
  const user = (email: string, groups: readonly string[]): NewUser =>
    ({ email, groups, name: undefined, abilities: ['*'], password: null })
  const made = await store.accounts.addUsers(
    [user('ana@x.org', ['Web', 'Mail']), user('bob@x.org', ['mail', 'WEB'])], false)
  assert.deepEqual(made.map(({ groups }) => groups), [['Web', 'Mail'], ['Mail', 'Web']])
})

/** Not seen at all, or like a blank. */
const UNSEEN = ['\u00ad', '\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u180b', '\u200b', '\u200d', '\u202e',
  '\u2060', '\u2064', '\u2800', '\u3164', '\ufe00', '\ufe0f', '\ufeff', '\uffa0', '\ufff0', '\u{1d173}', '\u{e0001}',
  '\u{1d159}', '\u{13441}', '\u{13442}', '\u{16fe4}',
  '\u{e0041}', '\u{e0100}', '\u00a0', '\u1680', '\u2000', '\u2003', '\u2007', '\u202f', '\u205f', '\u3000', '\t', '\n',
  '\v', '\0', '\u007f', '\u0085', '\u2028', '\u2029']

test('a new name with a character that is not seen is refused; letters, marks and signs are taken', async () => {
  const store = new World().open()
  await store.accounts.addUser(ANA, undefined, ['*'], PASSWORD)
  await createEntry(store, FIELDS, null)
  const changes = (name: string): readonly (() => Promise<unknown>)[] => [
    async () => createEntry(store, shaped(CREATE_SHAPE, { ...FIELDS, grupo: name }), null),
    async () => updateEntry(store, 1, shaped(UPDATE_SHAPE, { grupo: name }), null),
    () => store.accounts.addUser(BOB, undefined, ['*'], PASSWORD, ['Ops', name]),
    () => store.accounts.changeUser(ANA, undefined, undefined, [name]),
    () => store.accounts.issue(ANA, undefined, undefined, undefined, [name])
  ]
  for (const one of UNSEEN) {
    const atEnds = one.trim() === '' ? [] : [one, `${one}Ops`, `Ops${one}`]
    for (const change of [`a${one}b`, ...atEnds].flatMap(changes)) {
      await assert.rejects(change(), { code: 'input-invalid' }, one.codePointAt(0)!.toString(16))
    }
  }
  assert.equal(store.state.names.spellingOf('ops'), undefined)
  for (const name of ['Redes y más', 'नेट', 'עברית', 'ไทย', '組', '한국', 'é', 'R&D – 2', '🔑']) {
    for (const change of changes(name).slice(0, 2)) await change()
    assert.equal(store.state.entries.get(1)!.grupo, name)
  }
})

test('a name that the journal has stays valid as it is spelled there', async () => {
  const store = new World().open()
  const old = 'a\ufe0fb\u00a0c'
  await store.commitAlone(() => [[event('fields.created', null, { id: 1, ...FIELDS, grupo: old })], undefined])
  const given = shaped(CREATE_SHAPE, { ...FIELDS, grupo: old.toUpperCase() })
  assert.equal((await createEntry(store, given, null)).grupo, old)
  await store.accounts.addUser(ANA, undefined, ['*'], PASSWORD, [old])
  assert.deepEqual((await sessionOf(store, ANA, [old])).groups, [old])
})

test('who has no list sees all, an empty list sees nothing, an entry without group is for those without a list', () => {
  const rows: readonly (readonly [Groups, string | undefined, boolean])[] = [
    [undefined, undefined, true], [undefined, 'a', true], [[], undefined, false], [[], 'a', false],
    [['a'], 'a', true], [['a'], undefined, false], [['a'], 'b', false], [['a'], 'A', false], [['a', 'b'], 'b', true]
  ]
  for (const [groups, grupo, is] of rows) assert.equal(sees(groups, grupo), is, JSON.stringify([groups, grupo]))
})

test('names that differ only in case are one: the first spelling stands for entries, users and tokens', async () => {
  const world = new World()
  const store = world.open()
  await Promise.all(['Ops', 'OPS', ' ops '].map(grupo => createEntry(store, { ...FIELDS, grupo }, null)))
  await createEntry(store, { ...FIELDS, grupo: 'oPS' }, null)
  await createEntry(store, { ...FIELDS, grupo: 'Net' }, null)
  await updateEntry(store, 5, { grupo: 'ops' }, null)
  assert.deepEqual([1, 2, 3, 4, 5].map(id => store.state.entries.get(id)?.grupo), Array(5).fill('Ops'))
  assert.deepEqual(await updateEntry(store, 5, { grupo: 'OPS' }, null), store.state.entries.get(5))
  assert.equal(world.dataOf('fields.updated').length, 1, 'another spelling of the same name is no change')
  await store.accounts.addUser(ANA, undefined, ['*'], PASSWORD, ['OPS', 'Web', 'WEB', 'ops'])
  assert.deepEqual(store.state.users.get(1)?.groups, ['Ops', 'Web'])
  await createEntry(store, { ...FIELDS, grupo: 'WEB' }, null)
  assert.equal(store.state.entries.get(6)?.grupo, 'Web')
  assert.deepEqual((await sessionOf(store, ANA, ['wEB'])).groups, ['Web'])
  assert.equal((await createEntry(world.open(), { ...FIELDS, grupo: 'ops' }, null)).grupo, 'Ops', 'after a restart')
})

/** What has the name Ops first. */
const FIRST: { readonly [what: string]: (store: FullStore) => Promise<unknown> } = {
  'an entry': store => createEntry(store, { ...FIELDS, grupo: 'Ops' }, null),
  'a moved entry': async store => {
    await createEntry(store, FIELDS, null)
    await updateEntry(store, 1, { grupo: 'Ops' }, null)
  },
  'an import': async store => importEntries(store, [{ ...FIELDS, grupo: 'Ops', status: 1 }]),
  'a user': store => store.accounts.addUser(BOB, undefined, ['*'], PASSWORD, ['Ops']),
  'a user who is changed': store => store.accounts.changeUser(ANA, undefined, undefined, ['Ops']),
  'a token': store => sessionOf(store, ANA, ['Ops'])
}

test('the first spelling stands, whatever has it, also after a restart', async () => {
  for (const [what, act] of Object.entries(FIRST)) {
    const world = new World()
    const store = world.open()
    await store.accounts.addUser(ANA, undefined, ['*'], PASSWORD)
    await act(store)
    for (const one of [store, world.open()]) {
      assert.equal((await createEntry(one, { ...FIELDS, grupo: 'OPS' }, null)).grupo, 'Ops', what)
    }
  }
})

test('letters that have several lower cases are one name, too', async () => {
  const store = new World().open()
  for (const [first, ...others] of [['Straße', 'STRASSE', 'strasse'], ['ΟΔΟΣ', 'οδος', 'οδοσ'], ['ﬁle', 'FILE']]) {
    const found = []
    for (const grupo of [first!, ...others]) found.push((await createEntry(store, { ...FIELDS, grupo }, null)).grupo)
    assert.deepEqual(new Set(found), new Set([first]))
  }
})

test('spellings of a new group in one import are one', async () => {
  const store = new World().open()
  await importEntries(store, ['Ops', 'OPS', 'Web', 'ops'].map(grupo => ({ ...FIELDS, grupo, status: 1 as const })))
  assert.deepEqual([...store.state.entries.entries()].map(({ grupo }) => grupo), ['Ops', 'Ops', 'Web', 'Ops'])
})

test('a spelling that was refused does not stand', async () => {
  const store = new World().open()
  await store.accounts.addUser(ANA, undefined, ['*'], PASSWORD, ['a'])
  const by = await sessionOf(store)
  const [refused, made] = await Promise.allSettled([
    createEntry(store, { ...FIELDS, grupo: 'NEW' }, by), createEntry(store, { ...FIELDS, grupo: 'New' }, null)
  ])
  assert.deepEqual([refused.status, made.status, store.state.entries.get(1)?.grupo], ['rejected', 'fulfilled', 'New'])
})

const LISTS: readonly Groups[] = [undefined, [], ['a'], ['a', 'b']]

for (const groups of LISTS) {
  const what = JSON.stringify(groups) ?? 'no list'
  test(`a user and a token with ${what} keep that through events, a restart and a compaction`, async () => {
    const world = new World()
    const store = world.open()
    const added = await store.accounts.addUser(ANA, undefined, ['*'], PASSWORD, groups)
    await store.accounts.addUser(BOB, undefined, ['*'], PASSWORD)
    await store.accounts.changeUser(BOB, undefined, undefined, ['x'])
    await store.accounts.changeUser(BOB, undefined, undefined, groups ?? null)
    await store.accounts.changeUser(BOB, 'Bob', undefined)
    const expected = groups === undefined ? undefined : [...groups]
    assert.deepEqual(added?.groups, expected)
    assert.equal('groups' in added!, groups !== undefined, 'an empty list is never left out, and no list never given')
    assert.equal('groups' in world.dataOf('user.added')[0], groups !== undefined)
    await store.accounts.addUser('all@example.org', undefined, ['*'], PASSWORD)
    for (const email of [ANA, BOB]) await sessionOf(store, email)
    await sessionOf(store, 'all@example.org', groups)
    const login = await store.accounts.login({ email: ANA, password: PASSWORD, client: '' }, undefined)
    assert.deepEqual(login?.groups, expected)
    const compacted = world.open()
    world.records.splice(0)
    const { events } = checkpointOf(compacted.state)
    for (const { type, by, data } of events) {
      const text = JSON.stringify(data)
      world.records.push({ seq: world.records.length + 1, time: '2026-01-31T12:00:00.000Z', type, by,
        data: JSON.parse(text) })
    }
    for (const one of [store, compacted, world.open()]) {
      assert.deepEqual(one.accounts.users().map(user => user.groups), [expected, expected, undefined])
      assert.deepEqual(one.accounts.tokens().map(token => token.groups), Array(4).fill(expected))
      checkState(one.state)
    }
  })
}

test('a token without own groups has its user\'s, whatever they become; one with groups never widens', async () => {
  const store = new World().open()
  await store.accounts.addUser(ANA, undefined, ['*'], PASSWORD)
  const [all, own, none] = [await sessionOf(store), await sessionOf(store, ANA, ['a', 'b']),
    await sessionOf(store, ANA, [])]
  const seen = (): readonly Groups[] => [all, own, none].map(one => groupsNow(store, one))
  assert.deepEqual(seen(), [undefined, ['a', 'b'], []])
  const steps: readonly (readonly [readonly string[] | null, readonly Groups[]])[] = [
    [['b', 'c'], [['b', 'c'], ['b'], []]], [null, [undefined, ['b'], []]], [['a', 'b'], [['a', 'b'], ['b'], []]],
    [[], [[], [], []]], [['b'], [['b'], [], []]]
  ]
  for (const [groups, expected] of steps) {
    await store.accounts.changeUser(ANA, undefined, undefined, groups)
    assert.deepEqual(seen(), expected, JSON.stringify(groups))
  }
  for (const groups of [['c'], ['b', 'c'], ['c', 'b']]) {
    await assert.rejects(store.accounts.issue(ANA, undefined, undefined, undefined, groups),
      { code: 'input-invalid', message: /a token may see no more than its user/ }, groups.join())
  }
})

const INVALID: readonly unknown[] = [['a,b'], [''], [1], 'a', { a: 1 }, ['a', null], ['x'.repeat(65)]]
test('a list of groups that is none is refused, and changes nothing', async () => {
  const world = new World()
  const { accounts } = world.open()
  await accounts.addUser(ANA, undefined, ['*'], PASSWORD, ['a'])
  const before = world.records.length
  for (const groups of INVALID as readonly string[][]) {
    for (const call of [
      accounts.addUser(BOB, undefined, ['*'], PASSWORD, groups), accounts.changeUser(ANA, undefined, undefined, groups),
      accounts.issue(ANA, undefined, undefined, undefined, groups)
    ]) await assert.rejects(call, { code: 'input-invalid' }, JSON.stringify(groups))
  }
  assert.equal(world.records.length, before)
})

for (const [what, change] of [
  ['other groups', { groups: ['b'] }], ['no groups', { groups: [] }], ['more groups', { groups: ['a', 'b'] }],
  ['all groups', { groups: null }], ['other abilities', { abilities: ['password:create', 'password:read'] }]
] as readonly (readonly [string, { groups?: string[] | null, abilities?: string[] }])[]) {
  test(`a change that waits is not made once its user has ${what}`, async () => {
    const store = new World().open()
    await store.accounts.addUser(ANA, undefined, ['*'], PASSWORD, ['a'])
    const sessions = [await sessionOf(store), await sessionOf(store, ANA, ['a'])]
    const changed = store.accounts.changeUser(ANA, undefined, change.abilities, change.groups)
    for (const by of sessions) await assert.rejects(createEntry(store, FIELDS, by), { code: 'session-changed' })
    await changed
    assert.equal(store.state.entries.size, 0)
  })
}

test('a create goes into the only group; with several, none, or one out of sight, its field says which', async () => {
  const store = new World().open()
  const rows: readonly (readonly [Groups, string | undefined, string | RegExp | undefined])[] = [
    [undefined, undefined, undefined], [undefined, '', undefined], [undefined, 'x', 'x'],
    [['a'], undefined, 'a'], [['a'], '', 'a'], [['a'], 'A', 'a'], [['a'], 'b', /^The grupo field must be one of a\.$/],
    [['a', 'b'], undefined, /^The grupo field must be one of a, b\.$/], [['a', 'b'], '', /one of a, b\.$/],
    [['a', 'b'], 'B', 'b'], [['a', 'b'], 'x', /one of a, b\.$/], [['a', 'b'], 'nobody has it', /one of a, b\.$/],
    [[], undefined, /^The grupo field must be a group of yours, and you have none\.$/], [[], 'a', /you have none\.$/]
  ]
  await store.accounts.addUser(ANA, undefined, ['*'], PASSWORD)
  for (const [groups, grupo, expected] of rows) {
    const by = await sessionOf(store, ANA, groups)
    const made = createEntry(store, { ...FIELDS, grupo }, by)
    if (!(expected instanceof RegExp)) assert.equal((await made).grupo, expected, JSON.stringify([groups, grupo]))
    else await assert.rejects(made, ({ errors }) => expected.test(errors.grupo[0]), JSON.stringify([groups, grupo]))
  }
  checkState(store.state)
})

test('a move takes both groups in sight and the right to move; the entry is judged in its turn', async () => {
  const store = new World().open()
  await store.accounts.addUser(ANA, undefined, ['*'], PASSWORD, ['a', 'b'])
  const [one, both] = [await sessionOf(store, ANA, ['a']), await sessionOf(store)]
  for (const grupo of ['a', 'b', undefined]) await createEntry(store, { ...FIELDS, grupo }, null)
  const move = (id: number, grupo: string, by: Session, mayMove = true): Promise<unknown> =>
    updateEntry(store, id, { grupo }, by, { mayMove })
  for (const id of [2, 3, 4]) assert.equal(await move(id, 'a', one), undefined, `entry ${id} is unknown`)
  for (const [grupo, by] of [['b', one], ['', one], ['c', both], ['', both]] as const) {
    await assert.rejects(move(1, grupo, by), { code: 'input-invalid' }, grupo)
  }
  await assert.rejects(move(1, 'b', both, false), { code: 'move-forbidden' })
  assert.ok(await updateEntry(store, 1, { grupo: 'A', usuario: 'v' }, both, { mayMove: false }),
    'the same group is no move')
  // All in one write: what comes after a move sees it.
  const [moved, ...late] = await Promise.all([
    move(1, 'b', both), updateEntry(store, 1, { usuario: 'late' }, one), deleteEntry(store, 1, one),
    restoreEntry(store, 1, one),
    updateEntry(store, 1, { usuario: 'w' }, both)
  ])
  assert.deepEqual([moved, late.map(answer => typeof answer === 'object' ? answer.usuario : answer)],
    [{ id: 1, ...FIELDS, usuario: 'v', grupo: 'b', status: 1 }, [undefined, false, false, 'w']])
  const [back, seen] = await Promise.all([move(1, 'a', both), deleteEntry(store, 1, one)])
  assert.deepEqual([back !== undefined, seen, store.state.entries.get(1)?.status], [true, true, 0])
  checkState(store.state)
})

