/** What each connection has asked for, and in which order that is answered. */
import type { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { MAX_PIPELINED_REQUESTS } from '../limits.ts'
import { rawReply, sendReply, statusReply } from './reply.ts'

/** Answers a request: at once, or later, in which case the promise settles with the answer. Never throws. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>

/** What node:http refuses by itself, or does not know an answer to. */
export type Refused = 400 | 405 | 408 | 413 | 431

const REFUSALS: { readonly [S in Refused]: Buffer } = {
  400: rawReply(statusReply(400)),
  405: rawReply(statusReply(405, ['Allow', 'GET, HEAD, POST, OPTIONS'])),
  408: rawReply(statusReply(408)),
  413: rawReply(statusReply(413)),
  431: rawReply(statusReply(431))
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  isStarted: boolean
}

/** A connection's last request so far, and the end of the answers that are not given at once. */
interface Connection {
  last?: Exchange
  turn?: Promise<void> | undefined
  /** How many requests wait for that. */
  waiting: number
}

/**
 * Keeps the requests of a connection in order. One that follows a change waits for it (RFC 9112 §9.3.2: only safe
 * requests may overtake each other), and none is looked at behind an answer that ends the connection (§9.6). A
 * response whose `shouldKeepAlive` is false is such an end.
 */
export class Connections {
  readonly #answer: Answer
  readonly #known = new WeakMap<Duplex, Connection>()

  readonly #onRefusal: (socket: Duplex, status: Refused) => void

  /** `onRefusal` is told of each answer that is given to what was not even a request. */
  constructor(answer: Answer, onRefusal: (socket: Duplex, status: Refused) => void) {
    this.#answer = answer
    this.#onRefusal = onRefusal
  }

  /** Has a request answered, now or when its turn comes. */
  take(request: IncomingMessage, response: ServerResponse): void {
    let connection = this.#known.get(request.socket)
    if (connection === undefined) this.#known.set(request.socket, connection = { waiting: 0 })
    const before = connection.last?.response
    const own: Exchange = connection.last = { request, response, isStarted: false }
    const start = (): void | Promise<void> => {
      own.isStarted = true
      if (before?.shouldKeepAlive === false || response.headersSent) response.shouldKeepAlive = false
      else return this.#answer(request, response)
    }
    const answered = connection.turn === undefined ? start() : this.#afterTurn(connection, own, start)
    if (answered === undefined) return
    const turn = connection.turn = answered.then(() => { if (connection.turn === turn) connection.turn = undefined })
  }

  #afterTurn(connection: Connection, { request }: Exchange, start: () => void | Promise<void>): Promise<void> {
    // node:http would read on and on; what it has read is kept.
    if (++connection.waiting > MAX_PIPELINED_REQUESTS) request.socket.destroy()
    return connection.turn!.then(() => {
      connection.waiting--
      return start()
    })
  }

  /** Answers what is not a request, once all requests before it are answered, and ends the connection. */
  refuse(socket: Duplex, status: Refused): void {
    socket.on('error', () => {}) // of a client that is gone
    const end = (): void => {
      this.#onRefusal(socket, status)
      if (socket.writable) socket.end(REFUSALS[status], () => socket.destroy())
      else socket.destroy()
    }
    const last = this.#known.get(socket)?.last
    if (last === undefined) return end()
    const { request, response, isStarted } = last
    if (!request.complete) {
      // The rest of its body is broken. That is its answer, unless it has one, or will get one without its body.
      if (response.writableFinished) socket.destroy()
      else if (response.headersSent) response.on('close', () => socket.destroy()).end()
      else if (isStarted && request.listenerCount('data') === 0) response.shouldKeepAlive = false
      else {
        response.on('close', () => request.destroy()) // which tells who reads the body
        sendReply(response, statusReply(status), [], true)
      }
    } else if (response.writableFinished) {
      end()
    } else if (response.shouldKeepAlive) {
      response.on('close', end)
    }
  }
}
