/** A body is handed on once, whatever follows what ended it. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { readBody, type BodyRead } from '../../src/http/body.ts'
import { listen, type IncomingMessage } from '../../src/http/listener.ts'
import { until } from '../support/program.ts'
import { atEnd } from '../support/service.ts'

const MAX_BYTES = 100_000

for (const [what, sent, resets, expected] of [
  ['whole', ['x'.repeat(50_000), 'y'.repeat(50_000)], false, 'x'.repeat(50_000) + 'y'.repeat(50_000)],
  ['too large, and goes on', ['x'.repeat(100_000), 'y', 'z'.repeat(50_000)], false, 'too-large'],
  ['cut off', ['x'.repeat(10)], true, 'gone']
] as const) {
  test(`a body that is ${what} is handed on once, and leaves no listener on its connection`, async t => {
    const found: string[] = []
    let request: IncomingMessage | undefined
    const handed = (body: BodyRead): void => { found.push(Buffer.isBuffer(body) ? body.toString() : String(body)) }
    const listener = await listen({ host: '127.0.0.1', port: 0 }, (asked, response, _target, _peer, done) => {
      request = asked
      const listeners = (): number[] => ['close', 'end'].map(name => asked.socket.listenerCount(name))
      const before = listeners()
      readBody(asked, MAX_BYTES, body => {
        handed(body)
        assert.deepEqual(listeners(), before)
      })
      asked.on('close', () => { response.end(); done() })
    })
    atEnd(t, () => listener.close(0))
    const socket = connect(listener.port, '127.0.0.1')
    socket.on('error', () => {}).resume()
    const closed = once(socket, 'close')
    const bytes = resets ? MAX_BYTES : sent.join('').length
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${bytes}\r\n\r\n`)
    for (const piece of sent) {
      socket.write(piece)
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    if (resets) {
      await until('the request', () => request !== undefined)
      socket.resetAndDestroy()
    }
    await closed
    await until('its end', () => request!.closed)
    assert.deepEqual(found, [expected])
    readBody(request!, MAX_BYTES, handed)
    assert.deepEqual(found, [expected, 'gone'], 'of a request that is over there is none')
  })
}
