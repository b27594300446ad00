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
import { isSameFile, type Descriptor, type FileStat, type Files } from '../disk/files.ts'
import { MAX_COMMIT_BYTES, MAX_COMMIT_RECORDS, MAX_EVENT_BYTES } from '../limits.ts'
import type {
  DurableJournal, EncodedEvent, JournalHealth, JournalLocation, JournalOptions, JournalRecord, Rewrite,
  Rewritten, Rotated
} from './journal.ts'
import type { Keyring } from './keys.ts'
import { isoTime } from './line.ts'
import type { End } from './recover.ts'

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
  /** How far the journal reaches; what was written after that does not count. */
  #end: End
  #fault: string | undefined
  /** Whether a write or a rewrite is under way. */
  #isBusy = false

  /** Without the lock another process may write: what was read is served while the file is as it was. */
  readonly readBarrier?: () => Promise<void>

  /** `fault` is why it takes no writes. */
  constructor(
    options: FileJournalOptions, path: string, keys: Keyring, end: End, tornBytes: number, fault: string | undefined
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
    this.#end = end
    this.#fault = fault
    if (options.unlocked !== undefined) this.readBarrier = async () => this.#refuseStale(end.goodBytes + tornBytes)
  }

  health(): JournalHealth {
    if (this.#fault === undefined && !this.#isBusy) this.#checkFile()
    return { fault: this.#fault, records: this.#end.records, head: this.#end.head }
  }

  /** The file, the file of its keys, and how long the file is, all of it durable. */
  location(): JournalLocation {
    return { path: this.#path, keyFile: this.#options.keyFile, bytes: this.#end.goodBytes }
  }

  async append(events: readonly EncodedEvent[]): Promise<readonly JournalRecord[]> {
    if (this.#fault !== undefined) throw new Failure('journal-failed', this.#fault)
    if (events.length === 0) return []
    this.#assertWhole()
    this.#isBusy = true
    try {
      return await this.#write(events)
    } finally {
      this.#isBusy = false
    }
  }

  async close(): Promise<void> { this.#options.files.close(this.#descriptor) }

  async rotateKey(): Promise<Rotated> {
    const { addKey } = await import('./new-keys.ts')
    this.#keys = await addKey(this.#options.files, this.#options.keyFile, this.#options.random)
    return { key: this.#keys.newest.name, seals: true }
  }

  async rewrite(rewrite: Rewrite): Promise<Rewritten> {
    const { rewriteJournal } = await import('./rewrite.ts')
    this.#assertWhole()
    const { files, random, wallMs } = this.#options
    this.#isBusy = true
    try {
      const [rewritten, end] = await rewriteJournal({
        ...rewrite, files, path: this.#path, from: this.#end, time: isoTime(wallMs()), keys: this.#keys,
        nonce: nonces(random)
      }).catch((cause: unknown) => {
        if (this.#checkFile()) throw cause
        throw new Failure('journal-failed', `${this.#fault}, and then: ${systemCode(cause)}`, { cause })
      })
      this.#reopen(end)
      return rewritten
    } finally {
      this.#isBusy = false
    }
  }

  #reopen(end: End): void {
    const { files } = this.#options
    try {
      const old = this.#descriptor
      this.#descriptor = files.openToAppend(this.#path)
      files.close(old)
      this.#file = files.openStat(this.#descriptor)
      this.#end = end
    } catch (error) {
      throw this.#fail(`the new journal could not be opened: ${systemCode(error)}`)
    }
  }

  /** Not `async`, so that nothing holds the lines while they are written. */
  #write(events: readonly EncodedEvent[]): Promise<readonly JournalRecord[]> {
    const { records: seq, head: previous, goodBytes } = this.#end
    const time = isoTime(this.#options.wallMs())
    const { records, lines, head } = sealBatch(
      events, seq, previous, { time, key: this.#keys.newest, nonce: this.#nonce })
    const bytes = Buffer.from(`${lines.join('\n')}\n`, 'latin1')
    const end: End = { records: seq + records.length, head, goodBytes: goodBytes + bytes.length, time }
    return new Promise((resolve, reject) => {
      this.#options.files.append(this.#descriptor, bytes, (error, written) => {
        const isShort = error === null && written < bytes.length
        if (error !== null || isShort) {
          const what = isShort ? `${written} of ${bytes.length} bytes` : systemCode(error)
          return reject(this.#undo(what, isShort || isFull(error)))
        }
        // It is on the device, and counts if the file is still the one that the next start will read.
        if (!this.#checkFile(end.goodBytes)) return reject(new Failure('journal-failed', this.#fault!))
        this.#end = end
        resolve(records)
      })
    })
  }

  /** Cuts a failed write back; where the device was only full, that is all. Other errors leave open what it holds. */
  #undo(what: string, heals: boolean): Failure {
    if (!this.#checkFile('any')) return new Failure('journal-failed', this.#fault!)
    try {
      // Without a sync nothing says that an emptied file is empty: a power cut may bring the write back.
      heals = cutBack(this.#options.files, this.#path, this.#end.goodBytes) && heals
    } catch (error) {
      return this.#fail(`a failed write (${what}) could not be cut back: ${systemCode(error)}`)
    }
    if (!heals) return this.#fail(`the device reported an error: ${what}`)
    if (!this.#checkFile()) return new Failure('journal-failed', this.#fault!)
    this.#options.warn(`a write to the journal failed and was cut back: ${what}`)
    return new Failure('write-failed', what)
  }

  #assertWhole(): void {
    if (this.#fault !== undefined || !this.#checkFile()) throw new Failure('journal-failed', this.#fault!)
  }

  /** Fails the journal unless its name leads to the file that was opened, of the length that it should have. */
  #checkFile(bytes: number | 'any' = this.#end.goodBytes): boolean {
    let stat: FileStat | undefined
    try {
      stat = this.#options.files.stat(this.#path)
    } catch (error) {
      this.#fail(`${this.#path}: ${systemCode(error)}`)
      return false
    }
    if (stat === undefined) this.#fail(`${this.#path} was removed`)
    else if (!isSameFile(stat, this.#file)) this.#fail(`${this.#path} was replaced`)
    else if (bytes !== 'any' && stat.bytes !== bytes) this.#fail(`${this.#path} was changed by another program`)
    return this.#fault === undefined
  }

  #refuseStale(bytes: number): void {
    const stat = this.#options.files.stat(this.#path)
    if (stat?.bytes === bytes && isSameFile(stat, this.#file)) return
    const fault = `${this.#path} was changed by another process`
    throw this.#fault === fault ? new Failure('journal-failed', fault) : this.#fail(fault)
  }

  #fail(fault: string): Failure {
    this.#fault = fault
    this.#options.warn(`the journal takes no more writes until a restart: ${fault}`)
    return new Failure('journal-failed', fault)
  }
}
