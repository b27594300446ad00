/**
 * The writer of the journal in a file.
 *
 * There is at most one write under way. Decisions that arrive meanwhile wait; when it is done they decide in the
 * order of their arrival, and their records share the next write (group commit). The file is opened with
 * `O_APPEND|O_DSYNC`: a write that has returned is on the device.
 *
 * A write that fails is cut back to the last good length, and those who waited for it are told. Where that does not
 * work, or the device reports an I/O error, nobody knows what the file holds from there on, and asking again may well
 * say that all is fine when it is not (what is called fsyncgate). Then the journal latches: it takes no more writes
 * until a restart has read the file anew. A writer that has failed stays failed.
 */
import type { Buffer } from 'node:buffer'
import { Failure, systemCode } from '../errors.ts'
import { Batch, nonces } from './batch.ts'
import type { Descriptor, FileStat, Files } from './files.ts'
import { MAX_COMMIT_RECORDS, MAX_GATHER_TURNS } from '../limits.ts'
import type {
  Decision, JournalHealth, JournalLocation, JournalOptions, DurableJournal, Rewritten, Rotated
} from './journal.ts'
import { addKey, type Keyring } from './keys.ts'
import { CommitQueue, type Waiting } from './queue.ts'
import type { Recovered } from './recover.ts'
import { olderKeys, rewriteJournal } from './rewrite.ts'

/** What a file journal is opened with. */
export interface FileJournalOptions extends JournalOptions {
  readonly files: Files
  /** The data folder; it stands, and nobody else has it. */
  readonly folder: string
  /** Takes how much of the journal is read at the start, 0 to 1. */
  readonly onProgress?: (share: number) => void
}

/** The journal in a file, and what its operator can do to it. */
export class FileJournal implements DurableJournal {
  readonly #options: FileJournalOptions
  readonly #path: string
  #keys: Keyring
  #descriptor: Descriptor
  #file: FileStat
  readonly #queue = new CommitQueue()
  readonly #nonce: () => Buffer
  #seq: number
  #head: string
  #goodBytes: number
  #fault: string | undefined
  #busy = false
  /** Those who wait to have the file for themselves. */
  readonly #exclusives: (() => void)[] = []
  #closed: Promise<void> | undefined
  #onIdle: (() => void) | undefined

  constructor(options: FileJournalOptions, path: string, keys: Keyring, found: Recovered) {
    this.#options = options
    this.#path = path
    this.#keys = keys
    this.#descriptor = options.files.openToAppend(path)
    try {
      this.#file = options.files.openStat(this.#descriptor)
    } catch (error) {
      options.files.close(this.#descriptor)
      throw error
    }
    this.#nonce = nonces(options.random)
    this.#seq = found.records
    this.#head = found.head
    this.#goodBytes = found.goodBytes
  }

  health(): JournalHealth {
    if (this.#fault === undefined && !this.#busy) this.#checkFile()
    return { fault: this.#fault, records: this.#seq, waiting: this.#queue.length, head: this.#head }
  }

  commit<T>(decision: Decision<T>): Promise<T> {
    if (this.#closed !== undefined) return Promise.reject(new Failure('journal-closed', this.#path))
    if (this.#fault !== undefined) return Promise.reject(new Failure('journal-latched', this.#fault))
    const committed = this.#queue.add(decision)
    this.#schedule()
    return committed
  }

  close(): Promise<void> {
    this.#closed ??= new Promise((resolve, reject) => {
      this.#onIdle = () => {
        try {
          this.#options.files.close(this.#descriptor)
          resolve()
        } catch (error) {
          reject(error)
        }
      }
      if (!this.#busy) this.#onIdle()
    })
    return this.#closed
  }

  /** The file, the file of its keys, and how long the file is, all of it durable. */
  location(): JournalLocation { return { path: this.#path, keyFile: this.#options.keyFile, bytes: this.#goodBytes } }

  rotateKey(): Promise<Rotated> {
    return this.#exclusively(() => {
      this.#keys = addKey(this.#options.files, this.#options.keyFile, this.#options.random)
      return { key: this.#keys.newest.name, seals: true }
    })
  }

  rewrite(onProgress: (share: number) => void): Promise<Rewritten> {
    return this.#exclusively(async () => {
      const { files, random } = this.#options
      const { path } = this.location()
      if (!this.#checkFile()) throw new Failure('journal-latched', this.#fault!)
      const nonce = nonces(random)
      const made = await rewriteJournal({ files, path, keys: this.#keys, bytes: this.#goodBytes, nonce, onProgress })
      try {
        const old = this.#descriptor
        this.#descriptor = files.openToAppend(path)
        files.close(old)
        this.#file = files.openStat(this.#descriptor)
        this.#goodBytes = made.goodBytes
        this.#head = made.head
      } catch (error) {
        throw this.#latch(`the rewritten journal could not be opened: ${systemCode(error)}`)
      }
      return { unneeded: olderKeys(this.#keys), head: made.head }
    })
  }

  /** Runs something while no write is under way and none begins. */
  async #exclusively<T>(act: () => T | Promise<T>): Promise<T> {
    if (this.#closed !== undefined) throw new Failure('journal-closed', this.#path)
    if (this.#busy) await new Promise<void>(resolve => this.#exclusives.push(resolve))
    else this.#busy = true
    try {
      return await act()
    } finally {
      this.#settle([], undefined)
    }
  }

  #schedule(): void {
    if (this.#busy) return
    this.#busy = true
    this.#gather(0, MAX_GATHER_TURNS)
  }

  /**
   * Starts a write once a turn of the event loop has brought no further decision: those whose changes were just
   * acknowledged may be about to ask for the next, and a write costs as much as several records.
   */
  #gather(seen: number, turns: number): void {
    setImmediate(() => {
      const { length } = this.#queue
      if (length > seen && length < MAX_COMMIT_RECORDS && turns > 0) this.#gather(length, turns - 1)
      else this.#write()
    })
  }

  #write(): void {
    const batch = new Batch(this.#seq, this.#head, new Date(this.#options.wallMs()).toISOString())
    this.#options.fold.begin()
    let broken: unknown
    const waiting = this.#queue.take(fact => {
      try {
        return batch.add(fact, this.#keys.newest, this.#nonce())
      } catch (error) {
        broken = error
        return false
      }
    })
    if (broken !== undefined) { this.#settle(waiting, broken); return }
    if (batch.records.length === 0) { this.#settle(waiting, undefined); return }
    if (!this.#checkFile()) { this.#settle(waiting, new Failure('journal-latched', this.#fault!)); return }
    const bytes = batch.takeBytes()
    const tell = this.#options.onWrite?.()
    this.#options.files.append(this.#descriptor, bytes, (error, written) => {
      const failure = error ?? (written < bytes.length ? new Error(`${written} of ${bytes.length} bytes`) : undefined)
      tell?.(failure === undefined)
      this.#settle(waiting, failure === undefined ? this.#accept(batch, bytes.length) : this.#undo(failure))
    })
  }

  /** The write is on the device: folds its records, if the file is still the one that the next start will read. */
  #accept(batch: Batch, bytes: number): Failure | undefined {
    this.#goodBytes += bytes
    if (!this.#checkFile()) return new Failure('journal-latched', this.#fault!)
    this.#seq = batch.seq
    this.#head = batch.head
    try {
      for (const record of batch.records) this.#options.fold.apply(record)
    } catch (error) {
      return this.#latch(`a committed record does not fit the state: ${systemCode(error)}`)
    }
    return undefined
  }

  /** Cuts a failed write back. */
  #undo(cause: Error): Failure {
    const code = systemCode(cause)
    if (code === 'EIO') return this.#latch('the device reported an I/O error')
    if (!this.#checkFile(true)) return new Failure('journal-latched', this.#fault!)
    try {
      this.#options.files.truncate(this.#path, this.#goodBytes)
    } catch (error) {
      return this.#latch(`a failed write (${code}) could not be cut back: ${systemCode(error)}`)
    }
    if (!this.#checkFile()) return new Failure('journal-latched', this.#fault!)
    this.#options.warn(`a write to the journal failed and was cut back: ${code}`)
    return new Failure('write-failed', code, { cause })
  }

  /** Latches if the file under the journal's name is not the one that was opened, or not as long as it should be. */
  #checkFile(ofAnyLength: boolean = false): boolean {
    let stat: FileStat | undefined
    try {
      stat = this.#options.files.stat(this.#path)
    } catch (error) {
      this.#latch(`${this.#path}: ${systemCode(error)}`)
      return false
    }
    if (stat === undefined) this.#latch(`${this.#path} was removed`)
    else if (!isSame(stat, this.#file)) this.#latch(`${this.#path} was replaced`)
    else if (stat.bytes !== this.#goodBytes && !ofAnyLength) {
      this.#latch(`${this.#path} was changed by another program`)
    }
    return this.#fault === undefined
  }

  #latch(fault: string): Failure {
    this.#fault = fault
    this.#options.warn(`the journal takes no more writes until a restart: ${fault}`)
    return new Failure('journal-latched', fault)
  }

  #settle(waiting: readonly Waiting[], failure: unknown): void {
    for (const { resolve, outcome, reject } of waiting) failure === undefined ? resolve(outcome) : reject(failure)
    if (this.#fault !== undefined) this.#queue.rejectAll(new Failure('journal-latched', this.#fault))
    const exclusive = this.#exclusives.shift()
    if (exclusive !== undefined) { exclusive(); return } // and stays busy, for that one
    this.#busy = false
    if (this.#queue.length > 0) this.#schedule()
    else this.#onIdle?.()
  }
}

function isSame(a: FileStat, b: FileStat): boolean { return a.inode === b.inode && a.device === b.device }
