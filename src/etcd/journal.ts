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
 * was acknowledged before it was asked. Those that wait share it (`question.ts`). A decision without a record was
 * made on what this instance had applied, and counts only if such a question brings nothing new.
 *
 * **The watch** spares those questions the work of bringing records, and keeps an instance that nobody asks up to
 * date; nothing relies on it. It is begun behind a question's revision, and again whenever it ends or is silent.
 */
import type { Buffer } from 'node:buffer'
import { Failure } from '../errors.ts'
import { Batch, nonces } from '../journal/batch.ts'
import type { Decision, JournalHealth, JournalLocation, JournalOptions, KeptJournal } from '../journal/journal.ts'
import type { Keyring } from '../journal/keys.ts'
import { CommitQueue, type Waiting } from '../journal/queue.ts'
import {
  ETCD_READ_TIMEOUT_MS, ETCD_RETRY_PAUSE_MS, ETCD_WRITE_TIMEOUT_MS, MAX_ETCD_COMMIT_BYTES, MAX_ETCD_COMMIT_RECORDS,
  MAX_ETCD_RECORD_BYTES, MAX_ETCD_YIELD_MS
} from '../limits.ts'
import { EtcdClient, type EtcdAccess } from './client.ts'
import { EtcdLog, type Stored } from './log.ts'
import { Question } from './question.ts'
import { Replica, type Pending } from './replica.ts'

/** What a journal in etcd is opened with. */
export interface EtcdJournalOptions extends JournalOptions {
  readonly access: EtcdAccess
  readonly prefix: string
  /** Those of the key file. */
  readonly keys: Keyring
  /** Whether reads are answered while etcd does not answer. */
  readonly staleReads: boolean
}

/** A journal that instances share. */
export class EtcdJournal implements KeptJournal {
  readonly #options: EtcdJournalOptions
  readonly #client: EtcdClient
  readonly #log: EtcdLog
  readonly #replica: Replica
  readonly #question: Question<string>
  readonly #queue = new CommitQueue()
  readonly #nonce: () => Buffer
  readonly #closing = new AbortController()
  /** Why nothing can be applied any more; why etcd does not answer; why it took no write. */
  #fault: string | undefined
  #outage: string | undefined
  #refusal: string | undefined
  #isOpen = false
  #busy = false
  #onIdle: (() => void) | undefined

  /** Makes a journal that is still empty; `ready` reads it. */
  constructor(options: EtcdJournalOptions) {
    this.#options = options
    this.#client = new EtcdClient(options.access)
    this.#log = new EtcdLog(this.#client, options.prefix)
    this.#replica = new Replica(record => options.fold.apply(record), options.keys, options.prefix)
    this.#question = new Question(() => this.#catchUp())
    this.#nonce = nonces(options.random)
  }

  /**
   * Reads and verifies all records, and follows those to come. Rejects with `journal-unreachable`, `journal-refused`,
   * `journal-damaged`, `key-unknown` or, where other instances seal with another key, `key-invalid`.
   */
  readonly ready = async (): Promise<void> => {
    const { keys, keyFile, prefix, fold } = this.#options
    try {
      fold.begin()
      await this.#question.ask()
      if (this.#replica.position.seq > 0 && !await this.#log.isWhole(ETCD_READ_TIMEOUT_MS)) {
        throw new Failure('journal-damaged', `${prefix}: a copy into it was not finished; copy to another prefix`)
      }
      const agreed = await this.#log.agree('key', keys.newest.name, ETCD_READ_TIMEOUT_MS)
      if (agreed !== keys.newest.name) {
        const why = `the journal ${prefix} is sealed with key ${agreed}, and the newest one here is ${keys.newest.name}`
        throw new Failure('key-invalid', `${keyFile}: ${why}`)
      }
    } catch (error) {
      this.#client.close()
      throw error
    }
    this.#isOpen = true
    void this.#follow()
  }

  /** See `Journal.current`. */
  readonly current = async (): Promise<void> => {
    const { staleReads } = this.#options
    if (this.#fault !== undefined && staleReads) return
    if (this.#fault !== undefined) throw new Failure('journal-latched', this.#fault)
    const asked = this.#question.ask()
    if (!staleReads) { await asked; return }
    const settled = asked.catch(() => {}) // in an outage too: so it is known when that is over
    if (this.#outage === undefined) await settled
  }

  health(): JournalHealth {
    const fault = this.#fault ?? this.#outage ?? this.#refusal
    const { position, head } = this.#replica
    return { fault, mayHeal: this.#fault === undefined, records: position.seq, head, waiting: this.#queue.length }
  }

  commit(decision: Decision): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.reject(new Failure('journal-closed', this.#options.prefix))
    if (this.#fault !== undefined) return Promise.reject(new Failure('journal-latched', this.#fault))
    const committed = this.#queue.add(decision)
    if (!this.#busy) void this.#work()
    return committed
  }

  async close(): Promise<void> {
    this.#closing.abort()
    if (this.#busy) await new Promise<void>(resolve => { this.#onIdle = resolve })
    this.#client.close()
  }

  location(): JournalLocation {
    const { access, prefix, keyFile } = this.#options
    return { path: prefix, keyFile, bytes: 0, endpoints: access.endpoints }
  }

  rotateKey(): Promise<string> { return Promise.reject(keysAreShared()) }

  rewrite(): Promise<readonly string[]> { return Promise.reject(keysAreShared()) }

  /** Writes until nothing waits. */
  async #work(): Promise<void> {
    this.#busy = true
    let losingSinceMs: number | undefined
    while (this.#queue.length > 0) {
      await new Promise(resolve => setImmediate(resolve))
      const beganMs = performance.now()
      const { batch, waiting } = this.#gather()
      let isKept = false
      let failure: unknown
      try {
        isKept = batch.records.length === 0 ? await this.#isNewest() : await this.#append(batch)
        if (!isKept && beganMs - (losingSinceMs ??= beganMs) > ETCD_WRITE_TIMEOUT_MS) {
          failure = new Failure('write-failed', `other instances came first for ${ETCD_WRITE_TIMEOUT_MS} ms`)
        }
      } catch (error) {
        failure = error
      }
      if (failure === undefined && !isKept) { this.#queue.putBack(waiting); continue }
      losingSinceMs = undefined
      for (const { resolve, reject } of waiting) failure === undefined ? resolve() : reject(failure)
      if (failure !== undefined) this.#giveUp(failure)
      else await this.#letOthersWrite(performance.now() - beganMs)
    }
    this.#busy = false
    this.#onIdle?.()
  }

  /** Lets decisions decide at the newest record. One whose record etcd would never take fails alone. */
  #gather(): { readonly batch: Batch, readonly waiting: readonly Waiting[] } {
    for (;;) {
      const { position, head } = this.#replica
      const batch = new Batch(position.seq, head, new Date(this.#options.wallMs()).toISOString())
      let unfit: unknown
      this.#options.fold.begin()
      const waiting = this.#queue.take(fact => {
        try {
          batch.add(fact, this.#options.keys, this.#nonce())
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
      if (unfit === undefined) return { batch, waiting }
      waiting.at(-1)!.reject(unfit)
      this.#queue.putBack(waiting.slice(0, -1))
    }
  }

  /** Whether nobody has written since the last record that was applied here. */
  async #isNewest(): Promise<boolean> {
    const { seq } = this.#replica.position
    await this.#question.ask()
    return this.#replica.position.seq === seq
  }

  /** Appends a batch behind the newest record; false if another's record came first. */
  async #append(batch: Batch): Promise<boolean> {
    if (this.#fault !== undefined) throw new Failure('journal-latched', this.#fault)
    const pending: Pending = this.#replica.pending = { batch, isOurs: undefined }
    try {
      this.#take(await this.#log.append(this.#replica.position, batch.lines, ETCD_WRITE_TIMEOUT_MS))
      this.#refusal = this.#outage = undefined
      if (pending.isOurs === undefined) throw this.#latch('its newest record is no longer in etcd')
    } catch (error) {
      // Refused may be a second try, of which the first was heard.
      if (error instanceof Failure && error.code === 'journal-refused') await this.#question.ask().catch(() => {})
      if (pending.isOurs === undefined) throw error
    } finally {
      this.#replica.pending = undefined
    }
    return pending.isOurs
  }

  /** Makes known why a change failed; where etcd does not answer, all that wait fail with it. */
  #giveUp(failure: unknown): void {
    if (!(failure instanceof Failure)) return
    if (failure.code === 'journal-refused') this.#refusal = failure.message
    if (failure.code === 'journal-unreachable') this.#outage = failure.message
    if (failure.code === 'journal-unreachable' || this.#fault !== undefined) this.#queue.rejectAll(failure)
  }

  /** Who has lost tries again at once; who has won where others write as well waits for as long as a try takes. */
  async #letOthersWrite(tookMs: number): Promise<void> {
    if (!this.#replica.othersWrite) return
    this.#replica.othersWrite = false
    await new Promise(resolve => setTimeout(resolve, Math.min(tookMs, MAX_ETCD_YIELD_MS)))
  }

  /** Applies all that was written before it was called; gives the revision as of which that is all. */
  async #catchUp(): Promise<string> {
    try {
      for (;;) {
        const page = await this.#log.after(this.#replica.position, ETCD_READ_TIMEOUT_MS)
        if (page === undefined) throw this.#latch('its newest record is no longer in etcd')
        this.#take(page.records)
        this.#outage = undefined
        if (page.isLast) return page.revision
      }
    } catch (error) {
      if (this.#fault === undefined) this.#outage = (error as Error).message
      throw error
    }
  }

  /** Applies records; what does not follow latches, for nothing after it could be applied. */
  #take(records: readonly Stored[]): void {
    if (this.#fault !== undefined) throw new Failure('journal-latched', this.#fault)
    try {
      this.#replica.take(records)
    } catch (error) {
      this.#latch((error as Error).message)
      throw error
    }
  }

  #latch(fault: string): Failure {
    this.#fault = fault
    if (this.#isOpen) this.#options.warn(`the journal takes no more records until a restart: ${fault}`)
    return new Failure('journal-latched', fault)
  }

  /** Keeps a watch going until the journal is closed. */
  async #follow(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted && this.#fault === undefined) {
      try {
        const revision = await this.#question.ask()
        await this.#log.follow(revision, records => {
          this.#take(records)
          if (this.#outage !== undefined) this.#question.ask().catch(() => {}) // it may be over
        }, signal)
      } catch {
        // Why etcd does not answer is told by the question; a watch may end at any time.
      }
      if (!signal.aborted) await new Promise(resolve => setTimeout(resolve, ETCD_RETRY_PAUSE_MS))
    }
  }
}

function keysAreShared(): Failure {
  return new Failure('journal-refused', 'its key is shared by all instances; README ("Beyond one host") tells how')
}
