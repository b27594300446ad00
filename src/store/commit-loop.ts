/**
 * The way of every change, for every journal: take what waits, decide each command on an overlay of the state, have the
 * journal make the events durable and reduce them into the state, answer.
 *
 * One append is under way at a time. Commands that arrive meanwhile wait, and share the next one (group commit). A
 * command that waits too long is withdrawn: what was not answered with success is not carried out later.
 */
import { Buffer } from 'node:buffer'
import { Failure, type FailureCode } from '../errors.ts'
import type { EncodedEvent, Event, Journal, Status } from '../journal/journal.ts'
import { MAX_COMMIT_QUEUE_RECORDS, MAX_COMMIT_WAIT_MS, MAX_GATHER_TURNS } from '../limits.ts'

/** What a command decides: the event to record where something changes, and what to answer once it is reduced. */
export interface Decision<S, T> {
  readonly event?: Event | undefined
  /** Reads the outcome from the overlay that the event was reduced into. */
  readonly outcome: (state: S) => T
  /** What overlay and outcome hold besides the event, in bytes, where that may be much. */
  readonly heldBytes?: number | undefined
}

/** Called when its turn comes, with an overlay of the state; where others write too, perhaps again with a newer one. */
export type Command<S, T> = (state: S) => Decision<S, T>

/** A state that commands are decided on. */
export interface Decidable<S> {
  /** Gives a copy-on-write overlay of the current state. */
  overlay(): S
  /** Throws where the event does not fit. */
  reduce(overlay: S, event: Event): void
}

/** A command in the queue. */
interface Queued<S> {
  readonly decide: Command<S, unknown>
  readonly sinceMs: number
  readonly resolve: (outcome: unknown) => void
  readonly reject: (error: unknown) => void
  /** Answers as it was decided last. */
  answer: () => void
}

/** Gets each append that had events: how long it took, and whether it succeeded. */
export interface JournalObserver { journalWritten?(ms: number, isMade: boolean): void }

/** Failures of one batch that need not hit the next one. */
const BATCH_ONLY_FAILURES: readonly FailureCode[] = ['write-failed', 'journal-refused']

/** The only caller of `Journal.append`. */
export class CommitLoop<S> {
  readonly #journal: Journal
  readonly #state: Decidable<S>
  readonly #observers: readonly JournalObserver[]
  #queue: Queued<S>[] = []
  #running: Promise<void> | undefined
  #withdrawing: NodeJS.Timeout | undefined
  #closed: Promise<void> | undefined

  constructor(journal: Journal, state: Decidable<S>, observers: readonly JournalObserver[] = []) {
    this.#journal = journal
    this.#state = state
    this.#observers = observers
  }

  /**
   * Resolves with the command's outcome once everything it could have seen is durable and its event, if it gave one,
   * is reduced. Rejects with `write-failed`, `journal-failed`, `queue-full`, `journal-busy`, `journal-closed` or
   * another failure of the journal, and with whatever the command threw. After `journal-failed` or
   * `journal-unreachable` it may be recorded.
   */
  commit<T>(decide: Command<S, T>): Promise<T> {
    if (this.#closed !== undefined) return Promise.reject(new Failure('journal-closed', 'the store is closed'))
    if (this.#queue.length >= MAX_COMMIT_QUEUE_RECORDS) {
      return Promise.reject(new Failure('queue-full', `${MAX_COMMIT_QUEUE_RECORDS} wait`))
    }
    return new Promise((resolve, reject) => {
      const settle = resolve as Queued<S>['resolve']
      this.#queue.push({ decide, sinceMs: performance.now(), resolve: settle, reject, answer: () => {} })
      this.#running ??= this.#run()
      this.#withdrawing ??= setTimeout(this.#withdraw, MAX_COMMIT_WAIT_MS)
    })
  }

  /** The journal's health, and how many commands wait. */
  status(): Status & { readonly waiting: number } {
    return { ...this.#journal.status(), waiting: this.#queue.length }
  }

  /** Waits for what was queued, then closes the journal. */
  close(): Promise<void> {
    return this.#closed ??= Promise.resolve(this.#running).then(() => this.#journal.close())
  }

  /** Writes until nothing waits. */
  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      await this.#gather()
      await this.#write()
    }
    this.#running = undefined
    clearTimeout(this.#withdrawing)
    this.#withdrawing = undefined
  }

  /**
   * Waits until a turn of the event loop has brought no further command: those whose changes were just acknowledged
   * may be about to ask for the next, and a write costs as much as several records.
   */
  async #gather(): Promise<void> {
    for (let turns = 0, seen = 0; turns <= MAX_GATHER_TURNS; turns++) {
      await new Promise(resolve => setImmediate(resolve))
      const { length } = this.#queue
      if (length === seen || length >= this.#journal.maxRecords) break
      seen = length
    }
  }

  /** Rejects the commands that have waited too long; those of the batch under way are no longer in the queue. */
  readonly #withdraw = (): void => {
    const lastMs = performance.now() - MAX_COMMIT_WAIT_MS
    const late = this.#queue.filter(({ sinceMs }) => sinceMs <= lastMs)
    this.#queue = this.#queue.filter(({ sinceMs }) => sinceMs > lastMs)
    for (const { reject } of late) reject(new Failure('journal-busy', `it has waited ${MAX_COMMIT_WAIT_MS} ms`))
    const [next] = this.#queue
    this.#withdrawing = next && setTimeout(this.#withdraw, Math.max(1, next.sinceMs - lastMs))
  }

  async #write(): Promise<void> {
    let batch: readonly Queued<S>[] | undefined
    let startMs = 0
    let hasEvents = false
    const decide = (): readonly EncodedEvent[] => {
      this.#queue = [...batch ?? [], ...this.#queue] // decided again, before all others
      // Where others write too, this may be called again: for what came to nothing, for that alone.
      const decided = this.#decide(batch === undefined || hasEvents ? Infinity : batch.length)
      startMs ||= performance.now()
      batch = decided.batch
      hasEvents = decided.events.length > 0
      return decided.events
    }
    const ended = (isMade: boolean): void => {
      if (!hasEvents) return
      const ms = performance.now() - startMs
      // In a microtask of its own: what an observer throws is no failure of the append.
      for (const one of this.#observers) queueMicrotask(() => one.journalWritten?.(ms, isMade))
    }
    try {
      await this.#journal.append(decide)
      ended(true)
      for (const { answer } of batch ?? []) answer()
    } catch (error) {
      ended(false)
      for (const { reject } of batch ?? []) reject(error)
      // An unforeseen error is the batch's, if there is one.
      const isLasting = error instanceof Failure && !BATCH_ONLY_FAILURES.includes(error.code)
      if (batch === undefined || isLasting) this.#rejectAll(error)
    }
  }

  /**
   * Decides commands in order until a batch is full. What they answer, and what they throw, may come from an event of
   * the same batch: it is said once that is durable.
   */
  #decide(max: number): { readonly batch: readonly Queued<S>[], readonly events: readonly EncodedEvent[] } {
    const { maxRecords, maxBytes } = this.#journal
    const overlay = this.#state.overlay()
    const batch: Queued<S>[] = []
    const events: EncodedEvent[] = []
    let next = 0
    for (let bytes = 0; next < max && events.length < maxRecords && bytes < maxBytes; next++) {
      const queued = this.#queue[next]
      if (queued === undefined) break
      try {
        const { outcome, event, heldBytes = 0 } = queued.decide(overlay)
        bytes += heldBytes
        if (event !== undefined) {
          const encoded = this.#encode(event) // before it is reduced: what is too large must leave nothing behind
          this.#state.reduce(overlay, event)
          events.push(encoded)
          bytes += Buffer.byteLength(encoded.json)
        }
        const decided = outcome(overlay)
        queued.answer = () => queued.resolve(decided)
      } catch (error) {
        queued.answer = () => queued.reject(error)
      }
      batch.push(queued)
    }
    this.#queue = this.#queue.slice(next)
    return { batch, events }
  }

  #encode({ type, by, data }: Event): EncodedEvent {
    const json = JSON.stringify(data)
    const { maxEventBytes } = this.#journal
    // In UTF-8 a UTF-16 unit takes at most three bytes: nearly always there is nothing to count.
    if (json.length * 3 > maxEventBytes && Buffer.byteLength(json) > maxEventBytes) {
      throw new Failure('write-failed', `a change of more than ${maxEventBytes} bytes`)
    }
    return { type, by, data, json }
  }

  #rejectAll(error: unknown): void {
    const queue = this.#queue
    this.#queue = []
    for (const { reject } of queue) reject(error)
  }
}
