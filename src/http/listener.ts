/**
 * The listener: a `node:http` server with every timeout and size set, and an answer in JSON also where `node:http`
 * refuses a request by itself and would answer with none.
 */
import {
  createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse
} from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { Buffer } from 'node:buffer'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { Failure, systemCode } from '../errors.ts'
import {
  HEADERS_TIMEOUT_MS, KEEP_ALIVE_TIMEOUT_MS, MAX_CONNECTIONS, MAX_HEADER_BYTES, REQUEST_TIMEOUT_MS, SOCKET_TIMEOUT_MS,
  TIMEOUT_CHECK_MS
} from '../limits.ts'
import { rawReply, sendReply, statusReply } from './reply.ts'

export type { IncomingMessage, ServerResponse } from 'node:http'

/** Answers a request: at once, or later, in which case the promise settles with the answer. Never throws. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>

/** A listening server. */
export interface Listener {
  /** The port listened on, the real one where 0 was asked for; 0 for a Unix socket. */
  readonly port: number
  /** Uses another certificate from now on; throws, and keeps the old one, if it is not valid. */
  renew(certificate: Certificate): void
  /** Takes no more connections, answers what is in flight, and cuts what is left after `timeoutMs`. */
  close(timeoutMs: number): Promise<void>
}

/** Where to listen: a host and port, or the path of a Unix socket. */
export type Place = { readonly host: string, readonly port: number } | { readonly path: string }

/** A certificate chain and its private key, PEM. */
export interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
}

/** Starts to listen, with a certificate by HTTPS; rejects with `address-unusable` or `certificate-invalid`. */
export async function listen(place: Place, answer: Answer, certificate?: Certificate): Promise<Listener> {
  const options: ServerOptions & { requireHostHeader: boolean } = {
    maxHeaderSize: MAX_HEADER_BYTES,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    // The pipeline refuses a missing Host itself: node:http would answer without a body.
    requireHostHeader: false
  }
  const server = certificate === undefined ? createServer(options) : createSecure(options, certificate)
  server.headersTimeout = HEADERS_TIMEOUT_MS
  server.requestTimeout = REQUEST_TIMEOUT_MS
  server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS
  server.maxConnections = MAX_CONNECTIONS
  server.timeout = SOCKET_TIMEOUT_MS
  // All fields count, also behind two thousand others; their size is bounded.
  server.maxHeadersCount = 0
  // Whoever has sent a request and ended its side still gets the answer (the option has no other name).
  Object.assign(server, { httpAllowHalfOpen: true })
  const connections = new Connections(answer)
  const take = (request: IncomingMessage, response: ServerResponse): void => connections.take(request, response)
  server.on('request', take)
  server.on('checkContinue', take) // the pipeline says 100 once it wants the body
  server.on('checkExpectation', take) // and refuses what else is expected
  server.on('connect', (_request, socket) => connections.refuse(socket, 405))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    connections.refuse(socket, STATUS_OF_ERROR[error.code ?? ''] ?? 400)
  })
  await bound(server, place)
  return {
    port: (server.address() as AddressInfo | null)?.port ?? 0,
    renew: renewed => (server as TlsServer).setSecureContext({ ...renewed, ...TLS }),
    close: timeoutMs => close(server, timeoutMs)
  }
}

const TLS = { minVersion: 'TLSv1.2' } as const

function createSecure(options: ServerOptions, certificate: Certificate): Server {
  try {
    return createTlsServer({ ...options, ...certificate, ...TLS })
  } catch (error) {
    throw new Failure('certificate-invalid', systemCode(error), { cause: error })
  }
}

const STATUS_OF_ERROR: { readonly [code: string]: 408 | 413 | 431 } = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_HEADER_OVERFLOW: 431
}

/** What node:http refuses by itself, or does not know an answer to. */
type Refused = 400 | 405 | 408 | 413 | 431

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
}

/**
 * Keeps the requests of a connection in order. One that follows a change waits for it (RFC 9112 §9.3.2: only safe
 * requests may overtake each other), and none is looked at behind an answer that ends the connection (§9.6). A
 * response whose `shouldKeepAlive` is false is such an end.
 */
class Connections {
  readonly #answer: Answer
  readonly #known = new WeakMap<Duplex, Connection>()

  constructor(answer: Answer) { this.#answer = answer }

  take(request: IncomingMessage, response: ServerResponse): void {
    let connection = this.#known.get(request.socket)
    if (connection === undefined) this.#known.set(request.socket, connection = {})
    const before = connection.last?.response
    const own: Exchange = connection.last = { request, response, isStarted: false }
    const start = (): void | Promise<void> => {
      own.isStarted = true
      if (before?.shouldKeepAlive === false || response.headersSent) response.shouldKeepAlive = false
      else return this.#answer(request, response)
    }
    const answered = connection.turn === undefined ? start() : connection.turn.then(start)
    if (answered === undefined) return
    const turn = connection.turn = answered.then(() => { if (connection.turn === turn) connection.turn = undefined })
  }

  /** Answers what is not a request, once all requests before it are answered, and ends the connection. */
  refuse(socket: Duplex, status: Refused): void {
    socket.on('error', () => {}) // of a client that is gone
    const end = (): void => {
      if (socket.writable) socket.end(REFUSALS[status], () => socket.destroy())
      else socket.destroy()
    }
    const last = this.#known.get(socket)?.last
    if (last === undefined) return end()
    const { request, response, isStarted } = last
    if (!request.complete) {
      // The rest of its body is broken. That is its answer, unless it has one, or will get one without its body.
      if (response.headersSent) response.on('close', () => socket.destroy()).end()
      else if (isStarted && request.listenerCount('data') === 0) response.shouldKeepAlive = false
      else sendReply(response, statusReply(status), [], true)
    } else if (response.writableFinished) {
      end()
    } else if (response.shouldKeepAlive) {
      response.on('close', end)
    }
  }
}

function bound(server: Server, place: Place): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error): void => {
      const at = 'path' in place ? place.path : `${place.host} port ${place.port}`
      reject(new Failure('address-unusable', `${at}: ${systemCode(error)}`, { cause: error }))
    }
    server.once('error', onError)
    server.listen(place, () => { server.off('error', onError); resolve() })
  })
}

function close(server: Server, timeoutMs: number): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(() => server.closeAllConnections(), timeoutMs)
    server.close(() => { clearTimeout(timer); resolve() })
    server.closeIdleConnections()
  })
}
