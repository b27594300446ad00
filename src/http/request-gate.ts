/** A request gate: requests pass while it is open, and are answered 503 before and after. */
import type { Handle } from './connection.ts'
import { BUSY } from './reply.ts'
import { sendReply } from './send.ts'

/** Opens when the service is ready; once closed, it waits until every request was answered. */
export class RequestGate {
  #behind: Handle | undefined
  #inFlight = 0
  #onIdle: (() => void) | undefined
  #closing: Promise<void> | undefined

  readonly handle: Handle = (request, response, target, peer, done) => {
    if (this.#behind === undefined) {
      sendReply(response, BUSY, [], true)
      return done()
    }
    this.#inFlight++
    this.#behind(request, response, target, peer, () => {
      done()
      if (--this.#inFlight === 0) this.#onIdle?.()
    })
  }

  readonly isClosed = (): boolean => this.#behind === undefined

  open(behind: Handle): void { this.#behind = behind }

  /** Lets no more requests pass, and waits for those in flight, no longer than `timeoutMs` from the first call on. */
  close(timeoutMs: number): Promise<void> {
    this.#behind = undefined
    return this.#closing ??= this.#idle(timeoutMs)
  }

  #idle(timeoutMs: number): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve()
    return new Promise(resolve => {
      const timer = setTimeout(resolve, timeoutMs)
      this.#onIdle = () => { clearTimeout(timer); resolve() }
    })
  }
}
