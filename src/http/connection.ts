/**
 * A connection, on which one request at a time is carried out.
 *
 * A request that comes while the answer to the one before is not decided is not carried out: that answer says
 * `Connection: close` and ends the connection (RFC 9112 §9.3.2, §9.6), so a client knows what it has to send again.
 * Behind an answer that is decided the next request is carried out, until too many answers wait for a slow reader.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  DRAIN_TIMEOUT_MS, KEEP_ALIVE_TIMEOUT_MS, MAX_HELD_ANSWER_BYTES, MAX_HELD_ANSWERS, SOCKET_TIMEOUT_MS
} from '../limits.ts'
import type { Peer } from './address.ts'
import { BROKEN } from './body.ts'
import { rawRefusal, type Refused } from './reply.ts'
import { endAfterAnswer, endWith } from './send.ts'

/** What an answer counts for at least. */
const HELD_ANSWER_BYTES = MAX_HELD_ANSWER_BYTES / MAX_HELD_ANSWERS

/** Answers a request for a target, at once or later, and calls `done` when its answer is decided. Never throws. */
export type Handle =
  (request: IncomingMessage, response: ServerResponse, target: string, peer: Peer, done: () => void) => void

/** From this, node:http tells a client how long its connection is kept. It is not part of its documented interface. */
interface KeptAlive { _keepAliveTimeout?: number }

export class Connection {
  peer: Peer
  /** Over TLS, that of the handshake until it has ended. */
  socket: Socket
  /** The answer to the newest request that is carried out, until both are at an end; the last one stays. */
  #newest: ServerResponse | undefined
  /** What that was at the last `boundSilence`. */
  #seen: ServerResponse | undefined
  /** What the answers before it hold that wait to be sent. */
  #heldBytes = 0
  #isRefused = false
  /** When it began to wait for a request's head; says nothing of one that is not idle. */
  waitsSinceMs = 0
  readonly #done: () => void

  /** `done` is called when the answer to a request is decided. */
  constructor(socket: Socket, peer: Peer, done: () => void) {
    this.socket = socket
    this.peer = peer
    this.#done = done
  }

  /** Whether it waits for a request's head, and nothing else; also while it shakes hands. */
  get isIdle(): boolean { return this.#newest === undefined || this.#newest.writableFinished }

  /** Called every few seconds: where one answer has been under way since the last call, sets a timeout for silence. */
  boundSilence(): void {
    const { socket, isIdle } = this
    const isSame = !isIdle && this.#newest === this.#seen
    this.#seen = this.#newest
    if (!isIdle) this.waitsSinceMs = performance.now()
    if (isSame !== (socket.timeout ?? 0) > 0) socket.setTimeout(isSame ? SOCKET_TIMEOUT_MS : 0)
  }

  take(request: IncomingMessage, response: ServerResponse & KeptAlive, handle: Handle): void {
    response._keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS
    const before = this.#newest
    if (before === undefined || before.writableFinished) this.#heldBytes = 0
    else {
      if (!before.headersSent) endWith(before)
      this.#heldBytes += Math.max(before.writableLength, HELD_ANSWER_BYTES)
    }
    if (before?.shouldKeepAlive === false) return this.#stopReading() // nothing is carried out behind the last answer
    this.#newest = response
    response.on('finish', () => this.#forget(response))
    if (this.#heldBytes >= MAX_HELD_ANSWER_BYTES) endWith(response)
    handle(request, response, request.url ?? '', this.peer, this.#done)
  }

  /** Lets go of an answer that was sent, and so of its request, whose head may be long: who is idle has to be small. */
  #forget(response: ServerResponse): void {
    const { req } = response
    if (!req.complete && !req.destroyed) { req.once('close', () => this.#forget(response)); return }
    if (this.#seen === response) this.#seen = undefined
    if (this.#newest === response && response.shouldKeepAlive) this.#newest = undefined
  }

  /** Leaves with the client what it goes on to send, once node:http is through with what it has read. */
  #stopReading(): void { setImmediate(() => this.socket.pause()) }

  /** Answers what is not a request, and ends the connection; `onRefusal` is called if that is what is answered. */
  refuse(status: Refused, onRefusal: () => void): void {
    if (this.#isRefused) return
    this.#isRefused = true
    const { socket } = this
    const newest = this.#newest
    if (newest?.headersSent === true && !newest.shouldKeepAlive) return endAfterAnswer(socket) // it ends by itself
    const isBody = newest?.req.complete === false // the answer to its request is the only one
    if (isBody && newest.req.emit(BROKEN, socket.readableEnded ? 'gone' : status)) return // who reads it answers that
    endAfterAnswer(socket)
    const end = (): void => {
      if (!isBody) {
        onRefusal()
        socket.write(rawRefusal(status))
      }
      socket.destroySoon()
    }
    if (newest === undefined || newest.writableFinished) return end()
    this.#stopReading()
    if (socket.listenerCount('drain') === 0) {
      // Behind a CONNECT, node:http neither says when more may be written nor cuts off who takes nothing.
      socket.on('drain', () => newest.emit('drain')).on('timeout', () => socket.destroy())
      if (newest.headersSent) setTimeout(() => socket.destroy(), 2 * DRAIN_TIMEOUT_MS).unref()
    }
    if (!newest.headersSent) return endWith(newest)
    newest.on('close', end)
  }
}
