/**
 * Sends replies over TCP and TLS, and behind a host's middleware. Readers of a list share one
 * Buffer. A reader slower than a modem is cut; memory for slow readers is bounded.
 */
import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  ANSWER_BYTES_PER_SECOND,
  ANSWER_TIMEOUT_MS,
  KEEP_ALIVE_TIMEOUT_MS,
  MAX_UNSENT_BYTES,
  SEND_BYTES,
  SEND_COPIED_BYTES,
  SHORT_BODY_BYTES,
  SLOW_READER_LOOK_MS,
  TIMEOUT_CHECK_MS
} from '../limits.ts'
import { endBehindAnswer } from './ending.ts'
import { keepsAlive, ListenerRequest } from './node-http.ts'
import { fieldsOf, type Reply } from './reply.ts'

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
  const fields = fieldsOf(reply, extra)
  // node:http would set a timer for each request to say so.
  if (response.req instanceof ListenerRequest && keepsAlive(response))
    fields.push('Keep-Alive', KEEP_ALIVE)
  response.writeHead(reply.status, fields)
  const { body = '' } = reply
  const bytes = Buffer.byteLength(body)
  const answer: Answer = {
    response,
    long: undefined,
    sinceMs: performance.now(),
    givenBytes: 0,
    lookedAt: undefined
  }
  if (bytes <= SHORT_BODY_BYTES) {
    answer.givenBytes = bytes
    response.end(body)
  } else {
    // A long text waits outside of the heap, where wide characters do not double it.
    answer.long = typeof body === 'string' ? Buffer.from(body) : body
    sendSlices(answer, answer.long)
  }
  // Middleware may end the answer later.
  if (response.writableLength > 0 || !response.writableEnded) watch(answer)
}

const KEEP_ALIVE = `timeout=${KEEP_ALIVE_TIMEOUT_MS / 1000}`

interface Answer {
  readonly response: ServerResponse
  /** The same Buffer for all readers of a list; undefined for a short body. */
  long: Buffer | undefined
  readonly sinceMs: number
  givenBytes: number
  /** At the last look. */
  lookedAt: { readonly ms: number; readonly takenBytes: number } | undefined
}

function takenBytes({ givenBytes, response: { writableLength } }: Answer): number {
  return Math.max(0, givenBytes - writableLength)
}

/** Each slice waits until the reader has taken the one before. Middleware passes `drain` on. */
function sendSlices(answer: Answer, bytes: Buffer): void {
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

/** Not yet taken, the oldest first. */
const unsent = new Set<Answer>()
/**
 * Those whose readers were slow between the last two looks; of all their time, the slowest reader
 * last.
 */
let slow: Answer[] = []
let lookedMs = 0
let looking: NodeJS.Timeout | undefined

function watch(answer: Answer): void {
  makeRoomBeside(answer)
  unsent.add(answer)
  answer.response.on('close', () => unsent.delete(answer))
  looking ??= setInterval(look, TIMEOUT_CHECK_MS).unref()
}

/** Cuts readers that are late, and finds the slow ones. */
function look(): void {
  const nowMs = performance.now()
  const found: { readonly answer: Answer; readonly bytesPerMs: number }[] = []
  for (const answer of unsent) {
    const { sinceMs, lookedAt = { ms: sinceMs, takenBytes: 0 } } = answer
    const taken = takenBytes(answer)
    if (nowMs - sinceMs > ANSWER_TIMEOUT_MS + (taken / ANSWER_BYTES_PER_SECOND) * 1000) {
      cut(answer)
      continue
    }
    const passedMs = nowMs - lookedAt.ms
    if (passedMs < SLOW_READER_LOOK_MS) continue
    const isSlow = taken - lookedAt.takenBytes < (passedMs / 1000) * ANSWER_BYTES_PER_SECOND
    if (isSlow) found.push({ answer, bytesPerMs: taken / (nowMs - sinceMs) })
    answer.lookedAt = { ms: nowMs, takenBytes: taken }
  }
  slow = found.sort((one, other) => other.bytesPerMs - one.bytesPerMs).map(({ answer }) => answer)
  lookedMs = nowMs
  if (unsent.size > 0) return
  clearInterval(looking)
  looking = undefined
}

/**
 * The connection whose reader takes its answer most slowly, and too slowly. A look costs, and is
 * asked for often.
 */
export function slowestReader(mayGiveWay: (socket: Socket) => boolean): Socket | undefined {
  if (slow.length === 0 && performance.now() - lookedMs >= SLOW_READER_LOOK_MS) look()
  for (let answer = slow.pop(); answer !== undefined; answer = slow.pop()) {
    if (unsent.has(answer) && mayGiveWay(answer.response.req.socket))
      return answer.response.req.socket
  }
  return undefined
}

/**
 * Bounds memory beside the newest answer: the oldest readers are cut. Readers of one list hold it
 * once.
 */
function makeRoomBeside({ long: newest }: Answer): void {
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

function cut(answer: Answer): void {
  unsent.delete(answer)
  answer.response.req.socket.destroy()
}
