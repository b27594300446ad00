/**
 * What an embedder's middleware may do to a request before or while it is handled, times the kinds of requests: each
 * is answered or its connection closed, nothing is thrown at the host, and nothing stays in flight.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { openService } from '../../src/embedding/embedded-service.ts'
import { SHUTDOWN_TIMEOUT_MS } from '../../src/limits.ts'
import { message } from '../support/raw.ts'

/** An act of middleware, before `handle` is called; what it returns is called directly after. */
type Act = (request: IncomingMessage, response: ServerResponse) => void | (() => void)

const wrapped = (name: 'writeHead' | 'write' | 'end', by: (call: () => unknown) => unknown): Act =>
  (_request, response) => {
  const call = response[name].bind(response) as (...given: unknown[]) => unknown
  Object.assign(response, { [name]: (...given: unknown[]) => by(() => call(...given)) })
}
const broken = (): never => { throw new Error('broken middleware') }
const turns: { readonly [when: string]: (act: () => void) => void } = {
  'at once': act => act(), 'a turn later': setImmediate, 'later': act => setTimeout(act, 20)
}
const answered = (response: ServerResponse): void => {
  if (!response.headersSent) response.writeHead(503, { 'Content-Length': 300_000 }).end('x'.repeat(300_000))
}
const ENDS: { readonly [how: string]: (request: IncomingMessage, response: ServerResponse) => void } = {
  'answers it itself': (_request, response) => answered(response),
  'begins an answer and leaves it': (_request, response) => { if (!response.headersSent) response.write('begun') },
  'destroys the answer': (_request, response) => { response.destroy() },
  'destroys the request': request => { request.destroy() },
  'destroys the connection': request => { request.socket.destroy() },
  'ends the connection': request => { request.socket.end() }
}

const ACTS: { readonly [what: string]: Act } = {
  'does nothing': () => {},
  'has text come': request => { request.setEncoding('utf8') },
  'pauses the request': request => { request.pause() },
  'lets the body pass by': request => { request.resume() },
  'listens to the body as well': request => { request.on('data', () => {}) },
  'parses the body, and says undefined': request => { Object.assign(request, { body: undefined }) },
  'has set fields': (_request, response) => { response.setHeader('Content-Length', '7').setHeader('X-By', 'host') },
  'has set a status': (_request, response) => { response.statusCode = 404 },
  'ends each connection': (_request, response) => { response.shouldKeepAlive = false },
  'passes heads on': wrapped('writeHead', call => call()),
  'throws at a head': wrapped('writeHead', broken),
  'throws at a piece': wrapped('write', broken),
  'throws at the end': wrapped('end', broken),
  'throws once the end was passed on': wrapped('end', call => { call(); broken() }),
  ...Object.fromEntries(Object.entries(ENDS).flatMap(([how, act]) => Object.entries(turns).map(([when, take]) =>
    [`${how} ${when}`, ((request, response) => () => take(() => act(request, response))) satisfies Act])))
}

const ENTRY = { password: 'x'.repeat(20_000), sistema: 's', usuario: 'u' }
const BODY = JSON.stringify(ENTRY)
const REQUESTS: { readonly [what: string]: readonly Buffer[] } = {
  'a get': [message('GET', '/api/getPassword/1')],
  'a long list': [message('GET', '/api/listPassword')],
  'a create': [message('POST', '/api/createPassword', BODY)],
  'a create in two pieces': [message('POST', '/api/createPassword', BODY).subarray(0, -9), Buffer.from(BODY.slice(-9))],
  'a create that is refused': [message('POST', '/api/createPassword', '{"password":')],
  'a create whose body breaks off': [message('POST', '/api/createPassword', BODY).subarray(0, -9)],
  'an unknown path': [message('GET', '/api/nope')]
}

test('whatever middleware does, a request is answered or its connection closed; nothing is thrown or left', async t => {
  const thrown: unknown[] = []
  const onThrown = (error: Error): void => { if (error.message !== 'broken middleware') thrown.push(error) }
  process.on('uncaughtException', onThrown).on('unhandledRejection', onThrown)
  t.after(() => { process.off('uncaughtException', onThrown).off('unhandledRejection', onThrown) })
  for (const [act, take] of Object.entries(ACTS)) {
    const service = await openService({ journal: 'memory', rateLimit: 0, page: false })
    for (let n = 0; n < 20; n++) await service.createPassword(ENTRY)
    const server = createServer((request, response) => {
      const after = take(request, response)
      try { service.handle(request, response) } catch (error) { thrown.push([act, error]) }
      after?.()
    }).listen(0, '127.0.0.1')
    t.after(async () => {
      server.close().closeAllConnections()
      await service.close()
    })
    await once(server, 'listening')
    await Promise.all(Object.entries(REQUESTS).map(async ([what, pieces]) => {
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
      // Also by a reset, as where the host destroys it while something still comes.
      const closed = new Promise(resolve => { socket.on('close', () => resolve(true)) })
      let bytes = 0
      socket.on('data', piece => { bytes += piece.length })
      for (const piece of pieces) {
        socket.write(piece)
        await new Promise(resolve => setTimeout(resolve, 40))
      }
      socket.end() // a client that has sent all it wants
      const isOver = await Promise.race([closed, new Promise(resolve => setTimeout(resolve, 10_000, false).unref())])
      assert.ok(isOver, `${what} of a host that ${act}: ${bytes} bytes came, and the connection is open`)
    }))
    const beganMs = performance.now()
    await service.close()
    assert.ok(performance.now() - beganMs < SHUTDOWN_TIMEOUT_MS / 2, `a host that ${act}: something stays in flight`)
    server.close()
  }
  assert.deepEqual(thrown, [])
})
