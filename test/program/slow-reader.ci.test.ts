/** Clients that read nothing, or never quite begin, with limits shortened so that their end can be waited for. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { certificateFiles } from '../support/certificate.ts'
import { DESCRIPTOR_RESERVE, MAX_UNSENT_BYTES } from '../../src/limits.ts'
import { memoryMiB } from '../support/system.ts'
import { programWithin, SERVER, startProgram, until } from '../support/program.ts'
import { message } from '../support/raw.ts'
import { freshFolder } from '../support/service.ts'

const LIMITS = {
  // What the system's buffers take of an answer counts as taken.
  ANSWER_TIMEOUT_MS: 1_000, ANSWER_BYTES_PER_SECOND: 100_000_000, HEADERS_TIMEOUT_MS: 3_000, KEEP_ALIVE_TIMEOUT_MS: 500,
  TIMEOUT_CHECK_MS: 250
}
/** More of these than the system's buffers hold. */
const ENTRIES = 30
const CREATE = message('POST', '/api/createPassword',
  JSON.stringify({ password: 'x'.repeat(500_000), sistema: 's', usuario: 'u' }), ['Connection: close'])
const ASKED = {
  'one answer': message('GET', '/api/listPassword'),
  'pipelined answers': Buffer.concat(Array.from({ length: ENTRIES }, () => message('GET', '/api/getPassword/1')))
}

/** What is answered to a request that ends its connection, as text. */
async function answerOn(socket: Socket, request: Buffer): Promise<string> {
  socket.setEncoding('latin1').write(request)
  return (await socket.toArray()).join('')
}

async function holdSlowReaders(t: TestContext, isTls: boolean): Promise<void> {
  const flags = { journal: 'memory', 'max-body-bytes': '1000000', ...isTls ? certificateFiles(freshFolder(t)) : {} }
  const { url, stop } = await startProgram(t, { command: programWithin(t, LIMITS), flags })
  const port = Number(new URL(url).port)
  const connect = isTls ? () => connectTls({ port, rejectUnauthorized: false }) : () => connectTcp(port)
  const metrics = (): Promise<string> =>
    answerOn(connect(), message('GET', '/metrics', undefined, ['Connection: close']))
  for (let n = 0; n < ENTRIES; n++) assert.match(await answerOn(connect(), CREATE), /^HTTP\/1\.1 200 /)
  for (const [what, asked] of Object.entries(ASKED)) {
    const socket = connect()
    t.after(() => socket.destroy())
    await once(socket.on('error', () => {}), isTls ? 'secureConnect' : 'connect')
    const askedMs = performance.now()
    socket.pause().write(asked)
    // The one that asks is counted as well.
    await until('its end', async () => /^pes_http_connections 1$/m.test(await metrics()))
    const tookMs = performance.now() - askedMs
    const { ANSWER_TIMEOUT_MS } = LIMITS
    assert.ok(tookMs > ANSWER_TIMEOUT_MS - 100 && tookMs < ANSWER_TIMEOUT_MS + 5_000, `${what}: ${tookMs} ms`)
    socket.destroy()
  }
  await stop()
}

// Each waits for a limit: they do so together.
describe('a client that takes its time', { concurrency: true }, () => {
  test('who reads nothing of an answer is let go after the limit, over TCP and TLS', async t => {
    await Promise.all([false, true].map(isTls => holdSlowReaders(t, isTls)))
  })

  test('HTTPS: a handshake that never ends is over after its timeout, and is no request', async t => {
    const { url } = await startProgram(t, { command: programWithin(t, LIMITS),
      flags: certificateFiles(freshFolder(t)) })
    const port = Number(new URL(url).port)
    const beganMs = performance.now()
    const begun = ['', Buffer.from([0x16, 3, 1, 2, 0, 1])].map(async start => { // the first bytes of a ClientHello
      const socket = connectTcp(port)
      t.after(() => socket.destroy())
      if (start.length > 0) socket.write(start)
      await once(socket.on('error', () => {}).resume(), 'close')
      assert.ok(performance.now() - beganMs > LIMITS.HEADERS_TIMEOUT_MS - 100)
    })
    await Promise.all(begun)
    assert.ok(performance.now() - beganMs < LIMITS.HEADERS_TIMEOUT_MS + 5_000)
    const garbage = connectTcp(port)
    garbage.on('error', () => {}).resume().write('GET / HTTP/1.1\r\n\r\n')
    await once(garbage, 'close')
    const asking = message('GET', '/metrics', undefined, ['Connection: close'])
    const metrics = await answerOn(connectTls({ port, rejectUnauthorized: false }), asking)
    assert.match(metrics, /^HTTP\/1\.1 200 /)
    assert.doesNotMatch(metrics, /^http_(malformed_)?requests_total\{/m)
  })

  for (const isTls of [false, true]) {
    test(`over ${isTls ? 'TLS' : 'TCP'} a connection whose answer was read slowly is kept as long as any`, async t => {
      const limits = { ...LIMITS, ANSWER_TIMEOUT_MS: 2_000, ANSWER_BYTES_PER_SECOND: 16_384,
        KEEP_ALIVE_TIMEOUT_MS: 65_000 }
      const flags = { journal: 'memory', 'max-body-bytes': '1000000', ...isTls ? certificateFiles(freshFolder(t)) : {} }
      const { url } = await startProgram(t, { command: programWithin(t, limits), flags })
      const port = Number(new URL(url).port)
      const connect = isTls ? () => connectTls({ port, rejectUnauthorized: false }) : () => connectTcp(port)
      for (let n = 0; n < ENTRIES; n++) assert.match(await answerOn(connect(), CREATE), /^HTTP\/1\.1 200 /)
      const socket = connect()
      t.after(() => socket.destroy())
      await once(socket, isTls ? 'secureConnect' : 'connect')
      socket.write(ASKED['one answer'])
      let text = ''
      let bytes = 0
      let pausesAt = 0
      socket.on('data', piece => { // it pauses now and then: all takes longer than the limit
        text ||= String(piece)
        bytes += piece.length
        if (bytes < pausesAt) return
        pausesAt += 2_000_000
        socket.pause()
        setTimeout(() => socket.resume(), 400)
      })
      await until('its end', () => bytes > Number(/Content-Length: (\d+)/.exec(text)?.[1]))
      assert.deepEqual(text.slice(0, 500).match(/^(Keep-Alive|Connection): .*$/gm),
        ['Keep-Alive: timeout=65', 'Connection: keep-alive'])
      await new Promise(resolve => setTimeout(resolve, 2 * limits.ANSWER_TIMEOUT_MS))
      assert.match(await answerOn(socket, message('GET', '/healthz', undefined, ['Connection: close'])),
        /HTTP\/1\.1 200 OK/)
    })
  }

  test('empty lines do not keep an idle connection', async t => {
    const { url } = await startProgram(t, { command: programWithin(t, LIMITS) })
    // Where the machine is so busy that a request comes later than these limits, its connection is closed before.
    const ask = async (): Promise<Socket> => {
      const socket = connectTcp(Number(new URL(url).port))
      socket.on('error', () => {}).write(message('GET', '/healthz'))
      const isAnswered = await Promise.race([once(socket, 'data').then(() => true),
        once(socket, 'close').then(() => false)])
      return isAnswered ? socket : ask()
    }
    const socket = await ask()
    const timer = setInterval(() => socket.write('\r\n'), 100)
    t.after(() => clearInterval(timer))
    await until('its end', () => socket.closed)
  })
})

test('of readers that take nothing of a long entry as many stay as answers may wait: the oldest are cut', async t => {
  const command = [process.execPath, '--max-old-space-size=64', join(import.meta.dirname, '../../dist/server.js')]
  const { url, pid } = await startProgram(t, { command, flags: { 'max-body-bytes': '16777216', 'rate-limit': '0' } })
  const port = Number(new URL(url).port)
  const fields = { password: 'x'.repeat(12_000_000), sistema: 's', usuario: 'u' }
  const created = message('POST', '/api/createPassword', JSON.stringify(fields), ['Connection: close'])
  assert.match(await answerOn(connectTcp(port), created), /^HTTP\/1\.1 200 /)
  assert.equal((await fetch(`${url}/healthz`)).status, 200)
  const before = memoryMiB(pid)
  const readers = await Promise.all(Array.from({ length: 20 }, async () => {
    const socket = connectTcp(port).on('error', () => {})
    t.after(() => socket.destroy())
    socket.write(message('GET', '/api/getPassword/1'))
    await once(socket, 'readable') // its answer has begun, and is not read
    return socket
  }))
  // Memory that was given back is counted until it is collected: copies for all would stay 230 MiB.
  await until('less memory than 20 readers of 12 MB have', async () => {
    assert.equal((await fetch(`${url}/healthz`)).status, 200)
    return memoryMiB(pid) - before < 180
  })
  const kept = await Promise.all(readers.map(async socket => {
    let bytes = 0
    socket.on('data', piece => { bytes += piece.length }).resume()
    await until('its end', () => socket.closed || bytes > fields.password.length)
    return bytes > fields.password.length
  }))
  const whole = kept.filter(isWhole => isWhole).length
  assert.ok(whole >= 1 && whole <= 1 + Math.floor(MAX_UNSENT_BYTES / fields.password.length), `${whole} were kept`)
  const answer = await answerOn(connectTcp(port), message('GET', '/api/getPassword/1', undefined,
    ['Connection: close']))
  const text = JSON.stringify({ passwords: { id: 1, ...fields, status: 1 }, status: 200 })
  assert.ok(answer.includes(`Content-Length: ${text.length}\r\n`))
  assert.equal(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))).passwords.password, fields.password)
})

test('when all connections are taken by clients that read nothing, those give way to newcomers', async t => {
  const descriptors = 300
  const command = ['sh', '-c', `ulimit -n ${descriptors}; exec "$0" "$@"`, process.execPath, SERVER]
  const { url, stop } = await startProgram(t, { command, flags: { journal: 'memory', 'max-body-bytes': '1000000' } })
  const port = Number(new URL(url).port)
  for (let n = 0; n < ENTRIES; n++) assert.match(await answerOn(connectTcp(port), CREATE), /^HTTP\/1\.1 200 /)
  const readers: Socket[] = []
  for (let n = 0; n < descriptors - DESCRIPTOR_RESERVE; n++) {
    const socket = connectTcp(port).on('error', () => {})
    t.after(() => socket.destroy())
    await once(socket, 'connect')
    socket.pause().write(message('GET', '/api/listPassword'))
    readers.push(socket)
  }
  const newcomer = (): Promise<string> =>
    answerOn(connectTcp(port), message('GET', '/api/getPassword/1', undefined, ['Connection: close'])).catch(() => '')
  await until('a newcomer is answered', async () => (await newcomer()).startsWith('HTTP/1.1 200 '))
  for (let n = 0; n < 10; n++) assert.match(await newcomer(), /^HTTP\/1\.1 200 /, 'one gives way for each')
  await stop()
})
