/**
 * Sends replies over TCP and TLS, and behind a host's middleware. Readers of a list share one Buffer. A reader
 * slower than a modem is cut; memory for slow readers is bounded.
 */
import { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  ANSWER_BYTES_PER_SECOND, ANSWER_TIMEOUT_MS, DRAIN_TIMEOUT_MS, MAX_DRAIN_BYTES, MAX_UNSENT_BYTES, SEND_BYTES,
  SEND_COPIED_BYTES, SHORT_BODY_BYTES, TIMEOUT_CHECK_MS
} from '../limits.ts'
import { HTTP_TEXTS, JSON_KIND, OPTIONS_OF_SERVER, statusReply, type Refused, type Reply } from './reply.ts'

/** RFC 9110 §10.1.1. Without a `checkContinue` listener, node:http has sent it already. */
export function sendContinue(response: ServerResponse & { readonly _sent100?: boolean }): void {
  if (response._sent100 !== true) response.writeContinue()
}

/** `isLast` ends the connection. */
export function sendReply(response: ServerResponse, reply: Reply, extra: readonly string[], isLast: boolean): void {
  // To HTTP/1.0, node:http closes behind an answer without a length.
  if (isLast || (reply.body === undefined && response.req.httpVersionMinor === 0)) endWith(response)
  response.writeHead(reply.status, fieldsOf(reply, extra))
  const { body = '' } = reply
  const bytes = Buffer.byteLength(body)
  const answer: Answer = { response, long: undefined, sinceMs: performance.now(), givenBytes: 0 }
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

/** A 204 has no length (RFC 9110 §8.6). */
function fieldsOf({ body, headers = [], kind = JSON_KIND }: Reply, extra: readonly string[]): string[] {
  const fields: string[] = []
  if (body !== undefined) fields.push('Content-Type', kind.type, 'Content-Length', String(Buffer.byteLength(body)))
  fields.push('Cache-Control', kind.cache, 'X-Content-Type-Options', 'nosniff')
  for (const part of headers) fields.push(part)
  for (const part of extra) fields.push(part)
  return fields
}

/** For requests without a response object. */
export function rawRefusal(status: Refused, headers: readonly string[] = []): Buffer {
  const reply = statusReply(status, status === 405 ? OPTIONS_OF_SERVER.headers : [])
  const fields = fieldsOf(reply, [...headers, 'Connection', 'close'])
  const lines = [`HTTP/1.1 ${status} ${HTTP_TEXTS[status]}`]
  for (let i = 0; i < fields.length; i += 2) lines.push(`${fields[i]}: ${fields[i + 1]}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${String(reply.body)}`)
}

interface Answer {
  readonly response: ServerResponse
  /** The same Buffer for all readers of a list; undefined for a short body. */
  long: Buffer | undefined
  readonly sinceMs: number
  givenBytes: number
}

/** Each slice waits until the reader has taken the one before. Middleware passes `drain` on. */
function sendSlices(answer: Answer, bytes: Buffer): void {
  const { response } = answer
  const sliceBytes = 'encrypted' in response.req.socket ? SEND_COPIED_BYTES : SEND_BYTES
  const send = (): void => {
    for (;;) {
      const slice = bytes.subarray(answer.givenBytes, answer.givenBytes + sliceBytes)
      answer.givenBytes += slice.length
      if (answer.givenBytes === bytes.length) { response.off('drain', send).end(slice); return }
      if (!response.write(slice)) return
    }
  }
  response.on('drain', send)
  send()
}

/** Not yet taken, the oldest first. */
const unsent = new Set<Answer>()
let looking: NodeJS.Timeout | undefined

function watch(answer: Answer): void {
  makeRoomBeside(answer)
  unsent.add(answer)
  answer.response.on('close', () => unsent.delete(answer))
  looking ??= setInterval(cutLate, TIMEOUT_CHECK_MS).unref()
}

function cutLate(): void {
  const now = performance.now()
  for (const answer of unsent) {
    const { response, sinceMs, givenBytes } = answer
    const takenBytes = Math.max(0, givenBytes - response.writableLength)
    const allowedMs = ANSWER_TIMEOUT_MS + takenBytes / ANSWER_BYTES_PER_SECOND * 1000
    if (now - sinceMs > allowedMs) cut(answer)
  }
  if (unsent.size > 0) return
  clearInterval(looking)
  looking = undefined
}

/** Bounds memory beside the newest answer: the oldest readers are cut. Readers of one list hold it once. */
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

/** The answer must not have begun. */
export function endWith(response: ServerResponse): void {
  response.shouldKeepAlive = false
  endAfterAnswer(response.req.socket)
}

/**
 * Undocumented: node:http gives each parsed head to `onIncoming`; 2 stops the parser, as behind an upgrade. Otherwise a
 * read of 64 KiB becomes 3,600 requests and 5 MB. No documented way stops the parser.
 */
interface Parsing {
  parser?: { onIncoming: (request: IncomingMessage & { upgrade?: boolean }) => number } | null
}

/**
 * Ends a connection behind the answer under way (RFC 9112 §9.6): later requests are not carried out. Their bytes are
 * read for a while, since a close would reset the connection, and a reset overtakes the answer.
 */
export function endAfterAnswer(socket: Socket & Parsing): void {
  if (socket.parser) socket.parser.onIncoming = skip
  socket.destroySoon = linger // called after `Connection: close`
}

function skip(request: { upgrade?: boolean }): number {
  request.upgrade = false
  return 2
}

function linger(this: Socket): void {
  if (this.writableEnded) return
  this.end()
  let rest = MAX_DRAIN_BYTES
  const discard = (): void => {
    this.removeAllListeners('data').on('data', (bytes: Buffer) => {
      rest -= bytes.length
      if (rest < 0) this.destroy()
    })
  }
  // node:http resumes reading only as long as it has the socket.
  if (this.isPaused()) this.once('resume', discard).resume()
  else discard()
  const timer = setTimeout(() => this.destroy(), DRAIN_TIMEOUT_MS)
  this.on('close', () => clearTimeout(timer))
}
