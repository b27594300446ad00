/** What a stop must not cut, and what must not hold it up. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { certificate } from '../support/certificate.ts'
import { launchProgram, socketsIn, startProgram, type Program } from '../support/program.ts'
import { connectRaw, message } from '../support/raw.ts'
import { freshFolder } from '../support/service.ts'

/** Far below the bound of a stop, so that one which waited for it is seen. */
const PROMPT_MS = 5_000
const BODY = JSON.stringify({ password: 'p', sistema: 's', usuario: 'u' })

const portOf = ({ url }: Program): number => Number(new URL(url).port)

/** Waits until it takes no more connections: that is how one sees that a stop has begun. */
async function refusesConnections(program: Program): Promise<void> {
  for (let isRefused = false; !isRefused;) {
    const socket = connect(portOf(program), '127.0.0.1')
    isRefused = await new Promise(resolve => {
      socket.once('connect', () => resolve(false)).once('error', () => resolve(true))
    })
    socket.destroy()
  }
}

test('SIGTERM: an answer that is read slowly is sent whole, and then its connection is ended', async t => {
  const program = await startProgram(t)
  const writer = await connectRaw(t, program.url)
  // More than the buffers of both sides take, so that most of the list is not sent when the signal comes.
  const entries = 400
  const create = message('POST', '/api/createPassword',
    JSON.stringify({ password: 'x'.repeat(60_000), sistema: 's', usuario: 'u' }))
  for (let i = 0; i < entries; i += 20) {
    await writer.send(...Array.from({ length: 20 }, () => create))
    await writer.answers(20)
  }
  writer.destroy()
  const reader = connect(portOf(program), '127.0.0.1')
  t.after(() => { reader.destroy() })
  reader.pause()
  reader.write(message('GET', '/api/listPassword'))
  await once(reader, 'readable')
  program.child.kill('SIGTERM')
  await refusesConnections(program)

  const before = performance.now()
  const chunks: Buffer[] = []
  for await (const chunk of reader) chunks.push(chunk)
  const [head, body] = Buffer.concat(chunks).toString().split('\r\n\r\n')
  assert.match(head!, /^HTTP\/1\.1 200 /)
  const length = Number(/^Content-Length: (\d+)$/m.exec(head!)![1])
  assert.equal(Buffer.byteLength(body!), length, 'the answer is as long as it said')
  assert.equal(JSON.parse(body!).length, entries)
  assert.equal((await program.ended).code, 0)
  const tookMs = performance.now() - before
  assert.ok(tookMs < PROMPT_MS, `${tookMs.toFixed()} ms`)
})

// npm passes on to the program a signal that the terminal has given to both: Ctrl-C on `npm start` comes twice.
test('a signal that comes again does not cut short the stop that the first one began', async t => {
  const program = await startProgram(t)
  const client = await connectRaw(t, program.url)
  const create = message('POST', '/api/createPassword', BODY, ['Expect: 100-continue'])
  const cut = create.length - BODY.length
  await client.send(create.subarray(0, cut))
  assert.equal((await client.answer()).status, 100)
  program.child.kill('SIGINT')
  await refusesConnections(program)
  program.child.kill('SIGINT')
  program.child.kill('SIGTERM')
  await client.send(create.subarray(cut))
  assert.equal((await client.answer()).status, 200)
  const { code, signal } = await program.ended
  assert.deepEqual({ code, signal }, { code: 0, signal: null })
  assert.deepEqual(socketsIn(program.folder), [])
})

test('a program that gets a signal while it starts never says that it is ready after it stopped', async t => {
  const data = freshFolder(t)
  // Each takes the start a moment to find out that nobody is behind it; meanwhile the signal arrives.
  for (let i = 0; i < 300; i++) writeFileSync(join(data, `held-1-${i.toString(16)}.sock`), '')
  const program = launchProgram(t, { flags: { data } })
  await program.printed(/^data folder/)
  const { code, stdout } = await program.stop('SIGTERM')
  assert.equal(code, 0)
  assert.ok(stdout.endsWith('\nstopped\n'), stdout)
})

test('HTTPS: a connection that has not begun its handshake does not hold up a stop', async t => {
  const folder = freshFolder(t)
  const { cert, key } = certificate('localhost')
  writeFileSync(join(folder, 'cert.pem'), cert)
  writeFileSync(join(folder, 'key.pem'), key)
  const flags = { 'tls-cert': join(folder, 'cert.pem'), 'tls-key': join(folder, 'key.pem') }
  const program = await startProgram(t, { flags })
  const silent = connect(Number(new URL(program.url).port), '127.0.0.1')
  t.after(() => { silent.destroy() })
  await once(silent, 'connect')
  // Connections are taken in their order: once this one has shaken hands, the other one was taken.
  const greeted = connectTls({ port: Number(new URL(program.url).port), host: '127.0.0.1', rejectUnauthorized: false })
  await once(greeted, 'secureConnect')
  greeted.destroy()
  const before = performance.now()
  const closed = once(silent, 'close')
  const { code } = await program.stop('SIGTERM')
  assert.equal(code, 0)
  await closed
  const tookMs = performance.now() - before
  assert.ok(tookMs < PROMPT_MS, `${tookMs.toFixed()} ms`)
})

test('an operator\'s request that broke off in its body does not hold up the stop', async t => {
  const program = await startProgram(t, {})
  const socket = connect(join(program.folder, socketsIn(program.folder)[0]!))
  await once(socket, 'connect')
  const head = 'POST /operator/users/remove HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99'
  await new Promise(resolve => socket.write(`${head}\r\n\r\n{`, resolve))
  socket.destroy()
  const before = performance.now()
  assert.equal((await program.stop()).code, 0)
  assert.ok(performance.now() - before < 5_000)
})
