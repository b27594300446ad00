/** The access log: who saw what, a line a request, and nothing that must not be there. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AccessLog, type LoggedRequest } from '../../src/parts/access-log/access-log.ts'
import { MAX_ACCESS_LOG_PENDING_BYTES } from '../../src/limits.ts'
import { ANA, call, PASSWORD, startProtected, tokenOf, type CallOptions } from '../support/accounts.ts'
import { connectRaw, exchange, message } from '../support/raw.ts'
import { SERVER, startProgram, type Program } from '../support/program.ts'
import { send, startService } from '../support/service.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'

const ON = { 'access-log': 'on' }
const FIELDS = ['time', 'request', 'client', 'user', 'token', 'method', 'route', 'entry', 'status', 'ms']
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const ENTRY = { password: 'p', sistema: 's', usuario: 'u' }

test('a request is a line of JSON with who, what and what came of it, a new token or entry too', async t => {
  const started = await startProtected(t, ON)
  const { url, service, accessLines } = started
  await createEntry(service.store, ENTRY, null)
  const token = await tokenOf(started)
  const id = service.accounts!.session(token)!.hash.slice(0, 12)
  const beforeMs = Date.now()
  const ask = (method: string, path: string, options: CallOptions = {}): Promise<unknown> =>
    call(t, url, method, path, options)
  await ask('GET', '/api/getPassword/1', { token, localAddress: '127.0.0.7' })
  await ask('HEAD', '/api/getPassword/99', { token })
  await ask('POST', '/api/createPassword', { token, body: {} })
  await ask('POST', '/api/createPassword', { token, body: ENTRY })
  await ask('GET', '/api/listPassword')
  await ask('GET', '/nothing')
  await ask('PUT', '/api/listPassword')
  await ask('POST', '/api/login', { body: { email: ANA, password: 'wrong' } })
  await ask('POST', '/api/login', { body: { email: 'nobody@example.org', password: 'wrong' } })
  const logIn = async (options: CallOptions): Promise<string> => {
    const { json } = await call(t, url, 'POST', '/api/login', { ...options, body: { email: ANA, password: PASSWORD } })
    return service.accounts!.session(json.token)!.hash.slice(0, 12)
  }
  const [loggedIn, again] = [await logIn({}), await logIn({ token })]
  const records = accessLines.map(line => JSON.parse(line))
  for (const [i, record] of records.entries()) {
    assert.equal(accessLines[i], `${JSON.stringify(record)}\n`)
    assert.deepEqual(Object.keys(record), FIELDS)
    assert.match(record.request, UUID)
    assert.equal(new Date(record.time).toISOString(), record.time)
    assert.ok(Date.parse(record.time) >= beforeMs && Date.parse(record.time) <= Date.now())
    assert.ok(record.ms >= 0 && record.ms < 60_000)
  }
  assert.equal(new Set(records.map(record => record.request)).size, records.length)
  assert.deepEqual(records.map(({ client, user, token, method, route, entry, status }) =>
    [client, user, token, method, route, entry, status]), [
    ['127.0.0.7', 1, id, 'GET', 'getPassword', 1, 200],
    ['127.0.0.1', 1, id, 'HEAD', 'getPassword', 99, 404],
    ['127.0.0.1', 1, id, 'POST', 'createPassword', null, 400],
    ['127.0.0.1', 1, id, 'POST', 'createPassword', 2, 200],
    ['127.0.0.1', null, null, 'GET', 'listPassword', null, 401],
    ['127.0.0.1', null, null, 'GET', null, null, 404],
    ['127.0.0.1', null, null, 'PUT', null, null, 405],
    ['127.0.0.1', 1, null, 'POST', 'login', null, 401],
    ['127.0.0.1', null, null, 'POST', 'login', null, 401],
    ['127.0.0.1', 1, loggedIn, 'POST', 'login', null, 200],
    ['127.0.0.1', 1, again, 'POST', 'login', null, 200]
  ])
})

test('each request of a connection has its line, refused and limited ones too', async t => {
  const { url, accessLines } = await startService(t, { ...ON, 'rate-limit': '2' })
  const client = await connectRaw(t, url)
  const list = message('GET', '/api/listPassword')
  for (const request of [list, message('GET', '/api/listPassword', undefined, ['Host: evil.example']), list, list]) {
    await client.send(request)
    await client.answer()
  }
  await call(t, url, 'GET', '/api/listPassword', { fields: ['Host: a', 'Host: b'] })
  assert.deepEqual(accessLines.map(line => JSON.parse(line).status), [404, 403, 404, 429, 429])
})

test('what is not even a request has its line, and none has one without ACCESS_LOG', async t => {
  const { url, accessLines } = await startService(t, ON)
  await exchange(t, url, 'nonsense\r\n\r\n')
  const { time, request, ...rest } = JSON.parse(accessLines.join(''))
  assert.match(`${time} ${request}`, /^\d{4}-\d\d-\d\dT[\d:.]+Z [0-9a-f-]{36}$/)
  assert.deepEqual(rest, {
    client: '127.0.0.1', user: null, token: null, method: '', route: null, entry: null, status: 400, ms: 0
  })
  const quiet = await startService(t)
  await call(t, quiet.url, 'GET', '/api/listPassword')
  assert.deepEqual(quiet.accessLines, [])
})

test('no password, token, query, header or body is in a line, and none of them forges one', async t => {
  const started = await startProtected(t, { ...ON, 'trust-proxy': '127.0.0.1' })
  const { url, accessLines } = started
  const token = await tokenOf(started)
  const forged = '\\n{"status":200,"user":7}\\r\\u001b[2J'
  const entry = { password: 'secret-1', sistema: 'secret-2', usuario: 'secret-3' }
  const requests: readonly (readonly [string, string, object])[] = [
    ['POST', '/api/createPassword?token=secret-query', { token, body: entry }],
    ['POST', '/api/login', { body: { email: 'secret-4@example.org', password: `secret-5${forged}` } }],
    ['POST', '/api/login', { body: { email: ANA, password: PASSWORD } }],
    ['GET', '/api/getPassword/secret-6%0a%7b%22status%22%3a200%7d%1b', { token }],
    ['GET', '/secret-7"}\\n{"x":"', {}],
    ['GET', '/api/listPassword', { token: 'secret-8', fields: ['User-Agent: secret-9', 'Cookie: secret-10'] }],
    ['GET', '/api/listPassword', { fields: ['X-Forwarded-For: secret-11"}\t{"a":1', 'X-Request-Id: secret-12'] }],
    ['GET', '/api/listPassword', { fields: ['X-Forwarded-For: fe80::1%secret-13'] }],
    ['SEARCH', '/api/listPassword', {}]
  ]
  for (const [method, path, options] of requests) await call(t, url, method, path, options)
  assert.equal(accessLines.length, requests.length)
  const all = accessLines.join('')
  for (const line of accessLines) assert.match(line, /^\{[\x20-\x7e]*\}\n$/)
  const secrets = ['secret', token, token.slice(4), PASSWORD, ANA, '\\u001b']
  for (const secret of secrets) assert.ok(!all.includes(secret), secret)
})

test('behind a proxy the line names the client that the proxy names', async t => {
  const { url, accessLines } = await startService(t, { ...ON, 'trust-proxy': '127.0.0.1' })
  const fields = ['X-Forwarded-For: 203.0.113.9, 198.51.100.7']
  await call(t, url, 'GET', '/api/listPassword', { fields })
  await call(t, url, 'GET', '/api/listPassword', { fields, localAddress: '127.0.0.2' })
  // Malformed, with a field twice: it counts as that client's all the same.
  await call(t, url, 'GET', '/api/listPassword', { fields: [...fields, 'Content-Type: a', 'Content-Type: b'] })
  // With too many fields, of which node:http must not drop the last one, which is the proxy's; and in another spelling.
  const many = Array.from({ length: 130 }, (_, n) => `X-${n}: x`)
  await call(t, url, 'GET', '/api/listPassword', { fields: ['X-Forwarded-For: 192.0.2.1', ...many, ...fields] })
  await call(t, url, 'GET', '/api/listPassword', { fields: ['X-Forwarded-For: 2001:0DB8:0:0::0001'] })
  const clients = accessLines.map(line => JSON.parse(line).client)
  assert.deepEqual(clients, ['198.51.100.7', '127.0.0.2', '198.51.100.7', '198.51.100.7', '2001:db8::1'])
})

const REQUEST: LoggedRequest = {
  request: 'r', client: '127.0.0.1', user: null, token: null, method: 'GET',
  route: 'listPassword', entry: null, status: 200, ms: 1
}

test('lines beyond what may wait are dropped and counted; the last one of a stop is written', () => {
  const written: string[] = []
  let pending = 0
  const sink = { write: (line: string) => { written.push(line) }, pendingBytes: () => pending }
  const log = new AccessLog(sink, () => 0, () => {})
  const said = (what: object): string => `${JSON.stringify({ time: '1970-01-01T00:00:00.000Z', ...what })}\n`
  const line = said(REQUEST)
  log.write(REQUEST)
  pending = MAX_ACCESS_LOG_PENDING_BYTES - line.length
  log.write(REQUEST)
  pending++
  for (let i = 0; i < 3; i++) log.write(REQUEST)
  assert.deepEqual(written, [line, line])
  pending = 0
  log.write(REQUEST)
  log.write(REQUEST)
  assert.deepEqual(written.slice(2), [line, line])
  pending = MAX_ACCESS_LOG_PENDING_BYTES
  log.write(REQUEST)
  log.close()
  assert.deepEqual(written.slice(4), [said({ service: 'stopped' })])
  assert.equal(log.lostLines, 4)
})

for (const how of ['throws', 'rejects'] as const) {
  test(`where a write ${how}, each lost line is counted, and warned of once until a line is written`, async () => {
    const warnings: string[] = []
    let isFull = true
    const write = (): void | Promise<void> => {
      if (isFull && how === 'rejects') return Promise.reject(new Error('full'))
      if (isFull) throw new Error('full')
    }
    const log = new AccessLog({ write, pendingBytes: () => 0 }, () => 0, line => warnings.push(line))
    for (const full of [true, true, false, true]) {
      isFull = full
      log.write(REQUEST)
      await new Promise(resolve => setImmediate(resolve))
    }
    assert.equal(log.lostLines, 3)
    assert.equal(warnings.length, 2)
  })
}

test('the first line says that the service has started, and the last one that it has stopped', async t => {
  const program = await startProgram(t, { flags: { 'access-log': 'on' } })
  await send(program.url, 'GET', '/api/listPassword')
  const { stdout } = await program.stop()
  const lines = stdout.trimEnd().split('\n').filter(line => line.startsWith('{')).map(line => JSON.parse(line))
  assert.deepEqual(lines.map(({ service, route }) => service ?? route), ['started', 'listPassword', 'stopped'])
  assert.ok(lines.every(({ time }) => Date.parse(time) > 0))
})

for (const [what, end] of Object.entries({
  'its reader ends': { command: undefined, act: (program: Program) => { program.child.stdout!.destroy() } },
  'its device is full': { command: ['sh', '-c', 'exec "$0" "$@" >/dev/full', process.execPath, SERVER], act: () => {} }
})) {
  test(`if ${what}, requests are answered, one warning says so, and a metric counts the lines`, async t => {
    const program = await startProgram(t, { flags: { 'access-log': 'on' }, ...end.command && { command: end.command } })
    end.act(program)
    for (let n = 0; n < 20; n++) assert.equal((await send(program.url, 'GET', '/api/listPassword')).status, 404)
    const metrics = await (await fetch(`${program.url}/metrics`)).text()
    const lost = /^pes_access_log_lost_lines_total (\d+)$/m.exec(metrics)?.[1]
    assert.ok(Number(lost) >= 19, `${lost} lines`)
    const { code, stderr } = await program.stop()
    assert.equal(code, 0)
    assert.match(stderr, /^warning: the access log loses lines, which are counted: (EPIPE|ENOSPC)$/m)
    assert.equal(stderr.match(/loses lines/g)?.length, 1, stderr)
  })
}

test('a login is logged as whom it is about, whoever’s token it shows', async t => {
  const started = await startProtected(t, ON, { [ANA]: ['*'], 'bea@example.org': ['*'] })
  const token = await tokenOf(started, 'bea@example.org')
  for (const password of [PASSWORD, 'wrong']) {
    await call(t, started.url, 'POST', '/api/login', { token, body: { email: ANA, password } })
  }
  assert.deepEqual(started.accessLines.slice(-2).map(line => JSON.parse(line).user), [1, 1])
})
