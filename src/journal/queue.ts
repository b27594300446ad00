/** Decisions that wait for their turn, and what becomes of those who wait for them. */
import { Failure } from '../errors.ts'
import { MAX_COMMIT_QUEUE_RECORDS } from '../limits.ts'
import type { Decided, Decision, Fact } from './journal.ts'

/** A decision, what it came to when it last decided, and the two ends of its promise. */
export interface Waiting {
  readonly decide: Decision<unknown>
  outcome: unknown
  readonly resolve: (outcome: unknown) => void
  readonly reject: (error: unknown) => void
}

/** First come, first served, and bounded. */
export class CommitQueue {
  #waiting: Waiting[] = []

  get length(): number { return this.#waiting.length }

  /** Puts a decision at the end; its promise settles when whoever takes it settles it. */
  add<T>(decide: Decision<T>): Promise<T> {
    if (this.#waiting.length >= MAX_COMMIT_QUEUE_RECORDS) {
      return Promise.reject(new Failure('queue-full', `${MAX_COMMIT_QUEUE_RECORDS} wait`))
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ decide, outcome: undefined, resolve: resolve as Waiting['resolve'], reject })
    })
  }

  /**
   * Lets decisions decide, in order, until `accept` has had enough. Gives those that are part of the write, with or
   * without a fact; one whose decision throws is rejected and is not part of it.
   */
  take(accept: (fact: Fact) => boolean): Waiting[] {
    const taken: Waiting[] = []
    let next = 0
    for (let more = true; more && next < this.#waiting.length; next++) {
      const waiting = this.#waiting[next]!
      let decided: Decided<unknown>
      try {
        decided = waiting.decide()
      } catch (error) {
        waiting.reject(error)
        continue
      }
      waiting.outcome = decided.outcome
      taken.push(waiting)
      if (decided.fact !== undefined) more = accept(decided.fact)
    }
    this.#waiting = this.#waiting.slice(next)
    return taken
  }

  /** Puts decisions back before all others: they decide first, and anew. */
  putBack(taken: readonly Waiting[]): void { this.#waiting = [...taken, ...this.#waiting] }

  /** Rejects all that wait. */
  rejectAll(error: Failure): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const { reject } of waiting) reject(error)
  }
}
