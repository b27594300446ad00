/**
 * Sends replies over TCP and TLS, and behind a host's middleware. Readers of a list share one
 * Buffer. Memory for slow readers is bounded, and a reader slower than a modem is cut.
 */
import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import {
  ANSWER_BYTES_PER_SECOND,
  ANSWER_TIMEOUT_MS,
  KEEP_ALIVE_TIMEOUT_MS,
  MAX_UNSENT_BYTES,
  SEND_BYTES,
  SEND_COPIED_BYTES,
  SHORT_BODY_BYTES,
  TIMEOUT_CHECK_MS
} from '../limits.ts'
import { endBehindAnswer, keepsAlive, ListenerRequest } from './connection.ts'
import { headerFields, type Reply } from './reply.ts'

/** `isLast` ends the connection. */
export function respond(
  response: ServerResponse,
  reply: Reply,
  extra: readonly string[],
  isLast: boolean
): void {
  // To HTTP/1.0, node:http closes behind an answer without a length.
  if (isLast || (reply.body === undefined && response.req.httpVersionMinor === 0))
    endBehindAnswer(response)
  const { body = '' } = reply
  const bytes = Buffer.byteLength(body)
  // A HEAD is not recorded as told, so it must not tell a password's length.
  const tells = reply.tells !== undefined && response.req.method === 'HEAD'
  const fields = headerFields(reply, extra, tells ? undefined : bytes)
  // node:http would set a timer for each request if it said so itself.
  if (response.req instanceof ListenerRequest && keepsAlive(response))
    fields.push('Keep-Alive', KEEP_ALIVE)
  response.writeHead(reply.status, fields)
  if (bytes <= SHORT_BODY_BYTES) {
    response.end(body)
    // Middleware may end the answer later.
    if (response.writableLength > 0 || !response.writableEnded)
      watch({ response, long: undefined, sinceMs: performance.now(), givenBytes: bytes })
    return
  }
  // Outside of the heap, where wide characters do not double a text that waits.
  const long = typeof body === 'string' ? Buffer.from(body) : body
  const answer: Unsent = { response, long, sinceMs: performance.now(), givenBytes: 0 }
  sendSlices(answer, long)
  if (response.writableLength > 0 || !response.writableEnded) watch(answer)
}

const KEEP_ALIVE = `timeout=${KEEP_ALIVE_TIMEOUT_MS / 1000}`

interface Unsent {
  readonly response: ServerResponse
  readonly long: Buffer | undefined
  readonly sinceMs: number
  givenBytes: number
}

function takenBytes({ givenBytes, response: { writableLength } }: Unsent): number {
  return Math.max(0, givenBytes - writableLength)
}

/** Each slice waits until the reader has taken the one before. Middleware passes `drain` on. */
function sendSlices(answer: Unsent, bytes: Buffer): void {
  const { response } = answer
  const sliceBytes = 'encrypted' in response.req.socket ? SEND_COPIED_BYTES : SEND_BYTES
  const send = (): void => {
    for (;;) {
      const slice = bytes.subarray(answer.givenBytes, answer.givenBytes + sliceBytes)
      answer.givenBytes += slice.length
      if (answer.givenBytes === bytes.length) {
        response.off('drain', send).end(slice)
        return
      }
      if (!response.write(slice)) return
    }
  }
  response.on('drain', send)
  send()
}

/** The oldest first. */
const unsent = new Set<Unsent>()

function watch(answer: Unsent): void {
  makeRoomBeside(answer)
  unsent.add(answer)
  const timer = setInterval(() => cutIfLate(answer), TIMEOUT_CHECK_MS).unref()
  answer.response.on('close', () => {
    clearInterval(timer)
    unsent.delete(answer)
  })
}

function cutIfLate(answer: Unsent): void {
  const takenMs = (takenBytes(answer) / ANSWER_BYTES_PER_SECOND) * 1000
  if (performance.now() - answer.sinceMs > ANSWER_TIMEOUT_MS + takenMs) cut(answer)
}

/**
 * Cuts the oldest readers until the rest fits beside the newest answer. A list counts once, however
 * many read it.
 */
function makeRoomBeside({ long: newest }: Unsent): void {
  if (newest === undefined) return
  const counted = new Set([newest])
  let bytes = 0
  for (const answer of [...unsent].reverse()) {
    const { long } = answer
    if (long === undefined || counted.has(long)) continue
    counted.add(long)
    bytes += long.length
    if (bytes > MAX_UNSENT_BYTES) cut(answer)
  }
}

function cut(answer: Unsent): void {
  unsent.delete(answer)
  answer.response.req.socket.destroy()
}
