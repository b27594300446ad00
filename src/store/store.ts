/**
 * The store: commands wait in a bounded queue and are decided in order; the journal makes their
 * events durable. Reads come from memory and see durable changes only.
 */
import { Buffer } from 'node:buffer'
import { Failure, type FailureCode } from '../errors.ts'
import type { EncodedEvent, Journal, Status } from '../journal/journal.ts'
import { MAX_GATHER_TURNS } from '../limits.ts'
import { CommandQueue, type Command, type Queued } from './queue.ts'
import { Draft, type State } from './state.ts'
import type { Session } from '../rights/rights.ts'

export type { Command } from './queue.ts'

export type Commits = Pick<Store, 'state' | 'commit' | 'commitAlone' | 'commitFirst'>

export interface JournalObserver {
  journalWritten?(ms: number, isMade: boolean): void
}

const PASSING_FAILURES: readonly FailureCode[] = ['write-failed', 'journal-refused']

/** Commands that share a write, and their events, as of the last decision. */
interface Write {
  readonly commands: readonly Queued[]
  readonly events: readonly EncodedEvent[]
}

const NO_WRITE: Write = { commands: [], events: [] }

/** Nothing else calls `Journal.append`. */
export class Store {
  readonly journal: Journal
  readonly state: State
  readonly #observers: JournalObserver[] = []
  readonly #queue = new CommandQueue()
  readonly #wallMs: () => number
  /** Under way. */
  #write: Write = NO_WRITE
  #running: Promise<void> | undefined
  #closed: Promise<void> | undefined

  /** `wallMs`: the time by which tokens expire, since 1970. */
  constructor(journal: Journal, state: State, wallMs: () => number = Date.now) {
    this.journal = journal
    this.state = state
    this.#wallMs = wallMs
    state.entries.tagKey = () => journal.tagKey
  }

  observe(observer: JournalObserver): void {
    this.#observers.push(observer)
  }

  /**
   * Resolves once the command's events, and all that it could have seen, are durable. `bytes`:
   * about what it holds. Rejects with `session-changed` if the token of `by` has ended,
   * `queue-full`, `journal-busy`, `journal-closed`, the journal's failure, or the command's error.
   * After `journal-failed` or `journal-unreachable` its events may be recorded.
   */
  commit<T>(command: Command<T>, by: Session | null = null, bytes: number = 0): Promise<T> {
    return this.#enqueue(command, 'any', by, bytes)
  }

  /** For users or tokens: nothing shares the write, so the state is exact. */
  commitAlone<T>(command: Command<T>, by: Session | null = null): Promise<T> {
    return this.#enqueue(command, 'alone', by, 0)
  }

  /** For reads that are recorded: decided before the changes of its write, so it sees the state. */
  commitFirst<T>(command: Command<T>, by: Session | null = null): Promise<T> {
    return this.#enqueue(command, 'first', by, 0)
  }

  status(): Status & { readonly waiting: number } {
    return { ...this.journal.status(), waiting: this.#queue.length }
  }

  close(): Promise<void> {
    return (this.#closed ??= Promise.resolve(this.#running).then(() => this.journal.close()))
  }

  #enqueue<T>(
    command: Command<T>,
    turn: Queued['turn'],
    by: Session | null,
    bytes: number
  ): Promise<T> {
    return new Promise<unknown>((resolve, reject) => {
      if (this.#closed !== undefined) throw new Failure('journal-closed', 'the store is closed')
      this.#queue.assertRoom(bytes)
      const sinceMs = performance.now()
      this.#queue.add({
        command,
        turn,
        by,
        bytes,
        sinceMs,
        resolve,
        reject,
        isRefused: false,
        outcome: undefined
      })
      this.#running ??= this.#run()
    }) as Promise<T>
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      await this.#gather()
      let startMs = 0
      let error: unknown
      this.#write = NO_WRITE
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
      const { commands, events } = this.#write
      if (events.length > 0) this.#report(performance.now() - startMs, error === undefined)
      for (const { isRefused, outcome, resolve, reject } of commands) {
        if (error !== undefined) reject(error)
        else if (isRefused) reject(outcome)
        else resolve(outcome)
      }
      const isLasting = error instanceof Failure && !PASSING_FAILURES.includes(error.code)
      const isUndecided = error !== undefined && commands.length === 0
      if (isLasting || isUndecided) this.#queue.rejectAll(error)
    }
    this.#write = NO_WRITE
    this.#running = undefined
    this.#queue.rest()
  }

  /**
   * Waits a moment for more commands: acknowledged clients may ask again at once, and a write costs
   * as much as several records.
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
   * The journal calls it again if records of others came first: then the write is decided anew,
   * perhaps with more commands. If the write had nothing to record, the journal has asked for the
   * newest records, so that its commands can be answered; what came meanwhile must not be answered
   * on them. For example, instance A asks for a command that changes nothing, and gets records up
   * to 7. Then B makes record 8, and its client asks A: on the records up to 7, A would not know of
   * it.
   */
  #decide(): readonly EncodedEvent[] {
    const { commands: before, events } = this.#write
    const hasAsked = before.length > 0 && events.length === 0
    this.#queue.putBack(before)
    const next = this.#queue.take(hasAsked ? before.length : this.#together())
    const write = new WriteDraft(new Draft(this.state, this.#wallMs()), this.journal)
    const decided = new Set<Queued>()
    const isFirst = ({ turn }: Queued): boolean => turn === 'first'
    for (const queued of [...next.filter(isFirst), ...next.filter(one => !isFirst(one))]) {
      if (!write.decide(queued)) break
      decided.add(queued)
    }
    // Both in the order in which they came.
    this.#queue.putBack(next.filter(queued => !decided.has(queued)))
    this.#write = { commands: next.filter(queued => decided.has(queued)), events: write.events }
    return write.events
  }

  /** How many of the next commands may share a write. */
  #together(): number {
    let count = 0
    for (const { turn } of this.#queue) {
      if (turn === 'alone') return Math.max(1, count)
      count++
    }
    return count
  }

  #report(ms: number, isMade: boolean): void {
    // In a microtask, so that an observer's error is no failure of the write.
    for (const one of this.#observers) queueMicrotask(() => one.journalWritten?.(ms, isMade))
  }
}

/** Each command is decided on a draft that has the events before it. */
class WriteDraft {
  readonly events: EncodedEvent[] = []
  readonly #draft: Draft
  readonly #journal: Journal
  #bytes = 0

  constructor(draft: Draft, journal: Journal) {
    this.#draft = draft
    this.#journal = journal
  }

  /**
   * False if its events would make the write longer than `maxBytes`: it is decided again for the
   * next write, in which a command alone may exceed that. An error may follow from an earlier event
   * of the write, so it is told once that is durable.
   */
  decide(queued: Queued): boolean {
    const { maxRecords, maxBytes } = this.#journal
    const isFull =
      this.events.length >= maxRecords || this.#bytes + this.#draft.readUnits >= maxBytes
    if (isFull) return false
    try {
      if (queued.by !== null) this.#draft.assertStands(queued.by)
      const [events, outcome] = queued.command(this.#draft)
      const bytes = events.reduce((sum, event) => sum + this.#bytesOf(event), 0)
      const isAfterOthers = this.events.length > 0 && events.length > 0
      if (isAfterOthers && this.#bytes + bytes > maxBytes) return false
      this.#bytes += bytes
      for (const event of events) this.#draft.take(event)
      this.events.push(...events)
      queued.isRefused = false
      queued.outcome = outcome
    } catch (error) {
      queued.isRefused = true
      queued.outcome = error
    }
    return true
  }

  /** Throws `write-failed` if no line can hold the event. */
  #bytesOf({ json }: EncodedEvent): number {
    const { maxEventBytes } = this.#journal
    const bytes = Buffer.byteLength(json)
    if (bytes > maxEventBytes)
      throw new Failure('write-failed', `a change of more than ${maxEventBytes} bytes`)
    return bytes
  }
}
