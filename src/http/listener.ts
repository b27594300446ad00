/**
 * The listener: its `node:http` server with bounds, TLS, its connections, which of them gives way
 * if all places are taken, and the stop.
 */
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
  KEEP_ALIVE_TIMEOUT_MS,
  KEPT_HEADER_FIELDS,
  MAX_CONNECTIONS,
  MAX_HEADER_BYTES,
  MAX_LOOKS,
  REQUEST_TIMEOUT_MS,
  SHUTDOWN_SWEEP_MS,
  TIMEOUT_CHECK_MS
} from '../limits.ts'
import { isTrusted, peerOf, type AddressSet } from './client.ts'
import {
  allowHalfOpen,
  Connection,
  ListenerRequest,
  refuseConnection,
  sparesSendingConnections,
  type Handle
} from './connection.ts'
import type { Refused } from './reply.ts'
import type { Certificate } from './tls.ts'

export type { IncomingMessage, ServerResponse } from 'node:http'

export interface Listener {
  readonly port: number
  connections(): number
  /** Finishes requests in flight; cuts the rest after `timeoutMs`. */
  close(timeoutMs: number): Promise<void>
}

export interface ConnectionOptions {
  /** Proxies do not give way: they have many clients. */
  readonly trustedProxies?: AddressSet | undefined
  /** Names and values in turn. */
  readonly headers?: readonly string[]
  /** Called if a malformed request is refused. */
  readonly onRefusal?: ((status: number, address: string) => void) | undefined
}

export interface ListenOptions extends ConnectionOptions {
  /** Called again while the listener is open. */
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
    server.on(event, (request: IncomingMessage, response: ServerResponse) =>
      connections.onRequest(request, response)
    )
  }
  server.on('connect', (_request, socket) => connections.onMalformed(socket as Socket, 405))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    connections.onMalformed(socket as Socket, statusOf(error.code ?? ''))
  })
  await bindTo(server, place)
  const timer = setInterval(() => connections.lookAtAll(), TIMEOUT_CHECK_MS).unref()
  server.on('close', () => clearInterval(timer))
  server.on('error', error => log?.warn(`a connection could not be accepted: ${systemCode(error)}`))
  return {
    port: (server.address() as AddressInfo | null)?.port ?? 0,
    connections: () => connections.count,
    close: timeoutMs =>
      new Promise(resolve => {
        const timer = setTimeout(() => connections.destroyAll(), timeoutMs)
        // The first sweep comes a moment later: clients may have sent requests before they saw the
        // stop.
        const sweep = setInterval(() => connections.destroyIdle(), SHUTDOWN_SWEEP_MS)
        server.close(() => {
          clearTimeout(timer)
          clearInterval(sweep)
          resolve()
        })
      })
  }
}

/** A property: a look-up in a map would cost as much as a request's guards. */
const CONNECTION: unique symbol = Symbol('connection')
type KnownSocket = Socket & { [CONNECTION]?: Connection | undefined }

/** Exported for tests. */
export class Connections {
  readonly #handle: Handle
  readonly #isTls: boolean
  readonly #most: number
  readonly #options: ConnectionOptions
  /** Those that have sent no request yet, the oldest first. */
  readonly #fresh = new Set<Connection>()
  /** Those that have. Whoever was looked at for a newcomer goes to the end. */
  readonly #asked = new Set<Connection>()
  /** They do not give way, so they are in neither of the two. */
  readonly #proxies = new Set<Connection>()
  readonly #shakingHands = new Map<string, Connection>()

  constructor(handle: Handle, isTls: boolean, most: number, options: ConnectionOptions) {
    this.#handle = handle
    this.#isTls = isTls
    this.#most = most
    this.#options = options
  }

  get count(): number {
    return this.#fresh.size + this.#asked.size + this.#proxies.size
  }

  *#all(): Generator<Connection> {
    for (const crowd of [this.#fresh, this.#asked, this.#proxies]) yield* crowd
  }

  /** Closes the socket if all places are taken and nobody gives way. */
  onConnection(socket: KnownSocket): void {
    const peer = peerOf(socket)
    if (peer === undefined || (this.count >= this.#most && !this.#giveWay())) {
      socket.destroy()
      return
    }
    const connection = new Connection(socket, performance.now())
    const isProxy = isTrusted(peer.address, this.#options.trustedProxies)
    ;(isProxy ? this.#proxies : this.#fresh).add(connection)
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
    if (!connection.hasAsked) this.#moveToAsked(connection)
    connection.onRequest(request, response, this.#handle)
  }

  onMalformed(socket: KnownSocket, status: Refused | undefined): void {
    const { [CONNECTION]: connection } = socket
    // No answer is possible: the client is gone, or the handshake has not ended.
    if (connection === undefined || status === undefined || socket.destroyed) {
      socket.destroy()
      return
    }
    this.#moveToAsked(connection)
    const { headers, onRefusal } = this.#options
    connection.onMalformed(status, () => {
      onRefusal?.(status, peerOf(socket)?.address ?? '')
      refuseConnection(socket, status, headers)
    })
  }

  #moveToAsked(connection: Connection): void {
    if (this.#fresh.delete(connection)) this.#asked.add(connection)
  }

  /**
   * At intervals, so that no look covers a long time. A few bytes now and then do not keep a
   * connection.
   */
  lookAtAll(): void {
    const nowMs = performance.now()
    for (const connection of this.#all()) {
      connection.look(nowMs)
      if (connection.silentMs(nowMs) > KEEP_ALIVE_TIMEOUT_MS + HEADERS_TIMEOUT_MS)
        connection.socket.destroy()
    }
  }

  destroyIdle(): void {
    for (const { socket } of this.#shakingHands.values()) socket.destroy()
    for (const { isIdle, socket } of this.#all()) if (isIdle) socket.destroy()
  }

  destroyAll(): void {
    for (const { socket } of this.#all()) socket.destroy()
  }

  /**
   * The larger of `#fresh` and `#asked` gives one, so neither can push the other below half of the
   * places: far clients stay long enough to ask, and newcomers cannot displace all that have asked.
   * False if nobody gives way.
   */
  #giveWay(): boolean {
    const [oldest] = this.#fresh
    const gives =
      this.#fresh.size > this.#asked.size ? oldest : (this.#poorest(performance.now()) ?? oldest)
    if (gives === undefined) return false
    this.#forget(gives)
    const { socket } = gives
    // The system forgets at once what the client has not taken.
    if (socket.writableLength > 0 && !this.#isTls) socket.resetAndDestroy()
    else socket.destroy()
    return true
  }

  /** Whose client has paid least, of the next `MAX_LOOKS`; the next search goes on behind them. */
  #poorest(nowMs: number): Connection | undefined {
    let poorest: Connection | undefined
    let leastMs = Infinity
    let looks = Math.min(MAX_LOOKS, this.#asked.size)
    for (const connection of this.#asked) {
      if (looks-- === 0) break
      this.#asked.delete(connection)
      this.#asked.add(connection)
      connection.look(nowMs)
      const paidMs = connection.paidUntilMs(nowMs)
      if (paidMs >= leastMs) continue
      poorest = connection
      leastMs = paidMs
    }
    return poorest
  }

  #forget(connection: Connection): void {
    for (const crowd of [this.#fresh, this.#asked, this.#proxies]) crowd.delete(connection)
  }
}

function placeOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}

const SERVER_OPTIONS: ServerOptions<typeof ListenerRequest> & { requireHostHeader: boolean } = {
  IncomingMessage: ListenerRequest,
  maxHeaderSize: MAX_HEADER_BYTES,
  connectionsCheckingInterval: TIMEOUT_CHECK_MS,
  // node:http would answer a missing Host without a body.
  requireHostHeader: false
}

function withBounds(server: Server): Server {
  server.headersTimeout = HEADERS_TIMEOUT_MS
  server.requestTimeout = REQUEST_TIMEOUT_MS
  // Both would set timers for each request, a tenth of a get's cost. `lookAtAll` does their work.
  server.keepAliveTimeout = 0
  server.timeout = 0
  // node:http drops further fields silently, the proxy's first; `readHead` refuses fewer.
  server.maxHeadersCount = KEPT_HEADER_FIELDS
  allowHalfOpen(server)
  sparesSendingConnections(server) // `destroyIdle` closes those that are idle
  return server
}

/** Of this process, once it was asked for: Node's report takes as long as a hundred requests. */
let most: number | undefined

/** The process needs descriptors for its files too. */
function mostConnections(): number {
  if (most !== undefined) return most
  // The types of Node 20 lack this, and other runtimes may lack the report.
  const report = process.report?.getReport?.() as
    { userLimits?: { open_files?: { soft: unknown } } } | undefined
  const descriptors = Number(report?.userLimits?.open_files?.soft) || Infinity
  most = Math.min(MAX_CONNECTIONS, descriptors - Math.min(DESCRIPTOR_RESERVE, descriptors / 2))
  return most
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
