/**
 * The journal in etcd, which several instances write: each keeps the whole state in memory and applies every record
 * in order, whichever instance wrote it. `etcd-log.ts` says how records lie in etcd and why an append may be repeated.
 *
 * **An append** goes after exactly the newest record that this instance has applied, on which its events were decided;
 * so no other decision came in between. If something else is there, that is applied, and the append has raced:
 * it is decided again once those before it have had their turn.
 *
 * **An answer that was lost** leaves open whether the lines were appended, and even whether they will be: a member
 * that was stopped may pass them on when it goes on. So the same bytes are tried again until there is an answer, and
 * however the record at their first place becomes known, by that answer, a question or the watch, it decides
 * which it was. If it is not known in time, the change is answered 500: it may have been made. It is never reported
 * as made, nor is another command's outcome mistaken for it: the next append is at the same place, and either wins,
 * which shuts the old one out for good, or meets it there and applies it like anybody's.
 *
 * **A read** first asks for what follows the newest applied record, a linearizable question: the answer holds whatever
 * was acknowledged before it was asked. Those that wait share it (`follower.ts`, `single-flight.ts`). So does a change
 * that comes to nothing.
 *
 * **The key** to seal with is the one that the marker names (`sealing.ts`). An append that finds another marker has
 * raced as well. Without that key changes are refused, and without the key of a line reads are, until the operator has
 * put it into the key file.
 */
import type { Buffer } from 'node:buffer'
import { disk } from '../../disk/files.ts'
import { Failure } from '../../errors.ts'
import { nonces, sealBatch } from '../../journal/batch.ts'
import type {
  Apply, DurableJournal, EncodedEvent, JournalHealth, JournalLocation, JournalOptions, JournalRecord, Rewrite, Rotated
} from '../../journal/journal.ts'
import { readKeyFile, type Keyring } from '../../journal/keys.ts'
import { isoTime } from '../../journal/line.ts'
import { LINE_OVERHEAD_BYTES } from '../../limits.ts'
import { etcdAccess, EtcdClient } from './etcd-client.ts'
import {
  ETCD_READ_TIMEOUT_MS, ETCD_TURN_POLL_MS, ETCD_WRITE_TIMEOUT_MS, MAX_ETCD_COMMIT_BYTES, MAX_ETCD_COMMIT_RECORDS,
  MAX_ETCD_RECORD_BYTES
} from './etcd-limits.ts'
import { EtcdLog, type Turn } from './etcd-log.ts'
import type { EtcdSettings } from './etcd-settings.ts'
import { Follower } from './follower.ts'
import { Replica, type Pending } from './replica.ts'
import { Sealing } from './sealing.ts'

/**
 * Reads and verifies all records, and follows those to come. Rejects with `key-missing`, for the instances share a key,
 * which is made once, `journal-missing`, `journal-unreachable`, `journal-refused`, `journal-damaged`, `journal-moved`
 * or, where the key file lacks a key that sealed or is to seal, `key-unknown`.
 */
export async function openEtcdJournal(
  settings: EtcdSettings, options: JournalOptions, apply: Apply
): Promise<DurableJournal> {
  const keys = readKeyFile(disk, options.keyFile)
  if (keys === undefined) {
    const why = 'the instances share one, which admin.js init --journal file makes'
    throw new Failure('key-missing', `${options.keyFile}; ${why}`)
  }
  const journal = new EtcdJournal(settings, options, keys, apply)
  await journal.open(keys)
  return journal
}

/** A journal that instances share. */
class EtcdJournal implements DurableJournal {
  readonly maxBatchRecords = MAX_ETCD_COMMIT_RECORDS
  readonly maxBatchBytes: number = (MAX_ETCD_COMMIT_BYTES - MAX_ETCD_COMMIT_RECORDS * LINE_OVERHEAD_BYTES) / 4 * 3
  readonly maxEventBytes: number = (MAX_ETCD_RECORD_BYTES - LINE_OVERHEAD_BYTES) / 4 * 3
  readonly #settings: EtcdSettings
  readonly #options: JournalOptions
  readonly #client: EtcdClient
  readonly #log: EtcdLog
  readonly #sealing: Sealing
  readonly #replica: Replica
  readonly #follower: Follower
  readonly #nonce: () => Buffer
  readonly #closing = new AbortController()
  /** Since when every append has raced. */
  #racingSinceMs: number | undefined

  constructor(settings: EtcdSettings, options: JournalOptions, keys: Keyring, apply: Apply) {
    this.#settings = settings
    this.#options = options
    this.#client = new EtcdClient(etcdAccess(settings, disk))
    this.#log = new EtcdLog(this.#client, settings.etcdPrefix)
    this.#sealing = new Sealing(disk, options.keyFile, keys, this.#log)
    this.#replica = new Replica(apply, this.#sealing, settings.etcdPrefix)
    this.#follower = new Follower(this.#log, this.#replica, this.#sealing, options.warn)
    this.#nonce = nonces(options.random)
  }

  async open(keys: Keyring): Promise<void> {
    const { mayCreate, onProgress = () => {} } = this.#options
    try {
      // First by a mere read: whatever might put something is refused by an etcd that is full.
      let { marker, records } = await this.#log.look(ETCD_READ_TIMEOUT_MS)
      if (mayCreate === true) marker ??= await this.#log.change(undefined, keys.newest.name, ETCD_WRITE_TIMEOUT_MS)
      if (marker === undefined) {
        const how = 'if ETCD_PREFIX is right, the command init makes an empty one, and journal copy --to etcd a copy'
        throw new Failure('journal-missing', `etcd has no key ${this.#log.prefix}.key; ${how}`)
      }
      const unusable = this.#sealing.unusable() ?? this.#follower.unsealed()
      if (unusable !== undefined) throw unusable
      await this.#follower.catchUp(seq => onProgress(Math.min(1, seq / Math.max(1, records))))
    } catch (error) {
      this.#client.close()
      throw error
    } finally {
      onProgress(1)
    }
    void this.#follower.follow(this.#closing.signal)
  }

  readonly catchUp = async (): Promise<void> => {
    this.#assertSound()
    await this.#follower.ask()
  }

  readonly readBarrier = async (): Promise<void> => {
    const { fault, outage } = this.#follower
    if (!this.#settings.staleReads) { await this.catchUp(); return }
    if (fault !== undefined) return
    const caughtUp = this.catchUp().catch(() => {}) // in an outage too: so its end is noticed
    if (outage === undefined) await caughtUp
  }

  health(): JournalHealth {
    const { fault, trouble } = this.#follower
    const { position, head } = this.#replica
    return { fault: fault ?? trouble?.message, mayHeal: fault === undefined, records: position.seq, head }
  }

  async append(events: readonly EncodedEvent[]): Promise<readonly JournalRecord[] | 'raced'> {
    this.#racingSinceMs ??= performance.now()
    try {
      if (!await this.#append(events)) {
        if (performance.now() - this.#racingSinceMs < ETCD_WRITE_TIMEOUT_MS) return 'raced'
        throw new Failure('write-failed', `other instances came first for ${ETCD_WRITE_TIMEOUT_MS} ms`)
      }
    } catch (error) {
      this.#racingSinceMs = undefined
      this.#follower.wrote(error as Error)
      throw error
    }
    this.#racingSinceMs = undefined
    return [] // the replica has applied them
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#client.close()
  }

  location(): JournalLocation {
    const { etcdPrefix: path, etcdEndpoints: endpoints } = this.#settings
    return { path, keyFile: this.#options.keyFile, bytes: 0, endpoints }
  }

  async rotateKey(): Promise<Rotated> {
    await this.catchUp()
    return this.#sealing.rotate(this.#options.random)
  }

  async rewrite({ checkpoint }: Rewrite): Promise<never> {
    const [what, command] = checkpoint ? ['compacted', 'journal compact'] : ['re-encrypted', 'key rewrite']
    const how = `stop all instances, copy it to a file, run ${command} there, and copy that to another ETCD_PREFIX`
    throw new Failure('input-invalid', `a journal in etcd is not ${what} where it is; ${how}`)
  }

  #assertSound(): void {
    const { fault } = this.#follower
    if (fault !== undefined) throw new Failure('journal-failed', fault)
  }

  /** Appends events after the newest record; false if something else came first, and its turn has come since. */
  async #append(events: readonly EncodedEvent[]): Promise<boolean> {
    this.#assertSound()
    const key = this.#sealing.key()
    if (key instanceof Failure) {
      await this.#follower.ask() // another may be the one to seal with by now
      if (this.#follower.unsealed() !== undefined) throw key
      return false
    }
    const marker = this.#log.marker!
    const { position, head } = this.#replica
    const time = isoTime(this.#options.wallMs())
    const { lines } = sealBatch(events, position.seq, head, { time, key, nonce: this.#nonce })
    const pending: Pending = this.#replica.pending = { seq: position.seq + 1, text: lines[0]!, isOurs: undefined }
    let ahead: readonly Turn[] = []
    let { seq } = position
    try {
      const appended = await this.#log.append(position, marker, lines, ETCD_WRITE_TIMEOUT_MS)
      this.#follower.wrote()
      this.#follower.take(appended.records)
      ahead = appended.ahead
      seq = appended.records.at(-1)?.seq ?? seq
      // Nothing came first: it is another's turn, or the marker has changed, or the newest record is gone.
      if (pending.isOurs === undefined && ahead.length === 0) await this.#follower.ask()
    } catch (error) {
      // What was refused may be a second attempt, whose first one was carried out.
      if (error instanceof Failure && error.code === 'journal-refused') await this.#follower.ask().catch(() => {})
      if (pending.isOurs !== true || this.#replica.position.seq < pending.seq) throw error
    } finally {
      this.#replica.pending = undefined
    }
    if (pending.isOurs !== true) await this.#awaitTurn(ahead, seq)
    return pending.isOurs === true
  }

  /** Waits until those ahead have written after a record, or let their time pass, which ends their turn. */
  async #awaitTurn(ahead: readonly Turn[], seq: number): Promise<void> {
    let writes = 0
    for (const turn of ahead) {
      const endMs = performance.now() + turn.waitMs
      const hasWritten = (): boolean => this.#replica.writesAfter(seq) > writes
      while (!hasWritten() && performance.now() < endMs) await this.#follower.next(ETCD_TURN_POLL_MS)
      if (hasWritten()) writes++
      else await this.#log.skip(turn, ETCD_WRITE_TIMEOUT_MS)
    }
  }
}
