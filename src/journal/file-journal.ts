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
import { cutBack, isFull } from './durable.ts'
import type { Files } from './files.ts'
import type { FolderLock } from './lock.ts'
import { OwnFile } from './own-file.ts'
import { MAX_COMMIT_BYTES, MAX_COMMIT_RECORDS, MAX_EVENT_BYTES } from '../limits.ts'
import type {
  Apply, DurableJournal, EncodedEvent, End, Status, JournalLocation, JournalOptions,
  JournalRecord, QuietFile, Replacement, Rotated
} from './journal.ts'
import { KeyWatch, tagKeyOf, type Keyring } from './keys.ts'
import { isoTime } from './line.ts'
import { addKey } from './new-keys.ts'
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
  readonly maxRecords: number = MAX_COMMIT_RECORDS
  readonly maxBytes: number = MAX_COMMIT_BYTES
  readonly maxEventBytes: number = MAX_EVENT_BYTES
  readonly tagKey: Buffer
  readonly #options: FileJournalOptions
  readonly #apply: Apply
  readonly #file: OwnFile
  readonly #isNew: boolean
  #keys: Keyring
  #keyWatch: KeyWatch
  readonly #nonce: () => Buffer
  /** How far the journal reaches; what was written after that does not count. */
  #end: End
  #fault: string | undefined
  /** What changes the file: one thing after the other. */
  readonly #work = new OneAtATime()

  /** Without the lock another process may write: what was read is served while the file is as it was. */
  readonly catchUp?: () => Promise<void>

  constructor(options: FileJournalOptions, apply: Apply, opened: OpenedFile) {
    const { path, isNew, keys, usedKeys, end, tornBytes, fault } = opened
    this.#options = options
    this.#apply = apply
    this.#file = new OwnFile(options.files, path)
    this.#isNew = isNew
    const [first] = usedKeys // the first record's, since keys are asked for in the order of the lines
    this.tagKey = tagKeyOf((first === undefined ? undefined : keys.find(first)) ?? keys.newest)
    this.#keys = keys
    this.#keyWatch = this.#watch(usedKeys)
    this.#nonce = nonces(options.random)
    this.#end = end
    this.#fault = fault
    if (options.unlocked !== undefined) this.catchUp = async () => this.#refuseStale(end.goodBytes + tornBytes)
  }

  /** Looks at the file and the keys, which warns, and fails the journal where the file is not what it should be. */
  status(): Status {
    if (!this.#work.isBusy) this.#check(this.#end.goodBytes)
    const { records, head } = this.#end
    if (this.#fault !== undefined) return { fault: this.#fault, records, head }
    const fault = this.#keyWatch.fault() ?? this.#options.lock?.fault()
    return { fault, mayHeal: fault !== undefined, records, head }
  }

  /** The file, the file of its keys, and how long the file is, all of it durable. */
  location(): JournalLocation {
    return { path: this.#file.path, keyFile: this.#options.keyFile, bytes: this.#end.goodBytes, isNew: this.#isNew }
  }

  append(decide: () => readonly EncodedEvent[]): Promise<void> {
    return this.#work.begin(async () => {
      await this.#assertOwn()
      const events = decide()
      if (events.length > 0) await this.#write(events)
    })
  }

  close(): Promise<void> { return this.#work.begin(async () => this.#file.close()) }

  rotateKey(isGone?: () => boolean): Promise<Rotated> {
    return this.#work.beginOrWithdraw(isGone, async () => {
      await this.#assertOwn()
      this.#keys = await addKey(this.#options.files, this.#options.keyFile, this.#options.random)
      this.#keyWatch = this.#watch(this.#keyWatch.names)
      return { key: this.#keys.newest.name, seals: true }
    })
  }

  replace(make: (file: QuietFile) => Promise<Replacement>, isGone?: () => boolean): Promise<void> {
    return this.#work.beginOrWithdraw(isGone, async () => {
      await this.#assertOwn()
      const { files, random, wallMs } = this.#options
      const { end, first } = await make({
        files, path: this.#file.path, end: this.#end, keys: this.#keys, time: isoTime(wallMs()), nonce: nonces(random),
        confirm: () => this.#assertKeys()
      }).catch((cause: unknown) => {
        if (this.#check(this.#end.goodBytes) === undefined) throw cause
        throw new Failure('journal-failed', `${this.#fault}, and then: ${systemCode(cause)}`, { cause })
      })
      this.#reopen(end)
      this.#keyWatch = this.#watch([])
      this.#apply(first)
    })
  }

  #watch(names: Iterable<string>): KeyWatch {
    const { files, keyFile, warn } = this.#options
    return new KeyWatch(files, keyFile, [...names, this.#keys.newest.name], warn)
  }

  #reopen(end: End): void {
    try {
      this.#file.reopen()
      this.#end = end
    } catch (error) {
      throw this.#fail(`the journal was replaced, and could not be opened again: ${systemCode(error)}`)
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
      this.#file.append(bytes, (error, written) => {
        const isShort = error === null && written < bytes.length
        if (error === null && !isShort) return resolve(this.#acknowledge(records, end))
        const what = isShort ? `${written} of ${bytes.length} bytes` : systemCode(error)
        reject(this.#undo(what, isShort || isFull(error)))
      })
    })
  }

  /**
   * What is on the device counts if the file is still the one that the next start will read, and nobody who has the
   * lock by now has read it without these lines.
   */
  async #acknowledge(records: readonly JournalRecord[], end: End): Promise<void> {
    const { lock } = this.#options
    if (lock?.isHeld() === false) await lock.keep().catch((error: Error) => { throw this.#fail(error.message) })
    const fault = this.#file.fault(end.goodBytes)
    if (fault !== undefined) throw this.#fail(fault)
    this.#end = end
    try {
      for (const record of records) this.#apply(record)
    } catch (cause) {
      throw this.#fail(`a durable record does not fit the state: ${systemCode(cause)}`)
    }
  }

  /** Cuts a failed write back; where the device was only full, that is all. Other errors leave open what it holds. */
  #undo(what: string, heals: boolean): Failure {
    const failure = this.#check()
    if (failure !== undefined) return failure
    // What is at the file's end by now may be another's.
    if (this.#options.lock?.isHeld() === false) return this.#fail(`a write failed (${what}) while the lock was lost`)
    try {
      // Without a sync nothing says that an emptied file is empty: a power cut may bring the write back.
      const { path } = this.#file
      heals = this.#file.withSpare(() => cutBack(this.#options.files, path, this.#end.goodBytes)) && heals
    } catch (error) {
      return this.#fail(`a failed write (${what}) could not be cut back: ${systemCode(error)}`)
    }
    if (!heals) return this.#fail(`the device reported an error: ${what}`)
    const after = this.#check(this.#end.goodBytes)
    if (after === undefined) this.#options.warn(`a write to the journal failed and was cut back: ${what}`)
    return after ?? new Failure('write-failed', what)
  }

  /** Asserts that the journal is whole, and that nobody else may write it. */
  async #assertOwn(): Promise<void> {
    const { lock } = this.#options
    this.#assertWhole()
    // Others can write only where the socket of this one's lock is gone; then it is taken again, if it can be.
    if (lock?.isHeld() !== false) return
    await lock.keep().catch((cause: Error) => { throw new Failure('write-failed', cause.message, { cause }) })
    this.#assertWhole() // another process may have had the lock meanwhile
  }

  #assertWhole(): void {
    if (this.#fault !== undefined) throw this.#fail(this.#fault)
    const lack = this.#keyWatch.fault()
    const fault = this.#file.fault(this.#end.goodBytes)
    if (fault !== undefined) throw this.#fail(fault)
    if (lack !== undefined) throw new Failure('key-unknown', lack)
  }

  /** Until the key file has again what it lacks, nothing is sealed. */
  #assertKeys(): void {
    const lack = this.#keyWatch.fault()
    if (lack !== undefined) throw new Failure('key-unknown', lack)
  }

  /** Fails the journal where its file is not what it should be, or of another length; gives why it has failed. */
  #check(bytes?: number): Failure | undefined {
    const fault = this.#fault ?? this.#file.fault(bytes)
    return fault === undefined ? undefined : this.#fail(fault)
  }

  #refuseStale(bytes: number): void {
    const fault = this.#file.fault(bytes)
    if (fault !== undefined) throw this.#fail(fault)
  }

  #fail(fault: string): Failure {
    if (fault !== this.#fault) this.#options.warn(`the journal takes no more writes until a restart: ${fault}`)
    this.#fault = fault
    return new Failure('journal-failed', fault)
  }
}
