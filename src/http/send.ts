/**
 * Sends replies over TCP and TLS, and behind a host's middleware. Readers take a long answer in shared pieces. A reader
 * slower than a modem is cut; memory for slow readers is bounded.
 */
import { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  ANSWER_BYTES_PER_SECOND, ANSWER_TIMEOUT_MS, DRAIN_TIMEOUT_MS, MAX_DRAIN_BYTES, MAX_UNSENT_BYTES, SEND_BYTES,
  SEND_COPIED_BYTES, SEND_PIECES, SHORT_BODY_BYTES, TIMEOUT_CHECK_MS
} from '../limits.ts'
import {
  HTTP_TEXTS, JSON_KIND, OPTIONS_OF_SERVER, statusReply, type Body, type Pieces, type Refused, type Reply
} from './reply.ts'

/** RFC 9110 §10.1.1. Without a `checkContinue` listener, node:http has sent it already. */
export function sendContinue(response: ServerResponse & { readonly _sent100?: boolean }): void {
  if (response._sent100 !== true) response.writeContinue()
}

/** `isLast` ends the connection. */
export function sendReply(response: ServerResponse, reply: Reply, extra: readonly string[], isLast: boolean): void {
  // To HTTP/1.0, node:http closes behind an answer without a length.
  if (isLast || (reply.body === undefined && response.req.httpVersionMinor === 0)) endWith(response)
  writeHead(response, reply.status, fieldsOf(reply, extra))
  const { body = '' } = reply
  const bytes = bodyBytes(body)
  const answer: Answer = { response, pieces: [], sinceMs: performance.now(), givenBytes: 0 }
  if (bytes <= SHORT_BODY_BYTES) {
    answer.givenBytes = bytes
    response.end(typeof body === 'string' ? body : Buffer.concat([...body])) // a copy: slow readers keep no piece
  } else {
    // A long text waits outside of the heap, where wide characters do not double it.
    answer.pieces = typeof body === 'string' ? [Buffer.from(body)] : body
    sendPieces(answer)
  }
  // Middleware may end the answer later.
  if (response.writableLength > 0 || !response.writableEnded) watch(answer)
}

/** A 204 has no length (RFC 9110 §8.6). */
function fieldsOf({ body, headers = [], kind = JSON_KIND }: Reply, extra: readonly string[]): string[] {
  const fields = body === undefined ? [] : ['Content-Type', kind.type, 'Content-Length', String(bodyBytes(body))]
  fields.push('Cache-Control', kind.cache, 'X-Content-Type-Options', 'nosniff')
  for (const part of headers) fields.push(part)
  for (const part of extra) fields.push(part)
  return fields
}

function bodyBytes(body: Body): number {
  if (typeof body === 'string') return Buffer.byteLength(body)
  return 'bytes' in body ? body.bytes : body.reduce((sum, piece) => sum + piece.length, 0)
}

/** For requests without a response object. */
export function rawRefusal(status: Refused, headers: readonly string[] = []): Buffer {
  const reply = statusReply(status, status === 405 ? OPTIONS_OF_SERVER.headers : [])
  const fields = fieldsOf(reply, [...headers, 'Connection', 'close'])
  const lines = [`HTTP/1.1 ${status} ${HTTP_TEXTS[status]}`]
  for (let i = 0; i < fields.length; i += 2) lines.push(`${fields[i]}: ${fields[i + 1]}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${String(reply.body)}`)
}

function writeHead(response: ServerResponse, status: number, fields: string[]): void {
  if (!Object.hasOwn(response, 'writeHead')) { response.writeHead(status, fields); return }
  // Middleware may take fields as an object only, as on-headers before 1.1 does.
  for (let i = 0; i < fields.length; i += 2) response.setHeader(fields[i]!, fields[i + 1]!)
  response.writeHead(status)
}

interface Answer {
  readonly response: ServerResponse
  pieces: readonly Buffer[] | Pieces
  readonly sinceMs: number
  givenBytes: number
}

/** Middleware passes `drain` on. */
function sendPieces(answer: Answer): void {
  const { response, pieces } = answer
  const mostBytes = 'encrypted' in response.req.socket ? SEND_COPIED_BYTES : SEND_BYTES
  const rest = slicesOf(pieces, mostBytes)
  const send = (): void => {
    let bytes = 0
    let count = 0
    for (let next = rest.next(); next.done !== true; next = rest.next()) {
      bytes += next.value.length
      answer.givenBytes += next.value.length
      if (!response.write(next.value) && (bytes >= mostBytes || ++count >= SEND_PIECES)) return
    }
    response.off('drain', send)
    response.end()
  }
  response.on('drain', send)
  send()
}

function * slicesOf(pieces: Iterable<Buffer>, mostBytes: number): Generator<Buffer, void, void> {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += mostBytes) {
      yield piece.length <= mostBytes ? piece : piece.subarray(at, at + mostBytes)
    }
  }
}

/** Not yet taken, the oldest first. */
const unsent = new Set<Answer>()
let looking: NodeJS.Timeout | undefined

function watch(answer: Answer): void {
  if (bodyBytes(answer.pieces) > 0) makeRoomBeside(answer.pieces)
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

/**
 * Bounds memory beside the newest answer. Memory grows only with a new version of the list, since versions share
 * unchanged pieces. The oldest readers are cut.
 */
function makeRoomBeside(newest: Iterable<Buffer>): void {
  const seen = new Set<unknown>([newest, ...newest])
  let bytes = 0
  for (const answer of [...unsent].reverse()) {
    if (seen.has(answer.pieces)) continue
    seen.add(answer.pieces)
    for (const piece of answer.pieces) {
      if (seen.has(piece)) continue
      seen.add(piece)
      bytes += piece.length
    }
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
