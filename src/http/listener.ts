/**
 * The listener: a `node:http` server with every timeout and size set. It counts its connections; when all are taken, a
 * connection that waits for a head gives way. Each carries out one request at a time: a request that comes before the
 * answer to the one before it was handed over is not carried out, that answer says `Connection: close` and ends the
 * connection (RFC 9112 §9.3.2, §9.6), and so a client knows what it has to send again.
 */
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { nowMs } from '../clock.ts'
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
  /** Uses another certificate from now on; throws, and keeps the old one, if it is not valid. Undefined over TCP. */
  readonly renew: ((certificate: Certificate) => void) | undefined
  /** Takes no more connections, finishes the requests in flight, and cuts what is left after `timeoutMs`. */
  close(timeoutMs: number): Promise<void>
}

export interface ListenOptions {
  readonly certificate?: Certificate | undefined
  /** Their connections do not give way: each proxy has many clients. */
  readonly trustedProxies?: AddressSet | undefined
  /** Header fields of every answer, names and values in turn. */
  readonly headers?: readonly string[]
  /** Called for each answer to what was not a request. */
  readonly onRefusal?: ((status: number, address: string) => void) | undefined
  readonly warn?: (line: string) => void
}

/** Starts to listen; rejects with `address-unusable` or `certificate-invalid`. */
export async function listen(
  place: { readonly host: string, readonly port: number }, handle: Handle, options: ListenOptions = {}
): Promise<Listener> {
  const { certificate, warn } = options
  const secure = certificate && (await import('./tls.ts')).createSecure(SERVER_OPTIONS, certificate)
  const server = withBounds(secure?.server ?? createServer(SERVER_OPTIONS))
  const connections = new Connections(handle, secure !== undefined, mostConnections(), options)
  server.on('connection', (socket: Socket) => connections.accept(socket))
  server.on('secureConnection', (socket: Socket) => {
    socket.allowHalfOpen = true // not before: who leaves a handshake is not waited for
    connections.secure(socket)
  })
  for (const event of ['request', 'checkContinue', 'checkExpectation']) { // the pipeline sees to expectations
    server.on(event, (request: IncomingMessage, response: ServerResponse) => connections.take(request, response))
  }
  server.on('connect', (_request, socket) => connections.refuse(socket as Socket, 405))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    connections.refuse(socket as Socket, statusOf(error.code ?? ''))
  })
  await bindTo(server, place)
  const timer = setInterval(() => connections.closeSilent(), TIMEOUT_CHECK_MS).unref()
  server.on('close', () => clearInterval(timer))
  server.on('error', error => warn?.(`a connection could not be accepted: ${systemCode(error)}`))
  return {
    port: (server.address() as AddressInfo | null)?.port ?? 0,
    connections: () => connections.all.size,
    renew: secure?.renew,
    close: timeoutMs => new Promise(resolve => {
      const timer = setTimeout(() => connections.destroyAll(), timeoutMs)
      // The first time a moment later: what a client has sent by then, who could not know of the stop, is answered.
      const sweep = setInterval(() => connections.destroyIdle(), SHUTDOWN_SWEEP_MS)
      server.close(() => { clearTimeout(timer); clearInterval(sweep); resolve() })
    })
  }
}

const SERVER_OPTIONS: ServerOptions<typeof ListenerRequest> & { requireHostHeader: boolean } = {
  IncomingMessage: ListenerRequest,
  maxHeaderSize: MAX_HEADER_BYTES,
  connectionsCheckingInterval: TIMEOUT_CHECK_MS,
  // The pipeline refuses a missing Host itself: node:http would answer without a body.
  requireHostHeader: false
}

function withBounds(server: Server): Server {
  server.headersTimeout = HEADERS_TIMEOUT_MS
  server.requestTimeout = REQUEST_TIMEOUT_MS
  // Both would set timers anew for each request, a tenth of what a get costs: see `closeSilent`.
  server.keepAliveTimeout = 0
  server.timeout = 0
  // More than `readHead` takes, so that it sees them: node:http drops further fields silently, and counts them by 32.
  server.maxHeadersCount = MAX_HEADER_FIELDS + 32
  // A client that ends its side after a request still gets the answer; the option has no other name.
  Object.assign(server, { httpAllowHalfOpen: true })
  // What is idle for node:http may still be sent; `destroyIdle` below closes what is.
  server.closeIdleConnections = () => {}
  return server
}

/** How many connections the process may have and still open the files that it needs. */
function mostConnections(): number {
  // The types of Node 20 lack this; other runtimes may lack the report.
  const report = process.report?.getReport?.() as { userLimits?: { open_files?: { soft: unknown } } } | undefined
  const descriptors = Number(report?.userLimits?.open_files?.soft) || Infinity
  return Math.min(MAX_CONNECTIONS, descriptors - Math.min(DESCRIPTOR_RESERVE, descriptors / 2))
}

/** How an error is answered; undefined if it is the connection's, and not of what was sent on it. */
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
  /** Over TLS, that of the handshake until it has ended. */
  socket: Socket
  readonly isExempt: boolean
  /** To the request that is carried out, or waits for the one before it. */
  answer: ServerResponse | undefined
  /** Where it waits for a head, since when, and what had come of it before. */
  waitsIn: Set<Connection> | undefined
  sinceMs: number
  bytesRead: number
  isRefused: boolean
}

/** A socket knows its connection: to look it up in a map would cost every request as much as all of its guards. */
const CONNECTION: unique symbol = Symbol('connection')
type KnownSocket = Socket & { [CONNECTION]?: Connection | undefined }

export class Connections {
  readonly #handle: Handle
  readonly #isTls: boolean
  readonly #most: number
  readonly #options: ListenOptions
  readonly all: Set<Connection> = new Set()
  /** Those that wait for a head, the longest waiting first: that never sent a whole request, that did, of proxies. */
  readonly #waiting = { fresh: new Set<Connection>(), idle: new Set<Connection>(), exempt: new Set<Connection>() }
  /** By the addresses and ports at both ends. */
  readonly #shakingHands = new Map<string, Connection>()

  constructor(handle: Handle, isTls: boolean, most: number, options: ListenOptions) {
    this.#handle = handle
    this.#isTls = isTls
    this.#most = most
    this.#options = options
  }

  /** Takes in an accepted socket, or closes it if its client is gone or there is no place left. */
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

  /** Takes in the end of a handshake: from now on the connection speaks on another socket. */
  secure(socket: KnownSocket): void {
    const place = placeOf(socket)
    const connection = this.#shakingHands.get(place)
    this.#shakingHands.delete(place)
    const isGone = connection === undefined || connection.socket.destroyed || peerOf(socket) === undefined
    if (isGone) { socket.destroy(); return }
    socket.on('error', () => {})[CONNECTION] = connection
    connection.socket = socket
    connection.bytesRead = socket.bytesRead
  }

  /** Has a request answered, unless its client is gone. */
  take(request: IncomingMessage, response: ServerResponse & { _keepAliveTimeout?: number }): void {
    const { [CONNECTION]: connection, destroyed: isGone } = request.socket as KnownSocket
    if (connection === undefined || isGone) return
    response._keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS // not documented: node:http tells the client
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

  /** Closes those that have not begun a request. */
  destroyIdle(): void {
    for (const { socket } of this.#shakingHands.values()) socket.destroy()
    for (const one of this.all) {
      if (one.waitsIn?.has(one) === true && one.socket.bytesRead === one.bytesRead) one.socket.destroy()
    }
  }

  destroyAll(): void { for (const { socket } of this.all) socket.destroy() }

  /** Closes the one that has waited longest for a head; false if none waits. */
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
    this.all.delete(connection)
    connection.waitsIn?.delete(connection)
  }
}

/** Which connection of this machine a socket is on, before and after a handshake. */
function placeOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
