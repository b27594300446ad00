/** Caps the connections of each client, and those of them that wait for a request; closes what is silent or idle. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  HEADERS_TIMEOUT_MS, KEEP_ALIVE_TIMEOUT_MS, MAX_CONNECTIONS_PER_CLIENT, MAX_HEADLESS_PER_CLIENT
} from '../limits.ts'
import { isTrusted, peerOf, type AddressSet } from './address.ts'
import { Connection, type Handle } from './connection.ts'
import type { Refused } from './reply.ts'

/** A socket knows its connection: to look it up in a map would cost every request as much as all of its guards. */
const CONNECTION: unique symbol = Symbol('connection')
type KnownSocket = Socket & { [CONNECTION]?: Connection | undefined }

export interface ConnectionsOptions {
  /** Whether they begin with a handshake of TLS. */
  readonly isTls: boolean
  /** They may have any number. */
  readonly trustedProxies: AddressSet | undefined
  /** Called for each answer to what was not a request. */
  readonly onRefusal: ((address: string, status: number) => void) | undefined
}

export class Connections {
  readonly #handle: Handle
  readonly #options: ConnectionsOptions
  /** By the keys of clients; a trusted proxy by its address. */
  readonly #clients = new Map<string, Set<Connection>>()
  /** By the addresses and ports at their other ends. */
  readonly #shakingHands = new Map<string, Connection>()

  constructor(handle: Handle, options: ConnectionsOptions) {
    this.#handle = handle
    this.#options = options
  }

  get size(): number { return this.#all().length }

  /** Takes in an accepted socket, or closes it when its client is gone or has too many. */
  accept(socket: KnownSocket): void {
    const { isTls, trustedProxies } = this.#options
    const peer = peerOf(socket)
    if (peer === undefined) { socket.destroy(); return }
    const isExempt = isTrusted(peer.address, trustedProxies)
    const key = isExempt ? `proxy ${peer.address}` : peer.key
    const client = this.#clients.get(key) ?? new Set()
    if (client.size >= MAX_CONNECTIONS_PER_CLIENT && !isExempt) { socket.destroy(); return }
    this.#clients.set(key, client)
    const awaitHead = (): void => {
      connection.waitsSinceMs = performance.now()
      if (!isExempt) closeLongest(client)
    }
    const connection = new Connection(socket, peer, awaitHead)
    client.add(connection)
    const place = placeOf(socket)
    if (isTls) this.#shakingHands.set(place, connection)
    else socket[CONNECTION] = connection
    socket.on('error', ignore) // node:http does not listen after a CONNECT
    socket.on('close', () => {
      this.#shakingHands.delete(place)
      client.delete(connection)
      if (client.size === 0) this.#clients.delete(key)
    })
    awaitHead()
  }

  /** Takes in the end of a handshake: from now on the connection speaks on another socket. */
  secure(socket: KnownSocket): void {
    const connection = this.#shakingHands.get(placeOf(socket))
    if (connection === undefined || connection.socket.destroyed) { socket.destroy(); return }
    this.#shakingHands.delete(placeOf(socket))
    socket.on('error', ignore)[CONNECTION] = connection
    connection.socket = socket
    connection.peer = { ...connection.peer, isSecure: true }
    connection.waitsSinceMs = performance.now()
  }

  /** Has a request answered, unless its client is gone. */
  take(request: IncomingMessage, response: ServerResponse): void {
    const { [CONNECTION]: connection, destroyed: isGone } = request.socket as KnownSocket
    if (!isGone) connection?.take(request, response, this.#handle)
  }

  /** Ends a connection; with a status, answers what is not a request. */
  refuse(socket: KnownSocket, status: Refused | undefined): void {
    const { [CONNECTION]: connection } = socket
    // No answer is possible: the client is gone, or its handshake has not ended.
    if (connection === undefined || status === undefined || socket.destroyed) socket.destroy()
    else connection.refuse(status, () => this.#options.onRefusal?.(connection.peer.address, status))
  }

  /** Closes those that have sent no request for long, even if some bytes now and then; bounds the others' silence. */
  closeSilent(): void {
    const sinceMs = performance.now() - KEEP_ALIVE_TIMEOUT_MS - HEADERS_TIMEOUT_MS
    for (const one of this.#all()) {
      if (one.isIdle && one.waitsSinceMs < sinceMs) one.socket.destroy()
      else one.boundSilence()
    }
  }

  /** Closes those that have not asked for anything, and which node:http calls busy; a handshake is no request. */
  destroySilent(): void {
    for (const one of this.#shakingHands.values()) one.socket.destroy()
    for (const one of this.#all()) if (one.socket.bytesRead === 0) one.socket.destroy()
  }

  /** Whether something is being sent; node:http calls that idle when all of it was handed over. */
  isSending(): boolean { return this.#all().some(({ socket }) => socket.writableLength > 0) }

  destroyAll(): void { for (const { socket } of this.#all()) socket.destroy() }

  #all(): Connection[] { return [...this.#clients.values()].flatMap(client => [...client]) }
}

/** Closes the connection that has waited longest for a request's head, where too many of a client wait. */
function closeLongest(client: ReadonlySet<Connection>): void {
  if (client.size <= MAX_HEADLESS_PER_CLIENT) return
  const waiting = [...client].filter(one => one.isIdle && !one.socket.destroyed)
  if (waiting.length <= MAX_HEADLESS_PER_CLIENT) return
  waiting.reduce((longest, one) => one.waitsSinceMs < longest.waitsSinceMs ? one : longest).socket.destroy()
}

/** Which of all connections of a server a socket is on, also before and after a handshake. */
function placeOf({ remoteAddress, remotePort }: Socket): string { return `${remoteAddress} ${remotePort}` }

function ignore(): void {}
