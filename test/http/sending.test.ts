/** What answers hold that are not read: bounded in time and, beside the newest of them, in bytes. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { listen } from '../../src/http/listener.ts'
import { respond } from '../../src/http/sending.ts'
import { ANSWER_BYTES_PER_SECOND, ANSWER_TIMEOUT_MS, MAX_UNSENT_BYTES } from '../../src/limits.ts'
import { leavesNothing } from '../support/leaks.ts'
import { message } from '../support/raw.ts'
import { atEnd, freshFolder, within, type Scope } from '../support/service.ts'

const MIB = 1024 * 1024

const listOf = (mebibytes: number): Buffer => Buffer.alloc(mebibytes * MIB)

/** A server that gives each body in its turn; opens a client that reads nothing, and gives the server's end of it. */
async function unread(t: Scope): Promise<(body: string | Buffer) => Promise<Socket>> {
  const bodies: (string | Buffer)[] = []
  let asked: (socket: Socket) => void = () => {}
  const listener = await listen({ host: '127.0.0.1', port: 0 }, (request, response) => {
    respond(response, { status: 200, body: bodies.shift()! }, [], false)
    asked(request.socket)
  })
  atEnd(t, () => listener.close(0))
  return async body => {
    bodies.push(body)
    const client = connect(listener.port, '127.0.0.1').on('error', () => {}).pause()
    t.after(() => client.destroy())
    await once(client, 'connect')
    return new Promise(resolve => {
      asked = resolve
      client.write(message('GET', '/'))
    })
  }
}

test('an answer of which too little is taken is cut, at the next look, and so is a later one', async t => {
  // Node's own mock goes on with an interval that ends itself.
  const looks = new Map<object, () => void>()
  t.mock.method(globalThis, 'setInterval', (look: () => void) => {
    const timer = { unref: () => timer }
    looks.set(timer, look)
    return timer
  })
  t.mock.method(globalThis, 'clearInterval', (timer: object) => looks.delete(timer))
  const now = performance.now.bind(performance)
  let laterMs = 0
  t.mock.method(performance, 'now', () => now() + laterMs)
  const read = await unread(t)
  for (let n = 0; n < 2; n++) {
    const sinceMs = laterMs
    const socket = await read(listOf(50))
    const look = (ms: number): boolean => {
      laterMs = sinceMs + ms
      for (const each of [...looks.values()]) each()
      return socket.destroyed
    }
    assert.equal(look(ANSWER_TIMEOUT_MS - 1_000), false)
    const takenMs = 8 * MIB / ANSWER_BYTES_PER_SECOND * 1000 // what the system's buffers have of it gives it a while
    assert.equal(look(ANSWER_TIMEOUT_MS + takenMs), true)
    await once(socket, 'close')
  }
})

test('of an answer whose reader has left nothing is looked at any more', async t => {
  const folder = freshFolder(t)
  await leavesNothing({ folder }, 'a reader left', () => within(async scope => {
    const read = await unread(scope)
    const socket = await read(listOf(50))
    socket.destroy()
    await once(socket, 'close')
  }))
})

const each = 20
/** A list of another version each time, and what a change of a long entry answers. */
const OTHERS: { readonly [what: string]: () => string | Buffer } = {
  lists: () => listOf(each), texts: () => 'x'.repeat(each * MIB)
}
for (const [what, bodyOf] of Object.entries(OTHERS)) {
  test(`of ${what} that nobody reads, those that began first are cut, and no more than has to be`, async t => {
    const read = await unread(t)
    const sockets: Socket[] = []
    for (let n = 0; n < 7; n++) sockets.push(await read(bodyOf()))
    const kept = Math.floor(MAX_UNSENT_BYTES / MIB / each) + 1
    assert.deepEqual(sockets.map(({ destroyed }) => destroyed), sockets.map((_, n) => n < sockets.length - kept))
  })
}

test('readers of one list hold it once', async t => {
  const read = await unread(t)
  const shared = listOf(50)
  const sockets: Socket[] = []
  for (let n = 0; n < 10; n++) sockets.push(await read(n === 5 ? listOf(1) : shared))
  assert.deepEqual(sockets.filter(({ destroyed }) => destroyed), [])
})
