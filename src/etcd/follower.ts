/**
 * Following a journal that all share: what was read of it, and why nothing more can be.
 *
 * **The watch** spares questions the work of bringing records, and keeps an instance that nobody asks up to date;
 * nothing relies on it. It is begun behind a question's revision, and again whenever it ends or is silent.
 */
import { Failure } from '../errors.ts'
import { ETCD_KEY_PAUSE_MS, ETCD_READ_TIMEOUT_MS, ETCD_RETRY_PAUSE_MS } from '../limits.ts'
import type { EtcdLog, Stored } from './log.ts'
import { Question } from './question.ts'
import type { Replica } from './replica.ts'
import type { Sealing } from './sealing.ts'

/** The reading side of an instance. */
export class Follower {
  readonly #log: EtcdLog
  readonly #replica: Replica
  readonly #sealing: Sealing
  readonly #warn: (line: string) => void
  readonly #isRewriting: () => boolean
  readonly #question: Question<string>
  /** Why nothing can be applied any more. */
  fault: string | undefined
  /** Why etcd does not answer, or what it answers cannot be opened for want of a key. */
  outage: string | undefined
  /** What was warned of last. */
  #told: string | undefined
  #isOpen = false

  /** `isRewriting` tells whether this instance seals the journal anew: who asked for that knows that changes wait. */
  constructor(
    log: EtcdLog, replica: Replica, sealing: Sealing, warn: (line: string) => void, isRewriting: () => boolean
  ) {
    this.#log = log
    this.#replica = replica
    this.#sealing = sealing
    this.#warn = warn
    this.#isRewriting = isRewriting
    this.#question = new Question(() => this.#catchUp())
  }

  /** Applies all that was written before it was called; gives the revision as of which that is all. Shared. */
  ask(): Promise<string> { return this.#question.ask() }

  /** Applies records; what does not follow latches, for nothing after it could be applied. */
  take(records: readonly Stored[]): void {
    if (this.fault !== undefined) throw new Failure('journal-latched', this.fault)
    try {
      this.#replica.take(records)
    } catch (error) {
      if (!isOfKeys(error)) this.#latch((error as Error).message)
      throw error
    }
  }

  /** Latches since what was applied here stands there no more. */
  lost(): Failure { return this.#latch('its newest record is no longer in etcd') }

  /** Why there is no key to seal with, as far as is known; undefined: there is one. */
  unsealed(): Failure | undefined {
    const key = this.#sealing.key()
    return key instanceof Failure ? key : undefined
  }

  /** Keeps a watch going until the journal is closed. */
  async follow(signal: AbortSignal): Promise<void> {
    this.#isOpen = true
    while (!signal.aborted && this.fault === undefined) {
      let pauseMs = ETCD_RETRY_PAUSE_MS
      try {
        const revision = await this.#question.ask()
        await this.#log.follow(revision, records => {
          this.take(records)
          // The marker has changed, or the outage may be over.
          if (records.length === 0 || this.outage !== undefined) this.#question.ask().catch(() => {})
        }, signal)
      } catch (error) {
        // Why etcd does not answer is told by the question; a watch may end at any time.
        pauseMs = isOfKeys(error) ? ETCD_KEY_PAUSE_MS : ETCD_RETRY_PAUSE_MS
      }
      if (!signal.aborted) await new Promise(resolve => setTimeout(resolve, pauseMs))
    }
  }

  async #catchUp(): Promise<string> {
    try {
      for (;;) {
        const page = await this.#log.after(this.#replica.position, ETCD_READ_TIMEOUT_MS)
        if (page !== undefined) this.take(page.records)
        this.outage = undefined
        const moved = this.#sealing.moved() // that may also be why records are gone
        if (moved !== undefined) throw this.#latch(moved)
        if (page === undefined) throw this.lost()
        if (!page.isLast) continue
        this.#tell(this.unsealed()?.message)
        return page.revision
      }
    } catch (error) {
      if (this.fault === undefined) this.outage = (error as Error).message
      if (isOfKeys(error)) this.#tell(this.outage)
      throw error
    }
  }

  /** Warns, once, of what the operator has to do. */
  #tell(why: string | undefined): void {
    if (!this.#isOpen || this.#isRewriting()) return
    if (why !== undefined && why !== this.#told) this.#warn(`the journal takes no changes at the moment: ${why}`)
    this.#told = why
  }

  #latch(fault: string): Failure {
    const isNew = this.fault === undefined
    this.fault = fault
    if (this.#isOpen && isNew) this.#warn(`the journal takes no more records until a restart: ${fault}`)
    return new Failure('journal-latched', fault)
  }
}

/** Whether an error is over as soon as the key file is as it should be. */
export function isOfKeys(error: unknown): boolean {
  return error instanceof Failure && ['key-unknown', 'key-invalid', 'folder-unusable'].includes(error.code)
}
