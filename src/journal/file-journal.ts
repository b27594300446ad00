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
import type { FolderLock } from '../disk/lock.ts'
import { MAX_COMMIT_BYTES, MAX_COMMIT_RECORDS, MAX_EVENT_BYTES } from '../limits.ts'
import type {
  Apply, DurableJournal, EncodedEvent, End, JournalHealth, JournalLocation, JournalOptions,
  JournalRecord, QuietFile, Replacement, Rotated
} from './journal.ts'
import { KeyWatch, type Keyring } from './keys.ts'
import { isoTime } from './line.ts'
import { OneAtATime } from './one-at-a-time.ts'

/** What a file journal is opened with. */
export interface FileJournalOptions extends JournalOptions {
  readonly files: Files
  /** The data folder; it exists and is locked, unless `unlocked` says why not: then it is only read. */
  readonly folder: string
  readonly unlocked?: string | undefined
  readonly lock?: Pick<FolderLock, 'isHeld' | 'keep' | 'fault'> | undefined
  /** Whether one without a record is refused: where that is not a first start, everything is lost. */
  readonly mustExist?: boolean
  /** Whether an empty journal gets a first record, which shows that it was meant to be there. */
  readonly begins?: boolean
}

/** What was found when the file was opened. */
interface OpenedFile {
  readonly path: string
  /** Whether it was made. */
  readonly isNew: boolean
  readonly keys: Keyring
  /** The names of the keys that its lines need. */
  readonly usedKeys: Iterable<string>
  readonly end: End
  readonly tornBytes: number
  /** Why it takes no writes. */
  readonly fault: string | undefined
}

/** The journal in a file, and its operator's functions. An append, a replacement and a rotation exclude each other. */
export class FileJournal implements DurableJournal {
  readonly maxBatchRecords: number = MAX_COMMIT_RECORDS
  readonly maxBatchBytes: number = MAX_COMMIT_BYTES
  readonly maxEventBytes: number = MAX_EVENT_BYTES
  readonly #options: FileJournalOptions
  readonly #apply: Apply
  readonly #path: string
  readonly #isNew: boolean
  #keys: Keyring
  #keyWatch: KeyWatch
  #keyFault: string | undefined
  #descriptor: Descriptor
  #file: FileStat
  readonly #nonce: () => Buffer
  /** How far the journal reaches; what was written after that does not count. */
  #end: End
  #fault: string | undefined
  /** What changes the file: one thing after the other. */
  readonly #work = new OneAtATime()

  /** Without the lock another process may write: what was read is served while the file is as it was. */
  readonly readBarrier?: () => Promise<void>

  constructor(options: FileJournalOptions, apply: Apply, opened: OpenedFile) {
    const { path, isNew, keys, usedKeys, end, tornBytes, fault } = opened
    this.#options = options
    this.#apply = apply
    this.#path = path
    this.#isNew = isNew
    this.#keys = keys
    this.#keyWatch = this.#watch(usedKeys)
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
    if (this.#fault === undefined && !this.#work.isBusy) this.#checkFile()
    const { records, head } = this.#end
    if (this.#fault !== undefined) return { fault: this.#fault, records, head }
    const fault = this.#checkKeys() ?? this.#options.lock?.fault()
    return { fault, mayHeal: fault !== undefined, records, head }
  }

  /** The file, the file of its keys, and how long the file is, all of it durable. */
  location(): JournalLocation {
    return { path: this.#path, keyFile: this.#options.keyFile, bytes: this.#end.goodBytes, isNew: this.#isNew }
  }

  append(decide: () => readonly EncodedEvent[]): Promise<void> {
    return this.#work.begin(async () => {
      await this.#assertOwn()
      const events = decide()
      if (events.length > 0) await this.#write(events)
    })
  }

  close(): Promise<void> { return this.#work.begin(async () => this.#options.files.close(this.#descriptor)) }

  rotateKey(isGone?: () => boolean): Promise<Rotated> {
    return this.#work.soon(isGone, async () => {
      const { addKey } = await import('./new-keys.ts')
      await this.#assertOwn()
      this.#keys = await addKey(this.#options.files, this.#options.keyFile, this.#options.random)
      this.#keyWatch = this.#watch(this.#keyWatch.names)
      return { key: this.#keys.newest.name, seals: true }
    })
  }

  replace(make: (file: QuietFile) => Promise<Replacement>, isGone?: () => boolean): Promise<void> {
    return this.#work.soon(isGone, async () => {
      await this.#assertOwn()
      const { files, random, wallMs } = this.#options
      const { end, first } = await make({
        files, path: this.#path, end: this.#end, keys: this.#keys, time: isoTime(wallMs()), nonce: nonces(random),
        confirm: () => this.#assertKeys()
      }).catch((cause: unknown) => {
        if (this.#checkFile()) throw cause
        throw new Failure('journal-failed', `${this.#fault}, and then: ${systemCode(cause)}`, { cause })
      })
      this.#reopen(end)
      this.#keyWatch = this.#watch([])
      this.#apply(first)
    })
  }

  #watch(names: Iterable<string>): KeyWatch {
    return new KeyWatch(this.#options.files, this.#options.keyFile, [...names, this.#keys.newest.name])
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
  #write(events: readonly EncodedEvent[]): Promise<void> {
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
        // It is on the device, and counts if the file is still the one that the next start will read, and nobody who
        // has the lock by now has read it without these lines.
        this.#keepLock().then(() => {
          if (!this.#checkFile(end.goodBytes)) throw new Failure('journal-failed', this.#fault!)
          this.#end = end
          this.#applyAll(records)
        }, (failure: Failure) => { throw this.#fail(failure.message) }).then(resolve, reject)
      })
    })
  }

  #applyAll(records: readonly JournalRecord[]): void {
    try {
      for (const record of records) this.#apply(record)
    } catch (cause) {
      throw this.#fail(`a durable record does not fit the state: ${systemCode(cause)}`)
    }
  }

  /** Cuts a failed write back; where the device was only full, that is all. Other errors leave open what it holds. */
  #undo(what: string, heals: boolean): Failure {
    if (!this.#checkFile('any')) return new Failure('journal-failed', this.#fault!)
    // What is at the file's end by now may be another's.
    if (this.#options.lock?.isHeld() === false) return this.#fail(`a write failed (${what}) while the lock was lost`)
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

  /** Asserts that the journal is whole, and that nobody else may write it. */
  async #assertOwn(): Promise<void> {
    this.#assertWhole()
    if (this.#options.lock?.isHeld() !== false) return
    await this.#keepLock()
    this.#assertWhole() // another process may have had the lock meanwhile
  }

  /** Others can write only where the socket of this one's lock is gone; then it is taken again, if it can be. */
  async #keepLock(): Promise<void> {
    await this.#options.lock?.keep().catch(cause => {
      throw new Failure('write-failed', (cause as Error).message, { cause })
    })
  }

  #assertWhole(): void {
    if (this.#fault !== undefined || !this.#checkFile()) throw new Failure('journal-failed', this.#fault!)
    this.#assertKeys()
  }

  #assertKeys(): void {
    const lost = this.#checkKeys()
    if (lost !== undefined) throw new Failure('key-unknown', lost)
  }

  /** What the key file lacks: until that is put back, nothing is sealed. Warns when it begins, and when it ends. */
  #checkKeys(): string | undefined {
    const fault = this.#keyWatch.fault()
    if (fault !== this.#keyFault) {
      const what = fault === undefined ? 'changes again' : `no changes at the moment: ${fault}`
      this.#options.warn(`the journal takes ${what}`)
    }
    return this.#keyFault = fault
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
