/** Connections as a hostile client has them: cut off anywhere, pipelined, half open, never quite begun. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { connect, Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { parseAddressSet } from '../../src/http/client.ts'
import type { Handle } from '../../src/http/connection.ts'
import { Connections, listen, type Listener } from '../../src/http/listener.ts'
import { respond } from '../../src/http/sending.ts'
import {
  ANSWER_BYTES_PER_SECOND, KEEP_ALIVE_TIMEOUT_MS, NEW_REQUEST_MS, PAID_AHEAD_MS, SHUTDOWN_SWEEP_MS
} from '../../src/limits.ts'
import { certificate } from '../support/certificate.ts'
import { heapMiB } from '../support/heap.ts'
import { until } from '../support/program.ts'
import { connectRaw, message } from '../support/raw.ts'
import { atEnd, startService } from '../support/service.ts'
import { updateEntry } from '../../src/entries/entry-commands.ts'

const ENTRY = JSON.stringify({ password: 'p', sistema: 's', usuario: 'u' })
const CREATE = message('POST', '/api/createPassword', ENTRY)
const GET = message('GET', '/api/getPassword/1')
const READ_AT_ONCE_BYTES = 64 * 1024

const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

/** A bare listener, over TLS where asked; gives its port. */
async function serve(t: TestContext, handle: Handle, isTls = false, onRefusal?: (status: number) =>
  void): Promise<number> {
  return (await listening(t, handle, isTls, onRefusal)).port
}

async function listening(t: TestContext, handle: Handle, isTls = false, onRefusal = (status: number): void => {
  throw new Error(`refused by ${status}`)
}): Promise<Listener> {
  const { cert, key } = certificate('localhost')
  const pem = isTls ? () => ({ cert: Buffer.from(cert), key: Buffer.from(key) }) : undefined
  const listener = await listen({ host: '127.0.0.1', port: 0 }, handle, { certificate: pem, onRefusal })
  atEnd(t, () => listener.close(0))
  return listener
}

async function open(t: TestContext, port: number, isTls = false): Promise<Socket> {
  const socket = isTls ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }) : connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  await once(socket, isTls ? 'secureConnect' : 'connect')
  return socket
}

/** Resolves once a text has come that many times. */
async function heard(socket: Socket, text: string, count: number): Promise<void> {
  let found = 0
  let last = ''
  socket.setEncoding('latin1').on('data', (piece: string) => {
    last += piece
    const parts = last.split(text)
    found += parts.length - 1
    last = parts.at(-1)!
  })
  socket.resume()
  await until(`${count} times ${text}`, () => found >= count || socket.closed)
  assert.equal(found, count)
}

test('a change by a client that resets has its line, its client and its count, and no error is reported', async t => {
  const { url, service, accessLines, warnings } = await startService(t, { 'access-log': 'on', 'rate-limit': '100' })
  const rounds = 20
  for (let n = 0; n < rounds; n++) {
    const client = await connectRaw(t, url)
    await client.send(Buffer.concat([GET, CREATE]))
    client.reset()
  }
  await pause(300)
  await updateEntry(service.store, 1, {}, null) // waits its turn behind every create
  await pause(50)
  const lines = accessLines.map(line => JSON.parse(line))
  assert.equal(lines.filter(({ route }) => route === 'createPassword').length, service.store.state.entries.count)
  assert.deepEqual([...new Set(lines.map(({ client }) => client))], lines.length === 0 ? [] : ['127.0.0.1'])
  for (const { status } of lines) assert.ok([200, 404, 499].includes(status), String(status))
  assert.deepEqual(warnings, [])
  const { headers } = await fetch(`${url}/api/listPassword`)
  assert.equal(headers.get('x-ratelimit-remaining'), String(100 - lines.length - 1), 'each counts for its client')
  assert.match(await (await fetch(`${url}/metrics`)).text(), /^pes_rate_limit_clients 1$/m, 'and for no other')
})

test('a reset without a request, or in the middle of one, is neither malformed nor a 400', async t => {
  const { url, accessLines } = await startService(t, { 'access-log': 'on' })
  for (const part of ['', 'GET /api/list', CREATE.subarray(0, -3)]) {
    const client = await connectRaw(t, url)
    if (part.length > 0) await client.send(part)
    for (let n = 0; n < 5; n++) await pause(10) // in turns of the event loop, in which the service reads it
    client.reset()
  }
  await pause(200)
  assert.deepEqual(accessLines.map(line => JSON.parse(line).status), [499])
  assert.doesNotMatch(await (await fetch(`${url}/metrics`)).text(), /^pes_http_malformed_requests_total\{/m)
})

for (const isTls of [false, true]) {
  const over = isTls ? 'TLS' : 'TCP'

  test(`${over}: what comes before an answer is decided is not done, nor much of it read, as that says`, async t => {
    let read = (): number => 0
    let release = (): void => {}
    const seen: string[] = []
    const port = await serve(t, (request, response) => {
      seen.push(request.url!)
      read = () => request.socket.bytesRead
      release = () => { response.setHeader('Content-Length', 5).end('ended') }
    }, isTls)
    const socket = await open(t, port, isTls)
    for (let n = 0; n < 300; n++) socket.write(message('POST', `/${n}`, 'x'.repeat(15_000)))
    await pause(700)
    assert.ok(read() <= 33 * READ_AT_ONCE_BYTES, `${read()} bytes were read`)
    release()
    const text = (await socket.setEncoding('latin1').toArray()).join('')
    assert.match(text, /^HTTP\/1\.1 200 OK\r\n[^]*\r\nConnection: close\r\n\r\nended$/)
    assert.deepEqual(seen, ['/0'])
  })

  test(`${over}: who pipelines thousands and reads slowly gets all that was done, in order, then the end`, async t => {
    const warned: string[] = []
    const onWarning = ({ message }: Error): void => { warned.push(message) }
    process.on('warning', onWarning)
    t.after(() => process.off('warning', onWarning))
    for (const body of ['', 'x'.repeat(20_000)]) {
      let seen = ''
      let count = 0
      const port = await serve(t, (request, response) => {
        seen += `${request.url} `
        count++
        respond(response, { status: 200, body: `${body}${request.url} ` }, [], false)
      }, isTls)
      const socket = await open(t, port, isTls)
      socket.pause()
      socket.write(Array.from({ length: 2_000 }, (_, n) => `GET /${n} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''))
      await pause(300)
      assert.ok(count === 1 || count === 2, `${count} were carried out`)
      const text = (await socket.setEncoding('latin1').toArray()).join('')
      assert.equal(text.match(/\/\d+ (?=HTTP|$)/g)?.join(''), seen)
      assert.deepEqual(text.match(/Connection: [a-z-]+/g),
        [...Array(count - 1).fill('Connection: keep-alive'), 'Connection: close'])
    }
    assert.deepEqual(warned, [])
  })

  test(`${over}: a client that ends its side behind its requests gets the answers`, async t => {
    const port = await serve(t, (request, response) => {
      const end = (): void => { response.setHeader('Content-Length', 5).end('ended') }
      if (request.url === '/late') setTimeout(end, 50) // by then the end has come as well
      else end()
    }, isTls)
    for (const targets of [['/late'], ['/', '/'], ['/', '/late']]) {
      const socket = await open(t, port, isTls)
      socket.end(targets.map(target => `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''))
      await heard(socket, 'ended', targets.length)
    }
  })

  test(`${over}: what follows an answer after which node:http ends the connection is not carried out`, async t => {
    const seen: string[] = []
    const port = await serve(t, (request, response) => {
      seen.push(request.url!)
      respond(response, { status: 204 }, [], false) // so node:http ends the connection, whatever was agreed
    }, isTls)
    const requests = ['/first', '/second'].map(path => `GET ${path} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n`)
    for (let n = 0; n < 5; n++) {
      const socket = await open(t, port, isTls)
      socket.resume().write(requests.join(''))
      await once(socket, 'close')
    }
    assert.deepEqual(seen, Array(5).fill('/first'))
  })

  test(`${over}: the last answer arrives, however much the client still sends`, async t => {
    const port = await serve(t, (_request, response) => {
      setTimeout(() => { respond(response, { status: 200, body: 'x'.repeat(200_000) }, [], false) }, 20)
    }, isTls)
    for (let n = 0; n < 10; n++) {
      const socket = await open(t, port, isTls)
      const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
      const more = setInterval(() => { if (socket.writable) socket.write(request.repeat(100)) }, 1)
      t.after(() => clearInterval(more))
      socket.pause().write(request.repeat(100))
      await pause(100)
      const text = (await socket.toArray()).map(String).join('')
      clearInterval(more)
      assert.equal(text.length - text.indexOf('xxx'), 200_000)
    }
  })
}

test('another client is answered before all is parsed that one pipelines on many connections', async t => {
  let parsed = 0
  const count = (): void => { parsed++ }
  subscribe('http.server.request.start', count)
  t.after(() => unsubscribe('http.server.request.start', count))
  let before: number | undefined
  const port = await serve(t, (request, response) => {
    if (request.url === '/other') before = parsed
    response.end('ended')
  })
  const many = await Promise.all(Array.from({ length: 24 }, () => open(t, port)))
  const other = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' })
  t.after(() => other.destroy())
  await once(other, 'connect')
  const one = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
  const each = Math.floor(READ_AT_ONCE_BYTES / one.length)
  for (const socket of many) socket.write(one.repeat(each))
  other.write('GET /other HTTP/1.1\r\nHost: a\r\n\r\n')
  await heard(other, 'ended', 1)
  assert.ok(before! < 4 * each, `${before} of ${24 * each} were parsed before`)
})

test('what comes behind an answer that is being read waits for its end', async t => {
  let answers = 0
  const port = await serve(t, (_request, response) => {
    respond(response, { status: 200, body: Buffer.alloc(++answers === 1 ? 40_000_000 : 8_000) }, [], false)
  })
  const client = await open(t, port)
  client.pause().write(Buffer.concat([message('GET', '/'), message('GET', '/')]))
  await pause(300)
  assert.equal(answers, 1)
  let bytes = 0
  client.on('data', (piece: Buffer) => { bytes += piece.length }).resume()
  await until('both answers whole', () => bytes > 40_008_000)
})

test('a stop sends an answer whole whose end waits for a slow reader', async t => {
  let response: ServerResponse | undefined
  const { port, close } = await listening(t, (_request, asked) => {
    response = asked
    asked.setHeader('Content-Length', 6_000_000).end(Buffer.alloc(6_000_000))
  })
  const client = await open(t, port)
  client.pause().write(message('GET', '/'))
  await until('the end waits', () => response?.finished === true && response.req.socket.writableLength > 0)
  const closed = close(30_000)
  await pause(3 * SHUTDOWN_SWEEP_MS)
  let bytes = 0
  for await (const piece of client) bytes += (piece as Buffer).length
  assert.ok(bytes > 6_000_000, `${bytes} bytes`)
  await closed
})

test('behind an answer that ends the connection, what is no request gets no answer', async t => {
  const { url } = await startService(t, { 'rate-limit': '0' })
  for (const field of ['Connection: close', 'Upgrade: h2c']) {
    const client = await connectRaw(t, url)
    await client.send(message('GET', '/api/getPassword/1', undefined, [field]), 'STEAL / HTTP/1.1\r\nHost: a\r\n\r\n')
    const { status, headers } = await client.answer()
    assert.deepEqual([status, headers['connection'], await client.untilEnd()], [404, 'close', []], field)
  }
})

test('who ends its side in a body that was refused while it was read is let go at once', async t => {
  const { url } = await startService(t, { 'rate-limit': '0' })
  const client = await open(t, Number(new URL(url).port))
  client.setNoDelay().write('POST /api/createPassword HTTP/1.1\r\nHost: localhost\r\n' +
    'Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n')
  let text = ''
  client.setEncoding('latin1').on('data', piece => { text += piece })
  for (let sent = 0; sent < 4_000 && !text.includes('small chunks'); sent++) {
    client.write(' ')
    await pause(1)
  }
  assert.match(text, /^HTTP\/1\.1 400 .*small chunks/s)
  client.end()
  const beganMs = performance.now()
  await once(client, 'close')
  assert.ok(performance.now() - beganMs < 30_000) // the timeouts take 65 s
})

test('who stays behind an answer that ends the connection is let go, silent or with a byte now and then', async t => {
  const listener = await listening(t, (_request, response) => respond(response, { status: 200, body: 'x' }, [], true))
  for (const isSilent of [true, false]) {
    const client = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true }).on('error',
      () => {}).resume()
    t.after(() => { client.destroy() })
    client.write(GET)
    await once(client, 'end')
    const timer = isSilent ? undefined : setInterval(() => client.write('x'), 100)
    await until('the connection is over', () => listener.connections() === 0)
    clearInterval(timer)
  }
})

test('who ends its side where a body is missing is let go at once, also behind an offer to upgrade', async t => {
  const { url } = await startService(t, { 'rate-limit': '0' })
  for (const upgrade of ['', 'Upgrade: h2c\r\nConnection: Upgrade\r\n']) {
    const client = await open(t, Number(new URL(url).port))
    const beganMs = performance.now()
    client.resume().end('POST /api/createPassword HTTP/1.1\r\nHost: localhost\r\n' +
      `Content-Type: application/json\r\nContent-Length: 50\r\n${upgrade}\r\n{`)
    await once(client, 'close')
    assert.ok(performance.now() - beganMs < 25_000, upgrade) // the timeouts take 35 s
  }
})

/** The connections of a listener that has as many places, and what may happen to them. */
function places(most: number) {
  const connections = new Connections(() => {}, false, most, { trustedProxies: parseAddressSet(['fd00::5']) })
  const accept = (remoteAddress = '127.0.0.1'): Socket => {
    const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress })
    connections.onConnection(socket)
    return socket
  }
  const ask = (socket: Socket): ServerResponse => {
    const response = new ServerResponse(Object.assign(new IncomingMessage(socket), { complete: true }))
    response.shouldKeepAlive = true
    response.assignSocket(socket)
    connections.onRequest(response.req, response)
    return response
  }
  const answer = (socket: Socket): void => {
    const response = ask(socket)
    response.emit('finish')
    response.detachSocket(socket)
  }
  const malformed = (socket: Socket): void => connections.onMalformed(socket, 400)
  return { connections, accept, ask, answer, malformed }
}

test('nothing is kept of a client whose connections have ended', async () => {
  const { accept } = places(100)
  const comeAndGo = async (network: number): Promise<number> => {
    for (let n = 0; n < 10_000; n++) accept(`10.${network}.${n >> 8}.${n & 255}`).destroy()
    await new Promise(resolve => setImmediate(resolve))
    return heapMiB()
  }
  await comeAndGo(1)
  const before = await comeAndGo(2)
  const added = await comeAndGo(3) - before
  assert.ok(added < 0.5, `${added} MiB`)
})

test('a connection that waits for its next request keeps nothing of the last one', async () => {
  const { accept, ask } = places(1)
  const socket = accept()
  const kept = ((): WeakRef<object> => {
    const response = ask(socket)
    response.emit('finish')
    response.detachSocket(socket)
    response.req.removeAllListeners()
    return new WeakRef(response)
  })()
  await pause(10) // what was made in this turn of the event loop is kept until its end
  heapMiB()
  assert.equal(kept.deref(), undefined)
  socket.destroy()
})

test('if all places are taken, the larger crowd gives one: the oldest that never asked, or who asked first', () => {
  const { connections, accept, ask, answer, malformed } = places(6)
  const proxy = accept('fd00::5')
  const [one, two, three, idle, busy] = Array.from({ length: 5 }, () => accept()) as [Socket, Socket, Socket, Socket,
    Socket]
  answer(idle)
  ask(busy)
  const four = accept()
  assert.deepEqual([one, two, three, idle, busy].map(({ destroyed }) => destroyed), [true, false, false, false, false])
  malformed(four) // what is no request is one; a proxy counts for no crowd: two have not asked, three have
  accept()
  assert.deepEqual([two.destroyed, idle.destroyed, four.destroyed], [false, true, false])
  accept()
  assert.deepEqual([two.destroyed, four.destroyed], [true, false], 'three have not asked, two have')
  for (let n = 0; n < 10; n++) ask(accept())
  const late = accept()
  assert.deepEqual([late.destroyed, proxy.destroyed, busy.destroyed, four.destroyed], [true, false, false, true],
    'if all are at work, the newcomer is refused')
  assert.equal(connections.count, 6)
})

test('who has its answer gives way before a request under way, and of these whose client moves least', t => {
  let laterMs = 0
  const now = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => now() + laterMs)
  const { accept, ask, answer } = places(7)
  /** Moves bytes only as it is told. */
  const begin = (): Socket & { moved: number } => {
    const socket = Object.assign(accept(), { moved: 0 })
    return Object.defineProperty(socket, 'bytesRead', { get: () => socket.moved })
  }
  const [fast, slow, still, owing, idle, kept, atWork] = Array.from({ length: 7 }, begin) as (Socket &
    { moved: number })[]
  for (const socket of [fast, slow, still]) ask(socket!).req.complete = false // a body is missing
  const answered = ask(owing!)
  answered.req.complete = false
  answered.emit('finish')
  answer(idle!)
  answer(kept!)
  ask(atWork!)
  const all: Socket[] = [fast!, slow!, still!, owing!, idle!, kept!, atWork!]
  const order: number[] = []
  for (let n = 0; n < 5; n++) {
    laterMs += PAID_AHEAD_MS / 2
    fast!.moved += PAID_AHEAD_MS / 2000 * ANSWER_BYTES_PER_SECOND
    slow!.moved += PAID_AHEAD_MS / 20_000 * ANSWER_BYTES_PER_SECOND
    if (n < 2) answer(kept!)
    ask(accept())
    order.push(...[...all.keys()].filter(one => all[one]!.destroyed && !order.includes(one)))
  }
  assert.deepEqual(order, [3, 4, 5, 2, 1])
})

test('no look lets a request go that is under way, however long it takes, but a silence behind it', t => {
  let laterMs = 0
  const now = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => now() + laterMs)
  const { connections, accept, ask } = places(2)
  const socket = accept()
  const response = ask(socket)
  const look = (): boolean => {
    laterMs += KEEP_ALIVE_TIMEOUT_MS + 1_000
    connections.lookAtAll()
    return socket.destroyed
  }
  assert.deepEqual(Array.from({ length: 5 }, look), Array(5).fill(false))
  response.emit('finish')
  response.detachSocket(socket)
  assert.deepEqual([look(), look()], [false, true])
})

test('no look lets an answer go that is being taken, however long it takes', t => {
  let laterMs = 0
  const now = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => now() + laterMs)
  const { connections, accept, ask } = places(2)
  const socket = accept()
  Object.defineProperty(ask(socket), 'headersSent', { value: true })
  for (let n = 0; n < 5; n++) {
    laterMs += KEEP_ALIVE_TIMEOUT_MS + 1_000
    connections.lookAtAll()
    assert.equal(socket.destroyed, false, `look ${n}`)
  }
})

test('if all that have asked are at work, who has not asked gives way, though fewer have not', () => {
  const { accept, ask } = places(3)
  for (let n = 0; n < 2; n++) ask(accept())
  const silent = accept()
  const late = accept()
  assert.deepEqual([silent.destroyed, late.destroyed], [true, false])
})

test('in its first moment a request is worth more than all that others have paid ahead', t => {
  let laterMs = 0
  const now = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => now() + laterMs)
  for (const [afterMs, gives] of [[NEW_REQUEST_MS - 200, 'greedy'], [NEW_REQUEST_MS + 200, 'new']] as const) {
    const { connections, accept, ask } = places(2)
    let moved = 0
    const greedy = Object.defineProperty(accept(), 'bytesRead', { get: () => moved })
    const one = accept()
    ask(greedy).req.complete = false
    connections.lookAtAll()
    laterMs += PAID_AHEAD_MS
    ask(one).req.complete = false
    connections.lookAtAll()
    laterMs += afterMs
    moved += 1_000_000
    accept()
    assert.deepEqual([greedy.destroyed, one.destroyed], [gives === 'greedy', gives === 'new'], gives)
  }
})

test('a neighbour of a trusted proxy gives way as any other client does, and the proxy never, whatever it did', () => {
  for (const did of ['nothing', 'answer', 'malformed'] as const) {
    for (const [address, gives] of [['fd00::5', false], ['fd00::9', true]] as const) {
      const { connections, accept, ...acts } = places(1)
      const first = accept(address)
      if (did !== 'nothing') acts[did](first)
      const second = accept('127.0.0.1')
      assert.deepEqual([first.destroyed, second.destroyed, connections.count], [gives, !gives, 1], `${address} ${did}`)
    }
  }
})

test('two handshakes of TLS from one address and port, to two addresses of this machine, are told apart', async t => {
  const { cert, key } = certificate('localhost')
  const listener = await listen({ host: '0.0.0.0', port: 0 }, (_request, response) => { response.end('ended') },
    { certificate: () => ({ cert: Buffer.from(cert), key: Buffer.from(key) }) })
  atEnd(t, () => listener.close(0))
  const { port } = listener
  const probe = connect(port, '127.0.0.1')
  await once(probe, 'connect')
  const { localPort } = probe // which nobody else has by chance from another address
  const ends = ['127.0.0.1', '127.0.0.3'].map(host =>
    ({ port, host, localAddress: '127.0.0.2', localPort: localPort!, rejectUnauthorized: false }))
  const sockets = ends.map(end => connectTls(end))
  await Promise.all(sockets.map(async socket => {
    t.after(() => socket.destroy())
    await once(socket, 'secureConnect')
    socket.write(message('GET', '/'))
    await heard(socket, 'ended', 1)
  }))
  probe.destroy()
})

test('a stop lets go at once who is still in the handshake of TLS, whatever has come of that', () => {
  const connections = new Connections(() => {}, true, 2, {})
  const sockets = [0, 100].map(value => Object.defineProperties(new Socket(),
    { remoteAddress: { value: '127.0.0.1' }, remotePort: { value: 1_000 + value }, bytesRead: { value } }))
  for (const socket of sockets) connections.onConnection(socket)
  connections.destroyIdle()
  assert.deepEqual(sockets.map(({ destroyed }) => destroyed), [true, true])
})
