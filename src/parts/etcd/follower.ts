/**
 * Following a journal that all share: reading what others wrote, and knowing why nothing can be read or written.
 *
 * **The watch** brings records before they are asked for, keeps an idle instance up to date, and shows that a record
 * was deleted or overwritten; no answer relies on it. When it ends or is silent, it begins again after the last change
 * that it brought; where that is not possible, the records are counted, for some may have been deleted since.
 */
import { Failure, type FailureCode } from '../../errors.ts'
import {
  ETCD_BEHIND_MS, ETCD_FAULT_PAUSE_MS, ETCD_PROBE_PAUSE_MS, ETCD_READ_TIMEOUT_MS, ETCD_RETRY_PAUSE_MS,
  MAX_CLOCK_SKEW_MS
} from './etcd-limits.ts'
import { MissedChanges } from './etcd-client.ts'
import type { Stored } from './etcd-keys.ts'
import type { EtcdLog } from './etcd-log.ts'
import { closed, unusable } from './marker.ts'
import type { Replica } from './replica.ts'
import type { Sealing } from './sealing.ts'
import { singleFlight } from './single-flight.ts'
import { Turns } from './turns.ts'
import type { Change } from './watch.ts'

/** Failures that are over without the operator, or once the key file, the user or the room is as it should be. */
const PASSING: readonly FailureCode[] = [
  'journal-unreachable', 'journal-behind', 'journal-refused', 'key-unknown', 'key-invalid', 'folder-unusable'
]

/** The reading side of an instance, and what is reported to the operator. */
export class Follower {
  readonly log: EtcdLog
  readonly replica: Replica
  readonly sealing: Sealing
  readonly #warn: (line: string) => void
  readonly #wallMs: () => number
  /** Applies all that was written before it was called; gives the revision as of which that is all. Shared. */
  readonly ask: () => Promise<string>
  /** Why what others wrote is not known. */
  outage: Failure | undefined
  /** Why etcd took no write. */
  #refusal: Failure | undefined
  #probing: NodeJS.Timeout | undefined
  /** A record was deleted or overwritten, and others follow it. */
  #lost: Failure | undefined
  /** How far records are read, and since when there are more. */
  #behind: { readonly seq: number, readonly of: number, readonly sinceMs: number } | undefined
  /** The kind of trouble that was reported last, and what is reported once. */
  #reported: string | undefined
  readonly #said = new Set<string>()
  #isOpen = false
  readonly turns: Turns

  constructor(
    log: EtcdLog, replica: Replica, sealing: Sealing, warn: (line: string) => void, wallMs: () => number
  ) {
    this.log = log
    this.replica = replica
    this.sealing = sealing
    this.turns = new Turns(log, replica)
    this.#warn = warn
    this.#wallMs = wallMs
    this.ask = singleFlight(endMs => this.catchUp(() => endMs), ETCD_READ_TIMEOUT_MS)
  }

  /** Why what others wrote may not be known here; undefined: it is. */
  get readFault(): Failure | undefined { return this.replica.broken ?? this.outage ?? this.#late() }

  /** Why changes cannot be made; undefined: they can. */
  get trouble(): Failure | undefined { return this.readFault ?? this.writeFault() ?? this.#refusal }

  /** Whether trouble may end without a restart. */
  get mayHeal(): boolean {
    const { replica: { broken }, outage } = this
    return broken === undefined && this.#lost === undefined && outage?.code !== 'journal-moved'
  }

  /** How much is read, in percent, while that is the trouble. */
  get readPercent(): number | undefined {
    if (this.trouble?.code !== 'journal-behind' || this.#behind === undefined) return undefined
    return Math.floor(100 * this.#behind.seq / this.#behind.of)
  }

  /** Why no append should be tried, as far as is known. */
  writeFault(): Failure | undefined {
    const { replica: { broken }, log: { marker, prefix }, outage } = this
    const lasting = outage !== undefined && !PASSING.includes(outage.code) ? outage : undefined
    const ofMarker = unusable(marker!, prefix) ?? closed(marker!, prefix)
    return broken ?? lasting ?? ofMarker ?? this.#lost ?? this.sealing.fault()
  }

  /** Throws why no change should be tried, if there is a reason. */
  assertWritable(): void {
    const fault = this.writeFault()
    if (fault !== undefined) throw fault
  }

  /** Applies records. Throws where one does not follow. */
  take(records: readonly Stored[]): void {
    if (this.replica.broken !== undefined) throw this.replica.broken
    this.replica.take(records)
    const aheadMs = this.replica.timeMs - this.#wallMs()
    if (aheadMs <= MAX_CLOCK_SKEW_MS) return
    this.#say('clock', `the newest record was made ${Math.round(aheadMs / 1000)} s ahead of this machine's clock: ` +
      'the clocks of the instances differ, and so do the times at which tokens end; set them right')
  }

  /** Takes note of how a write went: it was answered, or why not. */
  wrote(error?: Failure): void {
    if (error === undefined || error.code === 'journal-unreachable') this.outage = error
    if (error === undefined) this.#refusal = undefined
    if (error?.code === 'journal-refused' && this.writeFault() === undefined) {
      this.#refusal = error
      this.#probe()
    }
    this.#report()
  }

  /** Keeps a watch going until the journal is closed. */
  async follow(signal: AbortSignal): Promise<void> {
    this.#isOpen = true
    let from: string | undefined
    while (!signal.aborted && this.replica.broken === undefined) {
      let pauseMs = ETCD_RETRY_PAUSE_MS
      try {
        const revision = await this.ask()
        if (from === undefined || BigInt(revision) < BigInt(from)) { // it is lower where etcd was made anew
          await this.#checkCount()
          from = revision
        }
        await this.log.follow(from, change => {
          from = change.revision ?? from
          this.#see(change)
        }, signal)
      } catch (error) {
        this.turns.forget()
        // Why etcd does not answer is reported by `ask`; a watch may end at any time.
        if (error instanceof MissedChanges) from = undefined
        if (error instanceof Failure && error.code !== 'journal-unreachable') pauseMs = ETCD_FAULT_PAUSE_MS
      }
      if (!signal.aborted) await new Promise(resolve => setTimeout(resolve, pauseMs))
    }
    if (!signal.aborted) this.#report() // a record could not be applied
    clearTimeout(this.#probing)
    this.#isOpen = false
  }

  /** As `ask`, but not shared; `onPage` gets the newest record that was applied. */
  async catchUp(endMs: () => number, onPage: (seq: number) => void = () => {}): Promise<string> {
    const { log, replica } = this
    const sinceMs = performance.now()
    try {
      for (;;) {
        const page = await log.after(replica.newest, endMs())
        if (page !== undefined) this.take(page.records)
        const fault = unusable(log.marker!, log.prefix) // that may also be why records are gone
        if (fault !== undefined) throw fault
        if (page === undefined) throw this.#damage('its newest record is no longer in etcd, or is another one')
        const { seq } = replica.newest
        onPage(seq)
        if (seq < (page.records.at(-1)?.seq ?? 0)) throw this.#damage(`record ${seq + 1} is missing, others follow it`)
        if (page.left === 0) {
          this.outage = undefined
          return page.revision
        }
        this.#behind = { seq, of: seq + page.left, sinceMs: this.#behind?.sinceMs ?? sinceMs }
        this.#report()
        if (performance.now() >= endMs()) throw this.#isBehind()
      }
    } catch (error) {
      const isLate = this.#behind !== undefined && error instanceof Failure && error.code === 'journal-unreachable'
      const failure = isLate ? this.#isBehind() : this.#foreseen(error)
      if (failure.code !== 'journal-closed') this.outage = failure
      throw failure
    } finally {
      if (this.outage?.code !== 'journal-behind') this.#behind = undefined
      this.#report()
    }
  }

  /** What a watch brings. */
  #see(change: Change): void {
    const { records, marker, spoilt } = change
    const { replica } = this
    this.take(records)
    this.turns.see(change)
    if (spoilt > 0 && spoilt < replica.newest.seq) void this.#checkSpoilt(spoilt)
    // The marker has changed, the outage may be over, or there is what no instance has put there.
    const isOdd = spoilt < Infinity || (records.at(-1)?.seq ?? 0) > replica.newest.seq
    if (marker || this.outage !== undefined || isOdd) this.ask().catch(() => {})
  }

  /** What was deleted or overwritten may have been junk, where a record was put since; asks until that is answered. */
  async #checkSpoilt(seq: number): Promise<void> {
    while (this.#isOpen) {
      try {
        const isIntact = await this.log.isIntact(seq, performance.now() + ETCD_READ_TIMEOUT_MS)
        if (!isIntact) this.#lose(`record ${seq} was deleted or overwritten`)
        return
      } catch {
        await new Promise(resolve => setTimeout(resolve, ETCD_FAULT_PAUSE_MS).unref())
      }
    }
  }

  /** Notices that records were deleted while no watch ran. */
  async #checkCount(): Promise<void> {
    const { seq } = this.replica.newest
    const found = await this.log.count(seq, performance.now() + ETCD_READ_TIMEOUT_MS)
    if (found < seq) this.#lose('records before the newest one were deleted')
  }

  #lose(what: string): void {
    this.#lost = this.#damage(`${what} in etcd; copy a backup to another prefix`)
    this.#report()
  }

  #late(): Failure | undefined {
    const { sinceMs = Infinity } = this.#behind ?? {}
    return performance.now() - sinceMs > ETCD_BEHIND_MS ? this.#isBehind() : undefined
  }

  #isBehind(): Failure {
    const { seq, of } = this.#behind!
    return new Failure('journal-behind', `${seq} of ${of}`)
  }

  #damage(what: string): Failure { return new Failure('journal-damaged', `${this.log.prefix}: ${what}`) }

  /** Asks from time to time whether etcd takes writes again, for nobody else may ask. */
  #probe(): void {
    this.#probing ??= setTimeout(async () => {
      this.#probing = undefined
      if (this.#refusal === undefined) return
      try {
        await this.log.probe(performance.now() + ETCD_READ_TIMEOUT_MS)
        this.#refusal = undefined
        this.#report()
      } catch {
        if (this.#isOpen) this.#probe()
      }
    }, ETCD_PROBE_PAUSE_MS).unref()
  }

  /** A failure for any error; what was not foreseen is reported once, with its stack. */
  #foreseen(error: unknown): Failure {
    if (error instanceof Failure) return error
    const { message, stack } = error as Error
    this.#say(message, `unforeseen in etcd's answers: ${stack}`)
    return new Failure('journal-damaged', `${this.log.prefix}: unforeseen: ${message}`, { cause: error })
  }

  #say(what: string, line: string): void {
    if (this.#said.has(what) || this.#said.size > 99) return
    this.#said.add(what)
    this.#warn(line)
  }

  /** Warns of what the operator should know: once when it begins, and once when it is over. */
  #report(): void {
    const { trouble } = this
    if (!this.#isOpen || trouble?.code === this.#reported) return
    this.#reported = trouble?.code
    const what = trouble === undefined ? 'changes again' : `no changes at the moment: ${trouble.message}`
    this.#warn(`the journal takes ${what}`)
  }
}
