/** A bound on the bodies that are worked on at once: what is made of one takes several times its bytes. */
import { AsyncResource } from 'node:async_hooks'

interface Waiting {
  readonly bytes: number
  begin: (hasWaited: boolean) => void
}

/** Lets work begin as long as its bytes fit; what comes then waits, in its order, until others have ended. */
export class ByteBudget {
  readonly #mostBytes: number
  #bytes = 0
  readonly #waiting: Waiting[] = []
  #isBeginning = false

  constructor(mostBytes: number) { this.#mostBytes = mostBytes }

  /** Calls `begin`, at once or later; `give` has to follow. What does not fit at all is begun alone. */
  take(bytes: number, begin: (hasWaited: boolean) => void): void {
    const newest: Waiting = { bytes, begin }
    this.#waiting.push(newest)
    this.#beginAll(newest)
    // What waits begins where another one ends: in that one's asynchronous context, which an embedder may have set.
    if (this.#waiting.at(-1) !== newest) return
    const scope = new AsyncResource('body that waits')
    newest.begin = hasWaited => scope.runInAsyncScope(begin, undefined, hasWaited)
  }

  give(bytes: number): void {
    this.#bytes -= bytes
    this.#beginAll()
  }

  /** `newest` has not waited. What begins may end at once, and calls this again: that is left to the loop. */
  #beginAll(newest?: Waiting): void {
    if (this.#isBeginning) return
    this.#isBeginning = true
    try {
      for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.bytes); next = this.#waiting[0]) {
        this.#waiting.shift()
        this.#bytes += next.bytes
        next.begin(next !== newest)
      }
    } finally {
      this.#isBeginning = false
    }
  }

  #fits(bytes: number): boolean { return this.#bytes === 0 || this.#bytes + bytes <= this.#mostBytes }
}
