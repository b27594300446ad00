/**
 * The listener: a `node:http` server with every timeout and size set, one request at a time on each connection, and
 * JSON replies also where `node:http` refuses a request by itself.
 */
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Failure, systemCode } from '../errors.ts'
import {
  DESCRIPTOR_RESERVE, HEADERS_TIMEOUT_MS, MAX_CONNECTIONS, MAX_HEADER_BYTES, MAX_HEADER_FIELDS, REQUEST_TIMEOUT_MS,
  SHUTDOWN_SWEEP_MS, TIMEOUT_CHECK_MS
} from '../limits.ts'
import { ListenerRequest } from './body.ts'
import { Connections, type ConnectionsOptions, type Handle } from './connections.ts'
import type { Refused } from './reply.ts'
import type { Certificate } from './tls.ts'

/** Node's own, for embedders. */
export type { IncomingMessage, ServerResponse } from 'node:http'

export interface Listener {
  /** The port it listens on, also where 0 was asked for; 0 for a Unix socket. */
  readonly port: number
  connections(): number
  /** Uses another certificate from now on; throws, and keeps the old one, if it is not valid. Undefined over TCP. */
  readonly renew: ((certificate: Certificate) => void) | undefined
  /** Takes no more connections, finishes the requests in flight, and cuts what is left after `timeoutMs`. */
  close(timeoutMs: number): Promise<void>
}

/** Where to listen: a host and port, or the path of a Unix socket. */
export type ListenAddress = { readonly host: string, readonly port: number } | { readonly path: string }

export interface ListenOptions extends Partial<Omit<ConnectionsOptions, 'isTls' | 'most'>> {
  readonly certificate?: Certificate | undefined
  readonly warn?: (line: string) => void
}

/** Starts to listen; rejects with `address-unusable` or `certificate-invalid`, on a path with the system's error. */
export async function listen(place: ListenAddress, handle: Handle, options: ListenOptions = {}): Promise<Listener> {
  const { certificate, trustedProxies, onRefusal, headers = [], warn } = options
  const isLocal = 'path' in place
  const secure = certificate && (await import('./tls.ts')).createSecure(SERVER_OPTIONS, certificate)
  const server = withLimits(secure?.server ?? createServer(SERVER_OPTIONS), isLocal)
  const most = mostConnections()
  const connections = new Connections(handle, { isTls: secure !== undefined, most, trustedProxies, onRefusal, headers })
  server.on('connection', (socket: Socket) => connections.accept(socket))
  server.on('secureConnection', (socket: Socket) => {
    socket.allowHalfOpen = true // see `withLimits`; who leaves a handshake of TLS is not waited for
    connections.secure(socket)
  })
  const take = (request: IncomingMessage, response: ServerResponse): void => connections.take(request, response)
  server.on('request', take)
  server.on('checkContinue', take) // the pipeline sends 100 when it wants the body
  server.on('checkExpectation', take) // and refuses any other expectation
  server.on('connect', (_request, socket) => connections.refuse(socket as Socket, 405))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    connections.refuse(socket as Socket, statusOf(error.code ?? ''))
  })
  // What is idle for node:http may still be sent; `close` below ends what is.
  server.closeIdleConnections = () => {}
  await bindTo(server, place)
  // The operator's requests, on a path, may take long.
  const timer = isLocal ? undefined : setInterval(() => connections.closeSilent(), TIMEOUT_CHECK_MS).unref()
  server.on('close', () => clearInterval(timer))
  server.on('error', error => warn?.(`a connection could not be accepted: ${systemCode(error)}`))
  return {
    port: (server.address() as AddressInfo | null)?.port ?? 0,
    connections: () => connections.size,
    renew: secure?.renew,
    close: timeoutMs => close(server, connections, timeoutMs)
  }
}

const SERVER_OPTIONS: ServerOptions<typeof ListenerRequest> & { requireHostHeader: boolean } = {
  IncomingMessage: ListenerRequest,
  maxHeaderSize: MAX_HEADER_BYTES,
  connectionsCheckingInterval: TIMEOUT_CHECK_MS,
  // The pipeline refuses a missing Host itself: node:http would answer without a body.
  requireHostHeader: false
}

function withLimits(server: Server, isLocal: boolean): Server {
  server.headersTimeout = HEADERS_TIMEOUT_MS
  server.requestTimeout = REQUEST_TIMEOUT_MS
  // Both would set timers anew for each request, which is a tenth of what a get costs: see `closeSilent`.
  server.keepAliveTimeout = 0
  server.timeout = 0
  // More than `readHead` takes, so that it sees that there are too many; node:http drops further ones silently.
  server.maxHeadersCount = MAX_HEADER_FIELDS + 32 // it counts them by 32
  // A client that ends its side after a request still gets the answer (the option has no other name). The operator's
  // program ends its side when it is interrupted.
  Object.assign(server, { httpAllowHalfOpen: !isLocal })
  return server
}

/** How many connections the process may have and still open the files that it needs. */
function mostConnections(): number {
  // The types of Node 20 lack this; other runtimes may lack the report.
  const report = process.report?.getReport?.() as { userLimits?: { open_files?: { soft: unknown } } } | undefined
  const descriptors = Number(report?.userLimits?.open_files?.soft) || Infinity
  return Math.min(MAX_CONNECTIONS, descriptors - Math.min(DESCRIPTOR_RESERVE, descriptors / 2))
}

/** What an error of a connection is answered by; undefined where it is the connection's and not what was sent on it. */
function statusOf(code: string): Refused | undefined {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408
  if (code === 'HPE_HEADER_OVERFLOW') return 431
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return 413
  return code.startsWith('HPE_') ? 400 : undefined
}

function whyNot(error: unknown): string {
  const code = systemCode(error)
  return code === 'EADDRINUSE' ? `${code}; another program has that port: --port takes another one` : code
}

function bindTo(server: Server, place: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: Error): void => reject('path' in place
      ? cause
      : new Failure('address-unusable', `HOST ${place.host}, PORT ${place.port}: ${whyNot(cause)}`, { cause }))
    server.once('error', onError)
    // A socket in a folder is this process's own, also in a worker of a cluster.
    server.listen({ ...place, exclusive: 'path' in place }, () => { server.off('error', onError); resolve() })
  })
}

function close(server: Server, connections: Connections, timeoutMs: number): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(() => connections.destroyAll(), timeoutMs)
    // The first time a moment later: what a client has sent by then, who could not know of the stop, is answered.
    const sweep = setInterval(() => connections.destroyIdle(), SHUTDOWN_SWEEP_MS)
    server.close(() => { clearTimeout(timer); clearInterval(sweep); resolve() })
  })
}
