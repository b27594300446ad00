/** What users do about themselves: their password and their sessions, with any token of a login. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { newFactor } from '../../src/accounts/logins.ts'
import { codeAt, otpIn, stepAt } from '../../src/accounts/totp.ts'
import { ANA, call, PASSWORD, startProtected, tokenOf, World } from '../support/accounts.ts'
import { journalBytes, linesOf } from '../support/journal.ts'
import type { RawAnswer } from '../support/raw.ts'
import type { Started } from '../support/service.ts'
import type { FullStore } from '../support/stores.ts'

async function loginOf(t: TestContext, { url }: Started, password: string = PASSWORD,
  email: string = ANA): Promise<string> {
  const answer = await call(t, url, 'POST', '/api/login', { body: { email, password } })
  assert.equal(answer.status, 200, answer.text)
  return answer.json.token
}

test('one’s own password is changed with the current one only, which ends all tokens', async t => {
  const started = await startProtected(t, { 'login-limit': '100' })
  const token = await loginOf(t, started)
  const change = (password: string, newPassword: string): ReturnType<typeof call> =>
    call(t, started.url, 'POST', '/api/changeOwnPassword', { token, body: { password, newPassword } })
  assert.deepEqual(JSON.parse((await change('wrong', 'another long password')).text).errors,
    { password: ['The current password is not correct.'] })
  for (const [weak, why] of [
    ['short', /^The newPassword field must be at least 12 characters.$/],
    [ANA.toUpperCase(), /^The newPassword field must not be made of/],
    ['\ud801'.repeat(12), /^The newPassword field must be Unicode without halves of surrogate pairs.$/]
  ] as const) {
    const { status, text } = await change(PASSWORD, weak)
    assert.equal(status, 400)
    assert.match(JSON.parse(text).errors.newPassword[0], why)
  }
  assert.deepEqual(JSON.parse((await change(PASSWORD, 'another long password')).text),
    { message: 'contraseña cambiada', status: 200 })
  assert.equal(started.service.accounts!.tokens().length, 0)
  const types = linesOf(journalBytes(started.folder)).slice(-2).map(line =>
    JSON.parse(line)).map(({ type, by }) => [type, by])
  assert.deepEqual(types, [['token.issued', 1], ['password.changed', 1]],
    'it is the change of that user, and no token was issued for it')
  const login = (password: string): ReturnType<typeof call> =>
    call(t, started.url, 'POST', '/api/login', { body: { email: ANA, password } })
  assert.deepEqual([(await login(PASSWORD)).status, (await login('another long password')).status], [401, 200])
})

test('one’s own password is not changed by a token that is revoked while the current one is checked', async t => {
  const started = await startProtected(t, {})
  const token = await loginOf(t, started)
  const body = { password: PASSWORD, newPassword: 'another long password' }
  const accounts = started.service.accounts!
  const changePassword = accounts.changePassword.bind(accounts)
  const begun = new Promise<void>(resolve => {
    accounts.changePassword = (...given) => { resolve(); return changePassword(...given) }
  })
  const change = call(t, started.url, 'POST', '/api/changeOwnPassword', { token, body })
  await begun
  await accounts.revokeToken(accounts.tokens()[0]!.id)
  assert.equal((await change).status, 503, 'and what is asked again is refused')
  const login = (password: string): ReturnType<typeof call> =>
    call(t, started.url, 'POST', '/api/login', { body: { email: ANA, password } })
  assert.deepEqual([(await login(PASSWORD)).status, (await login(body.newPassword)).status], [200, 401])
})

test('of two changes of one’s own password at once, one is made', async t => {
  const started = await startProtected(t, {})
  const { accounts } = started.service
  const session = accounts!.session(await loginOf(t, started))!
  const passwords = ['another long password', 'a third long password']
  const made = await Promise.allSettled(passwords.map(one => accounts!.changePassword(session, PASSWORD, one)))
  assert.deepEqual(made.map(one => one.status === 'fulfilled' ? one.value : one.reason.code).sort(),
    ['session-changed', true])
})

test('tries at one’s own password count for each token, from wherever they come', async t => {
  const started = await startProtected(t, { 'login-limit': '100' })
  const [stolen, own] = [await loginOf(t, started), await loginOf(t, started)]
  const statuses = async (token: string): Promise<readonly number[]> => {
    const found: number[] = []
    for (let n = 1; n <= 7; n++) {
      const body = { password: 'wrong', newPassword: 'another long password' }
      const { status } = await call(t, started.url, 'POST', '/api/changeOwnPassword',
        { token, body, localAddress: `127.0.0.${n}` })
      found.push(status)
    }
    return found
  }
  for (const token of [stolen, own]) assert.deepEqual(await statuses(token), [400, 400, 400, 400, 400, 400, 429])
})

/** What a thief asks for with a stolen session, until it is refused. */
const THIEVES: readonly (readonly [string, string, unknown?])[] = [
  ['GET', '/api/listPassword'], ['GET', '/api/getPassword/1'], ['GET', '/api/ownSessions'], ['GET', '/api/nope'],
  ['POST', '/api/endOwnSessions', { session: 'none' }], ['PUT', '/api/ownSessions'],
  ['POST', '/api/changeOwnPassword', { password: 'wrong', newPassword: 'another long password' }],
  ['POST', '/api/createPassword', {}], ['POST', '/api/login', { email: ANA, password: 'wrong' }]
]

test('whatever a stolen session asks for, its owner sees and ends it, or changes the password', async t => {
  for (const by of ['ip', 'user']) {
    const started = await startProtected(t, { 'login-limit': '6', 'rate-limit': '10', 'rate-limit-by': by })
    const stolen = await loginOf(t, started)
    let n = 10
    for (const [method, path, body] of THIEVES) {
      const thief = { token: stolen, body, localAddress: '127.0.0.2' }
      for (let asked = 0; asked < 12; asked++) await call(t, started.url, method, path, thief)
      const localAddress = `127.0.0.${n++}`
      const owner = async (method: string, path: string, body?: unknown): Promise<RawAnswer> =>
        call(t, started.url, method, `/api/${path}`, { token, body, localAddress })
      const { token } = (await call(t, started.url, 'POST', '/api/login',
        { body: { email: ANA, password: PASSWORD }, localAddress })).json
      const seen = await owner('GET', 'ownSessions')
      assert.deepEqual([seen.status, seen.json.sessions.length], [200, 2], `${by} ${path}`)
      for (const [wanted, own, body] of [[404, 'endOwnSessions', { session: 'none' }],
        [400, 'changeOwnPassword', { password: 'wrong', newPassword: 'another long password' }],
        [200, 'logout']] as const) {
        const { status } = await owner('POST', own, body)
        assert.equal(status, wanted, `${by}: ${own} after ${method} ${path}`)
      }
    }
  }
})

test('a user without any ability sees and ends the own sessions, and nobody else’s', async t => {
  const started = await startProtected(t, { 'login-limit': '100' }, { [ANA]: [], 'bea@example.org': ['*'] })
  const { url, service: { accounts } } = started
  const [second, first] = [await loginOf(t, started), await loginOf(t, started)]
  const bea = await loginOf(t, started, PASSWORD, 'bea@example.org')
  await accounts!.issue(ANA, undefined, undefined, 'nightly build')
  const sessions = async (token: string): Promise<any[]> =>
    (await call(t, url, 'GET', '/api/ownSessions', { token })).json.sessions
  const end = async (token: string, session: unknown): Promise<number> =>
    (await call(t, url, 'POST', '/api/endOwnSessions', { token, body: { session } })).status
  const seen = await sessions(first)
  assert.deepEqual(seen.map(({ name, current }) => [name, current]),
    [['login', false], ['login', true], ['nightly build', false]])
  for (const { issued } of seen) assert.ok(Math.abs(Date.now() - Date.parse(issued)) < 60_000)
  const [{ id: beas }] = await sessions(bea)
  assert.equal(await end(first, beas), 404)
  assert.equal(await end(first, ''), 400)
  assert.equal(await end(first, seen[0].id), 200)
  assert.equal((await call(t, url, 'GET', '/api/ownSessions', { token: second })).status, 401)
  assert.equal(await end(first, seen[0].id), 404, 'it has ended')
  await loginOf(t, started)
  const newest = await loginOf(t, started)
  assert.equal(await end(newest, 'others'), 200)
  assert.equal((await call(t, url, 'GET', '/api/ownSessions', { token: first })).status, 401)
  assert.deepEqual((await sessions(newest)).map(({ name, current }) => [name, current]),
    [['nightly build', false], ['login', true]], 'a program goes on until it is named')
  await accounts!.issue(ANA, undefined, undefined, 'backup')
  for (const { id, current } of await sessions(newest)) {
    if (!current) assert.equal(await end(newest, id), 200, 'a program’s, also a later one')
  }
  assert.deepEqual((await sessions(newest)).map(({ current }) => current), [true])
  assert.equal((await sessions(bea)).length, 1)
  assert.equal(await end(newest, 'others'), 200, 'there need not be another')
  assert.equal(await end(newest, (await sessions(newest))[0].id), 200, 'the own one, too')
  assert.equal((await call(t, url, 'GET', '/api/ownSessions', { token: newest })).status, 401)
})

test('a stolen session ends no later login of its owner, who ends the stolen one', async t => {
  const started = await startProtected(t, { 'login-limit': '100' })
  const { url } = started
  const stolen = await loginOf(t, started)
  const end = async (token: string, session: string): Promise<number> =>
    (await call(t, url, 'POST', '/api/endOwnSessions', { token, body: { session } })).status
  const sessions = async (token: string): Promise<any[]> =>
    (await call(t, url, 'GET', '/api/ownSessions', { token })).json.sessions
  const owners = await loginOf(t, started)
  const [, { id }] = await sessions(stolen)
  assert.deepEqual([await end(stolen, 'others'), await end(stolen, id)], [200, 403])
  assert.deepEqual((await sessions(owners)).map(({ current }) => current), [false, true], 'in their order')
  assert.equal(await end(owners, 'others'), 200)
  assert.equal(await end(stolen, 'others'), 401)
})

test('a token that the operator issued is not its user’s: 403', async t => {
  const started = await startProtected(t)
  const token = await tokenOf(started)
  for (const [method, path, body] of [
    ['POST', 'changeOwnPassword', { password: PASSWORD, newPassword: 'another long password' }],
    ['GET', 'ownSessions', undefined],
    ['POST', 'endOwnSessions', { session: 'others' }]
  ] as const) assert.equal((await call(t, started.url, method, `/api/${path}`, { token, body })).status, 403, path)
})

test('a login says of its user: a second factor, a password, and whether it is still a first one', async () => {
  const world = new World()
  const { accounts } = world.open()
  const factor = newFactor()
  const codeOf = (): string => codeAt(otpIn(factor)!, stepAt(otpIn(factor)!, world.nowMs))
  await accounts.addUsers([{ email: ANA, name: 'Ana', abilities: [], groups: null, password: PASSWORD }], true)
  const told = async (store: FullStore, password: string = PASSWORD, code?: string): Promise<unknown> => {
    const { id, email, name, ...facts } =
      (await store.accounts.login({ email: ANA, password, code, client: '' }, undefined))!.user
    return facts
  }
  const first = { secondFactor: false, hasPassword: true, firstPassword: true }
  for (const store of [world.open(), world.open()]) assert.deepEqual(await told(store), first)
  await accounts.giveFactor(ANA, factor, codeOf())
  world.nowMs += 60_000
  assert.deepEqual(await told(world.open(), PASSWORD, codeOf()), { ...first, secondFactor: true })
  await accounts.removeFactor(ANA)
  assert.deepEqual((await accounts.loginVouched(ANA, 1))!.user,
    { id: 1, email: ANA, name: 'Ana', ...first })
  const { token } = (await accounts.login({ email: ANA, password: PASSWORD, client: '' }, 1))!
  const session = accounts.session(token)!
  assert.equal(await accounts.changePassword(session, PASSWORD, 'another long password'), true)
  assert.deepEqual(await told(world.open(), 'another long password'), { secondFactor: false, hasPassword: true })
  await accounts.setPassword(ANA, null)
  const { hasPassword, firstPassword } = (await accounts.loginVouched(ANA, 1))!.user
  assert.deepEqual([hasPassword, firstPassword], [false, undefined])
})
