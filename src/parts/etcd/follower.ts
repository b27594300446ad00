/**
 * Following a journal that all share: what was read of it, and why nothing more can be.
 *
 * **The watch** brings records before they are asked for, and keeps an idle instance up to date;
 * nothing relies on it. It starts after the revision of a read, and again whenever it ends or is silent.
 */
import { Failure } from '../../errors.ts'
import { ETCD_KEY_PAUSE_MS, ETCD_READ_TIMEOUT_MS, ETCD_RETRY_PAUSE_MS } from './etcd-limits.ts'
import type { EtcdLog, Stored } from './etcd-log.ts'
import type { Replica } from './replica.ts'
import type { Sealing } from './sealing.ts'
import { singleFlight } from './single-flight.ts'

/** The reading side of an instance, and what is reported to the operator. */
export class Follower {
  readonly log: EtcdLog
  readonly replica: Replica
  readonly sealing: Sealing
  readonly #warn: (line: string) => void
  /** Applies all that was written before it was called; gives the revision as of which that is all. Shared. */
  readonly ask: () => Promise<string>
  /** Why nothing can be applied any more. */
  fault: string | undefined
  /** Why etcd does not answer, or what it answers cannot be opened for want of a key. */
  outage: Error | undefined
  /** Why etcd took no write. */
  #refusal: Error | undefined
  /** The kind of trouble that was reported last. */
  #reported: string | undefined
  #isOpen = false
  #onWrite = (): void => {}

  constructor(log: EtcdLog, replica: Replica, sealing: Sealing, warn: (line: string) => void) {
    this.log = log
    this.replica = replica
    this.sealing = sealing
    this.#warn = warn
    this.ask = singleFlight(() => this.catchUp())
  }

  /** Why changes cannot be made at the moment. */
  get trouble(): Error | undefined { return this.outage ?? this.sealing.fault() ?? this.#refusal }

  /** Throws where nothing can be applied any more. */
  assertSound(): void {
    if (this.fault !== undefined) throw new Failure('journal-failed', this.fault)
  }

  /** Applies records. Throws where one does not follow: nothing after it could be applied. */
  take(records: readonly Stored[]): void {
    this.assertSound()
    try {
      this.replica.take(records)
    } catch (error) {
      if (!isOfKeys(error)) this.#fail((error as Error).message)
      throw error
    }
    if (records.length > 0) this.#onWrite()
  }

  /** Resolves when records were taken, or, after a time without any, when etcd was asked for them. */
  async next(ms: number): Promise<void> {
    const isTaken = await new Promise<boolean>(resolve => {
      const timer = setTimeout(resolve, ms, false)
      this.#onWrite = () => { clearTimeout(timer); resolve(true) }
    })
    if (!isTaken) await this.ask().catch(() => {})
  }

  /** Takes note of how a write went: it was answered, or why not. */
  wrote(error?: Error): void {
    const code = error instanceof Failure ? error.code : undefined
    if (code === 'journal-unreachable' || error === undefined) this.outage = error
    if (code === 'journal-refused' || error === undefined) this.#refusal = error
    this.#report()
  }

  /** Keeps a watch going until the journal is closed. */
  async follow(signal: AbortSignal): Promise<void> {
    this.#isOpen = true
    while (!signal.aborted && this.fault === undefined) {
      let pauseMs = ETCD_RETRY_PAUSE_MS
      try {
        const revision = await this.ask()
        await this.log.follow(revision, records => {
          this.take(records)
          // The marker has changed, or the outage may be over.
          if (records.length === 0 || this.outage !== undefined) this.ask().catch(() => {})
        }, signal)
      } catch (error) {
        // Why etcd does not answer is reported by `ask`; a watch may end at any time.
        pauseMs = isOfKeys(error) ? ETCD_KEY_PAUSE_MS : ETCD_RETRY_PAUSE_MS
      }
      if (!signal.aborted) await new Promise(resolve => setTimeout(resolve, pauseMs))
    }
  }

  /** As `ask`, but not shared; `onPage` gets the newest record that was applied. */
  async catchUp(onPage: (seq: number) => void = () => {}): Promise<string> {
    try {
      this.assertSound()
      for (;;) {
        const page = await this.log.after(this.replica.newest, ETCD_READ_TIMEOUT_MS)
        if (page !== undefined) this.take(page.records)
        const unusable = this.sealing.unusable() // that may also be why records are gone
        if (unusable !== undefined) throw this.#fail(unusable.message)
        if (page === undefined) throw this.#fail('its newest record is no longer in etcd, or is another one')
        onPage(this.replica.newest.seq)
        if (!page.isLast) continue
        this.outage = undefined
        this.#report()
        return page.revision
      }
    } catch (error) {
      const isClosed = error instanceof Failure && error.code === 'journal-closed'
      if (this.fault === undefined && !isClosed) this.outage = error as Error
      this.#report()
      throw error
    }
  }

  /** Warns of what the operator should know: once when it begins, and once when it is over. */
  #report(): void {
    if (!this.#isOpen || this.fault !== undefined) return
    const { trouble } = this
    const kind = trouble instanceof Failure ? trouble.code : trouble?.message
    if (kind === this.#reported) return
    this.#reported = kind
    const what = trouble === undefined ? 'changes again' : `no changes at the moment: ${trouble.message}`
    this.#warn(`the journal takes ${what}`)
  }

  #fail(fault: string): Failure {
    this.fault = fault
    if (this.#isOpen) this.#warn(`the journal takes no more records until a restart: ${fault}`)
    return new Failure('journal-failed', fault)
  }
}

/** Whether an error is over as soon as the key file is as it should be. */
function isOfKeys(error: unknown): boolean {
  return error instanceof Failure && ['key-unknown', 'key-invalid', 'folder-unusable'].includes(error.code)
}
