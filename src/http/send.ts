/** Sends a reply: over TCP, over TLS, and behind the middleware of somebody else's server; and ends a connection. */
import { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  DRAIN_TIMEOUT_MS, MAX_DRAIN_BYTES, SEND_BYTES, SEND_COPIED_BYTES, SEND_PIECES, SHORT_BODY_BYTES
} from '../limits.ts'
import { bodyBytes, fieldsOf, type Reply } from './reply.ts'

/**
 * Sends 100 Continue (RFC 9110 §10.1.1), unless `node:http` has: it does so by itself on a server that does not listen
 * for `checkContinue`, and only this field shows it.
 */
export function sendContinue(response: ServerResponse & { readonly _sent100?: boolean }): void {
  if (response._sent100 !== true) response.writeContinue()
}

/** Sends a reply with further header fields; `isLast` ends the connection with it. */
export function sendReply(response: ServerResponse, reply: Reply, extra: readonly string[], isLast: boolean): void {
  // To HTTP/1.0, node:http ends the connection behind an answer without a length, whatever was agreed.
  if (isLast || (reply.body === undefined && response.req.httpVersionMinor === 0)) endWith(response)
  writeHead(response, reply.status, fieldsOf(reply, extra))
  const { body = '' } = reply
  if (typeof body === 'string' && body.length <= SHORT_BODY_BYTES) {
    response.end(body)
    return
  }
  // A long text waits for a slow reader outside of the heap, where a wide character does not double it.
  const pieces = typeof body === 'string' ? [Buffer.from(body)] : body
  if (bodyBytes(pieces) > SHORT_BODY_BYTES) sendPieces(response, pieces)
  else response.end(Buffer.concat([...pieces])) // a copy, so that a slow reader keeps no page of entries
}

/** Writes a head, whose fields are names and values in turn. */
function writeHead(response: ServerResponse, status: number, fields: string[]): void {
  if (!Object.hasOwn(response, 'writeHead')) { response.writeHead(status, fields); return }
  // Middleware is before it, and may know fields as an object alone: on-headers before 1.1 does, which many use.
  for (let i = 0; i < fields.length; i += 2) response.setHeader(fields[i]!, fields[i + 1]!)
  response.writeHead(status)
}

/** Makes an answer that has not begun the last of its connection. */
export function endWith(response: ServerResponse): void {
  response.shouldKeepAlive = false
  endAfterAnswer(response.req.socket)
}

/** Writes pieces, and further ones when those before were taken. `drain` is what every middleware passes on. */
function sendPieces(response: ServerResponse, pieces: Iterable<Buffer>): void {
  const { socket } = response.req
  const mostBytes = 'encrypted' in socket ? SEND_COPIED_BYTES : SEND_BYTES
  const rest = pieces[Symbol.iterator]()
  let next = rest.next()
  let offset = 0
  const send = (): void => {
    let given = 0
    let bytes = 0
    while (next.done !== true) {
      const whole = next.value
      const piece = whole.length <= mostBytes ? whole : whole.subarray(offset, offset + mostBytes)
      offset += piece.length
      if (offset >= whole.length) { next = rest.next(); offset = 0 }
      given++
      bytes += piece.length
      if (!response.write(piece) && (bytes >= mostBytes || given >= SEND_PIECES)) return
    }
    response.off('drain', goOn)
    response.end()
  }
  // node:http says `drain` also when an answer behind this one is written: then the connection's own is waited for.
  const goOn = (): void => {
    if (socket.writableNeedDrain) socket.once('drain', send)
    else send()
  }
  response.on('drain', goOn)
  send()
}

/**
 * What node:http hands each head to that it has parsed; 2 has it stop there, as behind an upgrade. This is not part of
 * its documented interface: without it, further requests of the same read would be parsed, and then not carried out.
 */
interface Parsing {
  parser?: { onIncoming: (request: IncomingMessage & { upgrade?: boolean }) => number } | null
}

/**
 * Ends a connection so that the answer under way arrives as its last (RFC 9112 §9.6): nothing that came behind the
 * request is carried out, and once the answer is out, what still comes is read and thrown away for a while. A
 * connection closed at once would be reset by the system, and a reset overtakes an answer. The header fields of the
 * answer are the caller's business.
 */
export function endAfterAnswer(socket: Socket & Parsing): void {
  if (socket.parser) socket.parser.onIncoming = skip
  socket.destroySoon = linger // node:http calls it once an answer that says `Connection: close` is out
}

function skip(request: { upgrade?: boolean }): number {
  request.upgrade = false
  return 2
}

/** Ends our side, and throws away what comes until the client ends its own, up to a bound in bytes and in time. */
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
  // node:http starts to read again where it has stopped, but only as long as it is the one who reads.
  if (this.isPaused()) this.once('resume', discard).resume()
  else discard()
  const timer = setTimeout(() => this.destroy(), DRAIN_TIMEOUT_MS)
  this.on('close', () => clearTimeout(timer))
}
