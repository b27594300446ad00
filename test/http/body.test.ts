/** A body is handed on once, whatever follows what ended it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { IncomingMessage } from 'node:http'
import { connect, Socket } from 'node:net'
import { test } from 'node:test'
import { MAX_BODIES_BYTES } from '../../src/limits.ts'
import { readBody } from '../../src/http/body.ts'
import { listen } from '../../src/http/listener.ts'
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

test('whatever becomes of a body, its room is given back: more come in turn than may be held at once', async t => {
  const body = 'x'.repeat(1024 * 1024)
  let taken = (): void => {}
  const listener = await listen({ host: '127.0.0.1', port: 0 }, (asked, response) => {
    let bytes = 0
    asked.on('data', piece => { if ((bytes += piece.length) === body.length - 1) taken() })
    void readBody(asked, body.length).then(({ length }) => response.end(`${length}`), ({ status }: Reply) =>
      response.end(`${status}`))
  })
  atEnd(t, () => listener.close(0))
  const post = async (sent: string): Promise<string> =>
    (await fetch(`http://127.0.0.1:${listener.port}`, { method: 'POST', body: sent })).text()
  const leave = async (): Promise<void> => {
    const isTaken = new Promise<void>(resolve => { taken = resolve })
    const socket = connect(listener.port, '127.0.0.1').on('error', () => {})
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(1)}`)
    await isTaken
    socket.resetAndDestroy()
  }
  const times = Math.ceil(MAX_BODIES_BYTES / body.length) + 1
  for (let n = 0; n < times; n++) await leave()
  for (let n = 0; n < times; n++) assert.equal(await post(body), `${body.length}`)
  await until('the clients that left to be forgotten', () => listener.connections() < 10)
})

test('however small the oldest bodies are, as many give way as it takes for the rest to fit', async () => {
  const held = new Map<IncomingMessage, number>()
  const begin = async (bytes: number): Promise<void> => {
    const request = new IncomingMessage(new Socket())
    held.set(request, bytes)
    void readBody(request, MAX_BYTES).catch(() => held.delete(request))
    request.push(Buffer.alloc(bytes))
  }
  const large = 64 * 1024
  for (let n = 0; n < 2_000; n++) await begin(1)
  for (let n = 0; n < 2_000; n++) await begin(large)
  await new Promise(resolve => setImmediate(resolve))
  const bytes = [...held.values()].reduce((sum, one) => sum + one, 0)
  assert.ok(bytes <= MAX_BODIES_BYTES && bytes > MAX_BODIES_BYTES - 2 * large, `${bytes} bytes are held`)
  for (const request of held.keys()) request.destroy()
})
