/** Asks Node for each thing that is used beyond its documentation: a Node that changes one of them fails here. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { createServer, IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { connect, Socket, type AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import {
  allowHalfOpen, endsConnection, keepsAlive, ListenerRequest, replaceLastStep, sparesSendingConnections, stopParser
} from '../../src/http/connection.ts'
import { until } from '../support/program.ts'

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

/** A bare server of node:http, with a client that has connected to it. */
async function served(t: TestContext, server: Server): Promise<Socket> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.on('error', () => {})
  t.after(() => { client.destroy(); server.close(); server.closeAllConnections() })
  await once(client, 'connect')
  return client
}

async function textOf(client: Socket): Promise<string> {
  let text = ''
  client.setEncoding('latin1').on('data', (piece: string) => { text += piece })
  if (!client.closed) await once(client, 'close')
  return text
}

for (const [what, change, isAnswered] of [['by itself', () => {}, false],
  ['with allowHalfOpen', allowHalfOpen, true]] as const) {
  test(`${what}, node:http answers a client that has ended its side: ${isAnswered}`, async t => {
    const server = createServer((_request, response) => { setTimeout(() => response.end('answered'), 50) })
    change(server)
    const client = await served(t, server)
    client.end(GET)
    assert.equal((await textOf(client)).includes('answered'), isAnswered)
  })
}

for (const [what, change, isWhole] of [['by itself', () => {}, false],
  ['with sparesSendingConnections', sparesSendingConnections, true]] as const) {
  test(`${what}, a close lets an answer that is being sent arrive whole: ${isWhole}`, async t => {
    let given: ServerResponse | undefined
    const server = createServer((_request, response) => { given = response.end(Buffer.alloc(20_000_000)) })
    change(server)
    const client = await served(t, server)
    client.pause().write(GET)
    await until('it waits', () => given !== undefined && given.req.socket.writableLength > 0)
    server.close()
    await pause(50)
    let bytes = 0
    client.on('data', ({ length }) => { bytes += length }).resume()
    await until('its end', () => client.closed || bytes > 20_000_000)
    assert.equal(bytes > 20_000_000, isWhole)
  })
}

for (const [what, stop, most] of [
  ['pause(), which is documented, lets the parser finish what was read', (socket: Socket) => { socket.pause() },
    Infinity],
  ['stopParser stops at once', stopParser, 1]
] as const) {
  test(what, async t => {
    let requests = 0
    const server = createServer(({ socket }) => { if (++requests === 1) stop(socket) })
    const client = await served(t, server)
    client.write(GET.repeat(500))
    await until('a request', () => requests > 0)
    await pause(100)
    assert.ok(most === 1 ? requests === 1 : requests > 100, `${requests} requests`)
  })
}

test('node:http keeps a connection by version and Connection field, and says so; endsConnection ends it', async t => {
  for (const [version, fields, isEnded, keeps] of [
    ['1.1', '', false, true], ['1.1', 'Connection: close\r\n', false, false], ['1.0', '', false, false],
    ['1.0', 'Connection: keep-alive\r\n', false, true], ['1.1', '', true, false]
  ] as const) {
    let found: boolean | undefined
    const server = createServer((_request, response) => {
      if (isEnded) endsConnection(response)
      found = keepsAlive(response)
      response.writeHead(200, ['Content-Length', '1']).end('x')
    })
    const client = await served(t, server)
    client.write(`GET / HTTP/${version}\r\nHost: a\r\n${fields}\r\n`)
    const [answer] = await once(client, 'data') as [Buffer]
    assert.equal(found, keeps)
    assert.match(answer.toString(), keeps ? /^Connection: keep-alive\r$/m : /^Connection: close\r$/m)
  }
})

test('an answer\'s Keep-Alive replaces that of node:http, and does not decide if the connection is kept', async t => {
  const server = createServer((_request, response) => {
    response.writeHead(200, ['Content-Length', '1', 'Keep-Alive', 'timeout=7']).end('x')
  })
  server.keepAliveTimeout = 0
  const client = await served(t, server)
  client.write(GET)
  const [answer] = await once(client, 'data') as [Buffer]
  assert.deepEqual(answer.toString().match(/^(Keep-Alive|Connection): .*$/gm),
    ['Keep-Alive: timeout=7', 'Connection: keep-alive'])
})

test('behind its last answer, node:http calls the last step of the socket, once', async t => {
  let steps = 0
  const server = createServer(({ socket }, response) => {
    replaceLastStep(socket, () => { steps++; setTimeout(() => socket.end(), 20) })
    response.writeHead(200, ['Connection', 'close', 'Content-Length', '1']).end('x')
  })
  const client = await served(t, server)
  client.write(GET)
  assert.match(await textOf(client), /x$/)
  assert.equal(steps, 1)
})

test('node:http gives a request its body by push, which may drop it: its stream then sees the end alone', async t => {
  for (const isDiscarded of [false, true]) {
    let pieces = 0
    let isEnded = false
    const server = createServer({ IncomingMessage: ListenerRequest }, request => {
      assert.ok(request instanceof IncomingMessage)
      request.isDiscarded = isDiscarded
      request.on('data', () => pieces++).on('end', () => { isEnded = true })
    })
    const client = await served(t, server)
    client.write(`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(100)}0\r\n\r\n`)
    await until('the end', () => isEnded)
    assert.equal(pieces, isDiscarded ? 0 : 100)
  }
})
