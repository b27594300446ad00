/**
 * The writer of the journal in a file. The file is opened with `O_APPEND|O_DSYNC`: a write that has returned is on the
 * device.
 *
 * A failed write is cut back to the last good length. Where that does not work, or the device reports any error but
 * a full disk, it is not known what it holds from there on, and asking again may well say that all is fine when it is
 * not (what is called fsyncgate). Then the journal fails: it takes no more writes until a restart has read the file
 * again and written its end again.
 */
import { Buffer } from 'node:buffer'
import { Failure, systemCode } from '../errors.ts'
import { nonces, sealBatch } from './batch.ts'
import { cutBack, isFull } from '../disk/durable.ts'
import type { Descriptor, FileStat, Files } from '../disk/files.ts'
import { MAX_COMMIT_BYTES, MAX_COMMIT_RECORDS, MAX_EVENT_BYTES } from '../limits.ts'
import type {
  Continued, DurableJournal, EncodedEvent, JournalHealth, JournalLocation, JournalOptions, JournalRecord, Rewrite,
  Rewritten, Rotated
} from './journal.ts'
import { addKey, type Keyring } from './keys.ts'
import { isoTime } from './line.ts'
import type { Recovered } from './recover.ts'

/** What a file journal is opened with. */
export interface FileJournalOptions extends JournalOptions {
  readonly files: Files
  /** The data folder; it exists and is locked, unless `unlocked` says why not: then it is only read. */
  readonly folder: string
  readonly unlocked?: string | undefined
}

/** The journal in a file, and its operator's functions. */
export class FileJournal implements DurableJournal {
  readonly maxBatchRecords: number = MAX_COMMIT_RECORDS
  readonly maxBatchBytes: number = MAX_COMMIT_BYTES
  readonly maxEventBytes: number = MAX_EVENT_BYTES
  readonly #options: FileJournalOptions
  readonly #path: string
  #keys: Keyring
  #descriptor: Descriptor
  #file: FileStat
  readonly #nonce: () => Buffer
  #seq: number
  #head: string
  #goodBytes: number
  /** When the newest record was made. */
  #time: string | null
  #fault: string | undefined
  /** Whether a write or a rewrite is under way. */
  #isBusy = false

  /** Without the lock another process may write: what was read is served while the file is as it was. */
  readonly readBarrier?: () => Promise<void>

  /** `fault` is why it takes no writes. */
  constructor(
    options: FileJournalOptions, path: string, keys: Keyring, found: Recovered & Pick<Continued, 'time'>,
    fault: string | undefined
  ) {
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
    this.#time = found.time
    this.#fault = fault
    const { goodBytes, tornBytes } = found
    if (options.unlocked !== undefined) this.readBarrier = async () => this.#refuseStale(goodBytes + tornBytes)
  }

  health(): JournalHealth {
    if (this.#fault === undefined && !this.#isBusy) this.#checkFile()
    return { fault: this.#fault, records: this.#seq, head: this.#head }
  }

  /** The file, the file of its keys, and how long the file is, all of it durable. */
  location(): JournalLocation { return { path: this.#path, keyFile: this.#options.keyFile, bytes: this.#goodBytes } }

  async append(events: readonly EncodedEvent[]): Promise<readonly JournalRecord[]> {
    if (this.#fault !== undefined) throw new Failure('journal-failed', this.#fault)
    if (events.length === 0) return []
    if (!this.#checkFile()) throw new Failure('journal-failed', this.#fault!)
    this.#isBusy = true
    try {
      return await this.#write(events)
    } finally {
      this.#isBusy = false
    }
  }

  async close(): Promise<void> { this.#options.files.close(this.#descriptor) }

  async rotateKey(): Promise<Rotated> {
    this.#keys = await addKey(this.#options.files, this.#options.keyFile, this.#options.random)
    return { key: this.#keys.newest.name, seals: true }
  }

  async rewrite(rewrite: Rewrite): Promise<Rewritten> {
    const { rewriteJournal } = await import('./rewrite.ts')
    if (this.#fault !== undefined || !this.#checkFile()) throw new Failure('journal-failed', this.#fault!)
    const { files, random, wallMs } = this.#options
    const from = { records: this.#seq, head: this.#head, goodBytes: this.#goodBytes, time: this.#time }
    const time = isoTime(wallMs())
    this.#isBusy = true
    try {
      const made = await rewriteJournal({
        ...rewrite, files, path: this.#path, from, time, keys: this.#keys, nonce: nonces(random)
      }).catch((error: unknown) => {
        if (this.#checkFile()) throw error
        throw new Failure('journal-failed', `${this.#fault}, and then: ${systemCode(error)}`, { cause: error })
      })
      this.#reopen(made, made.records > 0 ? time : null)
      const { names, newest } = this.#keys
      return {
        records: made.records, head: made.head, bytes: made.goodBytes, archive: made.archive,
        before: { records: from.records, head: from.head, bytes: from.goodBytes },
        unneeded: names.filter(name => name !== newest.name)
      }
    } finally {
      this.#isBusy = false
    }
  }

  #reopen(made: Recovered, time: string | null): void {
    const { files } = this.#options
    try {
      const old = this.#descriptor
      this.#descriptor = files.openToAppend(this.#path)
      files.close(old)
      this.#file = files.openStat(this.#descriptor)
      this.#goodBytes = made.goodBytes
      this.#seq = made.records
      this.#head = made.head
      this.#time = time
    } catch (error) {
      throw this.#fail(`the new journal could not be opened: ${systemCode(error)}`)
    }
  }

  /** Not `async`, so that nothing holds the lines while they are written. */
  #write(events: readonly EncodedEvent[]): Promise<readonly JournalRecord[]> {
    const time = isoTime(this.#options.wallMs())
    const { records, lines, head } = sealBatch(
      events, this.#seq, this.#head, { time, key: this.#keys.newest, nonce: this.#nonce })
    const bytes = Buffer.from(`${lines.join('\n')}\n`, 'latin1')
    return new Promise((resolve, reject) => {
      this.#options.files.append(this.#descriptor, bytes, (error, written) => {
        const isShort = error === null && written < bytes.length
        const failure = error !== null || isShort
          ? this.#undo(isShort ? `${written} of ${bytes.length} bytes` : systemCode(error), isShort || isFull(error))
          : this.#accept(bytes.length)
        if (failure !== undefined) return reject(failure)
        this.#seq += records.length
        this.#head = head
        this.#time = time
        resolve(records)
      })
    })
  }

  /** The write is on the device: it counts if the file is still the one that the next start will read. */
  #accept(bytes: number): Failure | undefined {
    this.#goodBytes += bytes
    return this.#checkFile() ? undefined : new Failure('journal-failed', this.#fault!)
  }

  /** Cuts a failed write back; where the device was only full, that is all. Other errors leave open what it holds. */
  #undo(what: string, heals: boolean): Failure {
    if (!this.#checkFile(true)) return new Failure('journal-failed', this.#fault!)
    try {
      // Without a sync nothing says that an emptied file is empty: a power cut may bring the write back.
      heals = cutBack(this.#options.files, this.#path, this.#goodBytes) && heals
    } catch (error) {
      return this.#fail(`a failed write (${what}) could not be cut back: ${systemCode(error)}`)
    }
    if (!heals) return this.#fail(`the device reported an error: ${what}`)
    if (!this.#checkFile()) return new Failure('journal-failed', this.#fault!)
    this.#options.warn(`a write to the journal failed and was cut back: ${what}`)
    return new Failure('write-failed', what)
  }

  /**
   * Fails the journal if the file under the journal's name is not the one that was opened, or not as long as it
   * should be.
   */
  #checkFile(ofAnyLength: boolean = false): boolean {
    let stat: FileStat | undefined
    try {
      stat = this.#options.files.stat(this.#path)
    } catch (error) {
      this.#fail(`${this.#path}: ${systemCode(error)}`)
      return false
    }
    if (stat === undefined) this.#fail(`${this.#path} was removed`)
    else if (!isSame(stat, this.#file)) this.#fail(`${this.#path} was replaced`)
    else if (stat.bytes !== this.#goodBytes && !ofAnyLength) {
      this.#fail(`${this.#path} was changed by another program`)
    }
    return this.#fault === undefined
  }

  #refuseStale(bytes: number): void {
    const stat = this.#options.files.stat(this.#path)
    if (stat !== undefined && stat.bytes === bytes && isSame(stat, this.#file)) return
    const fault = `${this.#path} was changed by another process`
    throw this.#fault === fault ? new Failure('journal-failed', fault) : this.#fail(fault)
  }

  #fail(fault: string): Failure {
    this.#fault = fault
    this.#options.warn(`the journal takes no more writes until a restart: ${fault}`)
    return new Failure('journal-failed', fault)
  }
}

function isSame(a: FileStat, b: FileStat): boolean { return a.inode === b.inode && a.device === b.device }
