/** Users and tokens (contract §5) in the store, under a clock that the test moves. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { MAX_HASH_QUEUE, MAX_HASHES } from '../../src/limits.ts'
import { Accounts } from '../../src/accounts/accounts.ts'
import type { Issued } from '../../src/accounts/listed.ts'
import { tokenId } from '../../src/rights/rights.ts'
import { PasswordHasher } from '../../src/accounts/passwords.ts'
import { checkState } from '../support/check.ts'
import { ANA, PASSWORD, World } from '../support/accounts.ts'
import { CHEAP } from '../support/hashes.ts'
import { freshStore, type FullStore } from '../support/stores.ts'
import { createEntry, deleteEntry, restoreEntry, updateEntry } from '../../src/entries/entry-commands.ts'

const MINUTE_MS = 60_000
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

async function withAna(world: World = new World()): Promise<{ world: World, store: FullStore }> {
  const store = world.open()
  await store.accounts.addUser(ANA, 'Ana', ['*'], PASSWORD)
  return { world, store }
}

async function issued(store: FullStore, email = ANA, ttlMinutes?: number): Promise<string> {
  const made = await store.accounts.issue(email, undefined, ttlMinutes)
  assert.ok(made)
  return made.token
}

test('§5.3 the journal is given the token\'s SHA-256 and never the token or a password', async () => {
  const { world, store } = await withAna()
  const token = await issued(store)
  assert.deepEqual(world.dataOf('token.issued').map(({ hash }) => hash), [sha256(token)])
  const all = JSON.stringify(world.records)
  for (const secret of [token, token.slice(4), PASSWORD]) assert.ok(!all.includes(secret))
})

test('§5.3 a session holds user, abilities and the hash, for the exact token only', async () => {
  const { store } = await withAna()
  const token = await issued(store)
  const session = store.accounts.session(token)
  assert.deepEqual({ ...session, token: undefined },
    { user: 1, hash: sha256(token), token: undefined, abilities: ['*'], groups: undefined })
  assert.equal(session?.token, store.state.tokens.get(sha256(token)))
  const wrong = [
    '', token.slice(4), token.toUpperCase(), `${token}A`, token.slice(0, -1), ` ${token}`, `${token}\n`, sha256(token),
    `pes_${'A'.repeat(43)}`, token.replace('pes_', 'pat_')
  ]
  for (const text of wrong) assert.equal(store.accounts.session(text), undefined, JSON.stringify(text))
})

for (const minutes of [0.001, 0.5, 1, 1440]) {
  test(`§5.5 a token of ${minutes} minutes ends after just that, and one without an expiry does not end`, async () => {
    const { world, store } = await withAna()
    const token = await issued(store, ANA, minutes)
    const forever = await issued(store)
    world.nowMs += minutes * MINUTE_MS - 1
    assert.ok(store.accounts.session(token), 'a millisecond before')
    assert.equal(store.accounts.tokens().length, 2)
    world.nowMs += 1
    assert.equal(store.accounts.session(token), undefined)
    assert.deepEqual(store.accounts.tokens().map(({ id }) => id), [tokenId(sha256(forever))])
    assert.equal(world.open().accounts.session(token), undefined, 'after a restart')
    world.nowMs += 100 * 365 * 24 * 60 * MINUTE_MS
    assert.ok(store.accounts.session(forever))
  })
}

for (const [what, change] of [
  ['its token was revoked', accounts => accounts.revokeAll(ANA)],
  ['its user was removed', accounts => accounts.removeUser(ANA)],
  ['its token may do less', accounts => accounts.changeUser(ANA, undefined, ['password:read'])],
  ['its token has expired', async (_accounts, world) => { world.nowMs += MINUTE_MS }]
] as readonly (readonly [string, (accounts: FullStore['accounts'], world: World) => Promise<unknown>])[]) {
  test(`a change that waits is not made once ${what}`, async () => {
    const { world, store } = await withAna()
    const by = store.accounts.session(await issued(store, ANA, 1))!
    const entry = { password: 'p', sistema: 's', usuario: 'u' }
    await createEntry(store, entry, by)
    const ended = change(store.accounts, world)
    for (const late of [
      createEntry(store, entry, by), updateEntry(store, 1, { password: 'late' }, by), deleteEntry(store, 1, by),
      restoreEntry(store, 1, by), store.accounts.endSessions(by, 'others'),
      store.accounts.changePassword(by, PASSWORD, 'another long password')
    ]) await assert.rejects(late, { code: 'session-changed' })
    await ended
    assert.deepEqual([store.state.entries.size, store.state.entries.get(1)], [1, { id: 1, ...entry, status: 1 }])
  })
}

test('an expired token is shown to nobody, and counts as none of the tokens that a user may have', async () => {
  const { world, store } = await withAna()
  const accounts = new Accounts(store, { hasher: new PasswordHasher(CHEAP), wallMs: () => world.nowMs,
    tokensPerUser: 2, warn: assert.fail })
  const login = (ttlMinutes?: number): Promise<Issued | undefined> =>
    accounts.login({ email: ANA, password: PASSWORD, client: '' }, ttlMinutes)
  await login(1)
  const kept = accounts.session((await login())!.token)!
  assert.deepEqual([accounts.tokens().length, accounts.sessions(kept).length], [2, 2])
  world.nowMs += MINUTE_MS
  assert.deepEqual([accounts.tokens().length, accounts.sessions(kept).map(({ id }) => id)], [1, [tokenId(kept.hash)]])
  await login()
  assert.deepEqual(accounts.sessions(kept).map(({ current }) => current), [true, false], 'no other has ended')
})

test('an expired token is in memory until the sweep, and then gone', async () => {
  const { world, store } = await withAna()
  const hash = sha256(await issued(store, ANA, 1))
  const other = sha256(await issued(store, ANA, 1))
  const kept = await issued(store, ANA, 3)
  world.nowMs += MINUTE_MS
  assert.equal(await store.accounts.revokeToken(tokenId(other)), true)
  store.state.sweep(world.nowMs)
  assert.equal(await store.accounts.revokeToken(tokenId(hash)), false)
  assert.ok(store.accounts.session(kept))
  assert.equal(await store.accounts.revoke(hash, null), false, 'nothing is left to revoke')
  await store.accounts.changeUser(ANA, undefined, ['password:read'])
  assert.deepEqual(store.accounts.session(kept)?.abilities, ['password:read'],
    'and none of those that are gone is narrowed')
  await store.accounts.changeUser(ANA, 'Ana B.', undefined)
  await store.accounts.changeUser(ANA, undefined, ['password:create'])
  assert.deepEqual(store.accounts.users().map(({ name, abilities }) => [name, abilities]),
    [['Ana B.', ['password:create']]])
  await store.accounts.changeUser(ANA, 'Ana', undefined)
  assert.deepEqual(store.accounts.users().map(({ name, abilities }) => [name, abilities]),
    [['Ana', ['password:create']]])
  checkState(store.state)
})

test('a journal with tokens that were swept, revoked and swept again opens', async () => {
  const { world, store } = await withAna()
  const tokens = [await issued(store, ANA, 1), await issued(store, ANA, 2)]
  await store.accounts.revoke(sha256(tokens[1]!), null)
  world.nowMs += 5 * MINUTE_MS
  store.state.sweep(world.nowMs)
  await store.accounts.revokeAll(ANA)
  await store.accounts.removeUser(ANA)
  const again = world.open()
  checkState(again.state)
  assert.deepEqual(again.accounts.tokens(), [])
})

const ENDINGS: readonly (readonly [string, (store: FullStore, token: string) => Promise<boolean>, boolean])[] = [
  ['revoking a token ends it', (store, token) => store.accounts.revoke(sha256(token), null), false],
  ['revoking all of a user ends them', store => store.accounts.revokeAll('ANA@example.ORG'), true],
  ['a new password ends the user\'s tokens', store => store.accounts.setPassword('Ana@Example.org', 'another password'),
    true],
  ['a removed user\'s tokens end', store => store.accounts.removeUser('aNa@example.org'), true]
]

for (const [name, end, endsAll] of ENDINGS) {
  test(`§5.7 ${name}, at once and after a restart, and nobody else's`, async () => {
    const { world, store } = await withAna()
    await store.accounts.addUser('bea@example.org', 'Bea', ['*'], PASSWORD)
    const [token, sibling, bea] = [await issued(store), await issued(store), await issued(store, 'bea@example.org')]
    assert.equal(await end(store, token), true)
    for (const now of [store, world.open()]) {
      assert.equal(now.accounts.session(token), undefined)
      assert.equal(now.accounts.session(sibling) === undefined, endsAll)
      assert.ok(now.accounts.session(bea))
      checkState(now.state)
    }
  })
}

test('ending a token that does not exist is reported, and leaves no record', async () => {
  const { world, store } = await withAna()
  const before = world.records.length
  const { accounts } = store
  assert.deepEqual([
    await accounts.revoke('0'.repeat(64), null), await accounts.revokeAll('x@y'),
    await accounts.setPassword('x@y', PASSWORD), await accounts.removeUser('x@y'),
    await accounts.issue('x@y', undefined, undefined)
  ], [false, false, false, false, undefined])
  assert.equal(world.records.length, before)
})

test('addresses are compared without case: one user, and a login in any case', async () => {
  const { store } = await withAna()
  assert.equal(await store.accounts.addUser('ANA@Example.Org', 'Other', [], PASSWORD), undefined)
  assert.equal(store.accounts.users().length, 1)
  assert.equal((await store.accounts.login({ email: 'AnA@eXample.org', password: PASSWORD, client: '' },
    undefined))?.user.id, 1)
  const bea = await store.accounts.addUser('Bea@Example.org', undefined, undefined, PASSWORD)
  assert.equal(bea?.email, 'bea@example.org')
  assert.ok(await store.accounts.login({ email: 'BEA@example.org', password: PASSWORD, client: '' }, undefined))
  assert.equal(await store.accounts.removeUser('bea@EXAMPLE.org'), true)
})

test('two encodings of the same accents are one address, and one that is too long in lower case is none', async () => {
  const { world, store } = await withAna()
  const [composed, apart] = ['Jos\u00e9@x.org', 'Jose\u0301@x.org']
  for (const [given, other] of [[composed, apart], [apart, composed]] as const) {
    const added = await store.accounts.addUser(given, undefined, [], PASSWORD)
    assert.equal(added?.email, composed.toLowerCase())
    assert.equal(await store.accounts.addUser(other, undefined, [], PASSWORD), undefined)
    for (const now of [store, world.open()]) assert.equal((await now.accounts.login({ email: other, password: PASSWORD,
      client: '' }, undefined))?.user.id, added!.id)
    assert.equal(await store.accounts.removeUser(other), true)
  }
  await assert.rejects(store.accounts.addUser(`${'\u0130'.repeat(127)}@x`, undefined, [], PASSWORD),
    { code: 'input-invalid' })
  assert.equal((await store.accounts.addUser(`${'\u0130'.repeat(126)}@x`, undefined, [], PASSWORD))?.email.length, 254)
})

test('a journal with two encodings of one address keeps both users, each by its own, and takes no third', async () => {
  const { world } = await withAna()
  const [added] = world.records
  const [apart, composed] = ['jose\u0301@x.org', 'jos\u00e9@x.org']
  for (const [id, email] of [[2, apart], [3, composed]] as const) {
    world.records.push({ ...added!, seq: id, data: { ...added!.data as object, id, email } })
  }
  const { accounts, state } = world.open()
  assert.deepEqual([apart, composed, composed.toUpperCase()].map(email => state.userOf(email)?.id), [2, 3, 3])
  assert.equal(await accounts.addUser(composed, undefined, [], PASSWORD), undefined)
  assert.equal(await accounts.removeUser(composed), true)
  assert.deepEqual([apart, composed].map(email => world.open().state.userOf(email)?.id), [2, undefined])
  assert.equal(await accounts.removeUser(apart), true)
  assert.equal((await accounts.addUser(composed, undefined, [], PASSWORD))?.id, 4)
})

test('of two users of one address added at once, one is', async () => {
  const store = new World().open()
  const added = await Promise.all([ANA, ANA.toUpperCase()].map(email =>
    store.accounts.addUser(email, 'n', [], PASSWORD)))
  assert.equal(added.filter(user => user !== undefined).length, 1)
  checkState(store.state)
})

test('an address can be used again after its user was removed: another id, none of the old tokens', async () => {
  const { world, store } = await withAna()
  const token = await issued(store)
  await store.accounts.removeUser(ANA)
  assert.equal(await store.accounts.login({ email: ANA, password: PASSWORD, client: '' }, undefined), undefined)
  assert.equal((await store.accounts.addUser(ANA, 'Ana 2', [], 'a new password'))?.id, 2)
  for (const now of [store, world.open()]) {
    assert.equal(now.accounts.session(token), undefined)
    assert.equal(await now.accounts.login({ email: ANA, password: PASSWORD, client: '' }, undefined), undefined)
    assert.equal((await now.accounts.login({ email: ANA, password: 'a new password', client: '' }, undefined))?.user.id,
      2)
  }
})

test('§5.6 a token has the abilities it was given, or else its user\'s', async () => {
  const store = new World().open()
  await store.accounts.addUser(ANA, 'Ana', ['password:read', 'x'], PASSWORD)
  const given = [['x'], [], undefined]
  const tokens = await Promise.all(given.map(abilities => store.accounts.issue(ANA, abilities, undefined)))
  assert.deepEqual(tokens.map(one => store.accounts.session(one!.token)?.abilities),
    [['x'], [], ['password:read', 'x']])
  for (const more of [['*'], ['x', 'password:create']]) {
    await assert.rejects(store.accounts.issue(ANA, more, undefined), /may do no more than its user/, more.join())
  }
  await assert.rejects(store.accounts.issue(ANA, [''], undefined), { code: 'input-invalid' })
  assert.equal(store.accounts.tokens().length, 3)
  const login = await store.accounts.login({ email: ANA, password: PASSWORD, client: '' }, undefined)
  assert.deepEqual(store.accounts.session(login!.token)?.abilities, ['password:read', 'x'])
})

test('an address must be one, and an ability one that an operation asks for', async () => {
  const { store } = await withAna()
  const accounts = new Accounts(store, { abilities: [['password:read'], undefined] })
  for (const refused of [
    accounts.removeUser('no address'), accounts.addUser('b@x', 'B', ['password:erase'], PASSWORD),
    accounts.issue(ANA, ['password:erase'], undefined)
  ]) await assert.rejects(refused, { code: 'input-invalid' })
})

test('a new password is refused that is short, no Unicode, or the address; an older one is still a login', async () => {
  const { world, store } = await withAna()
  for (const password of ['eleven char', 'contrasen\u0303', '🔑'.repeat(11), '\ud801'.repeat(12), '']) {
    await assert.rejects(store.accounts.setPassword(ANA, password), { code: 'input-invalid' }, password)
    await assert.rejects(store.accounts.addUser('b@x', 'B', [], password), { code: 'input-invalid' }, password)
  }
  await assert.rejects(store.accounts.setPassword(ANA, ANA.toUpperCase()), /must not be made of/)
  assert.equal(world.records.length, 1)
  await store.accounts.setPassword(ANA, '🔑 of the front door')
  const passwordHash = await new PasswordHasher(CHEAP).hash('old')
  world.records[0] = { ...world.records[0]!, data: { ...world.records[0]!.data as object, passwordHash } }
  world.records.length = 1
  assert.ok(await world.open().accounts.login({ email: ANA, password: 'old', client: '' }, undefined))
})

test('the journal says who did what: login and logout are the user\'s, an operator\'s act is nobody\'s', async () => {
  const { world, store } = await withAna()
  const login = await store.accounts.login({ email: ANA, password: PASSWORD, client: '' }, undefined)
  await store.accounts.revoke(sha256(login!.token), 1)
  await issued(store)
  await store.accounts.revokeAll(ANA)
  assert.deepEqual(world.records.map(({ type, by }) => [type, by]), [
    ['user.added', null], ['token.issued', 1], ['token.revoked', 1], ['token.issued', null], ['tokens.revoked', null]
  ])
})

/** Takes longer than what is done meanwhile. */
const SLOW = { ln: 14, r: 8, p: 2 }

for (const [what, act] of [
  ['removed', accounts => accounts.removeUser(ANA)],
  ['removed and added again', async accounts => {
    await accounts.removeUser(ANA)
    await accounts.addUser(ANA, 'Ana', ['*'], PASSWORD)
  }],
  ['given a password, even the same,', accounts => accounts.setPassword(ANA, PASSWORD)]
] as readonly (readonly [string, (accounts: FullStore['accounts']) => Promise<unknown>])[]) {
  test(`a user who is ${what} while the login's hash is computed gets no token`, async () => {
    const world = new World()
    await world.open(SLOW).accounts.addUser(ANA, 'Ana', ['*'], PASSWORD)
    const { accounts } = world.open()
    let isOver = false
    const login = accounts.login({ email: ANA, password: PASSWORD, client: '' },
      undefined).finally(() => { isOver = true })
    await act(accounts)
    assert.equal(isOver, false, 'the login is still on its way')
    assert.equal(await login, undefined)
    assert.deepEqual(world.dataOf('token.issued'), [])
    assert.deepEqual(world.dataOf('password.rehashed'), [], 'and the old password\'s hash does not come back')
    assert.equal(await accounts.login({ email: ANA, password: PASSWORD, client: '' }, undefined) !== undefined,
      what !== 'removed')
  })

  test(`a user who is ${what} while the user's own change of it is under way does not get the new one`, async () => {
    const world = new World()
    await world.open(SLOW).accounts.addUser(ANA, 'Ana', ['*'], PASSWORD)
    const { accounts } = world.open()
    const by = accounts.session((await accounts.issue(ANA, undefined, undefined))!.token)!
    const change = accounts.changePassword(by, PASSWORD, 'another long password')
    await act(accounts)
    await assert.rejects(change, { code: 'session-changed' })
    assert.equal(await accounts.login({ email: ANA, password: 'another long password', client: '' }, undefined),
      undefined)
  })
}

test('changes of tokens in the same write see each other: one of two revokes, none outlives its user', async t => {
  const store = await freshStore(t)
  await store.accounts.addUser(ANA, 'Ana', ['*'], PASSWORD)
  const hash = sha256(await issued(store))
  const revoked = await Promise.all([store.accounts.revoke(hash, null), store.accounts.revoke(hash, null)])
  assert.deepEqual(revoked, [true, false])
  await issued(store)
  const [{ id } = { id: '' }] = store.accounts.tokens()
  assert.deepEqual(await Promise.all([store.accounts.revokeToken(id), store.accounts.revokeToken(id)]), [true, false])
  const [gone, kept] = [await issued(store), await issued(store)]
  await Promise.all([store.accounts.revoke(sha256(gone), null), store.accounts.changeUser(ANA, undefined, ['a'])])
  assert.deepEqual([gone, kept].map(token => store.accounts.session(token)?.abilities), [undefined, ['a']])
  const [made, other] = await Promise.all([
    store.accounts.issue(ANA, undefined, undefined), store.accounts.issue(ANA, ['a'], undefined),
    store.accounts.removeUser(ANA)
  ])
  assert.deepEqual([made, other].map(one => store.accounts.session(one!.token)), [undefined, undefined])
})

test('a record that does not fit those before it is refused when it is read', async () => {
  const { world } = await withAna()
  const [added] = world.records
  const wrong: readonly (readonly [type: string, data: object, why: RegExp])[] = [
    ['user.renamed', {}, /newer version: .* type user.renamed$/], ['toString', {}, /newer version: .* type toString$/],
    ['user.added', { ...added!.data as object, id: 2 }, /user 2 has another user's address/],
    ['user.added', { id: 3, email: 'x@y' }, /3 is not the next id/], ['user.removed', { id: 2 }, /id 2 does not exist/],
    ['entry.created', { id: 2, password: 'p', sistema: 's', usuario: 'u' }, /2 is not the next id/],
    ['entry.deleted', { id: 1 }, /id 1 does not exist/], ['entry.purged', { id: 1 }, /id 1 does not exist/],
    ['entries.imported', { first: 2, entries: [] }, /2 is not the next id/],
    ['entries.kept', { first: 2, entries: [] }, /2 is not the next id/],
    ['users.kept', { first: 1, users: [] }, /1 is not the next id/],
    ['token.issued', { hash: 'a', user: 2 }, /id 2 does not exist/],
    ['tokens.kept', { tokens: [{ hash: 'a', user: 2 }] }, /id 2 does not exist/]
  ]
  for (const [type, data, why] of wrong) {
    world.records.push({ ...added!, type, data })
    assert.throws(() => world.open(), why)
    world.records.pop()
  }
})

test('check finds a token without a user', async () => {
  const { world, store } = await withAna()
  checkState(store.state)
  const orphan = { ...world.records[0]!, type: 'token.issued', data: {
    hash: '0'.repeat(64), user: 1, abilities: [], issued: new Date(0).toISOString(), expires: null
  } }
  await store.accounts.removeUser(ANA)
  world.records.push(orphan)
  assert.throws(() => checkState(world.open().state), /token 000000000000 belongs to no user/)
})

test('if too many logins wait, one of a client that has shown a token comes in, for whatever user', async () => {
  const { store: { accounts } } = await withAna()
  await accounts.addUser('bea@example.org', undefined, ['*'], PASSWORD)
  const login = (email: string, client: string): Promise<unknown> =>
    accounts.login({ email, password: PASSWORD, client }, undefined)
      .then(made => made === undefined ? 'refused' : 'made', ({ code }) => code)
  const known = (await accounts.login({ email: ANA, password: PASSWORD, client: '192.0.2.1' }, undefined))!.token
  assert.ok(accounts.session(known, '192.0.2.1'))
  const flood = Array.from({ length: MAX_HASHES + MAX_HASH_QUEUE }, (_, n) => login('eve@x.org', `198.51.100.${n}`))
  const others = [login(ANA, '192.0.2.2'), login(ANA, '192.0.2.1'), login('bea@example.org', '192.0.2.1'),
    login('nobody@example.org', '192.0.2.1')]
  assert.deepEqual(await Promise.all(others), ['hashes-busy', 'made', 'made', 'refused'])
  const answers = await Promise.all(flood)
  assert.deepEqual([answers.splice(-3), new Set(answers)], [Array(3).fill('hashes-busy'), new Set(['refused'])],
    'in place of the last ones')
})

test('beyond the bound the oldest login token ends, used or not, as the log says; the operator’s stay', async () => {
  const world = new World()
  const store = world.open()
  await store.accounts.addUser(ANA, 'Ana', ['*'], PASSWORD)
  const lines: string[] = []
  const accounts = new Accounts(store, { hasher: new PasswordHasher(CHEAP), wallMs: () => world.nowMs, tokensPerUser: 3,
    warn: line => lines.push(line) })
  const login = async (): Promise<string> => {
    world.nowMs += 1_000
    return (await accounts.login({ email: ANA, password: PASSWORD, client: '' }, undefined))!.token
  }
  const issued = (await accounts.issue(ANA, undefined, undefined, 'nightly build'))!.token
  const [first, second, third] = [await login(), await login(), await login()]
  world.nowMs += 1_000
  accounts.session(first)
  const fourth = await login()
  const stands = (tokens: readonly string[]): boolean[] => tokens.map(token => accounts.session(token) !== undefined)
  assert.deepEqual(stands([first, second, third, fourth, issued]), [false, true, true, true, true])
  const oldest = tokenId(sha256(first))
  assert.deepEqual(lines, [`${ANA} has more than 3 tokens from logins: ${oldest}, the oldest, has ended`])
  const listed = accounts.tokens().find(({ name }) => name !== null)!
  assert.deepEqual([listed.name, listed.lastUsed], ['nightly build', new Date(world.nowMs).toISOString()])

  const { accounts: again } = world.open()
  assert.deepEqual(again.tokens().map(({ name, lastUsed }) => [name, lastUsed]),
    [['nightly build', null], [null, null], [null, null], [null, null]], 'a restart knows names, and no last use')
})

test('a user who has far more tokens than the bound loses two with a login, and not thousands at once', async () => {
  const world = new World()
  const store = world.open()
  await store.accounts.addUser(ANA, 'Ana', ['*'], PASSWORD)
  const login = (tokensPerUser?: number): Promise<unknown> =>
    new Accounts(store, { hasher: new PasswordHasher(CHEAP), wallMs: () => world.nowMs, ...tokensPerUser &&
      { tokensPerUser } }).login({ email: ANA, password: PASSWORD, client: '' }, undefined)
  for (let n = 0; n < 6; n++) await login()
  const counts: number[] = []
  for (let n = 0; n < 5; n++) { await login(2); counts.push(store.accounts.tokens().length) }
  assert.deepEqual(counts, [5, 4, 3, 2, 2])
})
