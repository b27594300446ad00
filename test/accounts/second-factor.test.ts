/** The second factor of users: given, asked for at logins, each code once, kept by whatever rewrites the journal. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_WRONG_CODES, WRONG_CODES_MS } from '../../src/limits.ts'
import { Accounts } from '../../src/accounts/accounts.ts'
import { newFactor, stepOfCode } from '../../src/accounts/logins.ts'
import { codeAt, otpIn, stepAt } from '../../src/accounts/totp.ts'
import { ANA, PASSWORD, World } from '../support/accounts.ts'
import { CHEAP } from '../support/hashes.ts'
import { fileStore, type FullStore } from '../support/stores.ts'
import { compact } from '../support/rewrite.ts'
import { freshFolder } from '../support/service.ts'
import { PasswordHasher } from '../../src/accounts/passwords.ts'

const FACTOR = newFactor()
const codeOf = (nowMs: number, ahead = 0): string => codeAt(otpIn(FACTOR)!, stepAt(otpIn(FACTOR)!, nowMs) + ahead)
const STEP_MS = 30_000

async function withFactor(): Promise<{ readonly world: World, readonly store: FullStore }> {
  const world = new World()
  const store = world.open()
  await store.accounts.addUser(ANA, 'Ana', ['*'], PASSWORD)
  assert.equal(await store.accounts.giveFactor(ANA, FACTOR, codeOf(world.nowMs)), true)
  world.nowMs += 2 * STEP_MS
  return { world, store }
}

const isLogin = async ({ accounts }: FullStore, code?: string, password = PASSWORD): Promise<boolean> =>
  await accounts.login({ email: ANA, password, code, client: '' }, undefined) !== undefined

test('a login with a second factor takes a code of the present step, or of the one before or after it', async () => {
  for (const [ahead, isTaken] of [[-2, false], [-1, true], [0, true], [1, true], [2, false]] as const) {
    const { world, store } = await withFactor()
    assert.equal(await isLogin(store, codeOf(world.nowMs, ahead)), isTaken, `${ahead} steps ahead`)
  }
})

test('with no code, another, or a wrong password nobody logs in; spaces in a code do not matter', async () => {
  const { world, store } = await withFactor()
  const code = codeOf(world.nowMs)
  for (const wrong of [undefined, '', '00000', `${code}0`,
    code.replace(/.$/, last => String((Number(last) + 1) % 10))]) {
    assert.equal(await isLogin(store, wrong), false, wrong)
  }
  assert.equal(await isLogin(store, code, 'wrong'), false)
  assert.equal(await isLogin(store, `${code.slice(0, 3)} ${code.slice(3)}`), true)
})

test('a code counts once: beside itself, after a later one, after a restart, and the first one is used', async () => {
  const { world, store } = await withFactor()
  const code = codeOf(world.nowMs)
  const both = await Promise.all([isLogin(store, code), isLogin(store, code)])
  assert.deepEqual(both.sort(), [false, true])
  assert.equal(await isLogin(store, code), false)
  assert.equal(await isLogin(store, codeOf(world.nowMs, -1)), false, 'an earlier one neither')
  assert.equal(await isLogin(world.open(), code), false, 'after a restart')
  assert.equal(await isLogin(world.open(), codeOf(world.nowMs, 1)), true)
  const { world: other, store: fresh } = await withFactor()
  other.nowMs -= 2 * STEP_MS
  assert.equal(await isLogin(fresh, codeOf(other.nowMs)), false, 'that of the giving')
})

test('a login that began before the factor was given does not pass without a code', async () => {
  const world = new World()
  await world.open({ ln: 15, r: 8, p: 3 }).accounts.addUser(ANA, 'Ana', ['*'], PASSWORD)
  const store = world.open()
  const login = isLogin(store)
  await store.accounts.giveFactor(ANA, FACTOR, codeOf(world.nowMs))
  assert.equal(await login, false)
})

test('tokens that exist when a second factor is given stay, also when it is taken away', async () => {
  const world = new World()
  const store = world.open()
  await store.accounts.addUser(ANA, 'Ana', ['*'], PASSWORD)
  const login = await store.accounts.login({ email: ANA, password: PASSWORD, code: undefined, client: '' }, undefined)
  const tokens = [login!.token, (await store.accounts.issue(ANA, undefined, undefined))!.token]
  const change: readonly (() => Promise<unknown>)[] = [
    () => store.accounts.giveFactor(ANA, FACTOR, codeOf(world.nowMs)), () => store.accounts.removeFactor(ANA)]
  for (const act of change) {
    assert.equal(await act(), true)
    for (const { accounts } of [store, world.open()]) {
      assert.deepEqual(tokens.map(token => accounts.session(token) !== undefined), [true, true])
    }
  }
})

test('the first code must be right; what is taken away is not asked for; a removed user has none', async () => {
  const world = new World()
  const store = world.open()
  await store.accounts.addUser(ANA, 'Ana', ['*'], PASSWORD)
  await assert.rejects(store.accounts.giveFactor(ANA, FACTOR, codeOf(world.nowMs, 5)), { code: 'input-invalid' })
  assert.equal(await store.accounts.giveFactor('other@example.org', FACTOR, codeOf(world.nowMs)), false)
  assert.equal(await isLogin(store), true)
  await store.accounts.giveFactor(ANA, FACTOR, codeOf(world.nowMs))
  assert.deepEqual(store.accounts.users().map(({ secondFactor }) => secondFactor), [true])
  assert.equal(await isLogin(store), false)
  assert.equal(await store.accounts.removeFactor(ANA), true)
  assert.equal(await isLogin(store), true)
  assert.equal(store.accounts.users()[0]!.secondFactor, undefined)
})

test('after twenty wrong codes codes are refused for an hour; no code and a wrong password count nothing', async () => {
  const { world, store } = await withFactor()
  for (let n = 0; n < 2 * MAX_WRONG_CODES; n++) await isLogin(store) // to be asked for one
  for (let n = 0; n < 2 * MAX_WRONG_CODES; n++) await isLogin(store, '000', 'wrong')
  for (let n = 0; n < MAX_WRONG_CODES - 1; n++) await isLogin(store, '000')
  assert.equal(await isLogin(store, codeOf(world.nowMs)), true)
  await isLogin(store, '000')
  world.nowMs += WRONG_CODES_MS - STEP_MS
  assert.equal(await isLogin(store, codeOf(world.nowMs)), false)
  world.nowMs += STEP_MS
  assert.equal(await isLogin(store, codeOf(world.nowMs)), true)
})

test('a new password, and a new factor, end the refusal of codes; a restart, too', async () => {
  const other = newFactor()
  const PASSWORD_2 = 'another long password'
  const ways: readonly (readonly [string, (store: FullStore, nowMs: number) => Promise<unknown>, string, string])[] = [
    ['nothing', async () => {}, PASSWORD, FACTOR],
    ['another password', ({ accounts }) => accounts.setPassword(ANA, PASSWORD_2), PASSWORD_2, FACTOR],
    ['another factor', ({ accounts }, nowMs) =>
      accounts.giveFactor(ANA, other, codeAt(otpIn(other)!, stepAt(otpIn(other)!, nowMs))), PASSWORD, other]
  ]
  for (const [what, act, password, factor] of ways) {
    const { world, store } = await withFactor()
    for (let n = 0; n < MAX_WRONG_CODES; n++) await isLogin(store, '000')
    assert.equal(await isLogin(store, codeOf(world.nowMs)), false)
    await act(store, world.nowMs)
    world.nowMs += 2 * STEP_MS
    const code = codeAt(otpIn(factor)!, stepAt(otpIn(factor)!, world.nowMs))
    assert.equal(await isLogin(store, code, password), what !== 'nothing', what)
  }
})

test('a right code is no wrong one if the last step lies ahead of the clock, and the log says that', async () => {
  const { world, store } = await withFactor()
  const lines: string[] = []
  const accounts = new Accounts(store, { hasher: new PasswordHasher(CHEAP), wallMs: () => world.nowMs,
    warn: line => lines.push(line) })
  const login = async (code: string): Promise<boolean> =>
    await accounts.login({ email: ANA, password: PASSWORD, code, client: '' }, undefined) !== undefined
  assert.equal(await login(codeOf(world.nowMs, 1)), true)
  assert.equal(await login(codeOf(world.nowMs)), false, 'used, as the step after it was')
  assert.deepEqual(lines, [], 'that step may be later than the clock')
  world.nowMs += WRONG_CODES_MS
  assert.equal(await login(codeOf(world.nowMs)), true, 'while the clock ran an hour ahead')
  world.nowMs -= WRONG_CODES_MS
  for (let n = 0; n < MAX_WRONG_CODES; n++) assert.equal(await login(codeOf(world.nowMs)), false)
  assert.equal(lines.length, MAX_WRONG_CODES)
  for (const line of lines) {
    assert.match(line, /^ana@example\.org: a right code was refused, .* ahead of the clock.* factor, which ends that$/)
  }
  world.nowMs += WRONG_CODES_MS + STEP_MS
  assert.equal(await login(codeOf(world.nowMs)), true, 'none of them has counted')
  lines.length = 0
  for (let n = 0; n < MAX_WRONG_CODES; n++) await login('000')
  assert.match(lines.join(), /^ana@example\.org: 20 wrong codes .* each of the two ends that$/)
})

test('a compaction keeps factor, used step, that a password is a first one, and a user without one', async t => {
  const folder = freshFolder(t)
  const hasher = new PasswordHasher(CHEAP)
  const nowMs = Date.now()
  let store = await fileStore(folder, { hasher })
  await store.accounts.addUsers([{ email: ANA, name: 'Ana', abilities: ['*'], groups: null, password: PASSWORD }], true)
  await store.accounts.addUser('bea@example.org', 'Bea', ['*'], null)
  await store.accounts.addUser('cid@example.org', 'Cid', ['*'], PASSWORD)
  await store.accounts.giveFactor(ANA, FACTOR, codeOf(nowMs))
  await store.accounts.removeUser('cid@example.org')
  const kept = (): string => JSON.stringify([...store.state.users.values()].map(user => user.isRemoved === true
    ? { id: user.id } : { ...user, abilities: [], passwordHash: '' }))
  const before = kept()
  assert.match(before, /"firstPassword":true/)
  await compact(store)
  await store.close()
  store = await fileStore(folder, { hasher })
  assert.equal(kept(), before)
  assert.equal(await isLogin(store, codeOf(nowMs)), false)
  assert.equal(await store.accounts.login({ email: 'bea@example.org', password: PASSWORD, client: '' }, undefined),
    undefined)
  assert.deepEqual(store.accounts.users().map(({ hasNoPassword }) => hasNoPassword), [undefined, true])
  await store.close()
})

test('without a factor no code has a step', () => {
  assert.equal(stepOfCode(undefined, '123456', 60_000), undefined)
})
