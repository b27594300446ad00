/**
 * The way of every change, for every journal: take what waits, decide each command on a draft of the state, append the
 * events, apply the records, answer.
 *
 * One append is under way at a time. Commands that arrive meanwhile wait, and share the next one (group commit).
 */
import { Buffer } from 'node:buffer'
import { Failure, systemCode, type FailureCode } from '../errors.ts'
import type { EncodedEvent, Event, Journal, JournalHealth, JournalRecord } from '../journal/journal.ts'
import { MAX_COMMIT_QUEUE_RECORDS, MAX_GATHER_TURNS } from '../limits.ts'

/** What a command decides: its outcome, and the event to record where something changes. */
export interface Decision<T> {
  readonly outcome: T
  readonly event?: Event | undefined
}

/** Called when its turn comes, with a draft of the state; where others write too, perhaps again with a newer one. */
export type Command<S, T> = (draft: S) => Decision<T>

/** A state that events are applied to, and drafts of it. */
export interface Applied<S> {
  /** Returns a draft of the current state, which changes separately. */
  draft(): S
  /** Throws where the event does not fit. */
  applyTo(draft: S, event: Event): void
  apply(record: JournalRecord): void
}

/** Exclusive work on the journal; the signal aborts it. */
type Work<T> = (signal: AbortSignal) => T | Promise<T>

/** A command or work that waits for its turn. */
interface Waiting<S> {
  readonly decide: Command<S, unknown> | undefined
  readonly work: Work<unknown> | undefined
  outcome: unknown
  readonly resolve: (outcome: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Gets each append that did not race: how long it took, and whether it succeeded. */
export interface JournalObserver { journalWritten?(ms: number, isMade: boolean): void }

/** Failures of one batch that need not hit the next one. */
const OF_ONE_BATCH: readonly FailureCode[] = ['write-failed', 'journal-refused']

/** The only caller of `Journal.append`. */
export class CommitLoop<S> {
  readonly #journal: Journal
  readonly #state: Applied<S>
  readonly #observers: readonly JournalObserver[]
  #queue: Waiting<S>[] = []
  #running: Promise<void> | undefined
  readonly #stopping = new AbortController()
  #closed: Promise<void> | undefined
  /** Why a durable record could not be applied; the state differs from the journal, so nothing more is decided. */
  #fault: string | undefined

  constructor(journal: Journal, state: Applied<S>, observers: readonly JournalObserver[] = []) {
    this.#journal = journal
    this.#state = state
    this.#observers = observers
  }

  /**
   * Resolves with the command's outcome once everything it could have seen is durable and its event, if it gave one,
   * is applied. Rejects with `write-failed`, `journal-failed`, `queue-full`, `journal-closed` or another failure of the
   * journal, and with whatever the command threw. After `journal-failed` or `journal-unreachable` it may be recorded.
   */
  commit<T>(decide: Command<S, T>): Promise<T> { return this.#add(decide) }

  /**
   * Runs work between two appends. Where others write too, the journal has to keep them out by itself, and the
   * work runs at once.
   */
  exclusively<T>(work: Work<T>): Promise<T> {
    if (this.#journal.catchUp === undefined) return this.#add(undefined, work)
    return this.#work(work)
  }

  /** The journal's health, and how many commands wait. */
  health(): JournalHealth & { readonly waiting: number } {
    const health = this.#journal.health()
    return { ...health, fault: this.#fault ?? health.fault, waiting: this.#queue.length }
  }

  /** Aborts exclusive work, so that a stop need not wait for it. */
  abortWork(): void { this.#stopping.abort(new Failure('journal-closed', 'the service stops')) }

  /** Waits for what was queued, then closes the journal. */
  close(): Promise<void> {
    this.abortWork()
    return this.#closed ??= Promise.resolve(this.#running).then(() => this.#journal.close())
  }

  #add<T>(decide: Command<S, T> | undefined, work?: Work<T>): Promise<T> {
    if (this.#closed !== undefined) return Promise.reject(new Failure('journal-closed', 'the store is closed'))
    if (this.#queue.length >= MAX_COMMIT_QUEUE_RECORDS) {
      return Promise.reject(new Failure('queue-full', `${MAX_COMMIT_QUEUE_RECORDS} wait`))
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ decide, work, outcome: undefined, resolve: resolve as Waiting<S>['resolve'], reject })
      this.#running ??= this.#run()
    })
  }

  /** Writes until nothing waits. */
  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      await this.#gather()
      const work = this.#queue[0]?.work
      if (work === undefined) { await this.#write(); continue }
      const { resolve, reject } = this.#queue.shift()!
      await this.#work(work).then(resolve, reject)
    }
    this.#running = undefined
  }

  /**
   * Waits until a turn of the event loop has brought no further command: those whose changes were just acknowledged
   * may be about to ask for the next, and a write costs as much as several records.
   */
  async #gather(): Promise<void> {
    for (let turns = 0, seen = 0; turns <= MAX_GATHER_TURNS; turns++) {
      await new Promise(resolve => setImmediate(resolve))
      const { length } = this.#queue
      if (length === seen || length >= this.#journal.maxBatchRecords) break
      seen = length
    }
  }

  async #work<T>(work: Work<T>): Promise<T> {
    const { signal } = this.#stopping
    signal.throwIfAborted()
    return work(signal)
  }

  async #write(): Promise<void> {
    if (this.#fault !== undefined) return this.#rejectAll(new Failure('journal-failed', this.#fault))
    let { batch, events } = this.#decide()
    try {
      const asksFirst = events.length === 0 && this.#journal.catchUp !== undefined
      if (asksFirst) {
        await this.#journal.catchUp!() // on the newest state these may change something
        this.#queue = [...batch, ...this.#queue];
        ({ batch, events } = this.#decide(batch.length))
      }
      const appended = asksFirst && events.length === 0 ? [] : await this.#append(events)
      if (appended === 'raced') {
        this.#queue = [...batch, ...this.#queue] // decided again, before all others
        return
      }
      this.#apply(appended)
      for (const { resolve, outcome } of batch) resolve(outcome)
    } catch (error) {
      for (const { reject } of batch) reject(error)
      if (error instanceof Failure && !OF_ONE_BATCH.includes(error.code)) this.#rejectAll(error)
    }
  }

  #append(events: readonly EncodedEvent[]): Promise<readonly JournalRecord[] | 'raced'> {
    const startMs = performance.now()
    const appending = this.#journal.append(events)
    const ended = (isMade: boolean): void => {
      const ms = performance.now() - startMs
      // In a microtask of its own: what an observer throws is no failure of the append.
      for (const one of this.#observers) queueMicrotask(() => one.journalWritten?.(ms, isMade))
    }
    if (events.length > 0) appending.then(appended => { if (appended !== 'raced') ended(true) }, () => ended(false))
    return appending
  }

  /** Decides commands in order until a batch is full. One that throws is rejected and is no part of it. */
  #decide(max = Infinity): { readonly batch: readonly Waiting<S>[], readonly events: readonly EncodedEvent[] } {
    const { maxBatchRecords, maxBatchBytes } = this.#journal
    const draft = this.#state.draft()
    const batch: Waiting<S>[] = []
    const events: EncodedEvent[] = []
    let next = 0
    for (let bytes = 0; next < max && events.length < maxBatchRecords && bytes < maxBatchBytes; next++) {
      const waiting = this.#queue[next]
      if (waiting?.decide === undefined) break
      try {
        const { outcome, event } = waiting.decide(draft)
        if (event !== undefined) {
          const encoded = this.#encode(event)
          this.#state.applyTo(draft, event)
          events.push(encoded)
          bytes += Buffer.byteLength(encoded.json)
        }
        waiting.outcome = outcome
        batch.push(waiting)
      } catch (error) {
        waiting.reject(error)
      }
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

  #apply(records: readonly JournalRecord[]): void {
    try {
      for (const record of records) this.#state.apply(record)
    } catch (error) {
      this.#fault = `a durable record does not fit the state: ${systemCode(error)}`
      throw new Failure('journal-failed', this.#fault, { cause: error })
    }
  }

  #rejectAll(error: Failure): void {
    const queue = this.#queue
    this.#queue = []
    for (const { reject } of queue) reject(error)
  }
}
