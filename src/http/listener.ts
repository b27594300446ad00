/** The listener: the bounds of its `node:http` server, TLS, and the stop. */
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Failure, systemCode } from '../errors.ts'
import {
  DESCRIPTOR_RESERVE,
  HEADERS_TIMEOUT_MS,
  KEPT_HEADER_FIELDS,
  MAX_CONNECTIONS,
  MAX_HEADER_BYTES,
  REQUEST_TIMEOUT_MS,
  SHUTDOWN_SWEEP_MS,
  TIMEOUT_CHECK_MS
} from '../limits.ts'
import { Connections, type ConnectionOptions, type Handle } from './connections.ts'
import { allowHalfOpen, ListenerRequest, sparesSendingConnections } from './node-http.ts'
import type { Refused } from './reply.ts'
import type { Certificate } from './tls.ts'

export type { IncomingMessage, ServerResponse } from 'node:http'

export interface Listener {
  readonly port: number
  connections(): number
  /** Finishes requests in flight; cuts the rest after `timeoutMs`. */
  close(timeoutMs: number): Promise<void>
}

export interface ListenOptions extends ConnectionOptions {
  /** Read again while the listener is open. */
  readonly certificate?: (() => Certificate) | undefined
  readonly log?: { info(line: string): void; warn(line: string): void }
}

/** Rejects with `address-unusable` or `certificate-invalid`. */
export async function listen(
  place: { readonly host: string; readonly port: number },
  handle: Handle,
  options: ListenOptions = {}
): Promise<Listener> {
  const { certificate, log } = options
  const secure =
    certificate && (await import('./tls.ts')).secureServer(SERVER_OPTIONS, certificate, log)
  const server = withBounds(secure ?? createServer(SERVER_OPTIONS))
  const connections = new Connections(handle, secure !== undefined, mostConnections(), options)
  server.on('connection', (socket: Socket) => connections.onConnection(socket))
  server.on('secureConnection', (socket: Socket) => {
    socket.allowHalfOpen = true // not before: a handshake's end is not waited for
    connections.onSecured(socket)
  })
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    // the pipeline checks expectations
    server.on(event, (request: IncomingMessage, response: ServerResponse) =>
      connections.onRequest(request, response)
    )
  }
  server.on('connect', (_request, socket) => connections.onMalformed(socket as Socket, 405))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    connections.onMalformed(socket as Socket, statusOf(error.code ?? ''))
  })
  await bindTo(server, place)
  const timer = setInterval(() => connections.closeSilent(), TIMEOUT_CHECK_MS).unref()
  server.on('close', () => clearInterval(timer))
  server.on('error', error => log?.warn(`a connection could not be accepted: ${systemCode(error)}`))
  return {
    port: (server.address() as AddressInfo | null)?.port ?? 0,
    connections: () => connections.all.size,
    close: timeoutMs =>
      new Promise(resolve => {
        const timer = setTimeout(() => connections.destroyAll(), timeoutMs)
        // The first time a moment later: clients may have sent requests before they saw the stop.
        const sweep = setInterval(() => connections.destroyIdle(), SHUTDOWN_SWEEP_MS)
        server.close(() => {
          clearTimeout(timer)
          clearInterval(sweep)
          resolve()
        })
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
  // `readHead` refuses fewer: node:http drops the last ones silently, which are the proxy's.
  server.maxHeadersCount = KEPT_HEADER_FIELDS
  allowHalfOpen(server)
  sparesSendingConnections(server) // `destroyIdle` closes those that are idle
  return server
}

/** The process needs descriptors for its files too. */
function mostConnections(): number {
  // The types of Node 20 lack this; other runtimes may lack the report.
  const report = process.report?.getReport?.() as
    { userLimits?: { open_files?: { soft: unknown } } } | undefined
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

const BIND_FAULTS: { readonly [code: string]: string } = {
  EADDRINUSE: 'another program has that port',
  EACCES:
    'this user may not take a port below 1024 (systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE)'
}

function bindTo(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number }
): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: Error): void => {
      const code = systemCode(cause)
      const why =
        BIND_FAULTS[code] === undefined
          ? code
          : `${code}; ${BIND_FAULTS[code]}: --port takes another one`
      reject(new Failure('address-unusable', `HOST ${host}, PORT ${port}: ${why}`, { cause }))
    }
    server.once('error', onError)
    server.listen({ host, port }, () => {
      server.off('error', onError)
      resolve()
    })
  })
}
