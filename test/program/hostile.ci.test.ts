/** Clients that mean harm, and one that does not: it is answered meanwhile, within a bounded time. */
import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { join } from 'node:path'
import { requestLocal } from '../../src/parts/operator/socket/local-client.ts'
import { MAX_HASHES } from '../../src/limits.ts'
import { memoryMiB } from '../support/system.ts'
import { programWithin, socketsIn, startProgram, until, type Program } from '../support/program.ts'
import { ask, chunked, connectRaw, message } from '../support/raw.ts'
import { send } from '../support/service.ts'

/** In what time everybody else is answered, whatever goes on; mostly 0.3 s, but other tests run on the same cores. */
const SERVED_MS = 2_500
const ENTRY = JSON.stringify({ password: 'p', sistema: 's', usuario: 'u' })
const CREATE = message('POST', '/api/createPassword', ENTRY)
const GET = message('GET', '/api/getPassword/1')
/** The address of the client that means no harm. */
const GOOD = '127.0.0.9'

/** Does something while a client of good will reads and writes; holds that each of its requests is answered in time. */
async function whileServed(
  t: TestContext, { url }: Program, act: () => Promise<void>, fields: readonly string[] = []
): Promise<void> {
  const client = await connectRaw(t, url, { localAddress: GOOD })
  const changes = ['v', 'u'].map(usuario =>
    message('POST', '/api/updatePassword/1', JSON.stringify({ usuario }), fields))
  const requests = [message('GET', '/api/getPassword/1', undefined, fields), ...changes]
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

/** A program with one entry, and some of its limits shortened so that they can be reached. */
async function started(
  t: TestContext, limits: Record<string, number> = {}, flags: Record<string, string> = {}
): Promise<Program> {
  const program = await startProgram(t, { flags, command: programWithin(t, limits) })
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

test('half-sent heads and bodies by the hundred are cut in time, and nothing is kept for them', async t => {
  // Far above what a busy machine has between a connection and its first byte, which is then still to be answered.
  const limits = { HEADERS_TIMEOUT_MS: 3_000, REQUEST_TIMEOUT_MS: 3_500, TIMEOUT_CHECK_MS: 250 }
  const program = await started(t, limits)
  const before = memoryMiB(program.pid)
  const expecting = message('POST', '/api/createPassword', ENTRY, ['Expect: 100-continue']).subarray(0, -ENTRY.length)
  const ofNoEnd = chunked('POST', '/api/createPassword', [])
  const parts: readonly ((i: number) => readonly (string | Buffer)[])[] = [
    i => [CREATE.subarray(0, i % (CREATE.indexOf('\r\n\r\n') + 3))],
    i => [CREATE.subarray(0, CREATE.length - 1 - i % 20)],
    () => [expecting],
    () => [ofNoEnd, `7fffffffffff\r\n${'{'.repeat(100)}`]
  ]
  await whileServed(t, program, async () => {
    const texts = parts.map(() => '')
    let closed = 0
    await Promise.all(parts.map(async (part, n) => {
      const sockets = await openMany(t, program.url, 200, `127.0.0.${n + 2}`)
      for (const [i, socket] of sockets.entries()) {
        for (const piece of part(i)) socket.write(piece)
        socket.on('data', bytes => { texts[n] += bytes.toString('latin1') }).on('close', () => { closed++ })
      }
    }))
    const sentMs = performance.now()
    await until('all to be cut', () => closed === 200 * parts.length)
    assert.ok(performance.now() - sentMs < limits.REQUEST_TIMEOUT_MS + SERVED_MS)
    for (const text of texts) {
      assert.match(text, /HTTP\/1\.1 408 Request Timeout\r\n[^]*\{"message":"Request Timeout","status":408\}/)
      const statuses = text.match(/HTTP\/1\.1 \d+/g)!.map(line => line.slice(-3))
      assert.deepEqual([...new Set(statuses)].sort(), text === texts[2] ? ['100', '408'] : ['408'])
    }
    assert.equal(texts[2]!.match(/HTTP\/1\.1 100 /g)?.length, 200, 'each that asked was told to go on')
  })
  assert.ok(memoryMiB(program.pid) - before < 60)
  assert.equal((await send(program.url, 'GET', '/api/listPassword')).json.length, 1)
})

test('aborted bodies leave nothing in memory', async t => {
  const program = await started(t)
  const before = memoryMiB(program.pid)
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
  assert.ok(memoryMiB(program.pid) - before < 150, `${memoryMiB(program.pid) - before} MiB more`)
})

test('connections by the thousand, from few addresses, that never say a word: another client is served', async t => {
  const program = await started(t)
  const before = memoryMiB(program.pid)
  await whileServed(t, program, async () => {
    for (const address of ['127.0.0.2', '127.0.0.3', '127.0.0.4']) await openMany(t, program.url, 1_000, address)
    assert.equal((await ask(t, program.url, GET, { localAddress: '127.0.0.10' })).status, 200)
    t.diagnostic(`${(memoryMiB(program.pid) - before).toFixed()} MiB more`)
    assert.ok(memoryMiB(program.pid) - before < 100)
  })
})

test('if all connections are taken, who waits for a head gives way: new clients are served, answers go on', async t => {
  const most = 24
  const { url } = await started(t, { MAX_CONNECTIONS: most })
  const body = '{"usuario":"v"}'
  const whole = message('POST', '/api/updatePassword/1', body, ['Expect: 100-continue'])
  const busy = await connectRaw(t, url)
  await busy.send(whole.subarray(0, -body.length))
  assert.equal((await busy.answer()).status, 100)
  const sockets: Socket[] = []
  for (const address of [2, 3, 4, 5]) sockets.push(...(await openMany(t, url, 10, `127.0.0.${address}`)).map(one =>
    one.resume()))
  await until('those above the bound to be closed', () => sockets.filter(one => !one.closed).length < most)
  assert.equal((await ask(t, url, GET, { localAddress: '127.0.0.9' })).status, 200)
  await busy.send(body)
  assert.equal((await busy.answer()).status, 200)
})

test('the connections leave descriptors for the files of a process that may have few', async t => {
  const command = ['sh', '-c', 'ulimit -n 256; exec "$@"', 'sh', ...programWithin(t, {})]
  const { url } = await startProgram(t, { command })
  const sockets = (await openMany(t, url, 400, '127.0.0.2')).map(one => one.resume())
  for (let n = 0; n < 10; n++) {
    const { status, json } = await ask(t, url, CREATE, { localAddress: GOOD })
    assert.equal(status, 200, JSON.stringify(json))
  }
  const open = sockets.filter(one => !one.closed).length
  assert.ok(open > 100 && open <= 128, `${open} are open`)
})

test('a connection that idles is closed in time', async t => {
  const { url } = await started(t, { KEEP_ALIVE_TIMEOUT_MS: 500, HEADERS_TIMEOUT_MS: 3_000, TIMEOUT_CHECK_MS: 250 })
  const [idle] = await openMany(t, url, 1, '127.0.0.2')
  idle!.resume().write(GET)
  await until('an idle connection to be closed', () => idle!.closed)
})

test('§5 a flood of logins is turned away with 503 and Retry-After, and others are served', async t => {
  const waiting = 6
  const command = programWithin(t, { MAX_HASH_QUEUE: waiting })
  const program = await startProgram(t, { command, flags: { auth: 'bearer', 'login-limit': '0' } })
  const operator = join(program.folder, socketsIn(program.folder)[0]!)
  const user = { email: 'ana@example.org', password: 'correct horse battery' }
  assert.equal((await requestLocal(operator, 'addUser', user)).status, 200)
  const issued = await requestLocal(operator, 'issueToken', { email: user.email })
  const fields = [`Authorization: Bearer ${(issued.body as { token: string }).token}`]
  assert.equal((await ask(t, program.url, message('POST', '/api/createPassword', ENTRY, fields))).status, 200)
  const before = memoryMiB(program.pid)
  await whileServed(t, program, async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => send(program.url, 'POST', '/api/login', {
      email: n % 2 === 0 ? user.email : `${n}@example.org`, password: `wrong ${n}`
    })))
    const busy = answers.filter(({ status }) => status === 503)
    const denied = answers.filter(({ status }) => status === 401)
    t.diagnostic(`${busy.length} were answered 503, ${denied.length} 401`)
    assert.equal(busy.length + denied.length, answers.length)
    assert.ok(denied.length >= MAX_HASHES + waiting && busy.length > 0)
    for (const { headers, text } of busy) {
      assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
      assert.equal(text, '{"message":"Service Unavailable","status":503}')
    }
    for (const { json } of denied) assert.equal(json.message, 'Invalid credentials')
    assert.ok(memoryMiB(program.pid) - before < 150)
  }, fields)
  assert.equal((await send(program.url, 'POST', '/api/login', user)).status, 200)
})
