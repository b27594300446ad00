/** A gate: who asks is answered while it is open, and by 503 before and after. */
import type { Answer } from './connections.ts'
import { sendReply, statusReply } from './reply.ts'

const CLOSED = statusReply(503, ['Retry-After', '1'])

/** Opens once there is something to answer with, and closes once all has been answered. */
export class Gate {
  #answer: Answer | undefined
  #inFlight = 0
  #onIdle: (() => void) | undefined

  readonly take: Answer = (request, response, done, target) => {
    if (this.#answer === undefined) {
      sendReply(response, CLOSED, [], true)
      return done()
    }
    this.#inFlight++
    this.#answer(request, response, () => {
      done()
      if (--this.#inFlight === 0) this.#onIdle?.()
    }, target)
  }

  open(answer: Answer): void { this.#answer = answer }

  /** Takes nothing more, and waits for what is in flight, but not for longer than `timeoutMs`. */
  close(timeoutMs: number): Promise<void> {
    this.#answer = undefined
    if (this.#inFlight === 0) return Promise.resolve()
    return new Promise(resolve => {
      const timer = setTimeout(resolve, timeoutMs)
      this.#onIdle = () => { clearTimeout(timer); resolve() }
    })
  }
}
