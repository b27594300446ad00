/** Login and logout (contract §5.3, §5.4, §8.5) on sockets. */
import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { TOKEN_SWEEP_MS } from '../../src/limits.ts'
import { event } from '../../src/store/events.ts'
import { ANA, call, PASSWORD, startProtected, tokenOf, type CallOptions } from '../support/accounts.ts'
import { hashAtFullCost } from '../support/hashes.ts'
import type { RawAnswer } from '../support/raw.ts'
import { startService } from '../support/service.ts'

const NO_LIMIT = { 'login-limit': '0' }
const JSON_TYPE = 'application/json; charset=utf-8'

function login(
  t: TestContext, url: string, email: unknown = ANA, password: unknown = PASSWORD, options: CallOptions = {}
): Promise<RawAnswer> {
  return call(t, url, 'POST', '/api/login', { body: { email, password }, ...options })
}

const list = (t: TestContext, url: string, token: string): Promise<RawAnswer> =>
  call(t, url, 'GET', '/api/listPassword', { token })

test('§5.3 login: 200 with token, user and status, the address in any case, each login another token', async t => {
  const { url } = await startProtected(t, NO_LIMIT)
  const tokens = new Set<string>()
  for (const email of [ANA, 'aNA@Example.ORG']) {
    const answer = await login(t, url, email)
    const { token } = answer.json
    assert.equal(answer.status, 200)
    assert.match(token, /^pes_[A-Za-z0-9_-]{43}$/)
    assert.equal(answer.text,
      `{"token":"${token}","user":{"id":1,"email":"${ANA}","name":"ana","secondFactor":false,"hasPassword":true,` +
        '"abilities":["*"]},"expires":null,"status":200}')
    assert.equal(answer.headers['content-type'], JSON_TYPE)
    assert.equal(answer.headers['cache-control'], 'no-store')
    tokens.add(token)
  }
  assert.equal(tokens.size, 2)
  for (const token of tokens) {
    assert.equal((await list(t, url, token)).text, '{"message":"No passwords found","status":404}')
  }
})

test('§5.3 login: 401 with the same bytes for a wrong password and an unknown user', async t => {
  const { url } = await startProtected(t, NO_LIMIT)
  const shown = ({ line, headers, text }: RawAnswer): unknown => ({ line, headers: { ...headers, date: '' }, text })
  const wrong = await login(t, url, ANA, `${PASSWORD} `)
  assert.equal(wrong.status, 401)
  assert.equal(wrong.text, '{"message":"Invalid credentials","status":401}')
  assert.deepEqual(shown(await login(t, url, 'nobody@example.org')), shown(wrong))
})

test('§5.3 login: a wrong password and an unknown user take the same time', async t => {
  hashAtFullCost(t)
  const started = await startService(t, { auth: 'bearer', ...NO_LIMIT })
  await started.service.accounts!.addUser(ANA, 'Ana', ['*'], PASSWORD)
  // By the processor, which a hash takes nearly alone: a loaded machine makes only the waiting longer.
  const least: Record<string, number> = {}
  for (let round = 0; round < 3; round++) {
    for (const email of [ANA, 'nobody@example.org']) {
      const before = process.cpuUsage()
      assert.equal((await login(t, started.url, email, 'wrong')).status, 401)
      const { user, system } = process.cpuUsage(before)
      least[email] = Math.min(least[email] ?? Infinity, (user + system) / 1000)
    }
  }
  const [known = 0, unknown = 0] = Object.values(least)
  t.diagnostic(`known ${known.toFixed(1)} ms of a core, unknown ${unknown.toFixed(1)} ms`)
  assert.ok(known / unknown > 0.5 && known / unknown < 2, `${known} ms and ${unknown} ms`)
})

const REQUIRED = (field: string): string => `The ${field} field is required.`
const BOTH = { email: REQUIRED('email'), password: REQUIRED('password') }
const INVALID_EMAIL = 'The email field must be a valid email address.'
const NO_STRING = 'The password field must be a string.'
const FAULTS: readonly (readonly [unknown, Record<string, string>])[] = [
  [undefined, BOTH], [{}, BOTH], [{ email: null, password: '' }, BOTH],
  [{ email: ANA }, { password: REQUIRED('password') }],
  [{ password: 'x' }, { email: REQUIRED('email') }],
  [{ email: 'a b@c', password: 'x' }, { email: INVALID_EMAIL }],
  [{ email: `${'a'.repeat(252)}@bc`, password: 'x' }, { email: INVALID_EMAIL }],
  [{ email: 7, password: 7 }, { email: INVALID_EMAIL, password: NO_STRING }],
  [{ email: ANA, password: ['x'] }, { password: NO_STRING }],
  [
    { email: ANA, password: 'x'.repeat(1025) },
    { password: 'The password field must not be greater than 1024 characters.' }
  ]
]

test('§5.3, §5.5 the answer to a login says when its token ends', async t => {
  const beforeMs = Date.now()
  const { url } = await startProtected(t, { ...NO_LIMIT, 'token-ttl-minutes': '5' })
  const { json } = await login(t, url)
  const ttlMs = Date.parse(json.expires) - beforeMs
  assert.ok(ttlMs >= 300_000 && ttlMs < 320_000, json.expires)
})

test('a pair of an address and an e-mail has six logins a minute, also where an address has more', async t => {
  const { url } = await startProtected(t, { 'login-limit': '100', 'rate-limit': '100' })
  const statuses: number[] = []
  for (let n = 0; n < 8; n++) statuses.push((await login(t, url, n % 2 === 0 ? ANA : ANA.toUpperCase(),
    'wrong')).status)
  assert.deepEqual(statuses, [401, 401, 401, 401, 401, 401, 429, 429])
  const { status, text, headers } = await login(t, url, ANA, PASSWORD)
  assert.deepEqual([status, text], [429, '{"message":"Too Many Requests"}'])
  assert.match(headers['retry-after']!, /^([1-9]|[1-5][0-9]|60)$/)
  assert.equal((await login(t, url, 'eva@example.org', 'wrong')).status, 401)
})

test('§5.3 login: what is not valid is 400 and names each failing field', async t => {
  const { url } = await startProtected(t, NO_LIMIT)
  for (const [body, faults] of FAULTS) {
    const errors = Object.fromEntries(Object.entries(faults).map(([field, text]) => [field, [text]]))
    const answer = await call(t, url, 'POST', '/api/login', { body })
    assert.equal(answer.text, JSON.stringify({ message: 'Invalid data', errors, status: 400 }))
    assert.equal(answer.status, 400)
  }
  assert.equal((await login(t, url, ANA, 'x'.repeat(1024))).status, 401, 'a password of 1024 characters is looked at')
})

test('a login and what comes with its token are known by one key of their client, a whole network of IPv6', async t => {
  const started = await startProtected(t, { 'trust-proxy': '127.0.0.1' })
  const accounts = started.service.accounts!
  const [loginBefore, sessionBefore] = [accounts.login.bind(accounts), accounts.session.bind(accounts)]
  const clients: unknown[] = []
  accounts.login = (given, ttlMinutes) => { clients.push(given.client); return loginBefore(given, ttlMinutes) }
  accounts.session = (token, client) => { clients.push(client); return sessionBefore(token, client) }
  const from = (host: number): readonly string[] => [`X-Forwarded-For: 2001:db8::${host}`]
  const body = { email: ANA, password: PASSWORD }
  const { token } = (await call(t, started.url, 'POST', '/api/login', { body, fields: from(1) })).json
  assert.equal((await call(t, started.url, 'GET', '/api/ownSessions', { token, fields: from(2) })).status, 200)
  assert.deepEqual(new Set(clients), new Set(['2001:db8:0:0::/64']))
})

test('§5.4 logout revokes the very token that was used, whatever its abilities, at once and for good', async t => {
  const started = await startProtected(t, NO_LIMIT)
  const { url, folder } = started
  const [used, kept] = [await tokenOf(started, ANA, []), (await login(t, url)).json.token]
  const answer = await call(t, url, 'POST', '/api/logout', { token: used })
  assert.equal(answer.status, 200)
  assert.equal(answer.text, '{"message":"Logged out successfully","status":200}')
  assert.equal((await list(t, url, used)).status, 401)
  assert.equal((await call(t, url, 'POST', '/api/logout', { token: used })).status, 401)
  assert.equal((await list(t, url, kept)).status, 404)
  await started.service.close()
  const again = await startService(t, { auth: 'bearer', data: folder })
  assert.equal((await list(t, again.url, used)).status, 401)
  assert.equal((await list(t, again.url, kept)).status, 404)
})

test('while the journal takes no changes nobody can log in, and nobody can revoke a token', async t => {
  const { url, service, folder } = await startProtected(t, NO_LIMIT)
  const { accounts } = service
  const token = (await login(t, url)).json.token as string
  const body = { password: 'p', sistema: 's', usuario: 'u' }
  assert.equal((await call(t, url, 'POST', '/api/createPassword', { token, body })).status, 200)
  renameSync(join(folder, 'journal.jsonl'), join(folder, 'aside'))
  assert.equal((await login(t, url)).status, 500)
  assert.equal((await call(t, url, 'POST', '/api/logout', { token })).status, 500)
  await assert.rejects(accounts!.revoke(accounts!.session(token)!.hash, null), { code: 'journal-failed' })
  await assert.rejects(accounts!.revokeAll(ANA), { code: 'journal-failed' })
  await assert.rejects(accounts!.removeUser(ANA), { code: 'journal-failed' })
  assert.equal((await list(t, url, token)).status, 200, 'the token is valid as before')
})

test('§5.5 a token of a login ends after TOKEN_TTL_MINUTES, fractions allowed', async t => {
  const { url } = await startProtected(t, { ...NO_LIMIT, 'token-ttl-minutes': '0.005' })
  // The end is counted from the issue, which is before the answer and after the question.
  const askedMs = Date.now()
  const { token } = (await login(t, url)).json
  let answer = await list(t, url, token)
  while (answer.status !== 401) {
    assert.ok(Date.now() - askedMs < 10_000, 'it never ends')
    answer = await list(t, url, token)
  }
  assert.ok(Date.now() - askedMs >= 300)
  assert.equal(answer.text, '{"message":"Unauthenticated.","status":401}')
})

test('§8.5 the seventh login in a minute is 429, right or wrong, and the counter is the login\'s own', async t => {
  const started = await startProtected(t)
  const { url } = started
  for (let i = 0; i < 6; i++) {
    assert.equal((await login(t, url, i > 0 ? ANA : 'nobody@example.org', 'wrong')).status, 401)
  }
  for (const password of [PASSWORD, 'wrong', undefined]) {
    const answer = await login(t, url, ANA, password)
    assert.equal(answer.status, 429)
    assert.equal(answer.text, '{"message":"Too Many Requests"}')
    assert.equal(answer.headers['x-ratelimit-limit'], '6')
    assert.equal(answer.headers['x-ratelimit-remaining'], '0')
    assert.match(answer.headers['retry-after'] ?? '', /^([1-9]|[1-5][0-9]|60)$/)
  }
  assert.equal((await list(t, url, await tokenOf(started))).status, 404, 'other operations go on')
  assert.equal((await login(t, url, ANA, 'wrong', { localAddress: '127.0.0.2' })).status, 401, 'other addresses too')
})

test('§8.5 logins that are not even valid count, so that none is free', async t => {
  const { url } = await startProtected(t, { 'login-limit': '2' })
  const invalid = (body?: string): Promise<RawAnswer> => call(t, url, 'POST', '/api/login', { body })
  const answers = [await invalid(), await invalid('{'), await login(t, url)]
  assert.deepEqual(answers.map(({ status }) => status), [400, 400, 429])
})

test('§8 a login counts in the general limit, which it shows, unless its own refuses it, with none left', async t => {
  const started = await startProtected(t, { 'rate-limit': '4', 'login-limit': '1' })
  const { url } = started
  const seen = ({ status, headers }: RawAnswer): unknown =>
    [status, headers['x-ratelimit-limit'], headers['x-ratelimit-remaining'], 'retry-after' in headers]
  assert.deepEqual(seen(await login(t, url, ANA, 'wrong')), [401, '4', '3', false])
  for (let n = 0; n < 6; n++) assert.deepEqual(seen(await login(t, url)), [429, '4', '0', true])
  const token = await tokenOf(started)
  for (const left of ['2', '1', '0']) assert.deepEqual(seen(await list(t, url, token)), [404, '4', left, false])
  assert.deepEqual(seen(await list(t, url, token)), [429, '4', '0', true])
  assert.deepEqual(seen(await login(t, url)), [429, '4', '0', true])
})

test('a service forgets expired tokens now and then, by no clock set ahead meanwhile, or before its start', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { service, folder } = await startService(t)
  const { store } = service
  const token = (hash: string, expires: string): Promise<void> => store.commitAlone(() => [[
    event('token.issued', null, { hash, user: 1, abilities: [], issued: '2020-01-01T00:00:00.000Z', expires })
  ], undefined])
  await store.commitAlone(() => [[
    event('user.added', null, { id: 1, email: ANA, name: 'Ana', abilities: [], passwordHash: 'x' })
  ], undefined])
  await token('a'.repeat(64), '2020-01-02T00:00:00.000Z')
  await token('b'.repeat(64), '2999-01-01T00:00:00.000Z')
  await token('c'.repeat(64), new Date(Date.now() + 3_600_000).toISOString())
  assert.equal(store.state.tokens.size, 3)
  const { now } = Date
  t.mock.method(Date, 'now', () => now() + 7_200_000)
  t.mock.timers.tick(TOKEN_SWEEP_MS)
  assert.deepEqual([...store.state.tokens.entries()].map(([hash]) => hash[0]), ['b', 'c'])
  await service.close()
  const { service: again } = await startService(t, { data: folder })
  t.mock.timers.tick(TOKEN_SWEEP_MS)
  assert.deepEqual([...again.store.state.tokens.entries()].map(([hash]) => hash[0]), ['b', 'c'])
})
