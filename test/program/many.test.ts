/** The program with many entries: nothing in it may grow with their square, nor get lost among them. */
import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import { startProgram } from '../support/program.ts'
import { message } from '../support/raw.ts'
import { freshFolder } from '../support/service.ts'

const ENTRIES = 100_000
const CONNECTIONS = 64

/** Sends requests in turn on a connection of their own; every answer must be a 200 as long as the first. */
function sendAll(t: TestContext, url: string, next: () => Buffer | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port), noDelay: true })
    t.after(() => { socket.destroy() })
    let received: Buffer = Buffer.alloc(0)
    let answerBytes = 0
    const send = (): void => {
      const request = next()
      if (request === undefined) { socket.destroy(); resolve() } else socket.write(request)
    }
    socket.on('connect', send)
    socket.on('error', reject)
    socket.on('end', () => reject(new Error('the service ended the connection')))
    socket.on('data', bytes => {
      received = received.length === 0 ? bytes : Buffer.concat([received, bytes])
      if (answerBytes === 0) answerBytes = lengthOf(received)
      if (answerBytes === 0 || received.length < answerBytes) return
      if (received.length > answerBytes || !received.toString('latin1', 0, 12).startsWith('HTTP/1.1 200')) {
        reject(new Error(`not the answer that was expected: ${received.toString()}`))
        return
      }
      received = Buffer.alloc(0)
      send()
    })
  })
}

function lengthOf(answer: Buffer): number {
  const headEnd = answer.indexOf('\r\n\r\n')
  if (headEnd < 0) return 0
  const length = /content-length: (\d+)/i.exec(answer.toString('latin1', 0, headEnd))?.[1]
  assert.ok(length !== undefined, answer.toString())
  return headEnd + 4 + Number(length)
}

async function list(url: string): Promise<Buffer> {
  const response = await fetch(`${url}/api/listPassword`)
  assert.equal(response.status, 200)
  return Buffer.from(await response.arrayBuffer())
}

test('§4.1 list: 100,000 entries created by 64 clients are all there, ascending, the same after a restart', async t => {
  const folder = freshFolder(t)
  const first = await startProgram(t, { flags: { data: folder } })
  let sent = 0
  const next = (): Buffer | undefined => {
    if (sent === ENTRIES) return undefined
    const n = sent++
    return message('POST', '/api/createPassword',
      `{"password":"clave-${n}","sistema":"sistema ñ ${n % 97}","usuario":"u${n % 1009}"}`)
  }
  const timed = async <T>(what: string, act: () => Promise<T>): Promise<T> => {
    const startMs = performance.now()
    const result = await act()
    const seconds = (performance.now() - startMs) / 1000
    t.diagnostic(`${what}: ${seconds.toFixed(2)} s, ${Math.round(ENTRIES / seconds)} entries/s`)
    return result
  }
  await timed('create', () => Promise.all(Array.from({ length: CONNECTIONS }, () => sendAll(t, first.url, next))))

  const before = await timed('list', () => list(first.url))
  const entries = JSON.parse(before.toString('utf8')) as { id: number, password: string, sistema: string }[]
  assert.equal(entries.length, ENTRIES)
  assert.ok(entries.every(({ id }, i) => id === i + 1), 'ids ascend from 1 without gaps')
  const numbers = new Set<number>()
  for (const { password, sistema } of entries) {
    const n = Number(password.slice('clave-'.length))
    assert.equal(sistema, `sistema ñ ${n % 97}`)
    numbers.add(n)
  }
  assert.equal(numbers.size, ENTRIES)
  assert.ok(numbers.has(0) && numbers.has(ENTRIES - 1))

  assert.equal((await first.stop()).code, 0)
  const second = await timed('restart', () => startProgram(t, { flags: { data: folder } }))
  assert.match(second.stdout, /^journal +100000 records, 100000 entries \(100000 active\)$/m)
  const after = await timed('list again', () => list(second.url))
  assert.ok(after.equals(before), 'the list is byte-identical')
  assert.equal((await second.stop()).code, 0)
})
