/**
 * One connection of a listener: whose turn a request is, what its client has paid, and how it ends
 * behind its last answer, so that the client gets that answer. With what is used of node:http
 * beyond its documentation: each with its reason, and with the documented way that does not do
 * (`test/http/node-http.test.ts` asks Node for each).
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

/** What comes next: a head, the answer, the rest of a body or the end, or the end alone. */
type Stage = 'head' | 'request' | 'sent' | 'refused'

/**
 * It carries out one request at a time. If a request comes before the answer to the one before was
 * handed over, it is not carried out: that answer ends the connection (RFC 9112 §9.3.2, §9.6), so a
 * client knows what to repeat.
 */
export class Connection {
  /** Over TLS, first the handshake's. */
  socket: Socket
  #stage: Stage = 'head'
  /** To the request in progress, or to the request behind it. */
  #answer: ServerResponse | undefined
  /** All that is kept on the way of a request; looks find out the rest. */
  #requests = 0
  /** At the last look. */
  #seenRequests = 0
  #seenMovedBytes = 0
  /** When its last request was first seen, when one was last seen under way. */
  #askedMs: number
  #busyMs: number
  /** Until then its client has paid for the request under way. */
  #paidMs = 0
  /** What had come when it began to wait for a head. */
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
      // Later bytes stay with the client, once node:http has handled its last read.
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
   * Drops a sent answer and its request, whose head may be long: idle connections must be small.
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

  /** What came is no request: it is answered by `refuse`, behind the answer under way. */
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

  /** Finds out what its client has paid since the last look. */
  look(nowMs: number): void {
    const { bytesRead, bytesWritten, writableLength } = this.socket
    // What has come, and what the system has taken of answers.
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
   * Until when its client has paid, as the last look found; the least gives way, Infinity does not.
   * Nothing is lost with a connection that has its answer, so it has paid until it asked for that.
   * In its first moment a request is worth more than all that others have saved up: beside greedy
   * readers no newcomer would get in.
   */
  paidUntilMs(nowMs: number): number {
    if (this.#stage !== 'request') return this.#askedMs
    if (this.#isAtWork()) return Infinity
    return this.#paidMs + (nowMs - this.#askedMs < NEW_REQUEST_MS ? PAID_AHEAD_MS : 0)
  }

  /** As the last look found. */
  silentMs(nowMs: number): number {
    return nowMs - this.#busyMs
  }

  /**
   * Whether the service owes the next step, and not the client. An answer without a socket waits
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

/** The answer under way is the last one. */
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

/** Answers what is no request, and ends its connection. */
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

/**
 * Ends a connection behind the answer under way (RFC 9112 §9.6): later requests are not carried
 * out.
 */
function endConnection(socket: Socket): void {
  stopParser(socket)
  replaceLastStep(socket, () => linger(socket))
}

/**
 * Ends the writing side, and discards for a while what the client still sends: a close would reset
 * the connection.
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
 * A client may end its side behind its request. Otherwise node:http drops the answer. The option
 * `allowHalfOpen` of node:net is on in any case, and does not help.
 */
export function allowHalfOpen(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true })
}

/**
 * `server.close()` calls `closeIdleConnections()`, for which a connection is idle although its
 * answer is still being sent. `close()` of node:net would leave a timer of node:http behind.
 */
export function sparesSendingConnections(server: Server): void {
  server.closeIdleConnections = () => {}
}

/**
 * Whether another request may follow this answer: the version and `Connection` of the request
 * decide. To read them here would be a second reading, which may differ from node:http's own.
 */
export function keepsAlive(response: ServerResponse): boolean {
  return response.shouldKeepAlive
}

/**
 * The documented way, the field `Connection: close`, needs the answer's fields, which may not be
 * known yet.
 */
export function endsConnection(response: ServerResponse): void {
  response.shouldKeepAlive = false
}

/**
 * The parser gives each head to `onIncoming`, and stops if that returns 2, as behind an upgrade.
 * `pause()` of the socket lets the parser finish what was read: 64 KiB are 3,600 requests, which
 * take 5 MB until the first is answered.
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
 * Behind its last answer, node:http calls the socket's `destroySoon()`. That resets a connection
 * with unread bytes, and the reset overtakes the answer. node:http acts on `Connection: close` by
 * itself, and has no option for it.
 */
export function replaceLastStep(socket: Socket, lastStep: () => void): void {
  socket.destroySoon = lastStep
}

/**
 * It can drop a body before its stream, to which node:http gives each chunk by `push()`: 64 KiB may
 * be 10,000 chunks. If the stream flows without listeners, each of them costs as much as with one.
 * Its properties are declared and not made: to make three costs a request as much as its routing.
 */
export class ListenerRequest extends IncomingMessage {
  declare isDiscarded: boolean | undefined
  /**
   * Whether `100 Continue` was sent: a client that expects it and gets none loses its connection by
   * node:http.
   */
  declare isContinued: boolean | undefined
  /** Told if the body breaks off while it is read: with the status that answers it, or `gone`. */
  declare onBroken: ((why: Refused | 'gone') => void) | undefined

  override push(piece: Buffer | null): boolean {
    return this.isDiscarded === true && piece !== null ? true : super.push(piece)
  }
}
