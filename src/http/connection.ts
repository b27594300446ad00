/**
 * One connection of a listener: whose turn a request is, what its client has paid, and how it ends,
 * so that the client gets the last answer. At the end of this file, what is used of node:http
 * beyond its documentation, each with the reason why no documented way does
 * (`test/http/node-http.test.ts` tries each).
 */
import { Buffer } from 'node:buffer'
import { IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  BYTES_PER_PAID_MS,
  DRAIN_TIMEOUT_MS,
  MAX_DRAIN_BYTES,
  NEW_REQUEST_MS,
  PAID_AHEAD_MS
} from '../limits.ts'
import { headerFields, HTTP_TEXTS, OPTIONS_OF_SERVER, statusReply, type Refused } from './reply.ts'

export type Handle = (request: IncomingMessage, response: ServerResponse) => void

/** What comes next: a head; the answer; the rest of a body, or the end; the end alone. */
type Stage = 'head' | 'request' | 'sent' | 'refused'

/**
 * Carries out one request at a time. If a request comes before the answer to the one before was
 * handed over, that answer ends the connection (RFC 9112 §9.3.2, §9.6), and the request is not
 * carried out. So a client knows what to repeat.
 */
export class Connection {
  /** Over TLS, the handshake's at first. */
  socket: Socket
  #stage: Stage = 'head'
  /** To the request in progress, or to the one behind it. */
  #answer: ServerResponse | undefined
  /** Counted on the way of a request; looks find out all else. */
  #requests = 0
  /** At the last look. */
  #seenRequests = 0
  #seenMovedBytes = 0
  /** When its last request was first seen; when one was last seen under way. */
  #askedMs: number
  #busyMs: number
  /** Until when its client has paid for the request under way. */
  #paidMs = 0
  /** `bytesRead` when it began to wait for a head. */
  #readBytes = 0

  constructor(socket: Socket, nowMs: number) {
    this.socket = socket
    this.#askedMs = nowMs
    this.#busyMs = nowMs
  }

  get hasAsked(): boolean {
    return this.#requests > 0
  }

  /** Whether it waits for a head of which no part has come. */
  get isIdle(): boolean {
    return this.#stage === 'head' && this.socket.bytesRead === this.#readBytes
  }

  onRequest(request: IncomingMessage, response: ServerResponse, handle: Handle): void {
    const before = this.#answer
    const isFree = this.#stage === 'head' || this.#stage === 'sent'
    if (!isFree && !(this.#stage === 'request' && before!.headersSent && keepsAlive(before!))) {
      if (before?.headersSent === false) endBehindAnswer(before)
      // From node:http's next read on, bytes wait at the client.
      setImmediate(() => this.socket.pause())
      return
    }
    this.#requests++
    this.#stage = 'request'
    this.#answer = response
    response.on('finish', () => this.#onSent(response))
    if (isFree) return handle(request, response)
    before!.once('finish', () => {
      if (!this.socket.destroyed) handle(request, response)
    })
  }

  /**
   * Drops a sent answer and its request: idle connections must be small, and a head may be long.
   */
  #onSent(answer: ServerResponse): void {
    if (this.#answer !== answer || this.#stage === 'refused') return
    this.#stage = 'sent'
    const { req } = answer
    if (!req.complete && !req.destroyed) {
      req.once('close', () => this.#onSent(answer))
      return
    }
    if (!keepsAlive(answer) || this.socket.destroyed) return
    this.#stage = 'head'
    this.#answer = undefined
    this.#readBytes = this.socket.bytesRead
  }

  /** What is no request is answered by `refuse`, behind the answer under way. */
  onMalformed(status: Refused, refuse: () => void): void {
    if (this.#stage === 'refused') return
    const answer = this.#answer
    this.#requests++
    this.#stage = 'refused'
    if (answer === undefined) return refuse()
    const { req: request } = answer
    if (!request.complete) {
      // its body is malformed, and the answer to it the only one
      const { onBroken } = request as ListenerRequest
      if (onBroken === undefined) endBehind(answer)
      else onBroken(this.socket.readableEnded ? 'gone' : status)
    } else if (answer.writableEnded && keepsAlive(answer)) {
      onceSent(answer, refuse)
    } else {
      endBehind(answer) // behind `Connection: close` no answer may follow (RFC 9112 §9.6)
    }
  }

  /** Notes what its client has paid since the last look. */
  look(nowMs: number): void {
    const { bytesRead, bytesWritten, writableLength } = this.socket
    const movedBytes = bytesRead + bytesWritten - writableLength
    const isNew = this.#requests !== this.#seenRequests
    const paidMs = this.#paidMs + (movedBytes - this.#seenMovedBytes) / BYTES_PER_PAID_MS
    const mostMs = nowMs + PAID_AHEAD_MS
    this.#paidMs = isNew || this.#isAtWork() ? mostMs : Math.min(paidMs, mostMs)
    if (isNew) this.#askedMs = nowMs
    if (isNew || this.#stage === 'request') this.#busyMs = nowMs
    this.#seenRequests = this.#requests
    this.#seenMovedBytes = movedBytes
  }

  /**
   * Until when its client has paid, as of the last look. The least gives way; Infinity never does.
   * A connection that has its answer loses nothing: it has paid until it asked for that. A new
   * request is worth more than all that others have paid ahead: otherwise no newcomer would get in
   * beside greedy readers.
   */
  paidUntilMs(nowMs: number): number {
    if (this.#stage !== 'request') return this.#askedMs
    if (this.#isAtWork()) return Infinity
    return this.#paidMs + (nowMs - this.#askedMs < NEW_REQUEST_MS ? PAID_AHEAD_MS : 0)
  }

  /** As of the last look. */
  silentMs(nowMs: number): number {
    return nowMs - this.#busyMs
  }

  /**
   * Whether the next step is the service's, not the client's. An answer without a socket waits
   * until the one before was taken.
   */
  #isAtWork(): boolean {
    const answer = this.#answer
    if (this.#stage !== 'request' || answer === undefined) return false
    return answer.socket !== null && !answer.headersSent && answer.req.complete
  }
}

/** Ends the connection behind an answer that has not begun. */
export function endBehindAnswer(response: ServerResponse): void {
  endsConnection(response)
  endConnection(response.req.socket)
}

function endBehind(answer: ServerResponse): void {
  if (!answer.headersSent) return endBehindAnswer(answer)
  const { socket } = answer.req
  endConnection(socket)
  onceSent(answer, () => socket.destroySoon())
}

function onceSent(answer: ServerResponse, act: () => void): void {
  if (answer.writableFinished) act()
  else answer.once('finish', act)
}

export function refuseConnection(
  socket: Socket,
  status: Refused,
  headers: readonly string[] = []
): void {
  const reply = statusReply(status, status === 405 ? OPTIONS_OF_SERVER.headers : [])
  const text = String(reply.body)
  const fields = headerFields(reply, [...headers, 'Connection', 'close'], Buffer.byteLength(text))
  const lines = [`HTTP/1.1 ${status} ${HTTP_TEXTS[status]}`]
  for (let i = 0; i < fields.length; i += 2) lines.push(`${fields[i]}: ${fields[i + 1]}`)
  socket.write(`${lines.join('\r\n')}\r\n\r\n${text}`)
  endConnection(socket)
  socket.destroySoon()
}

/** Ends the connection behind the answer under way (RFC 9112 §9.6). */
function endConnection(socket: Socket): void {
  stopParser(socket)
  replaceLastStep(socket, () => linger(socket))
}

/**
 * Ends the writing side, and discards for a while what still comes: a close would reset the
 * connection.
 */
function linger(socket: Socket): void {
  if (socket.writableEnded) return
  socket.end()
  let restBytes = MAX_DRAIN_BYTES
  const discard = (): void => {
    socket.removeAllListeners('data').on('data', (bytes: Buffer) => {
      restBytes -= bytes.length
      if (restBytes < 0) socket.destroy()
    })
  }
  // node:http resumes reading only as long as it has the socket.
  if (socket.isPaused()) socket.once('resume', discard).resume()
  else discard()
  const timer = setTimeout(() => socket.destroy(), DRAIN_TIMEOUT_MS)
  socket.on('close', () => clearTimeout(timer))
}

/**
 * A client may end its side behind its request; without this, node:http drops the answer. The
 * option `allowHalfOpen` of node:net does not help.
 */
export function allowHalfOpen(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true })
}

/**
 * `server.close()` calls this, and node:http takes a connection for idle while its answer is still
 * being sent. `close()` of node:net would leave a timer of node:http behind.
 */
export function sparesSendingConnections(server: Server): void {
  server.closeIdleConnections = () => {}
}

/**
 * Whether another request may follow. Version and `Connection` decide; to read them here could
 * differ from how node:http reads them.
 */
export function keepsAlive(response: ServerResponse): boolean {
  return response.shouldKeepAlive
}

/**
 * The documented way, the field `Connection: close`, needs the answer's fields, which are not known
 * yet.
 */
export function endsConnection(response: ServerResponse): void {
  response.shouldKeepAlive = false
}

/**
 * The parser gives each head to `onIncoming`, and stops if that returns 2, as behind an upgrade.
 * `pause()` of the socket would let it finish what was read: 64 KiB are 3,600 requests, which take
 * 5 MB.
 */
export function stopParser(socket: Socket): void {
  const { parser } = socket as Socket & { parser?: { onIncoming: typeof skip } | null }
  if (parser) parser.onIncoming = skip
}

function skip(request: { upgrade?: boolean }): number {
  request.upgrade = false
  return 2
}

/**
 * Behind the last answer, node:http calls the socket's `destroySoon()`, which resets a connection
 * with unread bytes. The reset overtakes the answer. node:http has no option for it.
 */
export function replaceLastStep(socket: Socket, lastStep: () => void): void {
  socket.destroySoon = lastStep
}

/**
 * It can drop a body before its stream: node:http calls `push()` for each chunk, 64 KiB may be
 * 10,000 chunks, and a stream costs as much for each without listeners. Its properties are declared
 * only: to make three costs as much as a request's routing.
 */
export class ListenerRequest extends IncomingMessage {
  declare isDiscarded: boolean | undefined
  /**
   * Whether `100 Continue` was sent. node:http ends the connection of a client that expects it and
   * gets none.
   */
  declare isContinued: boolean | undefined
  /** Called if the body breaks off while it is read: with the status that answers it, or `gone`. */
  declare onBroken: ((why: Refused | 'gone') => void) | undefined

  override push(piece: Buffer | null): boolean {
    return this.isDiscarded === true && piece !== null ? true : super.push(piece)
  }
}
