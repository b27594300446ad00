/**
 * The listener: a `node:http` server with every timeout and size set, and an answer in JSON also where `node:http`
 * refuses a request by itself and would answer with none.
 */
import {
  createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse
} from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { Buffer } from 'node:buffer'
import type { AddressInfo, Socket } from 'node:net'
import { Failure, systemCode } from '../errors.ts'
import {
  HEADERS_TIMEOUT_MS, KEEP_ALIVE_TIMEOUT_MS, MAX_CONNECTIONS, MAX_HEADER_BYTES,
  REQUEST_TIMEOUT_MS, SHUTDOWN_SWEEP_MS, SOCKET_TIMEOUT_MS, TIMEOUT_CHECK_MS
} from '../limits.ts'
import { isTrusted, type AddressSet } from './address.ts'
import { Connections, type Answer } from './connections.ts'
import { Sockets } from './sockets.ts'

export type { IncomingMessage, ServerResponse } from 'node:http'
export type { Answer } from './connections.ts'

/** A listening server. */
export interface Listener {
  /** The port listened on, the real one where 0 was asked for; 0 for a Unix socket. */
  readonly port: number
  /** How many connections are open. */
  connections(): number
  /** Uses another certificate from now on; throws, and keeps the old one, if it is not valid. */
  renew(certificate: Certificate): void
  /** Takes no more connections, answers what is in flight, and cuts what is left after `timeoutMs`. */
  close(timeoutMs: number): Promise<void>
}

/** Where to listen: a host and port, or the path of a Unix socket. */
export type ListenAddress = { readonly host: string, readonly port: number } | { readonly path: string }

/** A certificate chain and its private key, PEM. */
export interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
}

/** What else a listener may be given. */
interface ListenOptions {
  /** Serves HTTPS. */
  readonly certificate?: Certificate | undefined
  /** Proxies, behind whose one address there are many clients. */
  readonly trustedProxies?: AddressSet | undefined
  /** Is told of what was not even a request: the peer's address, and the status it was answered with. */
  readonly onRefusal?: ((address: string, status: number) => void) | undefined
  /** Takes what went wrong with accepting a connection. */
  readonly warn?: (line: string) => void
}

/** Starts to listen; rejects with `address-unusable` or `certificate-invalid`. */
export async function listen(place: ListenAddress, answer: Answer, options: ListenOptions = {}): Promise<Listener> {
  const { certificate, trustedProxies, onRefusal, warn } = options
  const server = create(certificate)
  if ('path' in place) server.timeout = 0 // the operator may ask for what takes long
  const connections = new Connections(answer, (socket, status) =>
    onRefusal?.((socket as Socket).remoteAddress ?? '', status))
  const take = (request: IncomingMessage, response: ServerResponse): void => connections.take(request, response)
  server.on('request', take)
  server.on('checkContinue', take) // the pipeline says 100 once it wants the body
  server.on('checkExpectation', take) // and refuses what else is expected
  server.on('connect', (_request, socket) => connections.refuse(socket, 405))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    connections.refuse(socket, STATUS_OF_ERROR[error.code ?? ''] ?? 400)
  })
  const sockets = new Sockets(address => isTrusted(address, trustedProxies))
  server.on('connection', (socket: Socket) => sockets.add(socket))
  server.on('secureConnection', (socket: Socket) => sockets.addSecure(socket))
  await bound(server, place)
  server.on('error', error => warn?.(`a connection could not be accepted: ${systemCode(error)}`))
  return {
    port: (server.address() as AddressInfo | null)?.port ?? 0,
    connections: () => sockets.size,
    renew: renewed => (server as TlsServer).setSecureContext({ ...renewed, ...TLS }),
    close: timeoutMs => close(server, sockets, timeoutMs)
  }
}

const TLS = { minVersion: 'TLSv1.2', handshakeTimeout: HEADERS_TIMEOUT_MS } as const

/** A server with every timeout and size set. */
function create(certificate: Certificate | undefined): Server {
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
  return server
}

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

function bound(server: Server, place: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: Error): void => reject('path' in place
      ? new Failure('folder-unusable', `${place.path}: ${systemCode(cause)}`, { cause })
      : new Failure('address-unusable', `${place.host} port ${place.port}: ${systemCode(cause)}`, { cause }))
    server.once('error', onError)
    server.listen(place, () => { server.off('error', onError); resolve() })
  })
}

function close(server: Server, sockets: Sockets, timeoutMs: number): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(() => sockets.destroyAll(), timeoutMs)
    // Who was told `keep-alive` before the stop becomes idle only during it.
    const sweep = setInterval(() => {
      server.closeIdleConnections()
      sockets.destroySilent()
    }, SHUTDOWN_SWEEP_MS)
    server.close(() => { clearTimeout(timer); clearInterval(sweep); resolve() })
    sockets.destroySilent()
  })
}
