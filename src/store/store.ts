/**
 * The store: commands wait in a queue, bounded in number, bytes and time, and are decided one after the other; the
 * journal makes durable what they decide. Reads are answered from memory and never see what is not durable.
 */
import { Buffer } from 'node:buffer'
import { Failure, type FailureCode } from '../errors.ts'
import type { EncodedEvent, Journal, Status } from '../journal/journal.ts'
import {
  MAX_COMMIT_QUEUE_BYTES, MAX_COMMIT_QUEUE_RECORDS, MAX_COMMIT_WAIT_MS, MAX_GATHER_TURNS
} from '../limits.ts'
import type { Session } from './session.ts'
import { Draft, type State } from './state.ts'

/**
 * Decides on the events to record, none if nothing changes, and on what to answer once they are durable. Called again,
 * with a newer draft, if records of others came first. After a crash the first of several events may be there without
 * the others.
 */
export type Command<T> = (draft: Draft) => readonly [events: readonly EncodedEvent[], outcome: T]

/** Where commands go: the store, or a view of it. */
export type Commits = Pick<Store, 'state' | 'commit' | 'commitAlone'>

/** Is told of each append that had events: how long it took, and whether it succeeded. */
export interface JournalObserver { journalWritten?(ms: number, isMade: boolean): void }

/** A command that waits for its turn, or work on the journal itself. */
interface Waiting {
  readonly work: Command<unknown> | (() => Promise<unknown>)
  readonly kind: 'command' | 'alone' | 'exclusive'
  /** Who asks: the token must still stand. */
  readonly by: Session | null
  readonly bytes: number
  readonly sinceMs: number
  readonly resolve: (outcome: unknown) => void
  readonly reject: (error: unknown) => void
  /** As it was decided last. */
  isRefused: boolean
  outcome: unknown
}

/** Failures of one write that need not hit the next one. */
const PASSING_FAILURES: readonly FailureCode[] = ['write-failed', 'journal-refused']

/** The only caller of `Journal.append`. */
export class Store {
  readonly journal: Journal
  readonly state: State
  readonly #observers: readonly JournalObserver[]
  #queue: Waiting[] = []
  #queueBytes = 0
  /** The commands of the write under way, and their events. */
  #batch: readonly Waiting[] = []
  #events: readonly EncodedEvent[] = []
  #running: Promise<void> | undefined
  #withdrawing: NodeJS.Timeout | undefined
  #closed: Promise<void> | undefined

  /** `state` is what the journal was read into. */
  constructor(journal: Journal, state: State, observers: readonly JournalObserver[] = []) {
    this.journal = journal
    this.state = state
    this.#observers = observers
    state.entries.tagKey = journal.tagKey
  }

  /**
   * Resolves with a command's outcome once everything that it could have seen is durable, its own events too. `by` is
   * who asks: `session-changed` if that token was revoked meanwhile. `bytes` is about what it holds while it waits.
   * Rejects with `queue-full`, `journal-busy`, `journal-closed`, a failure of the journal, or what the command threw.
   * After `journal-failed` or `journal-unreachable` its events may be recorded.
   */
  commit<T>(command: Command<T>, by: Session | null = null, bytes: number = 0): Promise<T> {
    return this.#wait<T>(command, 'command', by, bytes)
  }

  /** The same for a command that looks at users or tokens: nothing shares its write, so the state is exactly true. */
  commitAlone<T>(command: Command<T>, by: Session | null = null): Promise<T> {
    return this.#wait<T>(command, 'alone', by, 0)
  }

  /**
   * Does work on the journal while nothing is appended. Withdrawn, with `journal-busy`, if its turn does not come in a
   * few seconds, or if nobody waits for it any more when it comes.
   */
  exclusive<T>(work: () => Promise<T>, isGone: () => boolean = () => false): Promise<T> {
    const begin = async (): Promise<T> => {
      if (isGone()) throw new Failure('journal-busy', 'its client has gone')
      return work()
    }
    return this.#wait<T>(begin, 'exclusive', null, 0)
  }

  /** The journal's status, and how many commands wait. */
  status(): Status & { readonly waiting: number } {
    return { ...this.journal.status(), waiting: this.#queue.length }
  }

  /** Waits for what was queued, then closes the journal. */
  close(): Promise<void> {
    return this.#closed ??= Promise.resolve(this.#running).then(() => this.journal.close())
  }

  #wait<T>(work: Waiting['work'], kind: Waiting['kind'], by: Session | null, bytes: number): Promise<T> {
    const waiting = this.#queue.length
    if (this.#closed !== undefined) return Promise.reject(new Failure('journal-closed', 'the store is closed'))
    const isFull = waiting >= MAX_COMMIT_QUEUE_RECORDS ||
      (waiting > 0 && this.#queueBytes + bytes > MAX_COMMIT_QUEUE_BYTES)
    if (isFull) return Promise.reject(new Failure('queue-full', `${waiting} wait`))
    return new Promise<unknown>((resolve, reject) => {
      const sinceMs = performance.now()
      this.#queue.push({ work, kind, by, bytes, sinceMs, resolve, reject, isRefused: false, outcome: undefined })
      this.#queueBytes += bytes
      this.#withdrawing ??= setTimeout(this.#withdraw, MAX_COMMIT_WAIT_MS)
      this.#running ??= this.#run()
    }) as Promise<T>
  }

  /** The way of every change, one write after the other; exclusive work has a turn of its own. */
  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      await this.#gather()
      if (this.#queue[0]?.kind === 'exclusive') {
        const [{ work, resolve, reject }] = this.#take(1) as [Waiting]
        await (work as () => Promise<unknown>)().then(resolve, reject)
        continue
      }
      let startMs = 0
      let error: unknown
      this.#batch = this.#events = []
      try {
        await this.journal.append(() => {
          const events = this.#decide()
          startMs ||= performance.now()
          return events
        })
        // Now it is durable, and reduced into the state.
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

  /**
   * Waits until a turn of the event loop has brought no further command: clients whose changes were just acknowledged
   * may be about to ask for the next, and a write costs as much as several records.
   */
  async #gather(): Promise<void> {
    for (let turns = 0, seen = 0; turns <= MAX_GATHER_TURNS; turns++) {
      await new Promise(resolve => setImmediate(resolve))
      const { length } = this.#queue
      if (length === seen || length >= this.journal.maxRecords) break
      seen = length
    }
  }

  /**
   * Decides commands in order until a write is full. What one throws may come of an event before it: it is said once
   * that is durable. Called again if others' records came first, or if nothing was to be recorded: then for the same
   * commands.
   */
  #decide(): readonly EncodedEvent[] {
    const { maxRecords, maxBytes } = this.journal
    const most = this.#batch.length > 0 && this.#events.length === 0 ? this.#batch.length : Infinity
    this.#putBack(this.#batch)
    const draft = new Draft(this.state)
    const events: EncodedEvent[] = []
    let bytes = 0
    let count = 0
    for (const waiting of this.#queue) {
      const isFull = count >= most || events.length >= maxRecords || bytes + draft.bytes >= maxBytes
      if (isFull || (count > 0 && waiting.kind !== 'command')) break
      count++
      try {
        if (waiting.by !== null) draft.assertStands(waiting.by)
        const [decided, outcome] = (waiting.work as Command<unknown>)(draft)
        for (const event of decided) bytes += this.#lengthOf(event)
        for (const event of decided) draft.take(event)
        events.push(...decided)
        waiting.isRefused = false
        waiting.outcome = outcome
      } catch (error) {
        waiting.isRefused = true
        waiting.outcome = error
      }
      if (waiting.kind === 'alone') break
    }
    this.#batch = this.#take(count)
    return this.#events = events
  }

  /** The length of an event as JSON; throws `write-failed` if no line can hold it. */
  #lengthOf({ json }: EncodedEvent): number {
    const { maxEventBytes } = this.journal
    // In UTF-8 a UTF-16 unit takes at most three bytes: nearly always there is nothing to count.
    if (json.length * 3 > maxEventBytes && Buffer.byteLength(json) > maxEventBytes) {
      throw new Failure('write-failed', `a change of more than ${maxEventBytes} bytes`)
    }
    return json.length
  }

  #tell(ms: number, isMade: boolean): void {
    // In a microtask of its own: what an observer throws is no failure of the write.
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

  /** Rejects what has waited too long: what was not answered with success is not carried out later. */
  readonly #withdraw = (): void => {
    const lastMs = performance.now() - MAX_COMMIT_WAIT_MS
    const late = this.#queue.findIndex(({ sinceMs }) => sinceMs > lastMs)
    const withdrawn = this.#take(late < 0 ? this.#queue.length : late)
    for (const { reject } of withdrawn) reject(new Failure('journal-busy', `it has waited ${MAX_COMMIT_WAIT_MS} ms`))
    const [next] = this.#queue
    this.#withdrawing = next && setTimeout(this.#withdraw, Math.max(1, next.sinceMs - lastMs))
  }
}
