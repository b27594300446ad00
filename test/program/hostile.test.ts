/** Clients that mean harm, and one that does not: it is answered meanwhile, within a bounded time. */
import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { describe, test, type TestContext } from 'node:test'
import { join } from 'node:path'
import { requestLocal } from '../../src/parts/operator/local-client.ts'
import {
  HEADERS_TIMEOUT_MS, MAX_CONNECTIONS_PER_CLIENT, MAX_HASHES, MAX_HASH_QUEUE_PER_CLIENT,
  MAX_RATE_LIMIT_CLIENTS, TIMEOUT_CHECK_MS
} from '../../src/limits.ts'
import { memoryMiB } from '../support/outside.ts'
import { socketsIn, startProgram, type Program } from '../support/program.ts'
import { ask, chunk, chunked, connectRaw, exchange, message } from '../support/raw.ts'
import { send } from '../support/service.ts'

/** In what time everybody else is answered, whatever goes on; mostly 0.3 s, but other tests run on the same cores. */
const SERVED_MS = 2_500
const ENTRY = JSON.stringify({ password: 'p', sistema: 's', usuario: 'u' })
const CREATE = message('POST', '/api/createPassword', ENTRY)
const GET = message('GET', '/api/getPassword/1')
const DONE_MS = 40_000
/** The address of the client that means no harm. */
const GOOD = '127.0.0.9'

/** Does something while a client of good will reads and writes; holds that each of its requests is answered in time. */
async function whileServed(
  t: TestContext, { url }: Program, act: () => Promise<void>, fields: readonly string[] = [], writes: boolean = true
): Promise<void> {
  const client = await connectRaw(t, url, { localAddress: GOOD })
  const changes = ['v', 'u'].map(usuario =>
    message('POST', '/api/updatePassword/1', JSON.stringify({ usuario }), fields))
  const requests = [message('GET', '/api/getPassword/1', undefined, fields), ...writes ? changes : []]
  let isOver = false
  let slowestMs = 0
  let count = 0
  const serve = async (): Promise<void> => {
    for (; !isOver || count < 3; count++) {
      const started = performance.now()
      await client.send(requests[count % requests.length]!)
      const { status, text } = await client.answer()
      slowestMs = Math.max(slowestMs, performance.now() - started)
      assert.equal(status, 200, text)
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  }
  const served = serve()
  try {
    await Promise.all([act().finally(() => { isOver = true }), served])
  } finally {
    isOver = true
    client.destroy()
  }
  t.diagnostic(`${count} requests of another client, the slowest ${Math.round(slowestMs)} ms`)
  assert.ok(slowestMs < SERVED_MS, `another client waited ${slowestMs} ms`)
}

/** A program with one entry. */
async function started(t: TestContext, flags: Record<string, string> = {}): Promise<Program> {
  const program = await startProgram(t, { flags })
  assert.equal((await send(program.url, 'POST', '/api/createPassword', JSON.parse(ENTRY))).status, 200)
  return program
}

/** Many connections from one address; those that were closed at once are among them. */
async function openMany(t: TestContext, url: string, count: number, localAddress: string): Promise<Socket[]> {
  const port = Number(new URL(url).port)
  const sockets: Socket[] = []
  t.after(() => { for (const socket of sockets) socket.destroy() })
  while (sockets.length < count) {
    const batch = Array.from({ length: Math.min(256, count - sockets.length) }, () => {
      const socket = connect({ host: '127.0.0.1', port, localAddress })
      socket.on('error', () => {})
      return socket
    })
    await Promise.all(batch.map(socket => once(socket, 'connect')))
    sockets.push(...batch)
  }
  return sockets
}

/** Resolves once it holds; rejects when it takes far too long. */
async function until(what: string, holds: () => boolean): Promise<void> {
  const endMs = performance.now() + DONE_MS
  while (!holds()) {
    if (performance.now() > endMs) throw new Error(`waited for ${what}`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

/** Descriptors that this process may have open. */
function maxDescriptors(): number {
  return Number(/^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1])
}

/** The body that an entry of this many bytes has. */
function entryOf(bytes: number): string {
  return JSON.stringify({ password: 'x'.repeat(bytes), sistema: 's', usuario: 'u' })
}

describe('clients that mean harm', { concurrency: 2 }, () => {
  test('hundreds of half-sent heads and bodies are cut in time, and nothing comes of them', async t => {
    const program = await started(t)
    await whileServed(t, program, async () => {
      const startedMs = performance.now()
      const heads = await openMany(t, program.url, 400, '127.0.0.2')
      const bodies = await openMany(t, program.url, 400, '127.0.0.3')
      let closed = 0
      let text = ''
      for (const [i, socket] of heads.entries()) {
        socket.write(CREATE.subarray(0, i % (CREATE.indexOf('\r\n\r\n') + 3)))
        socket.on('data', bytes => { text += bytes.toString('latin1') }).on('close', () => { closed++ })
      }
      for (const [i, socket] of bodies.entries()) socket.write(CREATE.subarray(0, CREATE.length - 1 - i % 20))
      await until('the half-sent heads to be cut', () => closed === heads.length)
      assert.ok(performance.now() - startedMs < HEADERS_TIMEOUT_MS + 2 * TIMEOUT_CHECK_MS)
      assert.match(text, /^HTTP\/1\.1 408 Request Timeout\r\n[^]*\{"message":"Request Timeout","status":408\}/)
      assert.equal(text.match(/HTTP\/1\.1 408 /g)?.length, text.match(/HTTP\/1\.1 /g)?.length)
    })
    assert.equal((await send(program.url, 'GET', '/api/listPassword')).json.length, 1)
  })

  test('aborted bodies leave nothing in memory', async t => {
    const program = await started(t)
    await whileServed(t, program, async () => {
      for (let round = 0; round < 4; round++) {
        const sockets = await openMany(t, program.url, 100, '127.0.0.2')
        await Promise.all(sockets.map((socket, i) => new Promise<void>(resolve => {
          socket.on('close', () => resolve()).resume()
          const part = i % 2 === 0 ? CREATE.subarray(0, CREATE.length - 1 - i % 40)
            : chunked('POST', '/api/createPassword', [ENTRY.slice(0, i % ENTRY.length || 1)])
          const leave = [() => socket.destroy(), () => socket.end(), () => socket.resetAndDestroy()]
          socket.write(part, leave[i % 3])
        })))
      }
    })
    assert.equal((await send(program.url, 'GET', '/api/listPassword')).json.length, 1)
  })

  test('readers that never read a list of 10 MB share its bytes, and leave nothing in memory', async t => {
    const program = await started(t)
    const client = await connectRaw(t, program.url)
    const create = message('POST', '/api/createPassword', entryOf(50_000))
    for (let n = 0; n < 200; n++) { await client.send(create); assert.equal((await client.answer()).status, 200) }
    const asks = message('GET', '/api/listPassword')
    for (let n = 0; n < 3; n++) assert.ok((await ask(t, program.url, asks)).body.length > 1e7)
    const before = memoryMiB(program.pid)
    await whileServed(t, program, async () => {
      const sockets = await openMany(t, program.url, 60, '127.0.0.2')
      for (const socket of sockets) socket.pause().write(message('GET', '/api/listPassword'))
      await until('all lists to be on their way', () => sockets.every(socket => socket.readableLength > 0))
      const during = memoryMiB(program.pid)
      t.diagnostic(`${before.toFixed()} MiB before, ${during.toFixed()} with 60 lists of 10 MB unread`)
      assert.ok(during - before < 100, `${during - before} MiB more`)
      for (const socket of sockets) socket.destroy()
    }, [], false)
    await ask(t, program.url, GET)
    await until('the memory to come back', () => memoryMiB(program.pid) - before < 60)
  })

  test('readers that never read a list which changes in between do not keep a copy each', async t => {
    const program = await started(t)
    const client = await connectRaw(t, program.url)
    const create = message('POST', '/api/createPassword', entryOf(50_000))
    for (let n = 0; n < 200; n++) { await client.send(create); assert.equal((await client.answer()).status, 200) }
    const before = memoryMiB(program.pid)
    const sockets = await openMany(t, program.url, 40, '127.0.0.2')
    for (const socket of sockets) {
      socket.pause().write(message('GET', '/api/listPassword'))
      await until('the list to be on its way', () => socket.readableLength > 0)
      await client.send(message('POST', '/api/updatePassword/7', `{"usuario":"${socket.localPort}"}`))
      assert.equal((await client.answer()).status, 200)
    }
    const during = memoryMiB(program.pid)
    t.diagnostic(`${before.toFixed()} MiB before, ${during.toFixed()} with 40 lists of 10 MB unread, each another one`)
    for (const socket of sockets) socket.destroy()
    assert.ok(during - before < 200, `${during - before} MiB more`)
  })

  test('`Expect` in its variants is answered once, and in order', async t => {
    const program = await started(t)
    const big = [`Content-Length: ${2 ** 40}`, 'Content-Type: application/json']
    const cases: readonly (readonly [string, Buffer, readonly number[]])[] = [
      ['100-continue', message('POST', '/api/createPassword', ENTRY, ['Expect: 100-continue']), [100, 200]],
      ['100-Continue', message('POST', '/api/createPassword', ENTRY, ['Expect: 100-Continue']), [100, 200]],
      ['another one', message('POST', '/api/createPassword', ENTRY, ['Expect: 200-ok']), [417]],
      ['empty', message('POST', '/api/createPassword', ENTRY, ['Expect: ']), [417]],
      ['two', message('POST', '/api/createPassword', ENTRY, ['Expect: 100-continue', 'Expect: 100-continue']), [400]],
      ['too large', message('POST', '/api/createPassword', undefined, ['Expect: 100-continue', ...big]), [413]],
      ['unknown id', message('POST', '/api/updatePassword/99', ENTRY, ['Expect: 100-continue']), [404]],
      ['without a body', message('GET', '/api/getPassword/1', undefined, ['Expect: 100-continue']), [200]]
    ]
    await whileServed(t, program, async () => {
      for (const [name, bytes, statuses] of cases) {
        for (let n = 0; n < 5; n++) {
          const client = await connectRaw(t, program.url)
          await client.send(bytes)
          const answers = await client.answers(statuses.length)
          assert.deepEqual(answers.map(({ status }) => status), statuses, name)
          client.destroy()
        }
      }
      const waiting = await openMany(t, program.url, 300, '127.0.0.2')
      const asks = message('POST', '/api/createPassword', ENTRY, ['Expect: 100-continue'])
      const head = asks.subarray(0, asks.indexOf('\r\n\r\n') + 4)
      for (const socket of waiting) socket.write(head)
      const firsts = await Promise.all(waiting.map(socket => once(socket, 'data')))
      for (const [first] of firsts) assert.match(String(first), /^HTTP\/1\.1 100 /)
    })
    assert.equal((await send(program.url, 'GET', '/api/listPassword')).json.length, 11)
  })

  test('odd chunks: taken where RFC 9112 §7.1 has them, otherwise refused with 4xx or cut', async t => {
    const program = await started(t)
    const head = chunked('POST', '/api/createPassword', [])
    const start = (rest: string): Buffer => Buffer.concat([head, Buffer.from(rest)])
    const size = ENTRY.length.toString(16)
    const last = '0\r\n\r\n'
    const bad = (rest: string): readonly [Buffer, number] => [start(rest), 400]
    const cases: { readonly [name: string]: readonly [Buffer, number] } = {
      'a byte each': [start([...ENTRY].map(byte => chunk(byte).toString()).join('') + last), 200],
      extensions: [start(`${size};a=b;c="d"\r\n${ENTRY}\r\n0;e\r\n\r\n`), 200],
      'an extension each': [start([...ENTRY].map(byte => `1;x\r\n${byte}\r\n`).join('') + last), 200],
      trailers: [start(`${size}\r\n${ENTRY}\r\n0\r\nX-Trailer: v\r\n\r\n`), 200],
      'a trailer that frames': bad(`${size}\r\n${ENTRY}\r\n0\r\nContent-Length: 5\r\n\r\n`),
      'a padded size': [start(`${size.padStart(60, '0')}\r\n${ENTRY}\r\n${last}`), 200],
      'capital digits': [start(`${size.toUpperCase()}\r\n${ENTRY}\r\n${last}`), 200],
      'a thousand trailers': [start(`${size}\r\n${ENTRY}\r\n0\r\n${'a:b\r\n'.repeat(1_000)}\r\n`), 200],
      'too many trailers': [start(`${size}\r\n${ENTRY}\r\n0\r\n${'a:b\r\n'.repeat(20_000)}\r\n`), 431],
      'a long extension': [start(`${size};${'x'.repeat(40_000)}\r\n${ENTRY}\r\n${last}`), 413],
      'a size beyond all numbers': bad(`${'f'.repeat(17)}\r\n${ENTRY}`),
      'a size of 4,000 digits': bad(`${'1'.repeat(4_000)}\r\n${ENTRY}`),
      'a prefix': bad(`0x${size}\r\n${ENTRY}\r\n${last}`),
      'a sign': bad(`-1\r\n${ENTRY}\r\n${last}`),
      'no size': bad(`\r\n${ENTRY}\r\n${last}`),
      'a bare LF': bad(`${size}\n${ENTRY}\n0\n\n`),
      'a longer chunk than said': bad(`${size}\r\n${ENTRY}xx\r\n${last}`),
      'more than a body may have': [start(`${(70_000).toString(16)}\r\n${'x'.repeat(70_000)}\r\n${last}`), 413]
    }
    let created = 1
    await whileServed(t, program, async () => {
      for (const [name, [bytes, expected]] of Object.entries(cases)) {
        const client = await connectRaw(t, program.url)
        await client.send(bytes)
        const { status } = await client.answer().catch((cause: Error) => { throw new Error(name, { cause }) })
        assert.equal(status, expected, name)
        if (status === 200) created++
        client.destroy()
      }
      // A size that never comes is a body that is never sent: nothing is kept for it.
      const before = memoryMiB(program.pid)
      const waiting = await openMany(t, program.url, 300, '127.0.0.2')
      for (const socket of waiting) socket.write(start(`7fffffffffff\r\n${'{'.repeat(100)}`))
      await ask(t, program.url, GET)
      assert.ok(memoryMiB(program.pid) - before < 60)
    })
    assert.equal((await send(program.url, 'GET', '/api/listPassword')).json.length, created)
  })

  test('§8 hundreds of pipelined requests are answered in their order, and each counts', async t => {
    const program = await started(t, { 'rate-limit': '60' })
    const client = await connectRaw(t, program.url, { localAddress: '127.0.0.2' })
    await client.send(...Array.from({ length: 800 }, (_, i) => message('GET', `/api/getPassword/${1 + i % 2}`)))
    const answers = await client.answers(800)
    for (const [i, { status, json }] of answers.entries()) {
      if (i >= 60) assert.deepEqual([status, json], [429, { message: 'Too Many Requests' }])
      else assert.equal(status, i % 2 === 0 ? 200 : 404)
    }
    assert.equal((await ask(t, program.url, GET, { localAddress: GOOD })).status, 200)
  })

  test('requests that queue after a change are answered, or the connection is cut', async t => {
    const program = await started(t)
    await whileServed(t, program, async () => {
      const client = await connectRaw(t, program.url)
      await client.send(CREATE, ...Array.from({ length: 500 }, () => GET))
      for (const { status } of await client.answers(1 + 500)) assert.equal(status, 200)
      const before = memoryMiB(program.pid)
      const sockets = await openMany(t, program.url, 10, '127.0.0.2')
      const many = Buffer.concat([CREATE, ...Array.from({ length: 3_000 }, () => GET)])
      let over = 0
      for (const socket of sockets) socket.on('close', () => { over++ }).resume().end(many)
      await until('the end of all', () => over === sockets.length)
      assert.ok(memoryMiB(program.pid) - before < 200, `${memoryMiB(program.pid) - before} MiB more`)
    })
  })

  test('headers by the thousand are read, and too many are refused', async t => {
    const program = await started(t)
    const fields = (count: number): string[] => Array.from({ length: count }, () => 'a:b')
    await whileServed(t, program, async () => {
      for (let round = 0; round < 20; round++) {
        const many = await ask(t, program.url, message('GET', '/api/getPassword/1', undefined, fields(3_000)))
        assert.equal(many.status, 200)
        const [refused, ...more] = await exchange(t, program.url,
          message('GET', '/api/getPassword/1', undefined, fields(20_000)))
        assert.equal(refused?.status, 431)
        assert.equal(more.length, 0)
      }
    })
  })

  test('connections by the thousand: an address has its share, and another one is served', async t => {
    const program = await started(t)
    const before = memoryMiB(program.pid)
    const total = Math.min(10_000, maxDescriptors() - 500)
    await whileServed(t, program, async () => {
      const perClient = Math.min(MAX_CONNECTIONS_PER_CLIENT, total - 100)
      const first = await openMany(t, program.url, perClient + 100, '127.0.0.2')
      let closed = 0
      for (const socket of first) socket.on('close', () => { closed++ }).resume()
      if (perClient === MAX_CONNECTIONS_PER_CLIENT) {
        await until('those above the share to be closed', () => first.filter(one => one.closed).length >= 100)
      }
      let open = first.filter(socket => !socket.closed).length
      assert.ok(open <= MAX_CONNECTIONS_PER_CLIENT)
      for (let n = 3; open < total; n++) {
        const more = await openMany(t, program.url, Math.min(2_000, total - open), `127.0.0.${n}`)
        open += more.length
      }
      const stranger = await ask(t, program.url, GET, { localAddress: '127.0.0.10' })
      assert.equal(stranger.status, 200)
      t.diagnostic(`${open} connections, ${(memoryMiB(program.pid) - before).toFixed()} MiB more`)
      assert.ok(memoryMiB(program.pid) - before < 200)
      for (const socket of first) socket.destroy()
      const again = await ask(t, program.url, GET, { localAddress: '127.0.0.2' })
      assert.equal(again.status, 200, 'an address that leaves has its share again')
    })
  })

  test('100,000 simulated addresses: the table is bounded, and so is the memory', async t => {
    const program = await started(t, { 'rate-limit': '1000000', 'trust-proxy': '127.0.0.1' })
    const before = memoryMiB(program.pid)
    const connections = 8
    /** Sends a request from each of that many addresses, in turns of a hundred on each connection. */
    const flood = async (from: number, count: number): Promise<void> => {
      const sockets = await openMany(t, program.url, connections, '127.0.0.1')
      await Promise.all(sockets.map(async (socket, c) => {
        let answers = 0
        let wake = (): void => {}
        socket.setEncoding('latin1').on('data', (text: string) => {
          answers += text.split('"status":404').length - 1
          wake()
        }).on('close', () => wake())
        let asked = 0
        for (let n = from + c; n < from + count;) {
          const requests: string[] = []
          for (; requests.length < 100 && n < from + count; n += connections) {
            const address = `10.${n >> 16 & 255}.${n >> 8 & 255}.${n & 255}`
            requests.push(`GET /api/x HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-For: ${address}\r\n\r\n`)
          }
          socket.write(requests.join(''))
          asked += requests.length
          while (answers < asked && !socket.closed) await new Promise<void>(resolve => { wake = resolve })
          assert.equal(answers, asked)
        }
        socket.destroy()
      }))
    }
    const fields = ['X-Forwarded-For: 192.0.2.1']
    await whileServed(t, program, () => flood(0, 2 * MAX_RATE_LIMIT_CLIENTS), fields)
    const full = memoryMiB(program.pid)
    t.diagnostic(`${before.toFixed()} MiB before, ${full.toFixed()} with the table full`)
    await whileServed(t, program, () => flood(2 * MAX_RATE_LIMIT_CLIENTS, 4 * MAX_RATE_LIMIT_CLIENTS), fields)
    const after = memoryMiB(program.pid)
    t.diagnostic(`${after.toFixed()} MiB after three times as many`)
    assert.ok(after - before < 300, `${after - before} MiB more`)
  })

  test('§5 a flood of logins is turned away with 503 and Retry-After, and others are served', async t => {
    const program = await startProgram(t, { flags: { auth: 'bearer', 'login-limit': '0' } })
    const operator = join(program.folder, socketsIn(program.folder)[0]!)
    const user = { email: 'ana@example.org', password: 'correct horse battery' }
    assert.equal((await requestLocal(operator, 'POST', '/operator/users/add', user)).status, 200)
    const issued = await requestLocal(operator, 'POST', '/operator/tokens/issue', { email: user.email })
    const fields = [`Authorization: Bearer ${(issued.body as { token: string }).token}`]
    assert.equal((await ask(t, program.url, message('POST', '/api/createPassword', ENTRY, fields))).status, 200)
    const before = memoryMiB(program.pid)
    await whileServed(t, program, async () => {
      const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => send(program.url, 'POST', '/api/login', {
        email: n % 2 === 0 ? user.email : `${n}@example.org`, password: `wrong ${n}`
      })))
      const busy = answers.filter(({ status }) => status === 503)
      const denied = answers.filter(({ status }) => status === 401)
      t.diagnostic(`${busy.length} were answered 503, ${denied.length} 401`)
      assert.equal(busy.length + denied.length, answers.length)
      assert.ok(denied.length >= MAX_HASHES + MAX_HASH_QUEUE_PER_CLIENT && busy.length > 0)
      for (const { headers } of busy) assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
      for (const { json } of denied) assert.equal(json.message, 'Invalid credentials')
      assert.ok(memoryMiB(program.pid) - before < 150)
    }, fields)
    assert.equal((await send(program.url, 'POST', '/api/login', user)).status, 200)
  })
})
