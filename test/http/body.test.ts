/** A body is handed on once, whatever follows what ended it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { readBody } from '../../src/http/body.ts'
import { listen, type IncomingMessage } from '../../src/http/listener.ts'
import type { Reply } from '../../src/http/reply.ts'
import { until } from '../support/program.ts'
import { atEnd } from '../support/service.ts'

const MAX_BYTES = 100_000

for (const [what, sent, resets, expected] of [
  ['whole', ['x'.repeat(50_000), 'y'.repeat(50_000)], false, 'x'.repeat(50_000) + 'y'.repeat(50_000)],
  ['too large, and goes on', ['x'.repeat(100_000), 'y', 'z'.repeat(50_000)], false, '413'],
  ['cut off', ['x'.repeat(10)], true, '499']
] as const) {
  test(`a body that is ${what} is handed on once, and leaves no listener on its connection`, async t => {
    const found: string[] = []
    let request: IncomingMessage | undefined
    const read = (asked: IncomingMessage): Promise<unknown> => readBody(asked, MAX_BYTES)
      .then(body => found.push(body.toString()), (reply: Reply) => found.push(String(reply.status)))
    const listener = await listen({ host: '127.0.0.1', port: 0 }, (asked, response) => {
      request = asked
      const listeners = (): number[] => ['close', 'end'].map(name => asked.socket.listenerCount(name))
      const before = listeners()
      void read(asked).then(() => assert.ok(listeners().every((count, i) => count <= before[i]!)))
      asked.on('close', () => { response.end() })
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
    await read(request!)
    assert.deepEqual(found, [expected, '499'], 'of a request that is over there is none')
  })
}
