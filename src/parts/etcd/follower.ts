/**
 * Reads what other instances wrote, and knows why nothing can be read or written.
 *
 * **The watch** keeps an idle instance up to date; no answer relies on it. After it ends or is
 * silent, all newer records are read first.
 */
import { Failure, type FailureCode } from '../../errors.ts'
import {
  ETCD_FAULT_PAUSE_MS,
  ETCD_PROBE_PAUSE_MS,
  ETCD_READ_TIMEOUT_MS,
  ETCD_RETRY_PAUSE_MS,
  ETCD_WATCH_SILENCE_MS
} from './etcd-limits.ts'
import { isFull } from './etcd-client.ts'
import type { Stored } from './etcd-keys.ts'
import type { EtcdLog } from './etcd-log.ts'
import { closed, unusable } from './marker.ts'
import type { Replica } from './replica.ts'
import type { SealingKeys } from './sealing.ts'
import { singleFlight } from './single-flight.ts'
import { Turns } from './turns.ts'
import type { WatchedChange } from './watch.ts'

/** Failures that pass, perhaps once key file, user or room is right. */
const PASSING: readonly FailureCode[] = [
  'journal-unreachable',
  'journal-behind',
  'journal-refused',
  'key-unknown',
  'key-invalid',
  'folder-unusable'
]

export class Follower {
  readonly log: EtcdLog
  readonly replica: Replica
  readonly sealing: SealingKeys
  readonly turns: Turns
  readonly #warn: (line: string) => void
  readonly #wallMs: () => number
  /** Applies all that was written before the call, and gives its revision. */
  readonly ask: () => Promise<string>
  /** Set while new records of others are unknown. */
  outage: Failure | undefined
  #refusal: Failure | undefined
  #fullSince: number | undefined
  #probing: NodeJS.Timeout | undefined
  #behind: { readonly seq: number; readonly of: number } | undefined
  #reported: string | undefined
  #isOpen = false

  constructor(
    log: EtcdLog,
    replica: Replica,
    sealing: SealingKeys,
    warn: (line: string) => void,
    wallMs: () => number
  ) {
    this.log = log
    this.replica = replica
    this.sealing = sealing
    this.turns = new Turns(log)
    this.#warn = warn
    this.#wallMs = wallMs
    this.ask = singleFlight(endMs => this.catchUp(() => endMs), ETCD_READ_TIMEOUT_MS)
  }

  get readFault(): Failure | undefined {
    return this.replica.broken ?? this.outage
  }

  get trouble(): Failure | undefined {
    return this.readFault ?? this.writeFault() ?? this.#refusal
  }

  /** If a full etcd is the trouble. */
  get fullSince(): number | undefined {
    return this.trouble === this.#refusal ? this.#fullSince : undefined
  }

  /** If `journal-behind` is the trouble. */
  get readPercent(): number | undefined {
    if (this.trouble?.code !== 'journal-behind' || this.#behind === undefined) return undefined
    return Math.floor((100 * this.#behind.seq) / this.#behind.of)
  }

  /** What forbids to write, as far as is known here. An outage does not: the attempt finds out. */
  writeFault(): Failure | undefined {
    const {
      replica: { broken },
      log: { marker, prefix },
      outage
    } = this
    const lasting = outage !== undefined && !PASSING.includes(outage.code) ? outage : undefined
    return (
      broken ??
      lasting ??
      unusable(marker!, prefix) ??
      closed(marker!, prefix) ??
      this.sealing.fault()
    )
  }

  /**
   * Throws if a record does not follow. No other way leads to the replica, and a broken one takes
   * nothing more.
   */
  take(records: readonly Stored[]): void {
    if (this.replica.broken !== undefined) throw this.replica.broken
    this.replica.take(records)
  }

  wrote(error?: Failure): void {
    // An instance is behind until it has read all; an answer to an append does not change that.
    const isBehind = this.outage?.code === 'journal-behind'
    if (!isBehind && (error === undefined || error.code === 'journal-unreachable'))
      this.outage = error
    if (error === undefined) this.#refuse(undefined)
    if (error?.code === 'journal-refused' && this.writeFault() === undefined) {
      this.#refuse(error)
      this.#probe()
    }
    this.#report()
  }

  async follow(signal: AbortSignal): Promise<void> {
    this.#isOpen = true
    let hasSaid = false
    while (!signal.aborted && this.replica.broken === undefined) {
      let pauseMs = ETCD_RETRY_PAUSE_MS
      try {
        const revision = await this.ask().catch(error => {
          if (error.code !== 'journal-unreachable') pauseMs = ETCD_FAULT_PAUSE_MS
          throw error
        })
        await this.log.follow(revision, change => this.#see(change), signal)
      } catch (error) {
        // `ask` reports outages, and a watch may end at any time.
        if (
          error instanceof Failure &&
          error.code === 'journal-refused' &&
          pauseMs === ETCD_RETRY_PAUSE_MS
        ) {
          pauseMs = ETCD_WATCH_SILENCE_MS
          const { prefix } = this.log
          const how = `its role should cover all keys from ${prefix}.key to ${prefix}/1`
          if (!hasSaid)
            this.#warn(
              `etcd's user may not watch the journal, so changes of others are read late; ${how}`
            )
          hasSaid = true
        }
      }
      this.turns.forget()
      if (!signal.aborted) await new Promise(resolve => setTimeout(resolve, pauseMs).unref())
    }
    if (!signal.aborted) this.#report() // a record could not be applied
    clearTimeout(this.#probing)
    this.#isOpen = false
  }

  async catchUp(endMs: () => number, onPage: (seq: number) => void = () => {}): Promise<string> {
    const { log, replica } = this
    try {
      for (;;) {
        const { records, left, revision } = await log.after(replica.newest, endMs())
        this.take(records)
        const { seq } = replica.newest
        onPage(seq)
        if (left === 0) {
          // only then nothing is missing here
          this.outage = undefined
          return revision
        }
        this.#behind = { seq, of: seq + left }
        if (performance.now() >= endMs()) throw this.#isBehind()
      }
    } catch (error) {
      const isLate =
        this.#behind !== undefined &&
        error instanceof Failure &&
        error.code === 'journal-unreachable'
      const known = isLate ? this.#isBehind() : error
      const failure =
        known instanceof Failure
          ? known
          : new Failure('journal-damaged', `${log.prefix}: unforeseen: ${(error as Error).stack}`, {
              cause: error
            })
      // this process ends: that is no trouble
      if (failure.code !== 'journal-closed') this.outage = failure
      throw failure
    } finally {
      if (this.outage?.code !== 'journal-behind') this.#behind = undefined
      this.#report()
    }
  }

  #see(change: WatchedChange): void {
    this.take(change.records)
    this.turns.see(change)
    // the outage may be over, or others changed the keys
    if (change.hasMarker || this.outage !== undefined) this.ask().catch(() => {})
  }

  #isBehind(): Failure {
    const { seq, of } = this.#behind!
    return new Failure('journal-behind', `${seq} of ${of}`)
  }

  #refuse(why: Failure | undefined): void {
    this.#refusal = why
    this.#fullSince =
      why !== undefined && isFull(why) ? (this.#fullSince ?? this.#wallMs()) : undefined
  }

  /** Nothing else asks whether etcd takes writes again. */
  #probe(): void {
    this.#probing ??= setTimeout(async () => {
      this.#probing = undefined
      if (this.#refusal === undefined) return
      try {
        await this.log.probe(performance.now() + ETCD_READ_TIMEOUT_MS)
        this.#refuse(undefined)
        this.#report()
      } catch {
        if (this.#isOpen) this.#probe()
      }
    }, ETCD_PROBE_PAUSE_MS).unref()
  }

  #report(): void {
    const { trouble } = this
    if (!this.#isOpen || trouble?.code === this.#reported) return
    this.#reported = trouble?.code
    const what =
      trouble === undefined ? 'changes again' : `no changes at the moment: ${trouble.message}`
    this.#warn(`the journal takes ${what}`)
  }
}
