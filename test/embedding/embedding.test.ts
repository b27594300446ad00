/** The service in somebody else's process, by what `index.ts` exports and nothing else. */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import { createServer as createTlsServer, get } from 'node:https'
import { pipeline, Writable } from 'node:stream'
import { createGzip } from 'node:zlib'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { test, type TestContext } from 'node:test'
import { Failure, openService, type Log, type Options, type Service } from '../../src/embedding/embedded-service.ts'
import { SHUTDOWN_TIMEOUT_MS } from '../../src/limits.ts'
import { done } from '../support/admin.ts'
import { certificate } from '../support/certificate.ts'
import { until } from '../support/program.ts'
import { ask, connectRaw, exchange, message } from '../support/raw.ts'
import { atEnd, freshFolder, send } from '../support/service.ts'

const ENTRY = { password: 'a', sistema: 'b', usuario: 'c' }

async function inMemory(t: TestContext, options: Parameters<typeof openService>[0] = {}): Promise<Service> {
  const service = await openService({ journal: 'memory', rateLimit: 0, page: false, ...options })
  atEnd(t, () => service.close())
  return service
}

type Take = (request: IncomingMessage, response: ServerResponse) => void

async function serverOf(t: TestContext, take: Take, server: Server = createServer()): Promise<string> {
  server.on('request', take)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  atEnd(t, () => { server.closeAllConnections(); server.close() })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(() => 'done', error => error instanceof Failure ? error.code : error)

test('§4 the five operations work without HTTP, and survive a restart', async t => {
  const dataDir = freshFolder(t)
  const first = await openService({ dataDir })
  assert.equal(await codeOf(openService({ dataDir })), 'folder-held')
  assert.deepEqual(await first.listPassword(), [])
  assert.deepEqual(await first.createPassword(ENTRY), { id: 1, ...ENTRY, status: 1 })
  assert.deepEqual(await first.createPassword({ ...ENTRY, sistema: 'z' }), { id: 2, ...ENTRY, sistema: 'z', status: 1 })
  assert.equal(await first.updatePassword(7, {}), undefined)
  assert.equal((await first.updatePassword(1, { usuario: 'd' }))?.usuario, 'd')
  assert.deepEqual([await first.deletePassword(2), await first.deletePassword(7)], [true, false])
  await Promise.all([first.close(), first.close()])
  const second = await openService({ dataDir })
  atEnd(t, () => second.close())
  assert.deepEqual(await second.listPassword(), [{ id: 1, ...ENTRY, usuario: 'd', status: 1 }])
  assert.equal((await second.getPassword(2))?.status, 0)
  assert.equal(await second.getPassword(3), undefined)
})

test('§4.3 fields that a request could not have are refused by name, and nothing is recorded', async t => {
  const service = await inMemory(t)
  const wrong = service.createPassword({ password: '', sistema: 3, usuario: 'c', extra: 1 } as never)
  await assert.rejects(wrong, { code: 'input-invalid', message: /password field is required.*sistema field must be/ })
  assert.equal(await codeOf(service.createPassword(undefined as never)), 'input-invalid')
  assert.equal(await codeOf(service.updatePassword(1, { usuario: null } as never)), 'input-invalid')
  assert.deepEqual(await service.listPassword(), [])
})

test('options are held to the same rules as settings, and a name that is none is refused', async () => {
  const wrong: readonly [object, RegExp][] = [
    [{ port: 70000 }, /: port must be/], [{ rateLimit: -1 }, /: rateLimit must be/], [{ colour: 1 }, /colour is not/],
    [{ corsOrigins: '*' }, /: corsOrigins must be/],
    [{ prefix: 'vault' }, /prefix/], [{ prefix: '/vault/' }, /prefix/],
    [{ prefix: '/a b' }, /prefix/], [{ prefix: '/ñ' }, /prefix/], [{ prefix: '/vault\n' }, /prefix/],
    [{ dataDir: null }, /dataDir must be/], [{ allowedHosts: ['a'] }, /allowedHosts must be/],
    [{ accessLog: 'yes' }, /: accessLog must be/], [{ keyFile: false }, /keyFile must be a text/],
    [{ dataDir: true }, /dataDir must be a text/],
    [{ log: console, accessLog: true }, /accessLog needs log.access/],
    [{ signal: new AbortController().signal }, /call close\(\) instead/]
  ]
  for (const [options, message] of wrong) {
    await assert.rejects(openService({ journal: 'memory', ...options } as Options),
      { code: 'setting-invalid', message })
  }
  await (await openService({ journal: 'memory', metrics: false, page: false } as object)).close() // as 1.0.0 took it
})

test('a log that takes progress gets that of a start; the console will do where no access log is wanted', async t => {
  const dataDir = freshFolder(t)
  await (await openService({ dataDir })).close()
  const shares: unknown[] = []
  const log = { info() {}, warn() {}, progress: (...told: readonly unknown[]) => { shares.push(told) } }
  await (await openService({ dataDir, log })).close()
  assert.deepEqual(shares, [['reading the journal', 1]])
  t.mock.method(console, 'warn', () => {})
  assert.deepEqual(await (await inMemory(t, { log: console })).listPassword(), [])
})

test('a server of somebody else hands on what is below a prefix, and keeps the rest', async t => {
  const service = await inMemory(t, { prefix: '/vault' })
  const seen: unknown[] = []
  const url = await serverOf(t, (request, response) => {
    if (!request.url!.startsWith('/vault')) return response.end('own')
    service.handle(request, response)
    return response.on('close', () => seen.push(request.url)) // later readers find the whole target
  })
  assert.equal((await send(`${url}/vault`, 'POST', '/api/createPassword', ENTRY)).status, 200)
  assert.deepEqual((await send(`${url}/vault`, 'GET', '/api/listPassword?x=1')).json, [{ id: 1, ...ENTRY, status: 1 }])
  assert.equal((await send(url, 'GET', '/vaulted/api/listPassword')).status, 404)
  assert.equal((await send(url, 'GET', '/vault')).status, 404)
  assert.equal(await (await fetch(`${url}/else`)).text(), 'own')
  const metrics = await (await fetch(`${url}/vault/metrics`)).text()
  assert.match(metrics, /^pes_http_connections 0$/m)
  assert.match(metrics, /^pes_journal_write_duration_seconds_count 1$/m, 'a journal in memory is measured too')
  const foreign = await fetch(`${url}/vault/api/listPassword`, { headers: { Origin: 'https://evil.example' } })
  assert.equal(foreign.status, 403)
  assert.ok(seen.includes('/vault/api/listPassword?x=1') && seen.includes('/vaulted/api/listPassword'), seen.join())
})

test('OPTIONS * of a server of somebody else is answered as the service itself answers it', async t => {
  const service = await inMemory(t, { prefix: '/vault', port: 0 })
  const asked = async (url: string): Promise<unknown> => {
    const client = await connectRaw(t, url)
    await client.send('OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const { status, headers } = await client.answer()
    return [status, headers['allow']]
  }
  const own = await asked(await service.listen())
  assert.deepEqual(own, [204, 'GET, HEAD, POST, OPTIONS'])
  assert.deepEqual(await asked(await serverOf(t, service.handle)), own)
})

test('if a framework cuts its mount path off, the prefix is known from what it keeps, and answers name it', async t => {
  const service = await inMemory(t, { prefix: '/a/vault', page: true })
  const url = await serverOf(t, (request, response) => {
    const originalUrl = request.url!
    const rest = originalUrl.replace('/else', '').replace('/a/vault', '')
    request.url = rest.startsWith('/') ? rest : `/${rest}`
    service.handle(Object.assign(request, { originalUrl }), response)
  })
  const made = await send(`${url}/a/vault`, 'POST', '/api/createPassword', ENTRY)
  assert.deepEqual([made.status, made.headers.get('Location')], [200, '/a/vault/api/getPassword/1'])
  assert.equal((await send(url, 'GET', made.headers.get('Location')!)).status, 200)
  const page = await fetch(`${url}/a/vault?x`, { redirect: 'manual' })
  assert.deepEqual([page.status, page.headers.get('Location')], [308, '/a/vault/?x'])
  assert.equal((await send(url, 'GET', '/else/api/getPassword/1')).status, 404, 'another path that was cut off')
})

test('answers come in the order of the requests, also where a framework cuts its mount path off meanwhile', async t => {
  const service = await inMemory(t)
  const mounted: Take = (request, response) => {
    const whole = request.url!
    Object.assign(request, { originalUrl: whole })
    request.url = whole.slice('/vault'.length)
    response.setHeader('X-Powered-By', 'it')
    service.handle(request, response)
    request.url = whole
  }
  for (const [take, path, field] of [[service.handle, '', undefined], [mounted, '/vault', 'it']] as const) {
    const create = message('POST', `${path}/api/createPassword`, JSON.stringify(ENTRY))
    const get = message('GET', `${path}/api/getPassword/99`, undefined, ['Connection: close'])
    const answers = await exchange(t, await serverOf(t, take), create, get)
    assert.deepEqual(answers.map(({ status, headers }) => [status, headers['x-powered-by']]),
      [[200, field], [404, field]])
  }
})

test('requests of a connection that come in another order are all answered, in that of the connection', async t => {
  const service = await inMemory(t)
  const [one, two] = [await service.createPassword(ENTRY), await service.createPassword(ENTRY)]
  const url = await serverOf(t, (request, response) => {
    setTimeout(() => service.handle(request, response), request.url!.endsWith('/1') ? 100 : 5)
  })
  const gets = [1, 2].map(id => message('GET', `/api/getPassword/${id}`))
  const client = await connectRaw(t, url)
  await client.send(...gets)
  assert.deepEqual((await client.answers(2)).map(({ json }) => json.passwords), [one, two])
})

test('the list comes whole behind middleware that takes no callbacks and passes `drain` on', async t => {
  const service = await inMemory(t)
  for (let n = 0; n < 300; n++) await service.createPassword({ ...ENTRY, password: 'x'.repeat(10_000) })
  const url = await serverOf(t, (request, response) => {
    const zip = createGzip()
    zip.on('data', bytes => { if (!write(bytes)) zip.pause() }).on('end', () => end())
    const [write, end, on] = [response.write.bind(response), response.end.bind(response), response.on.bind(response)]
    const writeHead = response.writeHead.bind(response)
    on('drain', () => zip.resume())
    Object.assign(response, {
      write: (bytes: Buffer) => zip.write(bytes),
      end: (bytes?: Buffer) => { zip.end(bytes) },
      on: (event: string, listener: () => void) => event === 'drain' ? zip.on('drain', listener) : on(event, listener),
      writeHead: (status: number) => { response.removeHeader('Content-Length'); return writeHead(status) }
    })
    response.setHeader('Content-Encoding', 'gzip')
    service.handle(request, response)
  })
  const list = await (await fetch(`${url}/api/listPassword`)).json() as unknown[]
  assert.equal(list.length, 300)
})

test('an upload to a route of the host is not read into memory, also if its connection pipelined before', async t => {
  const service = await inMemory(t)
  let held = (): number => -1
  const url = await serverOf(t, (request, response) => {
    if (request.method === 'GET') return service.handle(request, response)
    held = () => request.readableLength
  })
  const client = await connectRaw(t, url)
  const get = message('GET', '/api/getPassword/1')
  await client.send(get, get, get)
  await client.answers(3)
  void client.send(message('POST', '/own', 'x'.repeat(20_000_000)))
  // in turns of the event loop, in which it comes
  for (let n = 0; n < 10; n++) await new Promise(resolve => setTimeout(resolve, 50))
  assert.ok(held() > 0 && held() < 300_000, `${held()} bytes`)
})

test('a request without a client, or whose answer began, does and throws nothing, and close does not wait', async t => {
  const warnings: string[] = []
  const service = await inMemory(t, { log: { info: () => {}, warn: line => { warnings.push(line) } } })
  const create = message('POST', '/api/createPassword', JSON.stringify(ENTRY))
  let [seen, handled] = [(): void => {}, (): void => {}]
  const url = await serverOf(t, (request, response) => {
    if (request.url === '/api/getPassword/7') return service.handle(request, response)
    if (request.method === 'GET') {
      response.write('begun')
      service.handle(request, response)
      response.end()
      return
    }
    seen()
    request.socket.once('close', () => { service.handle(request, response); handled() })
  })
  for (const bytes of [create, create.subarray(0, -3)]) {
    const client = await connectRaw(t, url)
    await client.send(message('GET', '/api/getPassword/7')) // so the connection is known
    await client.answer()
    const isSeen = new Promise<void>(resolve => { seen = resolve })
    const isHandled = new Promise<void>(resolve => { handled = resolve })
    await client.send(bytes)
    await isSeen
    client.reset()
    await isHandled
  }
  for (const path of ['/api/listPassword', '/elsewhere']) assert.equal(await (await fetch(url + path)).text(), 'begun')
  assert.deepEqual(await service.listPassword(), [])
  assert.equal(warnings.filter(line => /whose answer has begun/.test(line)).length, 2)
  const beganMs = performance.now()
  await service.close()
  assert.ok(performance.now() - beganMs < SHUTDOWN_TIMEOUT_MS / 2)
})

test('in every operation an id is a safe integer or its text; other integers are unknown, else refused', async t => {
  const service = await inMemory(t)
  for (let n = 0; n < 3; n++) await service.createPassword(ENTRY)
  for (let round = 0; round < 2; round++) {
    for (const id of [0, -1, 4, '4', '0', '-1', 2 ** 53 - 1] as number[]) {
      assert.equal(await service.getPassword(id), undefined)
      assert.equal(await service.updatePassword(id, { usuario: 'd' }), undefined)
      assert.equal(await service.deletePassword(id), false)
    }
    for (const id of [
      1.5, NaN, Infinity, 2 ** 60, 'x', '', '1.5', '1.0', '01', '+1', ' 1', '1 ', '0x1', '1e0', `${2 ** 60}`, true,
      false, null, undefined,
      {}, [], [1], ['1'], 1n, new Number(1), { toString: () => '1' }
    ] as number[]) {
      for (const call of [service.getPassword(id), service.updatePassword(id, { usuario: 'd' }),
        service.deletePassword(id)]) {
        await assert.rejects(call, { code: 'input-invalid',
          errors: { id: ['The id field must be a safe integer or its decimal text.'] } })
      }
    }
    assert.deepEqual((await service.listPassword()).map(({ usuario }) => usuario), Array(3).fill(ENTRY.usuario))
  }
})

for (const [name, isTold] of [['leaves that to node:http', false], ['listens for that and says it', true]] as const) {
  test(`a client that asks whether to send its body is told so once by a server that ${name}`, async t => {
    const service = await inMemory(t)
    const server = createServer()
    if (isTold) server.on('checkContinue', (request, response) => { response.writeContinue(); service.handle(request,
      response) })
    const client = await connectRaw(t, await serverOf(t, service.handle, server))
    const body = JSON.stringify(ENTRY)
    const whole = message('POST', '/api/createPassword', body, ['Expect: 100-continue'])
    await client.send(whole.subarray(0, -body.length))
    assert.equal((await client.answer()).status, 100)
    await client.send(body)
    assert.equal((await client.answer()).status, 200)
    await client.send(message('GET', '/api/getPassword/1'))
    assert.equal((await client.answer()).status, 200)
  })
}

test('§5.9 in production it answers what comes by another\'s HTTPS, refuses the rest, and does not listen', async t => {
  const service = await inMemory(t, { production: true, auth: 'none', port: 0 })
  const url = await serverOf(t, service.handle, createTlsServer(certificate('own')))
  const { port } = new URL(url)
  const asked = (origin: string): Promise<unknown> => new Promise((resolve, reject) => {
    const options = { port, path: '/api/listPassword', rejectUnauthorized: false, headers: { Origin: origin } }
    get(options, answer => resolve(answer.resume().statusCode)).on('error', reject)
  })
  const own = `https://localhost:${port}`
  assert.deepEqual([await asked(own), await asked(own.replace('https', 'http'))], [404, 403])
  assert.equal((await send(await serverOf(t, service.handle), 'GET', '/api/listPassword')).status, 403)
  await assert.rejects(service.listen(), { code: 'setting-invalid',
    message: /production: true needs tlsCert and tlsKey, or a proxy in trustProxy/ })
})

test('close answers what is in flight; then operations reject and requests are answered 503', async t => {
  const service = await openService({ dataDir: freshFolder(t), rateLimit: 0, prefix: '/vault' })
  let arrived = (): void => {}
  const hasArrived = new Promise<void>(resolve => { arrived = resolve })
  const url = await serverOf(t, (request, response) => { service.handle(request, response); arrived() })
  const created = send(`${url}/vault`, 'POST', '/api/createPassword', ENTRY)
  const direct = service.createPassword(ENTRY)
  await hasArrived
  await service.close()
  assert.equal((await created).status, 200)
  assert.equal((await direct).status, 1)
  assert.equal((await send(`${url}/vault`, 'GET', '/api/listPassword')).status, 503)
  const { status, headers } = await ask(t, url, message('GET', '/elsewhere'))
  assert.deepEqual([status, headers['connection']], [404, 'close'], 'of what is outside of the prefix too')
  for (const one of [service.createPassword(ENTRY), service.listPassword(), service.getPassword(1)]) {
    assert.equal(await codeOf(one), 'journal-closed')
  }
})

test('close does not wait for a request behind an answer of the host that ended the connection', async t => {
  const service = await inMemory(t)
  const url = await serverOf(t, (request, response) => {
    if (request.url === '/own') response.setHeader('Connection', 'close').end('bye')
    else service.handle(request, response)
  })
  const client = await connectRaw(t, url)
  const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
  await client.send(get('/own') + get('/api/listPassword'))
  assert.equal((await client.answer()).text, 'bye')
  const beganMs = performance.now()
  await service.close()
  assert.ok(performance.now() - beganMs < SHUTDOWN_TIMEOUT_MS / 2)
})

test('close waits for a request whose client is gone; nothing is logged afterwards', async t => {
  const told: string[] = []
  const tell = (line: string): void => { told.push(line) }
  const log = { info: () => {}, warn: tell, access: { write: tell, pendingBytes: () => 0 } }
  const service = await inMemory(t, { auth: 'bearer', accessLog: true, log })
  await service.accounts.addUser({ email: 'a@b.co', password: 'a secret password 1', abilities: ['*'], groups: null })
  const url = await serverOf(t, (request, response) => {
    service.handle(request, response)
    request.on('end', () => client.reset())
  })
  const client = await connectRaw(t, url)
  await client.send(message('POST', '/api/login', '{"email":"a@b.co","password":"secret password 1"}'))
  await client.untilEnd()
  await new Promise(resolve => setTimeout(resolve, 20)) // until the server knows as well
  await service.close()
  const { length } = told
  assert.ok(length > 0, 'the login has its line')
  await new Promise(resolve => setTimeout(resolve, 300))
  assert.deepEqual(told.slice(length), [])
})

test('it listens once, until it is closed, and leaves no handler on the process', async t => {
  const handlers = (): number[] => process.eventNames().map(name => process.listenerCount(name))
  const before = handlers()
  const service = await inMemory(t, { port: 0, accessLog: true })
  const url = await service.listen()
  assert.equal((await send(url, 'GET', '/healthz')).status, 200)
  assert.deepEqual(handlers(), before)
  assert.equal(await codeOf(service.listen()), 'address-unusable')
  const port = Number(new URL(url).port)
  const second = await inMemory(t, { port })
  assert.equal(await codeOf(second.listen()), 'address-unusable')
  await service.close()
  await assert.rejects(fetch(url))
  await assert.rejects(service.listen(), /the service is closed/, 'it does not even begin to')
  assert.equal(await second.listen(), url, 'an address that was taken can be listened on later')
  const hasty = await inMemory(t, { port: 0 })
  const listening = codeOf(hasty.listen())
  await hasty.close()
  assert.equal(await listening, 'address-unusable')
})

const NO_IPV6 = !Object.values(networkInterfaces()).flat().some(one => one?.address === '::1') && 'there is no IPv6'

test('the address of a service on IPv6 is one that can be asked', { skip: NO_IPV6 }, async t => {
  const service = await inMemory(t, { port: 0, host: '::1' })
  assert.equal((await send(await service.listen(), 'GET', '/healthz')).status, 200)
})

test('closed twice, it waits for what is in flight as if closed once', async t => {
  const service = await openService({ dataDir: freshFolder(t), page: false, port: 0 })
  const client = await connectRaw(t, await service.listen())
  const body = JSON.stringify(ENTRY)
  const whole = message('POST', '/api/createPassword', body, ['Expect: 100-continue'])
  await client.send(whole.subarray(0, whole.length - body.length))
  assert.equal((await client.answer()).status, 100)
  const closed = [service.close(), service.close()]
  await new Promise(resolve => setTimeout(resolve, 50))
  await client.send(body)
  assert.equal((await client.answer()).status, 200)
  await Promise.all(closed)
})

test('an id that is a text leaves the journal as a number would', async t => {
  const dataDir = freshFolder(t)
  const service = await openService({ dataDir })
  await service.createPassword(ENTRY)
  await service.updatePassword('1' as never, { usuario: 'd' })
  await service.deletePassword('1' as never)
  await service.close()
  const history = await done(dataDir, 'entry history 1')
  assert.deepEqual(history.match(/entry\.[a-z]+/g), ['entry.created', 'entry.updated', 'entry.deleted'])
})

test('§5 users and tokens are held to the operator\'s rules: what is none is refused and not recorded', async t => {
  const { accounts } = await inMemory(t, { auth: 'bearer' })
  const loose = accounts as unknown as { readonly [name: string]: (...given: readonly unknown[]) => Promise<unknown> }
  const ana = { email: 'ana@example.org', name: 'Ana', abilities: ['password:read'], password: 'a long password',
    groups: null }
  await accounts.addUser(ana)
  const eva = { ...ana, email: 'eva@example.org', name: 'Eva', abilities: [] }
  const token = { email: ana.email, abilities: null, groups: null }
  const wrong: readonly [string, object][] = [
    ['addUser', { ...eva, email: 'nomail' }], ['addUser', { ...eva, name: 5 }],
    ['addUser', { ...eva, abilities: 'password:read' }], ['addUser', { ...eva, abilities: null }],
    ['addUser', { ...eva, password: '' }], ['addUser', { ...eva, password: 'eleven char' }],
    ['addUser', { ...eva, password: 'Eva@example.org' }], ['addUser', { ...eva, abilities: ['password:raed'] }],
    ['addUser', { ...eva, groups: 'X' }], ['issue', { ...token, abilities: ['*'] }],
    ['setPassword', { email: ana.email, password: '' }], ['setPassword', { email: null, password: ana.password }],
    ['setPassword', { email: ana.email, password: ana.email.toUpperCase() }], ['removeUser', { email: 7 }],
    ['revokeAll', { email: null }], ['issue', { ...token, abilities: 'password:read' }],
    ['issue', { ...token, ttlMinutes: -1 }], ['issue', { ...token, ttlMinutes: NaN }],
    ['issue', { ...token, ttlMinutes: 1e300 }], ['changeUser', { email: ana.email, abilities: null }]
  ]
  for (const [name, given] of wrong) {
    assert.equal(await codeOf(loose[name]!(given)), 'input-invalid', `${name} ${JSON.stringify(given)}`)
  }
  assert.equal(await loose['revokeToken']!({ id: 5 }), false)
  assert.deepEqual((await accounts.users()).map(({ email, name }) => [email, name]), [[ana.email, ana.name]])
  assert.deepEqual(await accounts.tokens(), [])
  const { name: _, ...nameless } = eva
  assert.equal((await accounts.addUser(nameless))?.name, 'eva@example.org')
})

/** Changes everything that can be changed in what a caller has given, or was given. */
function scramble(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  Object.values(value).forEach(scramble)
  if (Array.isArray(value)) value.push('*', 5)
  else for (const key of Object.keys(value)) Object.assign(value, { [key]: ['*'] })
}

test('what a caller changes in what it has given, or was given, changes nothing that is kept', async t => {
  const dataDir = freshFolder(t)
  const service = await openService({ dataDir, auth: 'bearer', page: false, rateLimit: 0 })
  const { accounts } = service
  const address = 'ana@example.org'
  /** Calls with a copy of what is given, and changes that at once, and then what has come back. */
  const call = async (name: string, ...given: unknown[]): Promise<void> => {
    const owner = (name in service ? service : accounts) as unknown as { [name: string]: (...given: unknown[]) =>
      unknown }
    const copies = structuredClone(given)
    const result = owner[name]!(...copies)
    scramble(copies)
    scramble(await result)
  }
  const kept = async (): Promise<unknown> => structuredClone([
    await accounts.users(), (await accounts.tokens()).map(({ id, ...token }) => token), await service.listPassword(),
    await service.getPassword(1)])
  await call('createPassword', ENTRY)
  await call('updatePassword', 1, { usuario: 'd' })
  await call('updatePassword', 1, { usuario: 'e' }, { ifUnchanged: await service.getPassword(1) })
  const email = address
  await call('addUser', { email, name: 'Ana', abilities: ['password:read', 'password:create'], groups: null,
    password: 'a long password' })
  await call('issue', { email, abilities: ['password:read'], groups: null, ttlMinutes: 60 })
  await call('issue', { email, abilities: null, groups: null })
  await call('changeUser', { email, name: 'Ana M.', abilities: ['password:read'] })
  const before = await kept()
  const entry = { id: 1, ...ENTRY, usuario: 'e', status: 1 }
  const abilities = ['password:read']
  const [users, tokens, ...entries] = before as [unknown, readonly { readonly abilities: unknown }[], ...unknown[]]
  assert.deepEqual([users, entries], [[{ id: 1, email: address, name: 'Ana M.', abilities }], [[entry], entry]])
  assert.deepEqual(tokens.map(({ abilities }) => abilities), [abilities, abilities])
  for (const name of ['users', 'tokens', 'listPassword']) await call(name)
  await call('getPassword', 1)
  assert.deepEqual(await kept(), before)
  await service.close()
  assert.doesNotMatch(await done(dataDir, 'user list --json'), /\*/)
})

test('an access log that throws or rejects stops no request and no close, is warned of, counts losses', async () => {
  const fail = (): never => { throw new Error('the host\'s own') }
  const written: string[] = []
  const SINKS: { readonly [what: string]: NonNullable<Log['access']> } = {
    'its write throws': { write: fail, pendingBytes: () => 0 },
    // a rejection that nobody takes fails this test
    'its write rejects': { write: async () => fail(), pendingBytes: () => 0 },
    'its count throws': { write: (line: string): void => { written.push(line) }, pendingBytes: fail },
    'its reader is slow': { write: fail, pendingBytes: () => 2 ** 30 }
  }
  for (const [what, access] of Object.entries(SINKS)) {
    const warnings: string[] = []
    const log = { info: () => {}, warn: (line: string) => { warnings.push(line) }, access }
    const service = await openService({ journal: 'memory', port: 0, accessLog: true, metrics: 'public',
      log } as Options)
    const url = await service.listen()
    assert.equal((await send(url, 'POST', '/api/createPassword', ENTRY)).status, 200, what)
    const lost = /^pes_access_log_lost_lines_total (\d+)$/m.exec(await (await fetch(`${url}/metrics`)).text())?.[1]
    assert.equal(lost, '2', `${what}: the start and the first request`)
    await service.close()
    const losses = warnings.filter(line => line.startsWith('the access log loses lines'))
    assert.match(losses.join('\n'),
      /^the access log loses lines, which are counted: (the host's own|its reader is too slow)$/, what)
  }
  assert.deepEqual(written, [], 'if nobody knows how much waits, nothing is added to it')
})

test('in production a folder without a journal is refused, unless it is to be made', async t => {
  const dataDir = freshFolder(t)
  const options = { dataDir, production: true, auth: 'none' } as const
  await assert.rejects(openService(options), { code: 'journal-missing', message: /init/ })
  await (await openService({ ...options, init: true })).close()
  const service = await openService(options)
  assert.deepEqual(await service.listPassword(), [])
  await service.close()
})

test('a body that middleware has parsed is used, and one that it has only read is refused with the reason', async t => {
  const service = await inMemory(t)
  const server = createServer(async (request, response) => {
    if (['none', 'text'].includes(String(request.headers['x-parsed']))) return service.handle(request, response)
    let text = ''
    for await (const piece of request) text += String(piece)
    if (request.headers['x-parsed'] === 'yes') Object.assign(request, { body: JSON.parse(text) })
    // as express.raw() does
    if (request.headers['x-parsed'] === 'raw') Object.assign(request, { body: Buffer.from(text) })
    service.handle(request, response)
  })
  server.prependListener('request',
    request => { if (request.headers['x-parsed'] === 'text') request.setEncoding('utf8') })
  t.after(() => server.close())
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const create = async (parsed: string, body: unknown): Promise<[number, any]> => {
    const headers = { 'Content-Type': 'application/json', 'X-Parsed': parsed, Connection: 'close' }
    const response = await fetch(`http://127.0.0.1:${port}/api/createPassword`,
      { method: 'POST', headers, body: JSON.stringify(body) })
    return [response.status, await response.json()]
  }
  assert.equal((await create('yes', { password: 'p', sistema: 's', usuario: 'u' }))[0], 200)
  const [status, { errors }] = await create('yes', { password: 7, sistema: 's' })
  assert.deepEqual([status, Object.keys(errors)], [400, ['password', 'usuario']])
  for (const parsed of ['yes', 'none']) {
    for (const body of [[1], null]) {
      const [status, { errors }] = await create(parsed, body)
      assert.deepEqual([status, /^The body is not an object/.test(errors.body)], [400, true], parsed)
    }
  }
  for (const [parsed, body] of [['no', {}], ['text', {}],
    ['raw', { password: 'p', sistema: 's', usuario: 'u' }]] as const) {
    const [status, { message }] = await create(parsed, body)
    assert.equal(status, 500)
    assert.match(message, /^Middleware has read the body/)
  }
  assert.equal((await service.listPassword()).length, 1)
})

test('a body that the host has begun to read changes nothing, and the answer says what to do', async t => {
  const service = await inMemory(t)
  const ways: { readonly [way: string]: (request: IncomingMessage, goOn: () => void) => void } = {
    data: (request, goOn) => request.once('data', goOn),
    paused: (request, goOn) => request.once('data', () => { request.pause(); goOn() }),
    loop: async (request, goOn) => {
      for await (const _ of request.iterator({ destroyOnReturn: false })) break
      goOn()
    },
    read: (request, goOn) => request.once('readable', () => { request.read(5); goOn() }),
    'reads as text': (request, goOn) => request.on('readable', () => { request.setEncoding('utf8'); request.read() }) &&
      goOn(),
    'sets the encoding late': (request, goOn) => { goOn(); request.setEncoding('utf8') },
    'sets the encoding before': (request, goOn) => { request.setEncoding('utf8'); goOn() },
    listens: (request, goOn) => request.on('readable', () => {}) && goOn(),
    'listens before': (request, goOn) => request.on('readable', () => {}) && setTimeout(goOn, 20),
    digests: (request, goOn) => request.on('readable', () => { while (request.read() !== null); }) && goOn(),
    'puts back': (request, goOn) => request.once('data', piece => { request.unshift(piece); goOn() }),
    'reads to the end': async (request, goOn) => {
      for await (const _ of request) { /* thrown away */ }
      goOn()
    },
    // As Express 4 does where it did not parse.
    'leaves an empty object': async (request, goOn) => {
      for await (const _ of request) { /* thrown away */ }
      goOn.call(Object.assign(request, { body: {} }))
    }
  }
  const url = await serverOf(t, (request, response) => {
    ways[String(request.headers['x-way'])]!(request, () => service.handle(request, response))
  })
  await service.createPassword(ENTRY)
  for (const way of Object.keys(ways)) {
    for (const isChunked of [false, true]) {
      const pieces = [Buffer.from(JSON.stringify({ password: way })), Buffer.from(' '.repeat(70))]
      const headers = { 'Content-Type': 'application/json', 'X-Way': way }
      const init = { method: 'POST', headers, signal: AbortSignal.timeout(20_000) }
      const answer = await fetch(`${url}/api/updatePassword/1`, isChunked
        ? { ...init, body: new Blob(pieces).stream(), duplex: 'half' } as RequestInit
          : { ...init, body: Buffer.concat(pieces) })
      assert.equal(answer.status, 500, `${way}, ${isChunked}`)
      assert.match(await answer.text(), /Middleware has read the body/)
      assert.equal((await service.getPassword(1))!.password, ENTRY.password, way)
    }
  }
})

test('an object that the host has parsed is bounded as any other body, also if nobody knows its length', async t => {
  const maxBodyBytes = 1_000
  const service = await inMemory(t, { maxBodyBytes })
  const url = await serverOf(t, async (request, response) => {
    let text = ''
    for await (const piece of request) text += String(piece)
    service.handle(Object.assign(request, { body: JSON.parse(text) }), response)
  })
  for (const [length, status] of [[maxBodyBytes - 50, 200], [maxBodyBytes, 413], [1_000_000, 413]] as const) {
    const body = JSON.stringify({ ...ENTRY, password: 'x'.repeat(length) })
    for (const given of [body, new Blob([body]).stream()]) {
      const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: given, duplex: 'half' }
      const { status: found } = await fetch(`${url}/api/createPassword`, init as RequestInit)
      assert.equal(found, status, `${length} ${typeof given}`)
    }
  }
  assert.equal((await service.listPassword()).length, 2)
})

test('if a host such as Koa answers by itself, the log says what the service could not answer', async t => {
  const warnings: string[] = []
  const service = await inMemory(t, { log: { info: () => {}, warn: line => { warnings.push(line) } } })
  const url = await serverOf(t, (request, response) => {
    service.handle(request, response)
    if (request.method === 'POST') response.writeHead(404, { 'Content-Length': 9 }).end('Not Found')
  })
  await service.createPassword(ENTRY)
  for (let n = 0; n < 2; n++) assert.equal((await fetch(`${url}/api/deletePassword/1`, { method: 'POST' })).status, 404)
  assert.equal((await service.getPassword(1))?.status, 0)
  const unanswered = /^request \S+ could not be answered: Error \[ERR_HTTP_HEADERS_SENT\]/
  await until('the log to say so of both', () => warnings.filter(line => unanswered.test(line)).length === 2)
})

test('a request that the host has destroyed ends, hinders no close and no other request, changes nothing', async t => {
  const service = await inMemory(t)
  await service.createPassword(ENTRY)
  const failing = (): Writable => new Writable({ write(_piece, _encoding, done) { done(new Error('full')) } })
  const leave = async (request: IncomingMessage): Promise<void> => { for await (const _ of request) break }
  const ways: { readonly [way: string]: (request: IncomingMessage, goOn: () => void) => unknown } = {
    'before, left': async (request, goOn) => { await leave(request); goOn() },
    'meanwhile, left': (request, goOn) => { goOn(); return leave(request) },
    'meanwhile, by a pipeline': (request, goOn) => { pipeline(request, failing(), () => {}); goOn() }
  }
  const url = await serverOf(t, (request, response) => {
    void ways[String(request.headers['x-way'])]!(request, () => service.handle(request, response))
  })
  for (const way of Object.keys(ways)) {
    for (const isWhole of [true, false]) {
      const client = await connectRaw(t, url)
      const bytes = message('POST', '/api/updatePassword/1', JSON.stringify({ password: 'x' }), [`X-Way: ${way}`])
      await client.send(isWhole ? bytes : bytes.subarray(0, -4))
      assert.deepEqual(await client.untilEnd(), [], way)
    }
  }
  assert.equal((await service.getPassword(1))?.password, ENTRY.password)
  await service.close()
})

test('what a host has in the asynchronous context of a request stays that of the same request', async t => {
  const context = new AsyncLocalStorage<string>()
  const service = await inMemory(t, { maxBodyBytes: 2_000_000, dataDir: freshFolder(t), journal: 'file' })
  const found: (string | undefined)[][] = []
  const url = await serverOf(t, (request, response) => {
    const { end } = response
    response.end = (...given: unknown[]) => {
      found.push([request.url, context.getStore()])
      return end.apply(response, given as never)
    }
    context.run(request.url!, () => service.handle(request, response))
  })
  const body = JSON.stringify({ ...ENTRY, password: 'p'.repeat(500_000) })
  await Promise.all(Array.from({ length: 20 }, (_, n) =>
    fetch(`${url}/api/createPassword?${n}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
      .then(answer => answer.text())))
  assert.equal(found.length, 20)
  for (const [asked, store] of found) assert.equal(store, asked)
})

test('middleware whose own code throws spoils no other answer', async t => {
  const warnings: string[] = []
  const service = await inMemory(t, { log: { info: () => {}, warn: line => { warnings.push(line) } } })
  const url = await serverOf(t, (request, response) => {
    const { writeHead } = response
    Object.assign(response, { writeHead: (...given: Parameters<typeof writeHead>) => {
      if (request.headers['x-throws'] !== undefined) throw new Error('a listener of the middleware')
      return writeHead.apply(response, given)
    } })
    service.handle(request, response)
  })
  const body = JSON.stringify(ENTRY)
  const headers = { 'Content-Type': 'application/json', Connection: 'close' }
  const created = await fetch(`${url}/api/createPassword`, { method: 'POST', headers, body })
  assert.deepEqual([created.status, created.headers.get('location')], [200, '/api/getPassword/1'])
  for (const init of [{}, { method: 'POST', body }]) {
    const path = init.method === undefined ? '/api/getPassword/1' : '/api/createPassword'
    await assert.rejects(fetch(url + path, { ...init, headers: { ...headers, 'X-Throws': 'yes' } }))
  }
  assert.equal(warnings.filter(line => /could not be answered: Error: a listener/.test(line)).length, 2)
  const beganMs = performance.now()
  await service.close()
  assert.ok(performance.now() - beganMs < SHUTDOWN_TIMEOUT_MS / 2, 'nothing is in flight')
})

test('an answer that middleware has given meanwhile arrives whole, whatever becomes of the request', async t => {
  const warnings: string[] = []
  const service = await inMemory(t, { log: { info: () => {}, warn: line => { warnings.push(line) } } })
  const url = await serverOf(t, (request, response) => {
    service.handle(request, response)
    setImmediate(() => response.writeHead(503).end(Buffer.alloc(4_000_000, 'x'))) // as one for requests that take long
  })
  for (let n = 1; n <= 3; n++) {
    const answer = await fetch(`${url}/api/createPassword`, {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(ENTRY)
    })
    assert.deepEqual([answer.status, (await answer.arrayBuffer()).byteLength], [503, 4_000_000])
    assert.equal((await service.listPassword()).length, n)
  }
  assert.deepEqual(warnings.filter(line => /failed/.test(line)), [])
})

test('requests of node:http2 are refused, and the log says why, once', async t => {
  const warnings: string[] = []
  const service = await inMemory(t, { log: { info: () => {}, warn: line => { warnings.push(line) } } })
  const server = createHttp2Server((request, response) => service.handle(request as never, response as never))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  atEnd(t, () => { client.destroy(); server.close() })
  for (let n = 0; n < 2; n++) {
    const stream = client.request({ ':path': '/api/listPassword' })
    const [headers] = await once(stream, 'response') as [{ ':status': number }]
    stream.resume()
    assert.equal(headers[':status'], 400)
  }
  assert.deepEqual(warnings.slice(1), [
    'handle was given a request of HTTP/2, and refuses it: it takes HTTP/1.1 of node:http'
  ])
})
