/**
 * The connections of a listener: which of them wait, which gives way if all are taken, and whose
 * turn a request is. A connection carries out one request at a time. If a request comes before the
 * answer to the one before was handed over, it is not carried out: that answer ends the connection
 * (RFC 9112 §9.3.2, §9.6), so a client knows what to repeat.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { HEADERS_TIMEOUT_MS, KEEP_ALIVE_TIMEOUT_MS } from '../limits.ts'
import { isTrusted, peerOf, type AddressSet } from './client.ts'
import { endBehindAnswer, endConnection, refuseConnection } from './ending.ts'
import { keepsAlive, ListenerRequest } from './node-http.ts'
import type { Refused } from './reply.ts'
import { slowestReader } from './sending.ts'

export type Handle = (request: IncomingMessage, response: ServerResponse) => void

export interface ConnectionOptions {
  /** Proxies do not give way: they have many clients. */
  readonly trustedProxies?: AddressSet | undefined
  /** Names and values in turn. */
  readonly headers?: readonly string[]
  /** Called for refusals of malformed requests. */
  readonly onRefusal?: ((status: number, address: string) => void) | undefined
}

interface Connection {
  /** Over TLS, first the handshake's. */
  socket: Socket
  readonly isExempt: boolean
  /** To the request in progress, or to the request behind it. */
  answer: ServerResponse | undefined
  /** Whether node:http has sent `answer`, and so takes the next one. */
  isSent: boolean
  /** The queue for a head, the time of joining it, and the bytes until then. */
  waitsIn: Set<Connection> | undefined
  sinceMs: number
  bytesRead: number
  isRefused: boolean
}

/** A look-up in a map would cost as much as a request's guards. */
const CONNECTION: unique symbol = Symbol('connection')
type KnownSocket = Socket & { [CONNECTION]?: Connection | undefined }

export class Connections {
  readonly #handle: Handle
  readonly #isTls: boolean
  readonly #most: number
  readonly #options: ConnectionOptions
  readonly all: Set<Connection> = new Set()
  /** The longest wait first: before a first request, between requests, proxies. */
  readonly #waiting = {
    fresh: new Set<Connection>(),
    idle: new Set<Connection>(),
    exempt: new Set<Connection>()
  }
  readonly #shakingHands = new Map<string, Connection>()

  constructor(handle: Handle, isTls: boolean, most: number, options: ConnectionOptions) {
    this.#handle = handle
    this.#isTls = isTls
    this.#most = most
    this.#options = options
  }

  /** Closes the socket if no connection is left to give way. */
  onConnection(socket: KnownSocket): void {
    const peer = peerOf(socket)
    if (peer === undefined || (this.all.size >= this.#most && !this.#giveWay())) {
      socket.destroy()
      return
    }
    const isExempt = isTrusted(peer.address, this.#options.trustedProxies)
    const connection: Connection = {
      socket,
      isExempt,
      answer: undefined,
      isSent: false,
      waitsIn: undefined,
      sinceMs: 0,
      bytesRead: 0,
      isRefused: false
    }
    this.all.add(connection)
    this.#wait(connection, this.#waiting.fresh)
    const place = placeOf(socket)
    if (this.#isTls) this.#shakingHands.set(place, connection)
    else socket[CONNECTION] = connection
    socket
      .on('error', () => {})
      .on('close', () => {
        // node:http does not listen after a CONNECT
        this.#forget(connection)
        if (this.#shakingHands.get(place) === connection) this.#shakingHands.delete(place)
      })
  }

  /** The handshake of TLS has ended. */
  onSecured(socket: KnownSocket): void {
    const place = placeOf(socket)
    const connection = this.#shakingHands.get(place)
    this.#shakingHands.delete(place)
    const isGone =
      connection === undefined || connection.socket.destroyed || peerOf(socket) === undefined
    if (isGone) {
      socket.destroy()
      return
    }
    socket.on('error', () => {})[CONNECTION] = connection
    connection.socket = socket
  }

  onRequest(request: IncomingMessage, response: ServerResponse): void {
    const { [CONNECTION]: connection, destroyed: isGone } = request.socket as KnownSocket
    if (connection === undefined || isGone) return
    const before = connection.answer
    const turn = turnOfNext(connection)
    if (turn === 'never') return this.#refuseEarly(connection, before!)
    connection.waitsIn?.delete(connection)
    connection.answer = response
    connection.isSent = false
    response.on('finish', () => this.#onSent(connection, response))
    if (turn === 'now') this.#handle(request, response)
    else
      before!.once('finish', () => {
        if (!connection.socket.destroyed) this.#handle(request, response)
      })
  }

  /** Later bytes stay with the client, once node:http has handled its last read. */
  #refuseEarly({ socket }: Connection, before: ServerResponse): void {
    if (!before.headersSent) endBehindAnswer(before)
    setImmediate(() => socket.pause())
  }

  /** What came is no request. With a status it is answered, behind the answer under way. */
  onMalformed(socket: KnownSocket, status: Refused | undefined): void {
    const { [CONNECTION]: connection } = socket
    // No answer is possible: the client is gone, or the handshake has not ended.
    if (connection === undefined || status === undefined || socket.destroyed) {
      socket.destroy()
      return
    }
    if (connection.isRefused) return
    connection.isRefused = true
    const { answer } = connection
    if (answer === undefined) return this.#refuse(socket, status)
    const { req: request } = answer
    if (!request.complete) {
      // its body is malformed, and the answer to it the only one
      const { onBroken } = request as ListenerRequest
      if (onBroken === undefined) endBehind(socket, answer)
      else onBroken(socket.readableEnded ? 'gone' : status)
    } else if (answer.writableEnded && keepsAlive(answer)) {
      onceSent(answer, () => this.#refuse(socket, status))
    } else {
      endBehind(socket, answer) // behind `Connection: close` no answer may follow (RFC 9112 §9.6)
    }
  }

  #refuse(socket: Socket, status: Refused): void {
    this.#options.onRefusal?.(status, peerOf(socket)?.address ?? '')
    refuseConnection(socket, status, this.#options.headers)
  }

  /** A few bytes now and then do not keep a connection. */
  closeSilent(): void {
    const beforeMs = performance.now() - KEEP_ALIVE_TIMEOUT_MS - HEADERS_TIMEOUT_MS
    for (const waiting of Object.values(this.#waiting)) {
      for (const one of waiting) {
        if (one.sinceMs > beforeMs) break
        one.socket.destroy()
      }
    }
  }

  destroyIdle(): void {
    for (const { socket } of this.#shakingHands.values()) socket.destroy()
    for (const one of this.all) {
      if (one.waitsIn?.has(one) === true && one.socket.bytesRead === one.bytesRead)
        one.socket.destroy()
    }
  }

  destroyAll(): void {
    for (const { socket } of this.all) socket.destroy()
  }

  /** The longest wait for a head gives way, then the slowest reader. False if there is none. */
  #giveWay(): boolean {
    const { fresh, idle } = this.#waiting
    const [longest] = fresh.size > 0 ? fresh : idle
    const gives = longest ?? this.#slowestReader()
    if (gives === undefined) return false
    this.#forget(gives)
    if (longest !== undefined || this.#isTls) gives.socket.destroy()
    else gives.socket.resetAndDestroy() // the system forgets at once what its client has not taken
    return true
  }

  #slowestReader(): Connection | undefined {
    const known = (socket: KnownSocket): Connection | undefined => socket[CONNECTION]
    const socket = slowestReader(socket => {
      const connection = known(socket)
      return connection !== undefined && !connection.isExempt && this.all.has(connection)
    })
    return socket && known(socket)
  }

  #wait(connection: Connection, where: Set<Connection>): void {
    connection.waitsIn = connection.isExempt ? this.#waiting.exempt : where
    connection.waitsIn.add(connection)
    connection.sinceMs = performance.now()
    connection.bytesRead = connection.socket.bytesRead
  }

  /**
   * Drops a sent answer and its request, whose head may be long: idle connections must be small.
   */
  #onSent(connection: Connection, answer: ServerResponse): void {
    if (connection.answer !== answer) return
    connection.isSent = true
    const { req } = answer
    if (!req.complete && !req.destroyed) {
      req.once('close', () => this.#onSent(connection, answer))
      return
    }
    if (!keepsAlive(answer) || connection.socket.destroyed) return
    connection.answer = undefined
    this.#wait(connection, this.#waiting.idle)
  }

  #forget(connection: Connection): void {
    this.all.delete(connection)
    connection.waitsIn?.delete(connection)
  }
}

/** When the next request is carried out; `once sent`: behind the answer that was handed over. */
function turnOfNext({ answer, isSent }: Connection): 'now' | 'once sent' | 'never' {
  if (answer === undefined || isSent) return 'now'
  return answer.headersSent && keepsAlive(answer) ? 'once sent' : 'never'
}

function onceSent(answer: ServerResponse, act: () => void): void {
  if (answer.writableFinished) act()
  else answer.once('finish', act)
}

/** The answer under way is the last one. */
function endBehind(socket: Socket, answer: ServerResponse): void {
  if (!answer.headersSent) return endBehindAnswer(answer)
  endConnection(socket)
  onceSent(answer, () => socket.destroySoon())
}

function placeOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
