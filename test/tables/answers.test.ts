/**
 * One table of every way in which an answer arises, and what every answer must have, whichever way it was. A row says
 * what is asked and which status that has; the rest follows from the configuration.
 */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { createServer, STATUS_CODES } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { openService } from '../../src/embedding/embedded-service.ts'
import { ANA, PASSWORD, startProtected, tokenOf } from '../support/accounts.ts'
import { assertErrorForm } from '../support/answers.ts'
import { certificateFiles } from '../support/certificate.ts'
import { breakDisk, holdAppend } from '../support/faulty-files.ts'
import { connectRequest, entry, garbage, head, host, json, refused } from '../support/framings.ts'
import { programWithin, startProgram, until } from '../support/program.ts'
import { chunk, chunked, connectRaw, message, type RawAnswer, type RawOptions } from '../support/raw.ts'
import { freshFolder, startService, type Started } from '../support/service.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'

const APP = 'https://app.example'
/** Browsers may read these of a foreign answer (contract §5.8, §8.3). */
const EXPOSED = 'X-RateLimit-Limit, X-RateLimit-Remaining, Retry-After, ETag, Location, X-Request-Id'

interface Place {
  readonly url: string
  readonly isSecure: boolean
  readonly hasOrigins: boolean
  readonly limit: number | undefined
  /** Fields that every request has here. */
  readonly fields: readonly string[]
}

interface Row {
  readonly way: string
  readonly status: number
  readonly bytes: readonly (string | Buffer)[]
  /** Whether it names a path under `/api` that could be read. */
  readonly isApi: boolean
  /** Whether its head could be read as one: then it names its origin. */
  readonly isRequest: boolean
  /** What the answer has besides what all have. */
  readonly has?: readonly string[]
  readonly from?: RawOptions
  /** What it is not held to: what a head names that cannot be read in one way. */
  readonly lacks?: readonly string[]
}

/** What every answer must have. */
function assertAnswer(answer: RawAnswer, row: Row, { isSecure, hasOrigins, limit }: Place): void {
  const { status, headers, line } = answer
  const { way, isApi, isRequest, has = [], lacks = [] } = row
  const says = `${way}: ${line} ${JSON.stringify(headers)} ${answer.text.slice(0, 200)}`
  assert.equal(status, row.status, says)
  assert.equal(line, `HTTP/1.1 ${status} ${STATUS_CODES[status]}`, says)
  const hasField = (name: string, value: string | RegExp | undefined): void => {
    if (lacks.includes(name)) return
    if (value instanceof RegExp) assert.match(headers[name] ?? '', value, `${name} of ${says}`)
    else assert.equal(headers[name], value, `${name} of ${says}`)
  }
  hasField('x-content-type-options', 'nosniff')
  hasField('strict-transport-security', isSecure ? 'max-age=31536000' : undefined)
  const isOfOrigin = hasOrigins && isApi && isRequest
  hasField('vary', isOfOrigin ? /Origin/ : undefined)
  hasField('access-control-allow-origin', isOfOrigin ? APP : undefined)
  hasField('access-control-allow-credentials', isOfOrigin ? 'true' : undefined)
  hasField('access-control-expose-headers', isOfOrigin ? EXPOSED : undefined)
  hasField('x-ratelimit-limit', isApi && limit !== undefined ? String(limit) : undefined)
  hasField('x-ratelimit-remaining', isApi && limit !== undefined ? /^\d+$/ : undefined)
  hasField('retry-after', [429, 503].includes(status) && !has.includes('no retry-after') ? /^([1-9]|[1-5]\d|60)$/
    : undefined)
  hasField('www-authenticate', status === 401 && !has.includes('no challenge') ? 'Bearer' : undefined)
  hasField('allow', status === 405 || way.startsWith('OPTIONS') ? /^(GET, HEAD, |POST, )[A-Z, ]+$/ : undefined)
  hasField('connection', /^(keep-alive|close)$/)
  if (headers['connection'] === 'close') assert.equal(headers['keep-alive'], undefined, says)
  if (status === 204 || status === 304) { assert.equal(answer.body.length, 0, says); return }
  if (has.includes('own type')) return
  hasField('content-type', 'application/json; charset=utf-8')
  hasField('cache-control', 'no-store')
  if (!/^HEAD/.test(way) && status >= 400) assertErrorForm(answer)
}

const bearer = (token: string): string => `Authorization: Bearer ${token}`

/** A row of a request with a readable head. */
function row(way: string, status: number, method: string, target: string,
  more: Partial<Row> & { body?: string, fields?: readonly string[] } = {}): Row {
  const { body, fields = [], ...rest } = more
  return {
    way, status, isApi: target.startsWith('/api/'), isRequest: true,
    bytes: [message(method, target, body, [...fields, `Origin: ${APP}`])], ...rest
  }
}

/** Sends a row as it is in a place, and holds its answers to the table; gives the last. */
async function hold(t: TestContext, place: Place, one: Row): Promise<RawAnswer> {
  const client = await connectRaw(t, place.url, one.from)
  await client.send(...one.bytes)
  let answer = await client.answer(one.way.startsWith('HEAD'))
  if (answer.status === 100) answer = await client.answer()
  assertAnswer(answer, one, place)
  // What it says of its connection is so.
  if (answer.headers['connection'] === 'close') {
    assert.deepEqual(await client.untilEnd(), [], one.way)
  } else {
    await client.send(message('GET', '/nowhere', undefined, place.fields))
    assert.equal((await client.answer()).status, 404, `${one.way}: its connection stays`)
  }
  client.destroy()
  return answer
}

function refusals(): Row[] {
  const rows = refused.map(([what, status, ...bytes]): Row => ({
    way: `malformed: ${what}`, status, bytes, isApi: false, isRequest: false,
    lacks: ['x-ratelimit-limit', 'x-ratelimit-remaining',
      'vary', 'access-control-allow-origin', 'access-control-allow-credentials', 'access-control-expose-headers']
  }))
  // Once each that is refused in another place: by node:http, at the head, at the target, for its number of fields.
  const many = Array<string>(99).fill('a: b')
  return [...rows, {
    way: 'two hosts', status: 400, isApi: true, isRequest: false,
    bytes: [head('GET /api/listPassword HTTP/1.1', host, host)]
  }, {
    way: 'too many fields', status: 431, isApi: true, isRequest: false,
    bytes: [head('GET /api/listPassword HTTP/1.1', host, ...many, 'a: b')]
  }]
}

/** Every way but those that need a service in trouble. `token` may do everything, `reader` only read. */
function ways({ limit, fields, hasOrigins }: Place, token?: string, reader?: string, own?: string): Row[] {
  const may = token === undefined ? [] : [bearer(token)]
  const ok = { fields: [...fields, ...may] }
  const rows = [
    row('a list', 200, 'GET', '/api/listPassword', ok), row('HEAD of a list', 200, 'HEAD', '/api/listPassword', ok),
    row('an entry', 200, 'GET', '/api/getPassword/1', ok),
    row('a create', 200, 'POST', '/api/createPassword', { ...ok, body: entry }),
    row('an update', 200, 'POST', '/api/updatePassword/1', { ...ok, body: '{"usuario":"v"}' }),
    row('a delete', 200, 'POST', '/api/deletePassword/2', ok),
    row('a restore', 200, 'POST', '/api/restorePassword/2', ok),
    row('the deleted', 200, 'GET', '/api/deletedPasswords', ok),
    row('the older deleted', 200, 'GET', '/api/deletedPasswords/2', ok),
    row('a list without secrets', 200, 'GET', '/api/listEntries', { ...ok, lacks: ['vary'] }),
    row('a history', 200, 'GET', '/api/historyPassword/1', ok),
    row('who knows a password', 200, 'GET', '/api/whoKnows/1', ok),
    row('a former password that nobody knows of', 404, 'GET', '/api/formerPassword/1/999999', ok),
    row('former notes that nobody knows of', 404, 'GET', '/api/formerNotes/1/999999', ok),
    row('a one-time code', 200, 'GET', '/api/oneTimeCode/1', ok),
    row('OPTIONS of a path', 204, 'OPTIONS', '/api/listPassword', ok),
    row('OPTIONS of the server', 204, 'OPTIONS', '*', ok),
    row(hasOrigins ? 'a preflight' : 'OPTIONS that is no preflight here', 204, 'OPTIONS', '/api/listPassword',
      { fields: [...fields, 'Access-Control-Request-Method: GET'] }),
    row('health', 200, 'GET', '/healthz', ok), row('that it lives', 200, 'GET', '/livez', ok),
    row('metrics', 200, 'GET', '/metrics', { ...ok, has: ['own type'] }),
    row('the description', 200, 'GET', '/openapi.json', { ...ok, has: ['own type'] }),
    row('an unknown path', 404, 'GET', '/nope', ok), row('an unknown path under /api', 404, 'GET', '/api/nope', ok),
    row('an unknown id', 404, 'GET', '/api/getPassword/999', ok),
    row('an id that is none', 404, 'POST', '/api/updatePassword/abc', { ...ok, body: '{}' }),
    row('another method', 405, 'PUT', '/api/listPassword', ok), row('TRACE', 405, 'TRACE', '/api/listPassword', ok),
    row('no JSON', 400, 'POST', '/api/createPassword', { ...ok, body: '{"a"' }),
    row('a field that is missing', 400, 'POST', '/api/createPassword', { ...ok, body: '{}' }),
    row('an array', 400, 'POST', '/api/createPassword', { ...ok, body: '[]' }),
    row('a tag that is another', 412, 'POST', '/api/updatePassword/1',
      { body: '{}', fields: [...ok.fields, 'If-Match: "another"'] }),
    row('a body that is too large', 413, 'POST', '/api/createPassword', { ...ok, body: 'x'.repeat(2_001) }),
    row('a form', 415, 'POST', '/api/createPassword', { body: 'a=b',
      fields: [...ok.fields, 'Content-Type: application/x-www-form-urlencoded'] }),
    row('another expectation', 417, 'POST', '/api/createPassword',
      { body: entry, fields: [...ok.fields, 'Expect: more'] }),
    row('a client that waits for leave and is refused', 404, 'POST', '/api/nope',
      { fields: [...ok.fields, 'Expect: 100-continue', 'Content-Length: 9'] })
  ]
  const begun = chunked('POST', '/api/createPassword', []).toString().replace(/\r\n\r\n$/,
    `\r\n${[...ok.fields, `Origin: ${APP}`].join('\r\n')}\r\n\r\n`)
  for (const [way, status, ...chunks] of [
    ['too large in chunks', 413, 'x'.repeat(1_500), 'x'.repeat(1_500), ''],
    ['too many small chunks', 400, ...Array<string>(300).fill('x')],
    ['a create in chunks', 200, entry.slice(0, 9), entry.slice(9), '']
  ] as const) rows.push({ way, status, bytes: [begun, ...chunks.map(chunk)], isApi: true, isRequest: true })
  rows.push({ way: 'a body that breaks off', status: 400, bytes: [begun, 'zz\r\n'], isApi: true, isRequest: true })
  if (token !== undefined) {
    const login = (password: string): string => JSON.stringify({ email: ANA, password })
    rows.push(
      row('no token', 401, 'GET', '/api/listPassword', { fields }),
      row('another token', 401, 'GET', '/api/listPassword', { fields: [...fields, bearer('pes_none')] }),
      row('a token that may not', 403, 'POST', '/api/createPassword',
        { body: entry, fields: [...fields, bearer(reader!)] }),
      row('a login', 200, 'POST', '/api/login', { fields, body: login(PASSWORD) }),
      row('a login that fails', 401, 'POST', '/api/login', { fields, body: login('wrong'), has: ['no challenge'] }),
      row('another password of one\'s own', 400, 'POST', '/api/changeOwnPassword',
        { fields: [...fields, bearer(own!)], body: JSON.stringify({ password: 'wrong',
          newPassword: 'battery staple horse correct' }) }),
      row('the own sessions', 200, 'GET', '/api/ownSessions', { fields: [...fields, bearer(own!)] }),
      row('the end of a session that is none', 404, 'POST', '/api/endOwnSessions',
        { fields: [...fields, bearer(own!)], body: '{"session":"none"}' }),
      row('a login without an address', 400, 'POST', '/api/login', { fields, body: '{}' }),
      row('a logout', 200, 'POST', '/api/logout', { fields: [...fields, bearer(reader!)] })
    )
  }
  if (limit !== undefined) {
    const from = { localAddress: '127.0.0.9' }
    for (let n = 0; n < limit; n++) rows.push(row('one of many', 404, 'GET', '/api/nope', { ...ok, from }))
    rows.push(row('one too many', 429, 'GET', '/api/listPassword', { ...ok, from }),
      row('one too many, unknown', 429, 'POST', '/api/nope', { ...ok, body: '{}', from }))
  }
  return rows
}

/** An operation that somebody adds needs a row, too. */
function assertRows(paths: { readonly [path: string]: object }, rows: readonly Row[]): void {
  const asked = rows.map(({ bytes }) => String(bytes[0]).split(' ', 2).join(' '))
  for (const [path, methods] of Object.entries(paths)) {
    for (const method of Object.keys(methods)) {
      const pattern = new RegExp(`^${method.toUpperCase()} ${path.replace(/\{\w+\}/g, '\\w+')}$`)
      assert.ok(asked.some(one => pattern.test(one)), `${method} ${path} has no row in this table`)
    }
  }
}

/** Past the limits of logins. */
async function loginOf({ service }: Started): Promise<string> {
  return (await service.accounts!.login({ email: ANA, password: PASSWORD, client: '' }, undefined))!.token
}

const FLAGS = { 'extra-routes': 'on', 'max-body-bytes': '2000' }

/** The configurations: what is served over, who may, which origins, and how often. */
const PLACES: { readonly [name: string]: (t: TestContext) => Promise<readonly [Place, Started]> } = {
  'open, over TCP': async t => {
    const started = await startService(t, { ...FLAGS, 'allowed-hosts': 'vault.example', 'cors-origins': APP,
      'rate-limit': '100' })
    return [{ url: started.url, isSecure: false, hasOrigins: true, limit: 100, fields: [] }, started]
  },
  'open, over TLS, with nothing besides': async t => {
    const started = await startService(t, { ...FLAGS, ...certificateFiles(freshFolder(t)),
      'allowed-hosts': 'vault.example', 'cors-origins': APP })
    return [{ url: started.url, isSecure: true, hasOrigins: true, limit: undefined, fields: [] }, started]
  },
  'protected, over TLS, for an origin, with limits': async t => {
    const started = await startProtected(t, { ...FLAGS, ...certificateFiles(freshFolder(t)), 'cors-origins': APP,
      'rate-limit': '100' })
    return [{ url: started.url, isSecure: true, hasOrigins: true, limit: 100, fields: [] }, started]
  },
  'protected, behind a proxy, with nothing besides': async t => {
    const started = await startProtected(t, { ...FLAGS, 'trust-proxy': '127.0.0.1', 'login-limit': '0' })
    return [{ url: started.url, isSecure: false, hasOrigins: false, limit: undefined,
      fields: ['X-Forwarded-For: 192.0.2.1', 'X-Forwarded-Proto: https'] }, started]
  }
}

for (const [name, start] of Object.entries(PLACES)) {
  test(`${name}: every answer has what every answer must have`, async t => {
    const [place, started] = await start(t)
    for (const usuario of ['u', 'v']) await createEntry(started.service.store,
      { password: 'p', sistema: 's', usuario, otp: 'JBSWY3DPEHPK3PXP' }, null)
    const isProtected = started.service.accounts !== undefined
    const tokens = isProtected ? [await tokenOf(started), await tokenOf(started, ANA, ['password:read']),
      await loginOf(started)] : []
    // A token is looked at before a body: what breaks in a body is refused for that.
    const rows = [...ways(place, ...tokens), ...isProtected ? [] : refusals()]
    for (const one of rows) {
      // Every row is another client to the limits, unless it says who it is.
      const client = rows.indexOf(one)
      const answer = await hold(t, place, { from: { localAddress: `127.1.${client >> 7}.${1 + (client & 127)}` },
        ...one })
      if (one.way === 'the description') assertRows(answer.json.paths, rows)
    }
  })
}

/** What the host's own server answers, and what there is not in memory. */
const OF_THE_HOST = new Set(['OPTIONS of the server', 'another expectation', 'a body that breaks off', 'a history'])

test('embedded: every answer has what every answer must have, also after a mistake of its host', async t => {
  const service = await openService({ journal: 'memory', extraRoutes: true, maxBodyBytes: 2_000, corsOrigins: APP,
    allowedHosts: 'vault.example', rateLimit: 100 })
  const server = createServer((request, response) => {
    if (request.headers['x-spoil'] === undefined) return service.handle(request, response)
    return request.resume().on('end', () => service.handle(request, response))
  }).listen(0, '127.0.0.1')
  t.after(async () => { server.close().closeAllConnections(); await service.close() })
  await once(server, 'listening')
  const place = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, isSecure: false, hasOrigins: true,
    limit: 100, fields: [] }
  for (const usuario of ['u', 'v']) await service.createPassword({ password: 'p', sistema: 's', usuario,
    otp: 'JBSWY3DPEHPK3PXP' })
  const spoiled = { body: entry, fields: ['X-Spoil: 1'] }
  for (const [i, one] of [
    ...ways(place).filter(({ way }) => !OF_THE_HOST.has(way)),
    row('a create whose body the host has read', 500, 'POST', '/api/createPassword', spoiled),
    row('an update whose body the host has read', 500, 'POST', '/api/updatePassword/1', spoiled)
  ].entries()) await hold(t, place, { from: { localAddress: `127.1.0.${1 + i}` }, ...one })
})

/** A service in trouble, and what that makes of requests. */
const TROUBLES: { readonly [name: string]: (t: TestContext, started: Started, place: Place) =>
  Promise<readonly Row[]> } = {
  'the journal fails': async (t, _started, _place) => {
    const changes = (status: number): Row[] => [
      row('a create', status, 'POST', '/api/createPassword', { body: entry }),
      row('an update', status, 'POST', '/api/updatePassword/1', { body: '{"usuario":"w"}' }),
      row('a delete', status, 'POST', '/api/deletePassword/1')
    ]
    breakDisk(t, { of: 'append', code: 'EIO', forGood: true })
    return [...changes(500), row('health', 503, 'GET', '/healthz', { has: ['no retry-after'] }),
      row('a list', 200, 'GET', '/api/listPassword')]
  },
  'the disk stands still': async (t, { url }) => {
    const { reached } = holdAppend(t)
    void connectRaw(t, url).then(client => client.send(message('POST', '/api/createPassword', entry)))
    await reached
    return [row('a create that waits too long', 503, 'POST', '/api/createPassword', { body: entry }),
      row('a list', 200, 'GET', '/api/listPassword')]
  },
  'the disk is full': async t => {
    breakDisk(t, { of: 'append', code: 'ENOSPC', forGood: true })
    return [row('a create', 500, 'POST', '/api/createPassword', { body: entry }),
      row('a list', 200, 'GET', '/api/listPassword')]
  },
  'something unforeseen happens': async (_t, { service }) => {
    const { entries } = service.store.state
    Object.assign(entries, { list: () => { Reflect.deleteProperty(entries,
      'list'); throw new Error('as the test asked') } })
    return [row('a list', 500, 'GET', '/api/listPassword')]
  }
}

for (const [name, trouble] of Object.entries(TROUBLES)) {
  test(`where ${name}, every answer still has what every answer must have`, async t => {
    const started = await startService(t, { ...FLAGS, ...certificateFiles(freshFolder(t)), 'cors-origins': APP,
      'rate-limit': '100', 'allowed-hosts': 'vault.example' })
    const place = { url: started.url, isSecure: true, hasOrigins: true, limit: 100, fields: [] }
    await createEntry(started.service.store, { password: 'p', sistema: 's', usuario: 'u' }, null)
    for (const one of await trouble(t, started, place)) {
      const answer = await hold(t, place, one)
      if (answer.json.message === 'Server Error') assert.match(answer.headers['x-request-id'] ?? '', /^[0-9a-f-]{36}$/)
    }
  })
}

test('where the service stops, every answer still has what every answer must have', async t => {
  const tls = certificateFiles(freshFolder(t))
  const program = await startProgram(t, {
    flags: { ...FLAGS, ...tls, 'cors-origins': APP, 'rate-limit': '100' },
    command: programWithin(t, { SHUTDOWN_SWEEP_MS: 5_000 })
  })
  const place = { url: program.url, isSecure: true, hasOrigins: true, limit: 100, fields: [] }
  const rows = [
    row('a create', 200, 'POST', '/api/createPassword', { body: entry }),
    row('an entry', 404, 'GET', '/api/getPassword/9'),
    row('an unknown path', 404, 'GET', '/nope')
  ]
  const clients = await Promise.all(rows.map(() => connectRaw(t, place.url)))
  // None of them can know of the stop; one has asked before, the others have not sent a byte.
  await clients[1]!.send(message('GET', '/nope'))
  assert.equal((await clients[1]!.answer()).headers['connection'], 'keep-alive')
  program.child.kill('SIGTERM')
  await until('it takes no more connections', async () =>
    await connectRaw(t, place.url).then(client => { client.destroy(); return false }, () => true))
  for (const [i, one] of rows.entries()) {
    await clients[i]!.send(...one.bytes)
    const answer = await clients[i]!.answer()
    assertAnswer(answer, one, place)
    assert.equal(answer.headers['connection'], 'close')
  }
})

test('where time is up, every answer still has what every answer must have', async t => {
  const tls = certificateFiles(freshFolder(t))
  const program = await startProgram(t, {
    flags: { ...FLAGS, ...tls, 'cors-origins': APP, 'rate-limit': '100' },
    command: programWithin(t, { HEADERS_TIMEOUT_MS: 400, REQUEST_TIMEOUT_MS: 800, TIMEOUT_CHECK_MS: 100 })
  })
  const place = { url: program.url, isSecure: true, hasOrigins: true, limit: 100, fields: [] }
  const begun = head('POST /api/createPassword HTTP/1.1', host, json, `Origin: ${APP}`, 'Content-Length: 99')
  for (const one of [
    { way: 'half a head', status: 408, bytes: ['GET /api/listPassword HTTP/1.1\r\n'], isApi: false, isRequest: false },
    { way: 'half a body', status: 408, bytes: [begun, '{'], isApi: true, isRequest: true }
  ] as const) await hold(t, place, one)
})

test('where a tunnel or nonsense follows a request, its answer has what every answer must have', async t => {
  const [place, { service }] = await PLACES['open, over TCP']!(t)
  await createEntry(service.store, { password: 'p', sistema: 's', usuario: 'u' }, null)
  for (const [what, status] of [[garbage, 400], [connectRequest, 405]] as const) {
    const client = await connectRaw(t, place.url)
    await client.send(message('GET', '/api/getPassword/1', undefined, [`Origin: ${APP}`]))
    assertAnswer(await client.answer(), row('a get', 200, 'GET', '/api/getPassword/1'), place)
    await client.send(what)
    assertAnswer(await client.answer(), { way: 'behind it', status, bytes: [], isApi: false, isRequest: false }, place)
    assert.deepEqual(await client.untilEnd(), [])
  }
})
