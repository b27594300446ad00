/** Clients that ask for more than they read, with a limit shortened so that its end can be waited for. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { certificate } from '../support/certificate.ts'
import { programWithin, startProgram } from '../support/program.ts'
import { message } from '../support/raw.ts'
import { freshFolder, send } from '../support/service.ts'

const SOCKET_TIMEOUT_MS = 2_000
/** More of these than the system's buffers hold. */
const ENTRIES = 30
const ENTRY = { password: 'x'.repeat(500_000), sistema: 's', usuario: 'u' }
const ASKED = {
  'one answer': message('GET', '/api/listPassword'),
  'pipelined answers': Buffer.concat(Array.from({ length: ENTRIES }, () => message('GET', '/api/getPassword/1')))
}

/** How many connections the service has, the one that asks included. */
async function connections(socket: Socket): Promise<number> {
  socket.setEncoding('latin1').end(message('GET', '/metrics', undefined, ['Connection: close']))
  const text = (await socket.toArray()).join('')
  return Number(/^http_connections (\d+)$/m.exec(text)![1])
}

test('who reads nothing of an answer is let go after twice the limit at most, over TCP and TLS', async t => {
  const folder = freshFolder(t)
  const filling = await startProgram(t, { flags: { data: folder, 'max-body-bytes': '1000000' } })
  for (let n = 0; n < ENTRIES; n++) await send(filling.url, 'POST', '/api/createPassword', ENTRY)
  await filling.stop()
  const files = freshFolder(t)
  const pair = { 'tls-cert': join(files, 'cert'), 'tls-key': join(files, 'key') }
  const { cert, key } = certificate('localhost')
  writeFileSync(pair['tls-cert'], cert)
  writeFileSync(pair['tls-key'], key)
  for (const isTls of [false, true]) {
    const flags = { data: folder, ...isTls ? pair : {} }
    const program = await startProgram(t, { command: programWithin(t, { SOCKET_TIMEOUT_MS }), flags })
    const port = Number(new URL(program.url).port)
    const connect = isTls ? () => connectTls({ port, rejectUnauthorized: false }) : () => connectTcp(port)
    for (const [what, asked] of Object.entries(ASKED)) {
      const socket = connect()
      t.after(() => socket.destroy())
      await once(socket.on('error', () => {}), isTls ? 'secureConnect' : 'connect')
      const askedMs = performance.now()
      socket.pause().write(asked)
      while (await connections(connect()) > 1) await pause(50)
      const tookMs = performance.now() - askedMs
      assert.ok(tookMs > SOCKET_TIMEOUT_MS - 100 && tookMs < 2 * SOCKET_TIMEOUT_MS + 1_000, `${what}: ${tookMs} ms`)
      socket.destroy()
    }
    await program.stop()
  }
})
