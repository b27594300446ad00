/**
 * Everything that a server says to some bytes. Nobody knows how many requests they are, so the client ends its side
 * behind them, and the server has to end the connection by itself; what it has said must be whole answers in JSON.
 */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { connect, type NetConnectOpts } from 'node:net'
import { REQUEST_TIMEOUT_MS, TIMEOUT_CHECK_MS } from '../../src/limits.ts'

/** A final answer; `json` is undefined where there is no body. */
export interface Said {
  readonly status: number
  readonly json: any
}

/** What came back. */
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

/** The answers in the bytes, which must hold nothing else. */
function answersIn(bytes: Buffer, mayBeToHead: boolean, wasReset: boolean): Said[] {
  const answers: Said[] = []
  let rest = bytes
  while (rest.length > 0) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd < 0 && wasReset) break
    assert.ok(headEnd >= 0, `not a whole answer: ${shown(rest)}`)
    const [line = '', ...fields] = rest.toString('latin1', 0, headEnd).split('\r\n')
    const status = Number(/^HTTP\/1\.1 ([1-5][0-9]{2}) [\x20-\x7e]+$/.exec(line)?.[1])
    assert.ok(status >= 100, `not the first line of an answer: ${shown(rest)}`)
    const length = lengthOf(fields, line)
    rest = rest.subarray(headEnd + 4)
    if (status < 200 || status === 204) {
      assert.equal(length, undefined, `${line} has no body and no length`)
      if (status >= 200) answers.push({ status, json: undefined })
      continue
    }
    assert.ok(length !== undefined, `${line} has a length`)
    if (rest.length < length && wasReset) break
    const json = rest.length < length ? undefined : jsonIn(rest.subarray(0, length))
    assert.ok(json !== undefined || mayBeToHead, `the body of ${line} is not JSON: ${shown(rest)}`)
    if (json !== undefined) rest = rest.subarray(length)
    answers.push({ status, json })
  }
  return answers
}

/** The Content-Length of a head, every field of which must have its form and come once. */
function lengthOf(fields: readonly string[], line: string): number | undefined {
  const names = new Set<string>()
  let length: number | undefined
  for (const field of fields) {
    const [, name = '', value = ''] = /^([A-Za-z0-9-]+): ([\x20-\x7e]*)$/.exec(field) ?? []
    assert.ok(name !== '' && !names.has(name.toLowerCase()), `a field of ${line}: ${JSON.stringify(field)}`)
    names.add(name.toLowerCase())
    if (name.toLowerCase() === 'content-length') length = Number(/^\d+$/.exec(value)?.[0] ?? NaN)
  }
  assert.ok(!names.has('transfer-encoding') && names.has('x-content-type-options') || / 100 /.test(line), line)
  return length
}

function jsonIn(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    return undefined
  }
}

function shown(bytes: Buffer): string { return JSON.stringify(bytes.toString('latin1', 0, 500)) }

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
