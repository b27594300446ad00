/**
 * The journal in etcd, which several instances write: each keeps the whole state in memory and applies every record
 * in order, whoever wrote it. `log.ts` tells how records lie in etcd and why an append may be repeated.
 *
 * **A commit** gathers what waits, decides on the draft at the newest record that this instance has applied, and
 * appends behind exactly that record; so nobody has decided otherwise in between. If something else stands there, it
 * is applied, and the same decisions, before all that came later, decide anew. One append is under way at a time.
 *
 * **An answer that was lost** leaves open whether the lines were appended, and even whether they will be: a member
 * that was stopped may pass them on when it goes on. So the same bytes are tried again until there is an answer, and
 * whatever way the record at their first place comes to be known, by that answer, a question or the watch, tells which
 * it was. Without that within the bound the change is answered 500: it may have been made. That is never reported
 * as made, nor is another decision's outcome mistaken for it: the next append is at the same place, and either wins,
 * which shuts the old one out for good, or meets it there and applies it like anybody's.
 *
 * **A read** first asks for what follows the newest applied record, a linearizable question: the answer holds whatever
 * was acknowledged before it was asked. Those that wait share it (`follower.ts`, `question.ts`). A decision without a
 * record was made on what this instance had applied, and counts only if such a question brings nothing new.
 *
 * **The key** to seal with is the one that the marker names (`log.ts`, `sealing.ts`). Where an append finds another
 * marker the same decisions decide anew, as after another's record. Without that key changes are refused, and without
 * the key of a line reads are, until the operator has put it into the key file.
 */
import type { Buffer } from 'node:buffer'
import { Failure } from '../errors.ts'
import { Batch, nonces } from '../journal/batch.ts'
import type { Files } from '../journal/files.ts'
import type {
  Decision, JournalHealth, JournalLocation, JournalOptions, DurableJournal, Rewritten, Rotated
} from '../journal/journal.ts'
import type { Key, Keyring } from '../journal/keys.ts'
import { CommitQueue, type Waiting } from '../journal/queue.ts'
import {
  ETCD_READ_TIMEOUT_MS, ETCD_WRITE_TIMEOUT_MS, MAX_ETCD_COMMIT_BYTES, MAX_ETCD_COMMIT_RECORDS, MAX_ETCD_RECORD_BYTES,
  MAX_ETCD_YIELD_MS
} from '../limits.ts'
import { EtcdClient, type EtcdAccess } from './client.ts'
import { Follower, isOfKeys } from './follower.ts'
import { EtcdLog, type Marker } from './log.ts'
import { Replica, type Pending } from './replica.ts'
import { rewriteEtcd } from './rewrite.ts'
import { Sealing } from './sealing.ts'

/** What a journal in etcd is opened with. */
export interface EtcdJournalOptions extends JournalOptions {
  readonly access: EtcdAccess
  readonly prefix: string
  readonly files: Files
  /** Those of the key file. */
  readonly keys: Keyring
  /** Whether reads are answered while etcd does not answer. */
  readonly staleReads: boolean
}

/** A journal that instances share. */
export class EtcdJournal implements DurableJournal {
  readonly #options: EtcdJournalOptions
  readonly #client: EtcdClient
  readonly #log: EtcdLog
  readonly #sealing: Sealing
  readonly #replica: Replica
  readonly #follower: Follower
  readonly #queue = new CommitQueue()
  readonly #nonce: () => Buffer
  readonly #closing = new AbortController()
  /** Why etcd took no write. */
  #refusal: string | undefined
  #busy = false
  #onIdle: (() => void) | undefined
  /** The rewrite that is under way. */
  #rewriting: Promise<Rewritten> | undefined

  /** Makes a journal that is still empty; `ready` reads it. */
  constructor(options: EtcdJournalOptions) {
    this.#options = options
    this.#client = new EtcdClient(options.access)
    this.#log = new EtcdLog(this.#client, options.prefix)
    this.#sealing = new Sealing(options.files, options.keyFile, options.keys, this.#log)
    this.#replica = new Replica(record => options.fold.apply(record), this.#sealing, options.prefix)
    const isRewriting = (): boolean => this.#rewriting !== undefined
    this.#follower = new Follower(this.#log, this.#replica, this.#sealing, options.warn, isRewriting)
    this.#nonce = nonces(options.random)
  }

  /**
   * Reads and verifies all records, and follows those to come. Rejects with `journal-unreachable`, `journal-refused`,
   * `journal-damaged`, `journal-moved` or, where the key file lacks a key that sealed or is to seal, `key-unknown`.
   */
  readonly ready = async (): Promise<void> => {
    const { keys, fold } = this.#options
    try {
      const { state } = await this.#log.agree(keys.newest.name, ETCD_READ_TIMEOUT_MS)
      const sealing = this.#sealing.key()
      if (sealing instanceof Failure && state !== 'moving') throw sealing
      fold.begin()
      await this.#follower.ask()
    } catch (error) {
      this.#client.close()
      throw error
    }
    void this.#follower.follow(this.#closing.signal)
  }

  /** See `Journal.current`. */
  readonly current = async (): Promise<void> => {
    const { staleReads } = this.#options
    const { fault } = this.#follower
    if (fault !== undefined && staleReads) return
    if (fault !== undefined) throw new Failure('journal-latched', fault)
    const asked = this.#follower.ask()
    if (!staleReads) { await asked; return }
    const settled = asked.catch(() => {}) // in an outage too: so it is known when that is over
    if (this.#follower.outage === undefined) await settled
  }

  health(): JournalHealth {
    const { fault, outage } = this.#follower
    const { position, head } = this.#replica
    return {
      fault: fault ?? outage ?? this.#follower.unsealed()?.message ?? this.#refusal, mayHeal: fault === undefined,
      records: position.seq, head, waiting: this.#queue.length
    }
  }

  commit<T>(decision: Decision<T>): Promise<T> {
    if (this.#closing.signal.aborted) return Promise.reject(new Failure('journal-closed', this.#options.prefix))
    const { fault } = this.#follower
    if (fault !== undefined) return Promise.reject(new Failure('journal-latched', fault))
    const committed = this.#queue.add(decision)
    if (!this.#busy) void this.#work()
    return committed
  }

  async close(): Promise<void> {
    this.#closing.abort()
    if (this.#busy) await new Promise<void>(resolve => { this.#onIdle = resolve })
    await this.#rewriting?.catch(() => {})
    this.#client.close()
  }

  location(): JournalLocation {
    const { access, prefix, keyFile } = this.#options
    return { path: prefix, keyFile, bytes: 0, endpoints: access.endpoints }
  }

  async rotateKey(): Promise<Rotated> {
    await this.#follower.ask()
    return this.#sealing.rotate(this.#options.random)
  }

  async rewrite(onProgress: (share: number) => void, to?: string): Promise<Rewritten> {
    const { prefix, random } = this.#options
    if (to === undefined) throw new Failure('input-invalid', `where to put the new lines of ${prefix} is missing`)
    await this.#follower.ask()
    if (this.#rewriting !== undefined) throw new Failure('write-failed', `${prefix} is being sealed anew already`)
    const marker = this.#log.marker!
    this.#rewriting = rewriteEtcd({
      source: new EtcdLog(this.#client, prefix), target: new EtcdLog(this.#client, to), marker,
      keys: this.#sealing.all(marker), records: this.#replica.position.seq, nonce: nonces(random), onProgress,
      signal: this.#closing.signal
    })
    try {
      return await this.#rewriting
    } finally {
      this.#rewriting = undefined
      void this.#follower.ask().catch(() => {}) // which tells what has become of it
    }
  }

  /** Writes until nothing waits. */
  async #work(): Promise<void> {
    this.#busy = true
    let losingSinceMs: number | undefined
    while (this.#queue.length > 0) {
      await new Promise(resolve => setImmediate(resolve))
      const beganMs = performance.now()
      if (this.#follower.unsealed() !== undefined) await this.#follower.ask().catch(() => {}) // that may be over
      const unsealed = this.#follower.unsealed()
      if (unsealed !== undefined) { this.#queue.rejectAll(unsealed); continue }
      const { batch, marker, waiting } = this.#gather()
      let isKept = false
      let failure: unknown
      try {
        isKept = batch.records.length === 0 ? await this.#isNewest() : await this.#append(batch, marker)
        if (!isKept && beganMs - (losingSinceMs ??= beganMs) > ETCD_WRITE_TIMEOUT_MS) {
          failure = new Failure('write-failed', `other instances came first for ${ETCD_WRITE_TIMEOUT_MS} ms`)
        }
      } catch (error) {
        failure = error
      }
      if (failure === undefined && !isKept) { this.#queue.putBack(waiting); continue }
      losingSinceMs = undefined
      for (const { resolve, outcome, reject } of waiting) failure === undefined ? resolve(outcome) : reject(failure)
      if (failure !== undefined) this.#giveUp(failure)
      else await this.#letOthersWrite(performance.now() - beganMs)
    }
    this.#busy = false
    this.#onIdle?.()
  }

  /** Lets decisions decide at the newest record. One whose record etcd would never take fails alone. */
  #gather(): { readonly batch: Batch, readonly marker: Marker, readonly waiting: readonly Waiting[] } {
    const marker = this.#log.marker!
    const key = this.#sealing.key() as Key
    for (;;) {
      const { position, head } = this.#replica
      const batch = new Batch(position.seq, head, new Date(this.#options.wallMs()).toISOString())
      let unfit: unknown
      this.#options.fold.begin()
      const waiting = this.#queue.take(fact => {
        try {
          batch.add(fact, key, this.#nonce())
          const { length } = batch.lines.at(-1)!
          if (length > MAX_ETCD_RECORD_BYTES) {
            throw new Failure('write-failed', `a record of ${length} bytes; etcd takes ${MAX_ETCD_RECORD_BYTES}`)
          }
        } catch (error) {
          unfit = error
        }
        return unfit === undefined && batch.records.length < MAX_ETCD_COMMIT_RECORDS &&
          batch.length < MAX_ETCD_COMMIT_BYTES
      })
      if (unfit === undefined) return { batch, marker, waiting }
      waiting.at(-1)!.reject(unfit)
      this.#queue.putBack(waiting.slice(0, -1))
    }
  }

  /** Whether nobody has written since the last record that was applied here. */
  async #isNewest(): Promise<boolean> {
    const { seq } = this.#replica.position
    await this.#follower.ask()
    return this.#replica.position.seq === seq
  }

  /** Appends a batch behind the newest record; false if another's record came first, or another marker. */
  async #append(batch: Batch, marker: Marker): Promise<boolean> {
    const { fault } = this.#follower
    if (fault !== undefined) throw new Failure('journal-latched', fault)
    const pending: Pending = this.#replica.pending = { batch, isOurs: undefined }
    const tell = this.#options.onWrite?.()
    try {
      const stored = await this.#log.append(this.#replica.position, marker, batch.lines, ETCD_WRITE_TIMEOUT_MS)
      this.#refusal = this.#follower.outage = undefined
      this.#follower.take(stored)
      if (pending.isOurs === undefined && this.#log.marker!.revision === marker.revision) throw this.#follower.lost()
      return pending.isOurs ??= false
    } catch (error) {
      // Refused may be a second try, of which the first was heard.
      if (error instanceof Failure && error.code === 'journal-refused') await this.#follower.ask().catch(() => {})
      if (pending.isOurs === undefined || isOfKeys(error)) throw error
      return pending.isOurs
    } finally {
      this.#replica.pending = undefined
      if (pending.isOurs !== false) tell?.(pending.isOurs === true) // a lost race is neither
    }
  }

  /** Makes known why a change failed; where etcd does not answer, or a key is missing, all that wait fail with it. */
  #giveUp(failure: unknown): void {
    if (!(failure instanceof Failure)) return
    if (failure.code === 'journal-refused') this.#refusal = failure.message
    const isOutage = failure.code === 'journal-unreachable' || isOfKeys(failure)
    if (isOutage) this.#follower.outage = failure.message
    if (isOutage || this.#follower.fault !== undefined) this.#queue.rejectAll(failure)
  }

  /** Who has lost tries again at once; who has won where others write as well waits for as long as a try takes. */
  async #letOthersWrite(tookMs: number): Promise<void> {
    if (!this.#replica.othersWrite) return
    this.#replica.othersWrite = false
    await new Promise(resolve => setTimeout(resolve, Math.min(tookMs, MAX_ETCD_YIELD_MS)))
  }
}
