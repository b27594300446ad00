/** A drain gate: requests pass while it is open, and are answered 503 before and after. */
import type { Answer } from './connections.ts'
import { sendReply, statusReply } from './reply.ts'

const CLOSED = statusReply(503, ['Retry-After', '1'])

/** Opens when the service is ready; once closed, it waits until every request was answered. */
export class DrainGate {
  #answer: Answer | undefined
  #inFlight = 0
  #onIdle: (() => void) | undefined

  readonly take: Answer = (request, response, done, target, peer) => {
    if (this.#answer === undefined) {
      sendReply(response, CLOSED, [], true)
      return done()
    }
    this.#inFlight++
    this.#answer(request, response, () => {
      done()
      if (--this.#inFlight === 0) this.#onIdle?.()
    }, target, peer)
  }

  /** Whether it takes no requests. */
  readonly isClosed = (): boolean => this.#answer === undefined

  open(answer: Answer): void { this.#answer = answer }

  /** Takes no more requests, and waits for those in flight, but not longer than `timeoutMs`. */
  close(timeoutMs: number): Promise<void> {
    this.#answer = undefined
    if (this.#inFlight === 0) return Promise.resolve()
    return new Promise(resolve => {
      const timer = setTimeout(resolve, timeoutMs)
      this.#onIdle = () => { clearTimeout(timer); resolve() }
    })
  }
}
