/** Company login: a proxy, or the host of an embedded service, says who somebody is. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { openService } from '../../src/embedding/embedded-service.ts'
import { hashOfToken } from '../../src/accounts/tokens.ts'
import { event } from '../../src/store/events.ts'
import { newFactor, stepOfCode } from '../../src/accounts/logins.ts'
import { codeAt, otpIn, stepAt } from '../../src/accounts/totp.ts'
import { ANA, call, PASSWORD, startProtected, tokenOf, type CallOptions } from '../support/accounts.ts'
import { assertDescription, faultOfAnswer, operationOf, resolved } from '../support/openapi.ts'
import { connectRaw, type RawAnswer } from '../support/raw.ts'
import { atEnd, freshFolder, type Started } from '../support/service.ts'

const SECRET = 'u2Nf0c1xWq9sLr7Ek4Vb8TzYh3Jd6Mp5Ga+/'
const EMAIL = 'X-Auth-Request-Email'
const BEA = 'bea@example.org'

function secretFile(t: TestContext, text: string = `${SECRET}\n`, mode: number = 0o600): string {
  const path = join(freshFolder(t), 'secret')
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

const flagsOf = (file: string): Record<string, string> => ({
  'proxy-login-header': EMAIL, 'proxy-login-secret-file': file, 'trust-proxy': '127.0.0.1',
  'token-ttl-minutes': '720', 'login-limit': '0'
})

const start = (t: TestContext, flags: Record<string, string> = {}): Promise<Started> =>
  startProtected(t, { ...flagsOf(secretFile(t)), ...flags }, { [ANA]: ['password:read'] })

const SAME = 'Sec-Fetch-Site: same-origin'
const BY_PROXY = [SAME, `X-Proxy-Login-Secret: ${SECRET}`]

const ask = (t: TestContext, { url }: Started, fields: readonly string[], options: CallOptions = {}):
  Promise<RawAnswer> => call(t, url, 'POST', '/api/proxyLogin', { body: {}, fields, ...options })

test('a trusted proxy that shows the secret logs in the user whom it names, with a token that ends', async t => {
  const started = await start(t)
  const { accounts, store: { state } } = started.service
  const answer = await ask(t, started, [...BY_PROXY, `${EMAIL}: Ana@Example.org`])
  assert.equal(answer.status, 200, answer.text)
  const { token, user, expires, status } = answer.json
  assert.deepEqual([user, status], [{ id: 1, email: ANA, name: 'ana', abilities: ['password:read'],
    secondFactor: false, hasPassword: true }, 200])
  assert.ok(Math.abs(Date.parse(expires) - Date.now() - 720 * 60_000) < 60_000)
  assert.equal(state.tokens.get(hashOfToken(token))?.isOfLogin, true)
  const { json: { sessions } } = await call(t, started.url, 'GET', '/api/ownSessions', { token })
  assert.deepEqual(sessions.map(({ name, current }: any) => [name, current]), [['login', true]])
  assert.equal((await call(t, started.url, 'POST', '/api/logout', { token })).status, 200)
  assert.equal(accounts!.tokens().length, 0)
  assert.deepEqual(started.warnings.filter(line => line.includes('proxyLogin')), [])
})

test('users without a password and users with a second factor are logged in, and no code is used up', async t => {
  const started = await start(t)
  const accounts = started.service.accounts!
  await accounts.addUser(BEA, undefined, ['*'], null)
  const factor = newFactor()
  const code = codeAt(otpIn(factor)!, stepAt(otpIn(factor)!, Date.now()))
  await accounts.giveFactor(ANA, factor, code)
  const { step } = started.service.store.state.userOf(ANA)!
  for (const email of [ANA, BEA]) assert.equal((await ask(t, started, [...BY_PROXY, `${EMAIL}: ${email}`])).status, 200)
  assert.equal(started.service.store.state.userOf(ANA)!.step, step)
  assert.ok(stepOfCode(factor, code, Date.now()) !== undefined)
  const login = { email: BEA, password: PASSWORD }
  assert.equal((await call(t, started.url, 'POST', '/api/login', { body: login })).status, 401)
})

const ORIGIN = 'http://127.0.0.1'
const BODY = JSON.stringify({ email: ANA, user: ANA, [EMAIL]: ANA, 'X-Proxy-Login-Secret': SECRET })
const shown = `X-Proxy-Login-Secret: ${SECRET}`
const named = `${EMAIL}: ${ANA}`

/** What is sent besides, and whether it logs in. */
const WAYS: readonly (readonly [what: string, fields: readonly string[], isIn: boolean, options?: CallOptions])[] = [
  ['all of it', [SAME, shown, named], true],
  ['names in another case', [SAME, shown.toLowerCase().replace(SECRET.toLowerCase(), SECRET),
    named.toUpperCase()], true],
  ['without Fetch Metadata, with the own origin', [`Origin: ${ORIGIN}`, shown, named], true],
  ['with HTTPS by the proxy, and the own origin',
    ['Origin: https://127.0.0.1', 'X-Forwarded-Proto: https', shown, named], true],
  ['from an address that is not trusted', [SAME, shown, named], false, { localAddress: '127.0.0.2' }],
  ['from an address that is not trusted and says that it is',
    [SAME, shown, named, 'X-Forwarded-For: 127.0.0.1'], false, { localAddress: '127.0.0.2' }],
  ['without a secret', [SAME, named], false],
  ['with an empty secret', [SAME, 'X-Proxy-Login-Secret:', named], false],
  ['with a secret that is longer', [SAME, `${shown}=`, named], false],
  ['with a secret that is shorter', [SAME, shown.slice(0, -1), named], false],
  ['with the secret in another case', [SAME, `X-Proxy-Login-Secret: ${SECRET.toLowerCase()}`, named], false],
  ['with the secret twice', [SAME, shown, shown, named], false],
  ['with another secret before it', [SAME, 'X-Proxy-Login-Secret: x', shown, named], false],
  ['with two secrets in one line', [SAME, `${shown}, ${SECRET}`, named], false],
  ['with the secret under a name with underscores', [SAME, shown.replaceAll('-', '_'), named], false],
  ['without an address', [SAME, shown], false],
  ['with an empty address', [SAME, shown, `${EMAIL}:`], false],
  ['with the address twice', [SAME, shown, named, named], false],
  ['with another address before it', [SAME, shown, `${EMAIL}: ${BEA}`, named], false],
  ['with an empty line before the address', [SAME, shown, `${EMAIL}:`, named], false],
  ['with two addresses in a line', [SAME, shown, `${named}, ${BEA}`], false],
  ['with a comma behind the address', [SAME, shown, `${named},`], false],
  ['with a name beside the address', [SAME, shown, `${EMAIL}: Ana <${ANA}>`], false],
  ['with a name that is no address', [SAME, shown, `${EMAIL}: ana`], false],
  ['with the address under a name with underscores', [SAME, shown, named.replaceAll('-', '_')], false],
  ['with an address that nobody has', [SAME, shown, `${EMAIL}: nobody@example.org`], false],
  ['with the address of a removed user', [SAME, shown, `${EMAIL}: old@example.org`], false],
  ['with a letter that only looks like the user’s', [SAME, shown, `${EMAIL}: ${utf8('\u212aim@example.org')}`], false],
  ['with a letter that another standard composes', [SAME, shown, `${EMAIL}: ${utf8('cafe\u0301@example.org')}`], false],
  ['with letters beyond ASCII', [SAME, shown, `${EMAIL}: ${utf8('café@example.org')}`], true],
  ['with letters beyond ASCII that are no UTF-8', [SAME, shown, `${EMAIL}: café@example.org`], false],
  ['without any origin', [shown, named], false],
  ['from a page of another site', ['Sec-Fetch-Site: cross-site', shown, named], false],
  ['from a page of another site that has the own origin',
    ['Sec-Fetch-Site: cross-site', `Origin: ${ORIGIN}`, shown, named], false],
  ['from a page of a neighbour', ['Sec-Fetch-Site: same-site', shown, named], false],
  ['by a form in the address line', ['Sec-Fetch-Site: none', shown, named], false],
  ['from another origin', ['Origin: https://app.example', shown, named], false],
  ['from the own host by HTTP where it is HTTPS',
    [`Origin: ${ORIGIN}`, 'X-Forwarded-Proto: https', shown, named], false],
  ['from an opaque origin', ['Origin: null', shown, named], false]
]

/** As its bytes go into a header. */
function utf8(text: string): string { return Buffer.from(text).toString('latin1') }

test('whatever is wrong is answered as wrong credentials are, by the same bytes, and leaves no token', async t => {
  const started = await start(t, { 'cors-origins': 'https://app.example' })
  const accounts = started.service.accounts!
  for (const email of ['kim@example.org', 'café@example.org', 'old@example.org']) {
    await accounts.addUser(email, undefined, ['*'], null)
  }
  await accounts.removeUser('old@example.org')
  const login = { email: ANA, password: 'wrong' }
  const wrong = await call(t, started.url, 'POST', '/api/login', { body: login })
  for (const [what, fields, isIn, options] of WAYS) {
    const before = accounts.tokens().length
    const { status, text, headers } = await ask(t, started, fields, options)
    assert.equal(status, isIn ? 200 : 401, `${what}: ${text}`)
    assert.equal(accounts.tokens().length - before, isIn ? 1 : 0, what)
    assert.equal(Object.keys(headers).some(name => name.startsWith('access-control-')), false, what)
    if (!isIn) assert.deepEqual([text, headers['content-type']], [wrong.text, wrong.headers['content-type']], what)
  }
})

test('no other origin may ask, whatever CORS_ORIGINS says', async t => {
  const started = await start(t, { 'cors-origins': 'https://app.example' })
  const fields = ['Origin: https://app.example', 'Access-Control-Request-Method: POST']
  const allowed = async (path: string): Promise<string | undefined> =>
    (await call(t, started.url, 'OPTIONS', path, { fields })).headers['access-control-allow-origin']
  assert.deepEqual([await allowed('/api/login'), await allowed('/api/proxyLogin')], ['https://app.example', undefined])
})

test('each kind of refusal is warned of once in a while, without the secret', async t => {
  const started = await start(t)
  for (let n = 0; n < 2; n++) for (const [, fields, , options] of WAYS) await ask(t, started, fields, options)
  const warnings = started.warnings.filter(line => line.includes('/api/proxyLogin'))
  const kinds = [
    /TRUST_PROXY/, /X-Proxy-Login-Secret, once/, new RegExp(`${EMAIL}, once`), /no user has/, /page of this/
  ]
  for (const kind of kinds) assert.equal(warnings.filter(line => kind.test(line)).length, 1, String(kind))
  assert.equal(warnings.length, kinds.length)
  assert.ok(!warnings.join().includes(SECRET))
})

test('a user who is removed, or locked by a salvage, is not logged in; a new password, or none, unlocks', async t => {
  const started = await start(t)
  const { accounts, store } = started.service
  const status = async (email: string = ANA): Promise<number> =>
    (await ask(t, started, [...BY_PROXY, `${EMAIL}: ${email}`])).status
  const lock = (): Promise<unknown> => store.commitAlone(() =>
    [[event('password.changed', null, { id: 1, isLocked: true })], undefined])
  await lock()
  assert.deepEqual([await status(), accounts!.users()[0]!.isLocked], [401, true])
  await accounts!.setPassword(ANA, null)
  assert.equal(await status(), 200)
  await lock()
  await accounts!.setPassword(ANA, PASSWORD)
  assert.equal(await status(), 200)
  await accounts!.removeUser(ANA)
  assert.equal(await status(), 401)
})

test('company logins have the limits of logins, and their own count', async t => {
  const fields = [...BY_PROXY, named]
  const from = (client: string): readonly string[] => [...fields, `X-Forwarded-For: ${client}`]
  const few = await start(t, { 'login-limit': '2' })
  const statuses: number[] = []
  for (const client of ['192.0.2.1', '192.0.2.1', '192.0.2.1', '192.0.2.2']) {
    statuses.push((await ask(t, few, from(client))).status)
  }
  assert.deepEqual(statuses, [200, 200, 429, 200])
  const login = { body: { email: ANA, password: PASSWORD }, fields: ['X-Forwarded-For: 192.0.2.1'] }
  assert.equal((await call(t, few.url, 'POST', '/api/login', login)).status, 200)
  const many = await start(t, { 'login-limit': '100' })
  const pairs: number[] = []
  for (let n = 0; n < 7; n++) {
    const other = n % 2 === 0 ? named : named.replace(ANA, ANA.toUpperCase())
    pairs.push((await ask(t, many, [...BY_PROXY, other, 'X-Forwarded-For: 192.0.2.1'])).status)
  }
  assert.deepEqual(pairs, [200, 200, 200, 200, 200, 200, 429])
})

test('without its settings nothing is served at /api/proxyLogin', async t => {
  const started = await startProtected(t, { 'trust-proxy': '127.0.0.1', 'token-ttl-minutes': '720' })
  assert.equal((await ask(t, started, [...BY_PROXY, named])).status, 404)
})

/** Settings that do not go together, with what is said. */
const FAULTS: readonly (readonly [Record<string, string | undefined>, RegExp])[] = [
  [{ 'proxy-login-header': undefined }, /PROXY_LOGIN_HEADER and PROXY_LOGIN_SECRET_FILE go together/],
  [{ 'proxy-login-secret-file': undefined }, /PROXY_LOGIN_HEADER and PROXY_LOGIN_SECRET_FILE go together/],
  [{ auth: 'none' }, /PROXY_LOGIN_HEADER needs AUTH=bearer$/],
  [{ 'trust-proxy': undefined }, /PROXY_LOGIN_HEADER needs TRUST_PROXY/],
  [{ 'token-ttl-minutes': undefined }, /PROXY_LOGIN_HEADER needs TOKEN_TTL_MINUTES/],
  [{ auth: 'none', 'trust-proxy': undefined, 'token-ttl-minutes': undefined },
    /needs AUTH=bearer, and TOKEN_TTL_MINUTES, such as 720, and TRUST_PROXY/]
]

test('settings that do not go together are refused in a sentence', async t => {
  for (const [flags, says] of FAULTS) {
    const all = Object.entries({ auth: 'bearer', ...flagsOf(secretFile(t)), ...flags })
    const given = Object.fromEntries(all.filter(([, value]) => value !== undefined)) as Record<string, string>
    await assert.rejects(startProtected(t, given), ({ code, message }: any) =>
      code === 'setting-invalid' && says.test(message), JSON.stringify(flags))
  }
})

const WEAK: readonly (readonly [what: string, text: string])[] = [
  ['short', SECRET.slice(0, 31)], ['empty', ''], ['two lines', `${SECRET}\n${SECRET}\n`], ['spaces', `${SECRET} a`],
  ['one letter', 'a'.repeat(40)], ['a repeated word', 'change-me'.repeat(5)], ['not ASCII', `${SECRET}ñ`],
  ['long', SECRET.repeat(40)], ['a line before it', `\n${SECRET}`]
]

test('a weak or unreadable secret is refused, and not shown; one that others may read is warned of', async t => {
  for (const [what, text] of WEAK) {
    await assert.rejects(start(t, { 'proxy-login-secret-file': secretFile(t, text) }), ({ code, message }: any) =>
      code === 'setting-invalid' && /^.*PROXY_LOGIN_SECRET_FILE, \/.*openssl rand -base64 32$/.test(message) &&
      !message.includes(SECRET.slice(0, 20)), what)
  }
  await assert.rejects(start(t, { 'proxy-login-secret-file': join(freshFolder(t), 'none') }), /SECRET_FILE, .*ENOENT/)
  await assert.rejects(start(t, { 'proxy-login-secret-file': freshFolder(t) }), /SECRET_FILE, .*EISDIR/)
  for (const [mode, isWarned] of [
    [0o600, false], [0o640, false], [0o644, true], [0o620, true], [0o400, false]
  ] as const) {
    const { warnings } = await start(t, { 'proxy-login-secret-file': secretFile(t, SECRET, mode) })
    const octal = mode.toString(8)
    assert.equal(warnings.some(line => line.includes(`is open to others (mode ${octal})`)), isWarned, octal)
  }
})

test('a line end of either kind behind the secret is none of it', async t => {
  for (const end of ['', '\n', '\r\n']) {
    const started = await start(t, { 'proxy-login-secret-file': secretFile(t, SECRET + end) })
    assert.equal((await ask(t, started, [...BY_PROXY, named])).status, 200, JSON.stringify(end))
  }
})

test('the host of an embedded service vouches for a user by a call of its own, for this operation alone', async t => {
  const dataDir = freshFolder(t)
  const service = await openService({
    dataDir, auth: 'bearer', tokenTtlMinutes: 720, rateLimit: 0, loginLimit: 0, vouches: true, prefix: '/vault'
  })
  atEnd(t, () => service.close())
  await service.accounts.addUser({ email: ANA, password: null, abilities: ['*'], groups: null })
  const host = createServer((request: IncomingMessage, response: ServerResponse) => {
    const user = request.headers['cookie']
    if (user !== undefined) service.vouch(request, { user })
    // What frameworks hand over behind the two means nothing.
    const handle = service.handle as (...given: unknown[]) => void
    handle(request, response, Object.assign(() => {}, { user: ANA }), { user: ANA })
  }).listen(0, '127.0.0.1')
  atEnd(t, () => { host.close().closeAllConnections() })
  await once(host, 'listening')
  const url = `http://127.0.0.1:${(host.address() as AddressInfo).port}`
  const status = async (path: string, fields: readonly string[]): Promise<number> =>
    (await call(t, url, path === 'listPassword' ? 'GET' : 'POST', `/vault/api/${path}`, { fields })).status
  assert.equal(await status('proxyLogin', [SAME, `Cookie: ${ANA}`]), 200)
  assert.equal(await status('proxyLogin', [SAME]), 401)
  assert.equal(await status('proxyLogin', [SAME, 'Cookie: bea@example.org']), 401)
  assert.equal(await status('proxyLogin', ['Sec-Fetch-Site: cross-site', `Cookie: ${ANA}`]), 401)
  assert.equal(await status('proxyLogin', [SAME, `Cookie: ${ANA}`, `${EMAIL}: ${ANA}`, shown]), 200)
  assert.equal(await status('listPassword', [SAME, `Cookie: ${ANA}`]), 401)
  assert.throws(() => service.vouch({} as IncomingMessage, {} as never), /vouch takes \{ user \}/)
  const served = await (await fetch(`${url}/vault/`)).text()
  assert.match(served, /proxyLogin/, 'the page knows that it may try')
})

test('without the option vouches the host vouches for nobody; with it, logins must be possible and end', async () => {
  const service = await openService({ journal: 'memory', auth: 'bearer' })
  assert.throws(() => service.vouch({} as IncomingMessage, { user: ANA }), { code: 'setting-invalid' })
  await service.close()
  for (const [options, says] of [
    [{ auth: 'none', tokenTtlMinutes: 1 }, /vouches needs auth: 'bearer'$/],
    [{ auth: 'bearer' }, /vouches needs tokenTtlMinutes, such as 720/]
  ] as const) {
    await assert.rejects(openService({ journal: 'memory', vouches: true, ...options } as never), says)
  }
})

test('a token of a company login is an ordinary one: it can be ended by its user, and by the operator', async t => {
  const started = await start(t)
  const { token } = (await ask(t, started, [...BY_PROXY, named])).json
  const other = await tokenOf(started)
  assert.equal((await call(t, started.url, 'GET', '/api/listPassword', { token })).status, 404)
  await started.service.accounts!.revokeAll(ANA)
  for (const one of [token, other]) {
    assert.equal((await call(t, started.url, 'GET', '/api/listPassword', { token: one })).status, 401)
  }
})

test('the description is true', async t => {
  const started = await start(t)
  const document = resolved((await call(t, started.url, 'GET', '/openapi.json')).json)
  assertDescription(document)
  const { operation, path } = operationOf(document, 'proxyLogin')
  assert.deepEqual([path, operation['security']], ['/api/proxyLogin', []])
  for (const fields of [[...BY_PROXY, named], [SAME]]) {
    assert.equal(faultOfAnswer(document, 'proxyLogin', await ask(t, started, fields)), undefined)
  }
})

test('nothing is taken from a trailer, from another request, or from more fields than a head may have', async t => {
  const started = await start(t)
  const accounts = started.service.accounts!
  const line = 'POST /api/proxyLogin HTTP/1.1\r\nHost: 127.0.0.1\r\n'
  const bare = `${line}${SAME}\r\n`
  const many = Array.from({ length: 98 }, (_, n) => `X-${n}: y`)
  const ways: readonly (readonly [what: string, bytes: string, statuses: readonly number[]])[] = [
    ['a trailer', `${bare}Transfer-Encoding: chunked\r\nTrailer: ${EMAIL}\r\n\r\n0\r\n${shown}\r\n${named}\r\n\r\n`,
      [400, 401]],
    ['a secret in a trailer', `${bare}${named}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${shown}\r\n\r\n`, [400, 401]],
    ['the body', `${bare}Content-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`, [401]],
    ['a folded line', `${bare}${shown}\r\nX-Other: y\r\n ${named}\r\nContent-Length: 0\r\n\r\n`, [400, 401]],
    ['a space before the colon', `${bare}${shown}\r\n${EMAIL} : ${ANA}\r\nContent-Length: 0\r\n\r\n`, [400, 401]],
    ['a bare line feed', `${bare}${shown}\r\nX-Other: y\n${named}\r\nContent-Length: 0\r\n\r\n`, [400, 401]],
    ['too many fields', `${bare}${shown}\r\n${many.join('\r\n')}\r\n${named}\r\nContent-Length: 0\r\n\r\n`, [431]],
    ['the site twice', `${bare}${SAME}\r\n${shown}\r\n${named}\r\nContent-Length: 0\r\n\r\n`, [400]],
    ['the query', `${bare}`.replace(' HTTP', `?email=${ANA} HTTP`) + `${shown}\r\nContent-Length: 0\r\n\r\n`, [401]],
    ['a GET', bare.replace('POST', 'GET') + `${shown}\r\n${named}\r\n\r\n`, [405]],
    ['another method by a field',
      bare.replace('POST', 'GET') + `X-HTTP-Method-Override: POST\r\n${shown}\r\n${named}\r\n\r\n`, [405]]
  ]
  for (const [what, bytes, statuses] of ways) {
    const client = await connectRaw(t, started.url)
    await client.send(Buffer.from(bytes, 'latin1'))
    const { status } = await client.answer()
    assert.ok(statuses.includes(status), `${what}: ${status}`)
    client.destroy()
    assert.equal(accounts.tokens().length, 0, what)
  }
  const client = await connectRaw(t, started.url)
  const good = `${bare}${shown}\r\n${named}\r\nContent-Length: 0\r\n\r\n`
  for (const [bytes, status] of [[good, 200], [`${bare}Content-Length: 0\r\n\r\n`, 401], [good, 200]] as const) {
    await client.send(Buffer.from(bytes))
    assert.equal((await client.answer()).status, status, 'each request of a connection for itself')
  }
  client.destroy()
})
