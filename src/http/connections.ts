/**
 * All that is known of a connection: whose it is, what it has asked for, and in which order that is answered. Requests
 * are answered one at a time (RFC 9112 §9.3.2), each when the answer before it has gone out. A client that pipelines
 * is read in small pieces from then on: what node:http had read by then waits, and the rest stays with the client.
 */
import type { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  HEADERS_TIMEOUT_MS, KEEP_ALIVE_TIMEOUT_MS, MAX_CONNECTIONS_PER_CLIENT, PIPELINED_PIECE_BYTES
} from '../limits.ts'
import { clientKey } from './address.ts'
import { BROKEN } from './body.ts'
import { rawReply, sendReply, statusReply, type Refused } from './reply.ts'

/** Who is at the other end of a connection. */
export interface Peer {
  /** The address as it was when the connection was opened; empty for a Unix socket. */
  readonly address: string
  readonly isSecure: boolean
}

/** Answers a request for a target, at once or later, and calls `done` when it has. Never throws. */
export type Answer =
  (request: IncomingMessage, response: ServerResponse, done: () => void, target: string, peer: Peer) => void

const refusalOf = (status: Refused): Buffer =>
  rawReply(statusReply(status, status === 405 ? ['Allow', 'GET, HEAD, POST, OPTIONS'] : []))

interface ConnectionsOptions {
  /** Addresses that may have any number of connections. */
  readonly isExempt?: ((address: string) => boolean) | undefined
  /** Called for each answer to what was not a request. */
  readonly onRefusal?: ((address: string, status: number) => void) | undefined
}

/** The connections of a server. */
export class Connections {
  readonly answer: Answer
  readonly options: ConnectionsOptions
  readonly #bySocket = new WeakMap<object, Connection>()
  readonly #open = new Set<Connection>()
  /** Over TLS also those that have not shaken hands yet, which node:https does not know. */
  readonly #sockets = new Set<Socket>()
  readonly #perClient = new Map<string, number>()
  /** Clients that pipeline: all their connections are read in small pieces. */
  readonly #pipelining = new Set<string>()

  constructor(answer: Answer, options: ConnectionsOptions = {}) {
    this.answer = answer
    this.options = options
  }

  get size(): number { return this.#sockets.size }

  /** Takes in an accepted socket, or closes it when its client is gone or has too many. */
  accept(socket: Socket): void {
    const address = addressOf(socket)
    const client = clientKey(address ?? '')
    const count = (this.#perClient.get(client) ?? 0) + 1
    const isTooMany = count > MAX_CONNECTIONS_PER_CLIENT && this.options.isExempt?.(address ?? '') !== true
    if (address === undefined || isTooMany) { socket.destroy(); return }
    this.#perClient.set(client, count)
    this.#sockets.add(socket)
    socket.once('close', () => {
      this.#sockets.delete(socket)
      const rest = this.#perClient.get(client)! - 1
      if (rest > 0) { this.#perClient.set(client, rest); return }
      this.#perClient.delete(client)
      this.#pipelining.delete(client)
    })
  }

  /** The connection of a socket that speaks HTTP; undefined where its client was gone before it was known. */
  open(socket: Socket): Connection | undefined {
    const known = this.#bySocket.get(socket)
    if (known !== undefined) return known
    const address = addressOf(socket)
    if (address === undefined) { socket.destroy(); return undefined }
    const connection = new Connection(this, socket, address)
    this.#bySocket.set(socket, connection)
    this.#open.add(connection)
    socket.once('close', () => this.#open.delete(connection))
    return connection
  }

  pipelines(client: string): boolean { return this.#pipelining.has(client) }

  /** Reads a client in small pieces on all its connections: parsing what it sends on many at once would take long. */
  readInPieces(client: string): void {
    if (this.#pipelining.has(client) || !this.#perClient.has(client)) return
    this.#pipelining.add(client)
    for (const connection of this.#open) if (connection.client === client) connection.readInPieces()
  }

  /** Has a request answered, now or when its turn comes; by then a framework may have changed what `url` says. */
  take(request: IncomingMessage, response: ServerResponse, target: string = request.url ?? ''): void {
    this.open(request.socket)?.take({ request, response, target, isOver: false })
  }

  /** Ends a connection; with a status, answers what is not a request first, once all before it is answered. */
  refuse(socket: Socket, status: Refused | undefined): void {
    const connection = this.#bySocket.get(socket)
    // No answer is possible: the client is gone, or its handshake has not ended.
    if (connection === undefined || status === undefined) socket.destroy()
    else connection.refuse(status)
  }

  /** Closes those that send something now and then, but no request. */
  destroyIdle(): void {
    const sinceMs = performance.now() - KEEP_ALIVE_TIMEOUT_MS - HEADERS_TIMEOUT_MS
    for (const connection of this.#open) if (connection.isIdleSince(sinceMs)) connection.socket.destroy()
  }

  /** Closes those that have not asked for anything, and which node:http calls busy; a handshake is no request. */
  destroySilent(): void {
    for (const { socket } of this.#open) if (socket.bytesRead === 0) socket.destroy()
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy()
  }

  destroyAll(): void { for (const socket of this.#sockets) socket.destroy() }
}

/** The address at the other end; empty for a Unix socket, undefined where the client is gone. */
function addressOf(socket: Socket): string | undefined {
  return socket.remoteAddress ?? (socket.destroyed || socket.localAddress !== undefined ? undefined : '')
}

interface Turn {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly target: string
  /** Whether its answer has gone out whole. */
  isOver: boolean
}

class Connection implements Peer {
  readonly socket: Socket
  readonly address: string
  readonly isSecure: boolean
  readonly client: string
  readonly #all: Connections
  /** The request that is being answered, or was, while its body is still coming. */
  #current: Turn | undefined
  /** Those that node:http has parsed before it was their turn. */
  readonly #waiting: Turn[] = []
  #isReadInPieces = false
  /** Whether a request began in the last piece. */
  #isStarted = false
  #refused: Refused | undefined
  #idleSinceMs = performance.now()

  constructor(all: Connections, socket: Socket, address: string) {
    this.#all = all
    this.socket = socket
    this.address = address
    this.isSecure = 'encrypted' in socket
    this.client = clientKey(address)
    socket.on('error', ignore) // node:http does not listen after a CONNECT
    // Over TLS, Node 20 reads on while its parser is paused, and takes that for malformed.
    if (this.isSecure || all.pipelines(this.client)) this.readInPieces()
  }

  get #isBusy(): boolean { return this.#current !== undefined && !this.#current.isOver }

  isIdleSince(ms: number): boolean { return this.#current === undefined && this.#idleSinceMs < ms }

  take(turn: Turn): void {
    if (this.socket.writableEnded) return // by the answer before it
    if (!this.#isBusy && this.#waiting.length === 0) return this.#start(turn)
    this.#waiting.push(turn)
    if (this.#isReadInPieces) return
    this.socket.pause() // not in the middle of what is being parsed
    this.readInPieces()
    setImmediate(() => this.socket.resume())
    this.#all.readInPieces(this.client)
  }

  #start(turn: Turn): void {
    const { request, response, target } = this.#current = turn
    this.#isStarted = true
    response.on('close', () => this.#end(turn))
    if (this.#refused === undefined || request.complete) {
      this.#all.answer(request, response, ignore, target, this)
    } else {
      this.#all.options.onRefusal?.(this.address, this.#refused)
      sendReply(response, statusReply(this.#refused), [], true)
    }
  }

  /**
   * The answer has gone out. Nothing is carried out after one that ends the connection (RFC 9112 §9.6): node:http has
   * ended its side by then, also where only it or the embedder knows why.
   */
  #end(turn: Turn): void {
    turn.isOver = true
    this.#idleSinceMs = performance.now()
    if (turn.request.complete) this.#current = undefined
    else turn.request.on('close', () => { if (this.#current === turn) this.#current = undefined })
    const isMore = this.#waiting.length > 0 || this.#isReadInPieces || this.#refused !== undefined
    if (isMore && !this.socket.writableEnded) setImmediate(() => this.#next()) // others go first
  }

  #next(): void {
    if (this.socket.destroyed || this.#isBusy) return
    const turn = this.#waiting.shift()
    if (turn !== undefined) this.#start(turn)
    else if (this.#refused !== undefined) this.#endRefused(this.#refused)
    else if (this.#isReadInPieces) this.#read()
  }

  /**
   * A listener for `readable` keeps node:http from reading by itself; what `read` gives goes to its parser as `data`.
   */
  readInPieces(): void {
    if (this.#isReadInPieces) return
    this.#isReadInPieces = true
    const begin = (): void => { this.socket.on('readable', this.#read).on('resume', this.#read) }
    // A handle that is stopped is started again by node:http, when that hears `resume`.
    if (this.socket.isPaused()) this.socket.once('resume', begin)
    else begin()
  }

  /** `resume` comes when the body of a request is wanted. It reads until a request has begun. */
  readonly #read = (): void => {
    for (this.#isStarted = false; !this.#isStarted;) {
      if (this.#waiting.length > 0) return
      const request = this.#current?.request
      if (request?.complete === true && this.#isBusy) return
      if (request !== undefined && request.readableLength >= request.readableHighWaterMark) return
      if (this.socket.read(Math.min(this.socket.readableLength, PIPELINED_PIECE_BYTES) || 1) === null) return
    }
  }

  refuse(status: Refused): void {
    if (this.#refused !== undefined) return
    this.#refused = status
    const last = this.#waiting.at(-1) ?? this.#current
    if (last === undefined || (last.isOver && last.request.complete)) return this.#endRefused(status)
    if (last !== this.#current || last.request.complete) return // its turn comes
    // The rest of a body will not come: its reader answers that; where nothing reads it, it does not matter.
    if (last.isOver) this.socket.destroy()
    else if (!last.request.emit(BROKEN, this.socket.readableEnded ? 'gone' : status)) {
      last.response.shouldKeepAlive = false
      last.response.on('close', () => this.socket.destroy())
    }
  }

  #endRefused(status: Refused): void {
    this.#all.options.onRefusal?.(this.address, status)
    this.socket.end(refusalOf(status), () => this.socket.destroy())
  }
}

function ignore(): void {}
