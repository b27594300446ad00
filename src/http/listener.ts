/**
 * The listener: a bounded `node:http` server. If all connections are taken, a waiting connection gives way. A request
 * before the previous answer is not carried out: that answer ends the connection (RFC 9112 §9.3.2, §9.6), so a client
 * knows which requests to repeat.
 */
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Failure, systemCode } from '../errors.ts'
import {
  DESCRIPTOR_RESERVE, HEADERS_TIMEOUT_MS, KEEP_ALIVE_TIMEOUT_MS, MAX_CONNECTIONS, MAX_HEADER_BYTES, MAX_HEADER_FIELDS,
  REQUEST_TIMEOUT_MS, SHUTDOWN_SWEEP_MS, TIMEOUT_CHECK_MS
} from '../limits.ts'
import { BROKEN, ListenerRequest } from './body.ts'
import { isTrusted, peerOf, type AddressSet } from './client.ts'
import type { Refused } from './reply.ts'
import { endAfterAnswer, endWith, rawRefusal } from './send.ts'
import type { Certificate } from './tls.ts'

export type { IncomingMessage, ServerResponse } from 'node:http'

export type Handle = (request: IncomingMessage, response: ServerResponse) => void

export interface Listener {
  readonly port: number
  connections(): number
  /** Finishes requests in flight; cuts the rest after `timeoutMs`. */
  close(timeoutMs: number): Promise<void>
}

export interface ListenOptions {
  /** Read again while the listener is open. */
  readonly certificate?: (() => Certificate) | undefined
  /** Proxies do not give way: they have many clients. */
  readonly trustedProxies?: AddressSet | undefined
  /** Names and values in turn. */
  readonly headers?: readonly string[]
  /** Called for refusals of malformed requests. */
  readonly onRefusal?: ((status: number, address: string) => void) | undefined
  readonly log?: { info(line: string): void, warn(line: string): void }
}

/** Rejects with `address-unusable` or `certificate-invalid`. */
export async function listen(
  place: { readonly host: string, readonly port: number }, handle: Handle, options: ListenOptions = {}
): Promise<Listener> {
  const { certificate, log } = options
  const secure = certificate && (await import('./tls.ts')).secureServer(SERVER_OPTIONS, certificate, log)
  const server = withBounds(secure ?? createServer(SERVER_OPTIONS))
  const connections = new Connections(handle, secure !== undefined, mostConnections(), options)
  server.on('connection', (socket: Socket) => connections.accept(socket))
  server.on('secureConnection', (socket: Socket) => {
    socket.allowHalfOpen = true // not before: a handshake's end is not waited for
    connections.secure(socket)
  })
  for (const event of ['request', 'checkContinue', 'checkExpectation']) { // the pipeline checks expectations
    server.on(event, (request: IncomingMessage, response: ServerResponse) => connections.take(request, response))
  }
  server.on('connect', (_request, socket) => connections.refuse(socket as Socket, 405))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    connections.refuse(socket as Socket, statusOf(error.code ?? ''))
  })
  await bindTo(server, place)
  const timer = setInterval(() => connections.closeSilent(), TIMEOUT_CHECK_MS).unref()
  server.on('close', () => clearInterval(timer))
  server.on('error', error => log?.warn(`a connection could not be accepted: ${systemCode(error)}`))
  return {
    port: (server.address() as AddressInfo | null)?.port ?? 0,
    connections: () => connections.all.size,
    close: timeoutMs => new Promise(resolve => {
      const timer = setTimeout(() => connections.destroyAll(), timeoutMs)
      // The first time a moment later: clients may have sent requests before they saw the stop.
      const sweep = setInterval(() => connections.destroyIdle(), SHUTDOWN_SWEEP_MS)
      server.close(() => { clearTimeout(timer); clearInterval(sweep); resolve() })
    })
  }
}

const SERVER_OPTIONS: ServerOptions<typeof ListenerRequest> & { requireHostHeader: boolean } = {
  IncomingMessage: ListenerRequest,
  maxHeaderSize: MAX_HEADER_BYTES,
  connectionsCheckingInterval: TIMEOUT_CHECK_MS,
  // node:http would answer a missing Host without a body; the pipeline refuses it.
  requireHostHeader: false
}

function withBounds(server: Server): Server {
  server.headersTimeout = HEADERS_TIMEOUT_MS
  server.requestTimeout = REQUEST_TIMEOUT_MS
  // Both would set timers for each request, a tenth of a get's cost; `closeSilent` replaces them.
  server.keepAliveTimeout = 0
  server.timeout = 0
  // Lets `readHead` see too many fields: node:http drops them silently, and counts by 32.
  server.maxHeadersCount = MAX_HEADER_FIELDS + 32
  // Clients may end their side after a request; the option has no other name.
  Object.assign(server, { httpAllowHalfOpen: true })
  // Idle for node:http may still be sending; `destroyIdle` knows better.
  server.closeIdleConnections = () => {}
  return server
}

/** The process needs descriptors for its files too. */
function mostConnections(): number {
  // The types of Node 20 lack this; other runtimes may lack the report.
  const report = process.report?.getReport?.() as { userLimits?: { open_files?: { soft: unknown } } } | undefined
  const descriptors = Number(report?.userLimits?.open_files?.soft) || Infinity
  return Math.min(MAX_CONNECTIONS, descriptors - Math.min(DESCRIPTOR_RESERVE, descriptors / 2))
}

/** Undefined for the connection's own errors. */
function statusOf(code: string): Refused | undefined {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408
  if (code === 'HPE_HEADER_OVERFLOW') return 431
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return 413
  return code.startsWith('HPE_') ? 400 : undefined
}

function bindTo(server: Server, { host, port }: { readonly host: string, readonly port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: Error): void => {
      const code = systemCode(cause)
      const why = code === 'EADDRINUSE' ? `${code}; another program has that port: --port takes another one` : code
      reject(new Failure('address-unusable', `HOST ${host}, PORT ${port}: ${why}`, { cause }))
    }
    server.once('error', onError)
    server.listen({ host, port }, () => { server.off('error', onError); resolve() })
  })
}

interface Connection {
  /** Over TLS, first the handshake's. */
  socket: Socket
  readonly isExempt: boolean
  /** To the request in progress, or the request behind it. */
  answer: ServerResponse | undefined
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
  readonly #options: ListenOptions
  readonly all: Set<Connection> = new Set()
  /** The longest wait first: before a first request, between requests, proxies. */
  readonly #waiting = { fresh: new Set<Connection>(), idle: new Set<Connection>(), exempt: new Set<Connection>() }
  readonly #shakingHands = new Map<string, Connection>()

  constructor(handle: Handle, isTls: boolean, most: number, options: ListenOptions) {
    this.#handle = handle
    this.#isTls = isTls
    this.#most = most
    this.#options = options
  }

  /** Closes the socket if no connection is left to give way. */
  accept(socket: KnownSocket): void {
    const peer = peerOf(socket)
    if (peer === undefined || (this.all.size >= this.#most && !this.#giveWay())) { socket.destroy(); return }
    const isExempt = isTrusted(peer.address, this.#options.trustedProxies)
    const connection: Connection = {
      socket, isExempt, answer: undefined, waitsIn: undefined, sinceMs: 0, bytesRead: 0, isRefused: false
    }
    this.all.add(connection)
    this.#wait(connection, this.#waiting.fresh)
    const place = placeOf(socket)
    if (this.#isTls) this.#shakingHands.set(place, connection)
    else socket[CONNECTION] = connection
    socket.on('error', () => {}).on('close', () => { // node:http does not listen after a CONNECT
      this.#forget(connection)
      if (this.#shakingHands.get(place) === connection) this.#shakingHands.delete(place)
    })
  }

  secure(socket: KnownSocket): void {
    const place = placeOf(socket)
    const connection = this.#shakingHands.get(place)
    this.#shakingHands.delete(place)
    const isGone = connection === undefined || connection.socket.destroyed || peerOf(socket) === undefined
    if (isGone) { socket.destroy(); return }
    socket.on('error', () => {})[CONNECTION] = connection
    connection.socket = socket
  }

  take(request: IncomingMessage, response: ServerResponse & { _keepAliveTimeout?: number }): void {
    const { [CONNECTION]: connection, destroyed: isGone } = request.socket as KnownSocket
    if (connection === undefined || isGone) return
    response._keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS // not documented: node:http tells the client
    const before = connection.answer
    const isFirst = before === undefined || response.socket !== null // the oldest answer has the socket
    if (!isFirst && (!before.headersSent || !before.shouldKeepAlive)) {
      if (!before.headersSent) endWith(before)
      // Later bytes stay with the client, once node:http has handled its last read.
      setImmediate(() => connection.socket.pause())
      return
    }
    connection.waitsIn?.delete(connection)
    connection.answer = response
    response.on('finish', () => this.#answered(connection, response))
    if (isFirst) this.#handle(request, response)
    else before.once('finish', () => { if (!connection.socket.destroyed) this.#handle(request, response) })
  }

  /** Ends a connection; with a status, answers it first. */
  refuse(socket: KnownSocket, status: Refused | undefined): void {
    const { [CONNECTION]: connection } = socket
    // No answer is possible: the client is gone, or the handshake has not ended.
    if (connection === undefined || status === undefined || socket.destroyed) { socket.destroy(); return }
    if (connection.isRefused) return
    connection.isRefused = true
    const { answer } = connection
    const refuseNow = (): void => {
      this.#options.onRefusal?.(status, peerOf(socket)?.address ?? '')
      socket.write(rawRefusal(status, this.#options.headers))
      endAfterAnswer(socket)
      socket.destroySoon()
    }
    if (answer === undefined) return refuseNow()
    const isBody = !answer.req.complete // then the answer to its request is the only one
    // Behind `Connection: close` no answer may follow (RFC 9112 §9.6).
    if (answer.writableEnded && answer.shouldKeepAlive && !isBody) {
      if (answer.writableFinished) refuseNow()
      else answer.once('finish', refuseNow)
      return
    }
    if (isBody && answer.req.emit(BROKEN, socket.readableEnded ? 'gone' : status)) return // the body's reader answers
    // Behind a CONNECT, node:http passes no `drain` on.
    if (socket.listenerCount('drain') === 0) socket.on('drain', () => answer.emit('drain'))
    if (!answer.headersSent) return endWith(answer)
    endAfterAnswer(socket)
    if (answer.writableFinished) socket.destroySoon()
    else answer.once('finish', () => socket.destroySoon())
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
      if (one.waitsIn?.has(one) === true && one.socket.bytesRead === one.bytesRead) one.socket.destroy()
    }
  }

  destroyAll(): void { for (const { socket } of this.all) socket.destroy() }

  /** False if none waits. */
  #giveWay(): boolean {
    const { fresh, idle } = this.#waiting
    const [longest] = fresh.size > 0 ? fresh : idle
    if (longest === undefined) return false
    this.#forget(longest)
    longest.socket.destroy()
    return true
  }

  #wait(connection: Connection, where: Set<Connection>): void {
    connection.waitsIn = connection.isExempt ? this.#waiting.exempt : where
    connection.waitsIn.add(connection)
    connection.sinceMs = performance.now()
    connection.bytesRead = connection.socket.bytesRead
  }

  /** Drops a sent answer and its request, whose head may be long: idle connections must be small. */
  #answered(connection: Connection, answer: ServerResponse): void {
    const { req } = answer
    if (!req.complete && !req.destroyed) { req.once('close', () => this.#answered(connection, answer)); return }
    if (connection.answer !== answer || !answer.shouldKeepAlive || connection.socket.destroyed) return
    connection.answer = undefined
    this.#wait(connection, this.#waiting.idle)
  }

  #forget(connection: Connection): void {
    this.all.delete(connection)
    connection.waitsIn?.delete(connection)
  }
}

function placeOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
