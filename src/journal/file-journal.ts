/**
 * The journal in a file, opened with `O_APPEND|O_DSYNC`: a write that has returned is on the device.
 *
 * A failed write is cut back. If that does not work, or the device reports any error but a lack of room, nobody knows
 * what it holds from there on, and asking again may well say that all is fine (fsyncgate). Then the journal fails: it
 * takes no more writes until a restart has written its end again, or another whole file has taken its place.
 */
import { Buffer } from 'node:buffer'
import { Failure, systemCode } from '../errors.ts'
import { MAX_COMMIT_BYTES, MAX_COMMIT_RECORDS, MAX_EVENT_BYTES } from '../limits.ts'
import { isFull, isSameFile, type Descriptor, type Files, type FileStat } from './files.ts'
import type {
  Apply, DurableJournal, EncodedEvent, End, JournalLocation, JournalOptions, JournalRecord, Status
} from './journal.ts'
import { KeyWatch, tagKeyOf, type Keyring } from './keys.ts'
import { isoTime, nonces, sealBatch } from './line.ts'
import type { Lock } from './lock.ts'
import { cutBack } from './torn.ts'

export interface FolderOptions extends JournalOptions {
  readonly files: Files
  readonly folder: string
  /** Undefined if nobody else can have the folder. */
  readonly lock?: Pick<Lock, 'isHeld' | 'socket'> | undefined
  /** Whether a journal without a record is refused, or none at all: unless this is a first start, all is lost. */
  readonly mustExist?: boolean
}

/** The file as it was opened: to append, and to cut back, which must not need a descriptor that is not there. */
export interface OwnFile {
  readonly appended: Descriptor
  readonly overwritten: Descriptor
  readonly stat: FileStat
}

/** What a start has found and prepared. */
export interface Found {
  readonly path: string
  readonly isNew: boolean
  readonly own: OwnFile
  readonly end: End
  readonly keys: Keyring
  /** The names of the keys that its lines need, that of the first line first. */
  readonly usedKeys: Iterable<string>
  /** Why it takes no writes; undefined: it does. */
  readonly fault: string | undefined
}

export function openOwn(files: Files, path: string): OwnFile {
  const appended = files.openToAppend(path)
  try {
    const stat = files.openStat(appended)
    return { appended, overwritten: files.openToOverwrite(path), stat }
  } catch (error) {
    files.close(appended)
    throw error
  }
}

export function closeOwn(files: Files, { appended, overwritten }: OwnFile): void {
  try {
    files.close(appended)
  } finally {
    files.close(overwritten)
  }
}

/** What a write gives of which the device took only a part. */
const PARTIAL = Object.assign(new Error('only a part was written'), { code: 'ENOSPC' })

/** The journal in a file. What replaces the file or its keys does that while nothing is appended: see `adopt`. */
export class FileJournal implements DurableJournal {
  readonly maxRecords: number = MAX_COMMIT_RECORDS
  readonly maxBytes: number = MAX_COMMIT_BYTES
  readonly maxEventBytes: number = MAX_EVENT_BYTES
  readonly tagKey: Buffer
  readonly file: this = this
  readonly files: Files
  readonly path: string
  readonly keyFile: string
  readonly nonce: () => Buffer
  end: End
  keys: Keyring
  readonly #options: FolderOptions
  readonly #apply: Apply
  readonly #isNew: boolean
  #own: OwnFile
  #keyWatch: KeyWatch
  #keyFault: string | undefined
  #fault: string | undefined
  #fullSince: number | undefined
  #isWriting = false

  constructor(options: FolderOptions, apply: Apply, { path, isNew, own, end, keys, usedKeys, fault }: Found) {
    this.files = options.files
    this.path = path
    this.keyFile = options.keyFile
    this.nonce = nonces(options.random)
    this.end = end
    this.keys = keys
    this.#options = options
    this.#apply = apply
    this.#isNew = isNew
    this.#own = own
    this.#fault = fault
    this.#keyWatch = this.#watch(usedKeys)
    const [first = keys.newest.name] = usedKeys
    this.tagKey = tagKeyOf(keys.find(first)!)
  }

  /** Still ours? Then decide, seal, write; if that has worked, and the file is still ours, apply. */
  async append(decide: () => readonly EncodedEvent[]): Promise<void> {
    this.assertWritable()
    const events = decide()
    if (events.length === 0) return
    const { records, bytes, end } = this.#seal(events)
    const error = await this.#write(bytes)
    if (error !== undefined) throw this.#undo(error)
    // It counts if the next start will read this file, and nobody who has the lock by now has read it without this.
    const fault = this.#foreign(end.goodBytes)
    if (fault !== undefined) throw this.#fail(fault)
    this.end = end
    if (this.#fullSince !== undefined) this.#options.warn('the journal has room again, and takes changes')
    this.#fullSince = undefined
    try {
      for (const record of records) this.#apply(record)
    } catch (cause) {
      throw this.#fail(`a durable record does not fit the state: ${systemCode(cause)}`)
    }
  }

  /** The lines are let go before they are written: their bytes are enough to hold. */
  #seal(events: readonly EncodedEvent[]): {
    readonly records: readonly JournalRecord[], readonly bytes: Buffer, readonly end: End
  } {
    const { end: { records: seq, head: previous, goodBytes }, keys: { newest: key }, nonce } = this
    const time = this.time()
    const { records, lines, head } = sealBatch(events, seq, previous, { time, key, nonce })
    const bytes = Buffer.from(`${lines.join('\n')}\n`, 'latin1')
    return { records, bytes, end: { records: seq + records.length, head, goodBytes: goodBytes + bytes.length, time } }
  }

  /** Gives the error of a write; undefined: all of it is on the device. */
  async #write(bytes: Buffer): Promise<Error | undefined> {
    this.#isWriting = true
    try {
      return await new Promise(resolve => {
        this.files.append(this.#own.appended, bytes, (error, written) =>
          resolve(error ?? (written < bytes.length ? PARTIAL : undefined)))
      })
    } finally {
      this.#isWriting = false
    }
  }

  /** Cuts a failed write back; if the device was only full, that is all. Other errors leave open what it holds. */
  #undo(error: Error): Failure {
    const what = systemCode(error)
    const foreign = this.#foreign() // then what is at the file's end may be another's
    if (foreign !== undefined) return this.#fail(`a write failed (${what}), and ${foreign}`)
    try {
      cutBack(this.files, this.#own.overwritten, this.end.goodBytes)
    } catch (error) {
      return this.#fail(`a failed write (${what}) could not be cut back: ${systemCode(error)}`)
    }
    if (!isFull(error)) return this.#fail(`the device reported an error: ${what}`)
    if (this.#fullSince === undefined) {
      this.#options.warn(`a write to the journal found no room (${what}) and was cut back; changes fail until there is`)
    }
    this.#fullSince ??= this.#options.wallMs()
    return new Failure('write-failed', what)
  }

  #fail(fault: string): Failure {
    if (fault !== this.#fault) this.#options.warn(`the journal takes no more writes until a restart: ${fault}`)
    this.#fault = fault
    return new Failure('journal-failed', fault)
  }

  /** Throws what an append would reject with. */
  assertWritable(): void {
    const fault = this.fault()
    if (fault !== undefined) throw new Failure('journal-failed', fault)
    this.assertKeys()
  }

  /** Throws `key-unknown` if the key file lacks a key that is needed. */
  assertKeys(): void {
    const fault = this.#lookAtKeys()
    if (fault !== undefined) throw new Failure('key-unknown', fault)
  }

  /** Why it takes no writes, but for the key file; undefined: it does. */
  fault(): string | undefined {
    const fault = this.#fault ?? (this.#isWriting ? undefined : this.#foreign(this.end.goodBytes))
    if (fault !== undefined) this.#fail(fault)
    return fault
  }

  /** Why lock or file are no longer this process's own, or the file is not of that length; undefined: all is well. */
  #foreign(bytes?: number): string | undefined {
    const { lock } = this.#options
    let stat: FileStat | undefined
    try {
      stat = this.files.stat(this.path)
    } catch (error) {
      return `${this.path}: ${systemCode(error)}`
    }
    if (stat === undefined) return `${this.path} was removed`
    if (!isSameFile(stat, this.#own.stat)) return `${this.path} was replaced`
    if (bytes !== undefined && stat.bytes !== bytes) return `${this.path} was changed by another program`
    return lock?.isHeld() === false ? `the socket of its lock, ${lock.socket}, was removed or replaced` : undefined
  }

  /** What the key file lacks: until it has that again, nothing is sealed. Said when it begins, and when it ends. */
  #lookAtKeys(): string | undefined {
    const fault = this.#keyWatch.fault()
    const what = fault === undefined ? 'changes again' : `no changes at the moment: ${fault}`
    if (fault !== this.#keyFault) this.#options.warn(`the journal takes ${what}`)
    this.#keyFault = fault
    return fault
  }

  #watch(usedKeys: Iterable<string>): KeyWatch {
    return new KeyWatch(this.files, this.keyFile, [...usedKeys, this.keys.newest.name])
  }

  /** The names of the keys that its lines need. */
  get usedKeys(): ReadonlySet<string> { return this.#keyWatch.names }

  /** The time now, as a line has it. */
  time(): string { return isoTime(this.#options.wallMs()) }

  location(): JournalLocation {
    return { path: this.path, keyFile: this.keyFile, bytes: this.end.goodBytes, isNew: this.#isNew }
  }

  /** Looks at the lock, the file and the keys, too. */
  status(): Status {
    const { records, head } = this.end
    const fault = this.fault()
    const keyFault = fault === undefined ? this.#lookAtKeys() : undefined
    const mayHeal = keyFault !== undefined
    return { fault: fault ?? keyFault, ...mayHeal && { mayHeal }, fullSince: this.#fullSince, records, head }
  }

  /**
   * Goes on with the file that has the journal's name now, and with these keys; so a fault ends. `usedKeys` are those
   * that its lines need; `first` is applied. Throws `journal-failed` if the file cannot be opened.
   */
  adopt(end: End, keys: Keyring, usedKeys: Iterable<string>, first?: JournalRecord): void {
    const before = this.#own
    try {
      this.#own = openOwn(this.files, this.path)
      closeOwn(this.files, before)
    } catch (error) {
      throw this.#fail(`the journal was replaced, and could not be opened again: ${systemCode(error)}`)
    }
    this.end = end
    this.keys = keys
    this.#keyWatch = this.#watch(usedKeys)
    this.#fault = undefined
    if (first !== undefined) this.#apply(first)
  }

  async close(): Promise<void> { closeOwn(this.files, this.#own) }
}
