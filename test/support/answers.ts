/**
 * Everything that a server says to some bytes. Nobody knows how many requests they are, so the client ends its side
 * behind them, and the server has to end the connection by itself; what it has said must be whole answers in JSON.
 */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { connect, type NetConnectOpts } from 'node:net'
import { REQUEST_TIMEOUT_MS, TIMEOUT_CHECK_MS } from '../../src/limits.ts'
import { parseAnswer } from './raw.ts'

/** A final answer; `json` is undefined where there is no body. */
export interface Said {
  readonly status: number
  readonly json: any
}

export interface Heard {
  readonly answers: readonly Said[]
  /** Whether the connection was cut instead of ended: then the last answer may have been lost on the way. */
  readonly wasReset: boolean
}

/** Behind an offer to upgrade, Node waits for the rest of a body as if the client had not ended its side. */
const WAIT_MS = REQUEST_TIMEOUT_MS + 3 * TIMEOUT_CHECK_MS

/** Sends bytes in the pieces given, ends its side, and hears what is said until the server ends its own. */
export function hear(where: NetConnectOpts, pieces: readonly Buffer[]): Promise<Heard> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...where, allowHalfOpen: true })
    const received: Buffer[] = []
    let wasReset = false
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`the connection stands still after ${JSON.stringify(Buffer.concat(received).toString())}`))
    }, WAIT_MS)
    socket.on('data', bytes => received.push(bytes))
    socket.on('error', () => { wasReset = true })
    socket.on('end', () => socket.end())
    socket.on('close', () => {
      clearTimeout(timer)
      try {
        const mayBeToHead = Buffer.concat(pieces).includes('HEAD')
        resolve({ answers: answersIn(Buffer.concat(received), mayBeToHead, wasReset), wasReset })
      } catch (error) {
        reject(error)
      }
    })
    socket.on('connect', () => {
      const next = (at: number): void => {
        if (at === pieces.length) socket.end()
        else socket.write(pieces[at]!, () => setImmediate(next, at + 1))
      }
      next(0)
    })
  })
}

/** The final answers in the bytes, which must hold nothing else; one to a HEAD has no body. */
function answersIn(bytes: Buffer, mayBeToHead: boolean, wasReset: boolean): Said[] {
  const answers: Said[] = []
  for (let rest = bytes; rest.length > 0;) {
    const toHead = mayBeToHead ? parseAnswer(rest, true) : undefined
    const isToHead = toHead !== undefined && /^(HTTP\/1\.1 |$)/.test(rest.subarray(toHead.bytes).toString('latin1', 0,
      9))
    const found = isToHead ? toHead : parseAnswer(rest, false)
    if (found === undefined && wasReset) break
    assert.ok(found !== undefined, `not a whole answer: ${JSON.stringify(rest.toString('latin1', 0, 500))}`)
    const { status, line, headers, json, text } = found.answer
    assert.ok('x-content-type-options' in headers || status === 100, line)
    assert.ok(json !== undefined || text === '', `the body of ${line} is not JSON: ${text}`)
    if (status >= 200) answers.push({ status, json })
    rest = rest.subarray(found.bytes)
  }
  return answers
}

/** The form that every body but that of a success has: a message, the status, and, where fields are wrong, which. */
export function assertErrorForm({ status, json }: Said): void {
  if (status === 429) { assert.deepEqual(json, { message: 'Too Many Requests' }); return }
  assert.equal(json.status, status)
  assert.ok(typeof json.message === 'string' && json.message !== '', 'it says what it is')
  if (!('errors' in json)) { assert.deepEqual(Object.keys(json), ['message', 'status']); return }
  assert.equal(status, 400)
  assert.equal(json.message, 'Invalid data')
  assert.deepEqual(Object.keys(json), ['message', 'errors', 'status'])
  const fields = Object.values<unknown>(json.errors)
  assert.ok(fields.length > 0)
  for (const texts of fields) {
    assert.ok(Array.isArray(texts) && texts.length > 0 && texts.every(text => typeof text === 'string' && text !== ''))
  }
}
