/** What each connection has asked for, and in which order that is answered. */
import type { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { MAX_PIPELINED_REQUESTS } from '../limits.ts'
import { rawReply, sendReply, statusReply } from './reply.ts'

/** Answers a request for a target, at once or later, and calls `done` when it has. Never throws. */
export type Answer = (request: IncomingMessage, response: ServerResponse, done: () => void, target: string) => void

/** What node:http refuses by itself, or does not know an answer to. */
type Refused = 400 | 405 | 408 | 413 | 431

const REFUSALS: { readonly [S in Refused]: Buffer } = {
  400: rawReply(statusReply(400)),
  405: rawReply(statusReply(405, ['Allow', 'GET, HEAD, POST, OPTIONS'])),
  408: rawReply(statusReply(408)),
  413: rawReply(statusReply(413)),
  431: rawReply(statusReply(431))
}

interface Turn {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly target: string
  isStarted: boolean
}

interface Connection {
  /** The last request so far, until it is over: what is kept for longer costs the collector more than all else. */
  last?: Turn | undefined
  /** Whether a request is being answered, and those that wait for that. */
  isBusy: boolean
  readonly parked: Turn[]
  /** Whether an answer ended the connection. */
  isEnding: boolean
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

  /** Has a request answered, now or when its turn comes; by then a framework may have changed what `url` says. */
  take(request: IncomingMessage, response: ServerResponse, target: string = request.url ?? ''): void {
    let connection = this.#known.get(request.socket)
    if (connection === undefined) {
      this.#known.set(request.socket, connection = { isBusy: false, parked: [], isEnding: false })
    }
    const { isBusy, parked } = connection
    const turn = connection.last = { request, response, target, isStarted: false }
    if (!isBusy && parked.length === 0) return this.#start(connection, turn)
    // node:http would read on and on; what it has read is kept.
    if (parked.push(turn) > MAX_PIPELINED_REQUESTS) request.socket.destroy()
  }

  #start(connection: Connection, turn: Turn): void {
    const { request, response, target } = turn
    turn.isStarted = true
    connection.isEnding ||= response.headersSent
    if (connection.isEnding) { response.shouldKeepAlive = false; return }
    connection.isBusy = true
    response.on('close', () => { if (connection.last === turn && request.complete) connection.last = undefined })
    this.#answer(request, response, () => {
      connection.isBusy = false
      connection.isEnding = !response.shouldKeepAlive
      if (connection.parked.length > 0) queueMicrotask(() => this.#startParked(connection))
    }, target)
  }

  /** Not from within the answer before: a thousand of them would make a deep stack. */
  #startParked(connection: Connection): void {
    while (!connection.isBusy && connection.parked.length > 0) this.#start(connection, connection.parked.shift()!)
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
    if (!last.request.complete) return this.#breakOff(last, socket, status)
    const { response } = last
    if (response.writableFinished) end()
    else if (response.shouldKeepAlive) response.on('close', end)
  }

  /** The rest of a request's body is not to be had: that is its answer, unless it has one, or gets one without it. */
  #breakOff({ request, response, isStarted }: Turn, socket: Duplex, status: Refused): void {
    const isAnswered = response.headersSent
    const readsNoBody = isStarted && request.listenerCount('data') === 0
    if (response.writableFinished) {
      socket.destroy()
    } else if (isAnswered) {
      response.on('close', () => socket.destroy()).end()
    } else if (readsNoBody) {
      response.shouldKeepAlive = false
    } else {
      response.on('close', () => request.destroy()) // which tells who reads the body
      sendReply(response, statusReply(status), [], true)
    }
  }
}
