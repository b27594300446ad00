/**
 * The store: commands wait in a bounded queue and are decided in order; the journal makes their events durable. Reads
 * come from memory and see durable changes only.
 */
import { Buffer } from 'node:buffer'
import { Failure, type FailureCode } from '../errors.ts'
import type { EncodedEvent, Journal, Status } from '../journal/journal.ts'
import {
  MAX_COMMIT_QUEUE_BYTES, MAX_COMMIT_QUEUE_RECORDS, MAX_COMMIT_WAIT_MS, MAX_GATHER_TURNS
} from '../limits.ts'
import type { Session } from './users.ts'
import { Draft, type State } from './state.ts'

/**
 * Decides events, and the answer once they are durable. Called again if others' records came first. A crash may leave
 * the first of several events without the others.
 */
export type Command<T> = (draft: Draft) => readonly [events: readonly EncodedEvent[], outcome: T]

export type Commits = Pick<Store, 'state' | 'commit' | 'commitAlone' | 'commitLast'>

export interface JournalObserver { journalWritten?(ms: number, isMade: boolean): void }

interface Waiting {
  readonly command: Command<unknown>
  /** `alone`: nothing shares its write. `last`: nothing of its write is decided behind it but others of these. */
  readonly turn: 'any' | 'alone' | 'last'
  /** Its token must still stand. */
  readonly by: Session | null
  readonly bytes: number
  readonly sinceMs: number
  readonly resolve: (outcome: unknown) => void
  readonly reject: (error: unknown) => void
  /** As last decided. */
  isRefused: boolean
  outcome: unknown
}

/** The next write may succeed. */
const PASSING_FAILURES: readonly FailureCode[] = ['write-failed', 'journal-refused']

/** About what a command that is decided last adds to a write. */
const [LAST_RECORDS, LAST_BYTES] = [2, 512]

/** The only caller of `Journal.append`. */
export class Store {
  readonly journal: Journal
  readonly state: State
  readonly #observers: readonly JournalObserver[]
  #queue: Waiting[] = []
  #queueBytes = 0
  /** Of the write under way. */
  #batch: readonly Waiting[] = []
  #events: readonly EncodedEvent[] = []
  #running: Promise<void> | undefined
  #withdrawing: NodeJS.Timeout | undefined
  #closed: Promise<void> | undefined

  constructor(journal: Journal, state: State, observers: readonly JournalObserver[] = []) {
    this.journal = journal
    this.state = state
    this.#observers = observers
    state.entries.tagKey = () => journal.tagKey
  }

  /**
   * Resolves once the command's events, and all it could have seen, are durable. `bytes`: about what it holds. Rejects
   * with `session-changed` if the token of `by` was revoked, `queue-full`, `journal-busy`, `journal-closed`, the
   * journal's failure, or the command's error. After `journal-failed` or `journal-unreachable` its events may be
   * recorded.
   */
  commit<T>(command: Command<T>, by: Session | null = null, bytes: number = 0): Promise<T> {
    return this.#wait(command, 'any', by, bytes)
  }

  /** For users or tokens: nothing shares the write, so the state is exact. */
  commitAlone<T>(command: Command<T>, by: Session | null = null): Promise<T> {
    return this.#wait(command, 'alone', by, 0)
  }

  /** For reads that are recorded: when it resolves, the state is still what it saw. For at most a few short events. */
  commitLast<T>(command: Command<T>, by: Session | null = null): Promise<T> {
    return this.#wait(command, 'last', by, 0)
  }

  status(): Status & { readonly waiting: number } {
    return { ...this.journal.status(), waiting: this.#queue.length }
  }

  close(): Promise<void> {
    return this.#closed ??= Promise.resolve(this.#running).then(() => this.journal.close())
  }

  #wait<T>(command: Command<T>, turn: Waiting['turn'], by: Session | null, bytes: number): Promise<T> {
    const waiting = this.#queue.length
    if (this.#closed !== undefined) return Promise.reject(new Failure('journal-closed', 'the store is closed'))
    const isFull = waiting >= MAX_COMMIT_QUEUE_RECORDS ||
      (waiting > 0 && this.#queueBytes + bytes > MAX_COMMIT_QUEUE_BYTES)
    if (isFull) return Promise.reject(new Failure('queue-full', `${waiting} wait`))
    return new Promise<unknown>((resolve, reject) => {
      const sinceMs = performance.now()
      this.#queue.push({ command, turn, by, bytes, sinceMs, resolve, reject, isRefused: false, outcome: undefined })
      this.#queueBytes += bytes
      this.#withdrawing ??= setTimeout(this.#withdraw, MAX_COMMIT_WAIT_MS)
      this.#running ??= this.#run()
    }) as Promise<T>
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      await this.#gather()
      let startMs = 0
      let error: unknown
      this.#batch = this.#events = []
      try {
        await this.journal.append(() => {
          const events = this.#decide()
          startMs ||= performance.now()
          return events
        })
        // Durable now, and in the state.
      } catch (failure) {
        error = failure
      }
      if (this.#events.length > 0) this.#tell(performance.now() - startMs, error === undefined)
      for (const { isRefused, outcome, resolve, reject } of this.#batch) {
        if (error !== undefined) reject(error)
        else if (isRefused) reject(outcome)
        else resolve(outcome)
      }
      const isLasting = error instanceof Failure && !PASSING_FAILURES.includes(error.code)
      const isUndecided = error !== undefined && this.#batch.length === 0
      if (isLasting || isUndecided) for (const { reject } of this.#take(this.#queue.length)) reject(error)
    }
    this.#batch = this.#events = []
    this.#running = undefined
    clearTimeout(this.#withdrawing)
    this.#withdrawing = undefined
  }

  /** Acknowledged clients may ask again at once, and a write costs as much as several records. */
  async #gather(): Promise<void> {
    for (let turns = 0, seen = 0; turns <= MAX_GATHER_TURNS; turns++) {
      await new Promise(resolve => setImmediate(resolve))
      const { length } = this.#queue
      if (length === seen || length >= this.journal.maxRecords) break
      seen = length
    }
  }

  /**
   * An error may follow from an earlier event, so it is told once that event is durable. Called again after others'
   * records, or, for the same commands, if there is nothing to record.
   */
  #decide(): readonly EncodedEvent[] {
    const { maxRecords, maxBytes } = this.journal
    const most = this.#batch.length > 0 && this.#events.length === 0 ? this.#batch.length : Infinity
    this.#putBack(this.#batch)
    const draft = new Draft(this.state)
    const events: EncodedEvent[] = []
    let bytes = 0
    let count = 0
    const last: Waiting[] = []
    const decide = (waiting: Waiting): void => {
      try {
        if (waiting.by !== null) draft.assertStands(waiting.by)
        const [decided, outcome] = waiting.command(draft)
        for (const event of decided) bytes += this.#lengthOf(event)
        for (const event of decided) draft.take(event)
        events.push(...decided)
        waiting.isRefused = false
        waiting.outcome = outcome
      } catch (error) {
        waiting.isRefused = true
        waiting.outcome = error
      }
    }
    for (const waiting of this.#queue) {
      const isFull = count >= most || events.length + LAST_RECORDS * last.length >= maxRecords ||
        bytes + draft.readLength + LAST_BYTES * last.length >= maxBytes
      if (isFull || (count > 0 && waiting.turn === 'alone')) break
      count++
      if (waiting.turn === 'last') last.push(waiting)
      else decide(waiting)
      if (waiting.turn === 'alone') break
    }
    for (const waiting of last) decide(waiting)
    this.#batch = this.#take(count)
    return this.#events = events
  }

  /** Throws `write-failed` if no line can hold the event. */
  #lengthOf({ json }: EncodedEvent): number {
    const { maxEventBytes } = this.journal
    // A UTF-16 unit has at most three bytes in UTF-8.
    if (json.length * 3 > maxEventBytes && Buffer.byteLength(json) > maxEventBytes) {
      throw new Failure('write-failed', `a change of more than ${maxEventBytes} bytes`)
    }
    return json.length
  }

  #tell(ms: number, isMade: boolean): void {
    // In a microtask: an observer's error is no failure of the write.
    for (const one of this.#observers) queueMicrotask(() => one.journalWritten?.(ms, isMade))
  }

  #take(count: number): readonly Waiting[] {
    const taken = this.#queue.splice(0, count)
    for (const { bytes } of taken) this.#queueBytes -= bytes
    return taken
  }

  #putBack(batch: readonly Waiting[]): void {
    if (batch.length > 0) this.#queue = [...batch, ...this.#queue]
    for (const { bytes } of batch) this.#queueBytes += bytes
  }

  /** A change that was answered with a failure must not happen later. */
  readonly #withdraw = (): void => {
    const lastMs = performance.now() - MAX_COMMIT_WAIT_MS
    const late = this.#queue.findIndex(({ sinceMs }) => sinceMs > lastMs)
    const withdrawn = this.#take(late < 0 ? this.#queue.length : late)
    for (const { reject } of withdrawn) reject(new Failure('journal-busy', `it has waited ${MAX_COMMIT_WAIT_MS} ms`))
    const [next] = this.#queue
    this.#withdrawing = next && setTimeout(this.#withdraw, Math.max(1, next.sinceMs - lastMs))
  }
}
