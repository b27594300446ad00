/** The open sockets of a listener, and how many of them a client has. */
import type { Socket } from 'node:net'
import { MAX_CONNECTIONS_PER_CLIENT } from '../limits.ts'
import { clientKey } from './address.ts'

/** All open sockets; also those that have not shaken hands yet, which node:https waits for without knowing them. */
export class Sockets {
  readonly #sockets = new Set<Socket>()
  readonly #secure = new Set<Socket>()
  readonly #isExempt: (address: string) => boolean
  readonly #perClient = new Map<string, number>()

  /** `isExempt` tells the addresses that may have any number of connections. */
  constructor(isExempt: (address: string) => boolean) { this.#isExempt = isExempt }

  get size(): number { return this.#sockets.size }

  /** Takes a socket in, or closes it when its client has too many. */
  add(socket: Socket): void {
    const address = socket.remoteAddress ?? ''
    const client = clientKey(address)
    const count = (this.#perClient.get(client) ?? 0) + 1
    if (count > MAX_CONNECTIONS_PER_CLIENT && !this.#isExempt(address)) { socket.destroy(); return }
    this.#perClient.set(client, count)
    this.#sockets.add(socket)
    socket.once('close', () => {
      this.#sockets.delete(socket)
      const rest = this.#perClient.get(client)! - 1
      if (rest === 0) this.#perClient.delete(client)
      else this.#perClient.set(client, rest)
    })
  }

  /** Takes in what a socket has become by shaking hands. */
  addSecure(socket: Socket): void {
    this.#secure.add(socket)
    socket.once('close', () => this.#secure.delete(socket))
  }

  destroyAll(): void { for (const socket of this.#sockets) socket.destroy() }

  /**
   * Closes those that have not asked for anything, which node:http takes for busy ones. A handshake is nothing: what
   * a secure socket has read is what came through it.
   */
  destroySilent(): void {
    for (const socket of [...this.#sockets, ...this.#secure]) if (socket.bytesRead === 0) socket.destroy()
  }
}
