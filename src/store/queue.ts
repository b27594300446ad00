/** The commands that wait for a write, in their order: bounded in number, bytes and time. */
import { Failure } from '../errors.ts'
import type { EncodedEvent } from '../journal/journal.ts'
import { MAX_COMMIT_QUEUE_BYTES, MAX_COMMIT_QUEUE_RECORDS, MAX_COMMIT_WAIT_MS } from '../limits.ts'
import type { Draft } from './state.ts'
import type { Session } from '../rights/rights.ts'

/**
 * Decides events, and the outcome once they are durable. Called again if records of others came
 * first. A crash may leave the first of several events without the others.
 */
export type Command<T> = (draft: Draft) => readonly [events: readonly EncodedEvent[], outcome: T]

export interface Queued {
  readonly command: Command<unknown>
  /**
   * `alone`: nothing shares its write. `first`: before it, only others of these are decided in its
   * write.
   */
  readonly turn: 'any' | 'alone' | 'first'
  /** Its token must still stand when the command is decided. */
  readonly by: Session | null
  /** About what it holds in memory. */
  readonly bytes: number
  readonly sinceMs: number
  readonly resolve: (outcome: unknown) => void
  readonly reject: (error: unknown) => void
  /** As of the last decision. */
  isRefused: boolean
  outcome: unknown
}

export class CommandQueue {
  #queued: Queued[] = []
  #bytes = 0
  #withdrawing: NodeJS.Timeout | undefined

  get length(): number {
    return this.#queued.length
  }

  [Symbol.iterator](): Iterator<Queued> {
    return this.#queued[Symbol.iterator]()
  }

  /** Throws `queue-full`. A single command may be larger than the bound. */
  assertRoom(bytes: number): void {
    const isFull =
      this.length >= MAX_COMMIT_QUEUE_RECORDS ||
      (this.length > 0 && this.#bytes + bytes > MAX_COMMIT_QUEUE_BYTES)
    if (isFull) throw new Failure('queue-full', `${this.length} wait`)
  }

  add(queued: Queued): void {
    this.#queued.push(queued)
    this.#bytes += queued.bytes
    this.#withdrawing ??= setTimeout(this.#withdraw, MAX_COMMIT_WAIT_MS)
  }

  take(count: number): readonly Queued[] {
    const taken = this.#queued.splice(0, count)
    for (const { bytes } of taken) this.#bytes -= bytes
    return taken
  }

  putBack(taken: readonly Queued[]): void {
    if (taken.length > 0) this.#queued = [...taken, ...this.#queued]
    for (const { bytes } of taken) this.#bytes += bytes
  }

  rejectAll(error: unknown): void {
    for (const { reject } of this.take(this.length)) reject(error)
  }

  /** Ends the timer while nothing waits. */
  rest(): void {
    clearTimeout(this.#withdrawing)
    this.#withdrawing = undefined
  }

  /** A change that was answered with a failure must not happen later. */
  readonly #withdraw = (): void => {
    const lastMs = performance.now() - MAX_COMMIT_WAIT_MS
    const late = this.#queued.findIndex(({ sinceMs }) => sinceMs > lastMs)
    const withdrawn = this.take(late < 0 ? this.length : late)
    for (const { reject } of withdrawn)
      reject(new Failure('journal-busy', `it has waited ${MAX_COMMIT_WAIT_MS} ms`))
    const [next] = this.#queued
    this.#withdrawing = next && setTimeout(this.#withdraw, Math.max(1, next.sinceMs - lastMs))
  }
}
