/**
 * The connections of a listener, which it counts by itself. When all are taken, one that waits for a head gives way.
 *
 * On each, one request at a time is carried out. A request that comes before the answer to the one before it was handed
 * over is not carried out: that answer says `Connection: close` and ends the connection (RFC 9112 §9.3.2, §9.6), so a
 * client knows what it has to send again.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { nowMs } from '../clock.ts'
import { HEADERS_TIMEOUT_MS, KEEP_ALIVE_TIMEOUT_MS } from '../limits.ts'
import { BROKEN } from './body.ts'
import { isTrusted, peerOf, type AddressSet } from './client.ts'
import { rawRefusal, type Refused } from './reply.ts'
import { endAfterAnswer, endWith } from './send.ts'

/** Answers a request. Never throws. */
export type Handle = (request: IncomingMessage, response: ServerResponse) => void

export interface ConnectionsOptions {
  /** Whether they begin with a handshake of TLS. */
  readonly isTls: boolean
  /** How many there may be at once. */
  readonly most: number
  /** Proxies; each has many clients, so that its connections do not give way. */
  readonly trustedProxies: AddressSet | undefined
  /** Header fields of every answer, names and values in turn. */
  readonly headers: readonly string[]
  /** Called for each answer to what was not a request, with its status and its peer's address. */
  readonly onRefusal: ((status: number, address: string) => void) | undefined
}

interface Connection {
  /** Over TLS, that of the handshake until it has ended. */
  socket: Socket
  readonly isExempt: boolean
  /** That to the request which is carried out, or waits for the one before it; undefined while none is there. */
  answer: ServerResponse | undefined
  /** The set that it waits in. */
  waitsIn: Set<Connection> | undefined
  sinceMs: number
  /** What had come of it when it began to wait. */
  bytesRead: number
  isRefused: boolean
}

/** A socket knows its connection: to look it up in a map would cost every request as much as all of its guards. */
const CONNECTION: unique symbol = Symbol('connection')
type KnownSocket = Socket & { [CONNECTION]?: Connection | undefined }

export class Connections {
  readonly #handle: Handle
  readonly #options: ConnectionsOptions
  readonly #all = new Set<Connection>()
  /** Those that wait for a head, the longest waiting first: that never sent a whole request, that did, of proxies. */
  readonly #waiting = { fresh: new Set<Connection>(), idle: new Set<Connection>(), exempt: new Set<Connection>() }
  /** By the addresses and ports at both ends. */
  readonly #shakingHands = new Map<string, Connection>()

  constructor(handle: Handle, options: ConnectionsOptions) {
    this.#handle = handle
    this.#options = options
  }

  get size(): number { return this.#all.size }

  /** Takes in an accepted socket, or closes it when its client is gone or there is no place left. */
  accept(socket: KnownSocket): void {
    const { isTls, most, trustedProxies } = this.#options
    const peer = peerOf(socket)
    if (peer === undefined || (this.#all.size >= most && !this.#giveWay())) { socket.destroy(); return }
    const isExempt = isTrusted(peer.address, trustedProxies)
    const connection: Connection = {
      socket, isExempt, answer: undefined, waitsIn: undefined, sinceMs: 0, bytesRead: 0, isRefused: false
    }
    this.#all.add(connection)
    this.#wait(connection, this.#waiting.fresh)
    const place = placeOf(socket)
    if (isTls) this.#shakingHands.set(place, connection)
    else socket[CONNECTION] = connection
    socket.on('error', ignore) // node:http does not listen after a CONNECT
    socket.on('close', () => {
      this.#forget(connection)
      if (this.#shakingHands.get(place) === connection) this.#shakingHands.delete(place)
    })
  }

  /** Takes in the end of a handshake: from now on the connection speaks on another socket. */
  secure(socket: KnownSocket): void {
    const place = placeOf(socket)
    const connection = this.#shakingHands.get(place)
    this.#shakingHands.delete(place)
    if (connection === undefined || connection.socket.destroyed || peerOf(socket) === undefined) {
      socket.destroy()
      return
    }
    socket.on('error', ignore)[CONNECTION] = connection
    connection.socket = socket
    connection.bytesRead = socket.bytesRead
  }

  /** Has a request answered, unless its client is gone. */
  take(request: IncomingMessage, response: ServerResponse & KeptAlive): void {
    const { [CONNECTION]: connection, destroyed: isGone } = request.socket as KnownSocket
    if (connection === undefined || isGone) return
    response._keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS
    const before = connection.answer
    const isFirst = before === undefined || response.socket !== null // the socket is that of the oldest answer
    if (!isFirst && (!before.headersSent || !before.shouldKeepAlive)) {
      if (!before.headersSent) endWith(before)
      // What the client goes on to send stays with it, once node:http is through with what it has read.
      setImmediate(() => connection.socket.pause())
      return
    }
    connection.waitsIn?.delete(connection)
    connection.answer = response
    response.on('finish', () => this.#answered(connection, response))
    if (isFirst) this.#handle(request, response)
    else before.once('finish', () => { if (!connection.socket.destroyed) this.#handle(request, response) })
  }

  /** Ends a connection; with a status, answers what is not a request. */
  refuse(socket: KnownSocket, status: Refused | undefined): void {
    const { [CONNECTION]: connection } = socket
    // No answer is possible: the client is gone, or its handshake has not ended.
    if (connection === undefined || status === undefined || socket.destroyed) { socket.destroy(); return }
    if (connection.isRefused) return
    connection.isRefused = true
    const { answer } = connection
    const isBody = answer?.req.complete === false // then the answer to its request is the only one
    if (answer === undefined || (answer.writableFinished && !isBody)) {
      this.#options.onRefusal?.(status, peerOf(socket)?.address ?? '')
      socket.write(rawRefusal(status, this.#options.headers))
      endAfterAnswer(socket)
      socket.destroySoon()
      return
    }
    if (isBody && answer.req.emit(BROKEN, socket.readableEnded ? 'gone' : status)) return // who reads it answers that
    // Behind a CONNECT, node:http does not say when more may be written.
    if (socket.listenerCount('drain') === 0) socket.on('drain', () => answer.emit('drain'))
    if (!answer.headersSent) return endWith(answer)
    endAfterAnswer(socket)
    if (answer.writableFinished) socket.destroySoon()
    else answer.once('finish', () => socket.destroySoon())
  }

  /** Closes those that have sent no request for long, even if some bytes now and then. */
  closeSilent(): void {
    const beforeMs = nowMs() - KEEP_ALIVE_TIMEOUT_MS - HEADERS_TIMEOUT_MS
    for (const waiting of Object.values(this.#waiting)) {
      for (const one of waiting) {
        if (one.sinceMs > beforeMs) break
        one.socket.destroy()
      }
    }
  }

  /** Closes those that have not begun a request; a handshake is none. */
  destroyIdle(): void {
    for (const { socket } of this.#shakingHands.values()) socket.destroy()
    for (const one of this.#all) {
      if (one.waitsIn?.has(one) === true && one.socket.bytesRead === one.bytesRead) one.socket.destroy()
    }
  }

  destroyAll(): void { for (const { socket } of this.#all) socket.destroy() }

  /** Closes the one that has waited longest for a head, if any waits. */
  #giveWay(): boolean {
    const [longest] = [...first(this.#waiting.fresh), ...first(this.#waiting.idle)]
    if (longest === undefined) return false
    this.#forget(longest)
    longest.socket.destroy()
    return true
  }

  #wait(connection: Connection, where: Set<Connection>): void {
    connection.waitsIn = connection.isExempt ? this.#waiting.exempt : where
    connection.waitsIn.add(connection)
    connection.sinceMs = nowMs()
    connection.bytesRead = connection.socket.bytesRead
  }

  /** Lets go of an answer that was sent, and so of its request, whose head may be long: who is idle has to be small. */
  #answered(connection: Connection, answer: ServerResponse): void {
    const { req } = answer
    if (!req.complete && !req.destroyed) { req.once('close', () => this.#answered(connection, answer)); return }
    if (connection.answer !== answer || !answer.shouldKeepAlive || connection.socket.destroyed) return
    connection.answer = undefined
    this.#wait(connection, this.#waiting.idle)
  }

  #forget(connection: Connection): void {
    this.#all.delete(connection)
    connection.waitsIn?.delete(connection)
  }
}

/** From this, node:http tells a client how long its connection is kept. It is not part of its documented interface. */
interface KeptAlive { _keepAliveTimeout?: number }

function first<T>(set: ReadonlySet<T>): T[] {
  for (const one of set) return [one]
  return []
}

/** Which of all connections of this machine a socket is on, also before and after a handshake. */
function placeOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}

function ignore(): void {}
