/**
 * The journal in a file, opened with `O_APPEND|O_DSYNC`: a write that has returned is on the
 * device.
 *
 * A failed write is cut back. If that fails, or the error is not a lack of room, nobody knows what
 * the device holds, and a later sync may falsely succeed (fsyncgate). Then the journal fails: it
 * takes no writes until a restart has written its end again.
 */
import { Buffer } from 'node:buffer'
import { Failure, systemCode } from '../errors.ts'
import {
  BLOCK_BYTES,
  MAX_COMMIT_BYTES,
  MAX_COMMIT_RECORDS,
  MAX_EVENT_BYTES,
  MAX_SHORT_WRITE_BYTES,
  READ_CHUNK_BYTES
} from '../limits.ts'
import {
  isFull,
  isSameFile,
  piecesOf,
  trySync,
  withFile,
  type Descriptor,
  type Files,
  type FileStat
} from './files.ts'
import type {
  Apply,
  DurableJournal,
  EncodedEvent,
  End,
  JournalLocation,
  JournalOptions,
  JournalRecord,
  Status
} from './journal.ts'
import { tagKeyOf, watchKeys, type Keyring } from './keys.ts'
import { isoTime, nonces, sealBatch } from './line.ts'
import type { Lock } from './lock.ts'
import { mayBeLong } from './torn.ts'

export interface FolderOptions extends JournalOptions {
  readonly files: Files
  readonly folder: string
  /** Undefined if no other process can have the folder. */
  readonly lock?: Pick<Lock, 'isHeld' | 'socket'> | undefined
  /** Refuses a missing or empty journal: it is lost, unless this is a first start. */
  readonly mustExist?: boolean
}

export interface FoundJournal {
  readonly path: string
  readonly isNew: boolean
  readonly end: End
  readonly keys: Keyring
  /** Of the lines, that of the first line first. */
  readonly usedKeys: Iterable<string>
  readonly fault: string | undefined
}

const PARTIAL = Object.assign(new Error('only a part was written'), { code: 'ENOSPC' })

export class FileJournal implements DurableJournal {
  readonly maxRecords: number = MAX_COMMIT_RECORDS
  readonly maxBytes: number = MAX_COMMIT_BYTES
  readonly maxEventBytes: number = MAX_EVENT_BYTES
  readonly tagKey: string
  readonly files: Files
  readonly path: string
  readonly keyFile: string
  /** Given by a host; no file may have them. */
  readonly areKeysGiven: boolean
  readonly nonce: () => Buffer
  end: End
  keys: Keyring
  /** The keys that the next start needs. */
  usedKeys: ReadonlySet<string>
  readonly #options: FolderOptions
  readonly #apply: Apply
  readonly #isNew: boolean
  #descriptor: Descriptor
  #stat: FileStat
  #keyWatch: () => string | undefined
  #keyFault: string | undefined
  #fault: string | undefined
  #fullSince: number | undefined
  #isWriting = false

  constructor(
    options: FolderOptions,
    apply: Apply,
    { path, isNew, end, keys, usedKeys, fault }: FoundJournal
  ) {
    this.files = options.files
    this.path = path
    this.keyFile = options.keyFile
    this.nonce = nonces(options.random)
    this.end = end
    this.keys = keys
    this.#options = options
    this.#apply = apply
    this.#isNew = isNew
    this.#stat = this.files.stat(path)! // before it is opened: a later replacement is noticed
    this.#descriptor = this.files.openToAppend(path)
    this.#fault = fault
    this.usedKeys = new Set([...usedKeys, keys.newest.name])
    this.areKeysGiven = options.keys !== undefined
    this.#keyWatch = this.#watch()
    const [first = keys.newest.name] = usedKeys
    this.tagKey = tagKeyOf(keys.find(first)!)
  }

  async append(decide: () => readonly EncodedEvent[]): Promise<void> {
    this.assertWritable()
    const events = decide()
    if (events.length === 0) return
    const { records, bytes, end } = this.#seal(events)
    if (bytes.length > MAX_SHORT_WRITE_BYTES && !(records.length === 1 && mayBeLong(records[0]!)))
      throw new Failure('write-failed', `a change of ${bytes.length} bytes, which is too long`)
    const error = await this.#write(bytes)
    if (error !== undefined) throw this.#undo(error)
    // The write counts only if the next start reads this very file, and no new holder of the lock
    // has read it before.
    const fault = this.#foreign(end.goodBytes)
    if (fault !== undefined) throw this.fail(fault)
    this.end = end
    if (this.#fullSince !== undefined)
      this.#options.warn('the journal has room again, and takes changes')
    this.#fullSince = undefined
    try {
      for (const record of records) this.#apply(record)
    } catch (cause) {
      throw this.fail(`a durable record does not fit the state: ${systemCode(cause)}`)
    }
  }

  /** The lines are freed before the write. */
  #seal(events: readonly EncodedEvent[]): {
    readonly records: readonly JournalRecord[]
    readonly bytes: Buffer
    readonly end: End
  } {
    const {
      end: { records: seq, head: previous, goodBytes },
      keys: { newest: key },
      nonce
    } = this
    const time = this.time()
    const { records, lines, head } = sealBatch(events, seq, previous, { time, key, nonce })
    const bytes = Buffer.from(`${lines.join('\n')}\n`, 'latin1')
    return {
      records,
      bytes,
      end: { records: seq + records.length, head, goodBytes: goodBytes + bytes.length, time }
    }
  }

  async #write(bytes: Buffer): Promise<Error | undefined> {
    this.#isWriting = true
    try {
      return await new Promise(resolve => {
        this.files.append(this.#descriptor, bytes, (error, written) =>
          resolve(error ?? (written < bytes.length ? PARTIAL : undefined))
        )
      })
    } finally {
      this.#isWriting = false
    }
  }

  #undo(error: Error): Failure {
    const what = systemCode(error)
    const foreign = this.#foreign() // another process may have written at the file's end
    if (foreign !== undefined) return this.fail(`a write failed (${what}), and ${foreign}`)
    try {
      withFile(this.files, this.files.openToOverwrite(this.path), file =>
        cutBack(this.files, file, this.end.goodBytes)
      )
    } catch (error) {
      return this.fail(`a failed write (${what}) could not be cut back: ${systemCode(error)}`)
    }
    if (!isFull(error)) return this.fail(`the device reported an error: ${what}`)
    if (this.#fullSince === undefined) {
      this.#options.warn(
        `a write to the journal found no room (${what}) and was cut back; ` +
          'changes fail until there is'
      )
    }
    this.#fullSince ??= this.#options.wallMs()
    return new Failure('write-failed', what, { cause: error })
  }

  fail(fault: string): Failure {
    if (fault !== this.#fault) this.#options.warn(`the journal takes no more writes: ${fault}`)
    this.#fault = fault
    return new Failure('journal-failed', fault)
  }

  /** Throws `journal-failed` or `key-unknown`. */
  assertWritable(): void {
    const fault = this.fault()
    if (fault !== undefined) throw new Failure('journal-failed', fault)
    this.assertKeys()
  }

  /** Throws `key-unknown`. */
  assertKeys(): void {
    const fault = this.#lookAtKeys()
    if (fault !== undefined) throw new Failure('key-unknown', fault)
  }

  /** Does not look at the key file. */
  fault(): string | undefined {
    const fault = this.#fault ?? (this.#isWriting ? undefined : this.#foreign(this.end.goodBytes))
    if (fault !== undefined) this.fail(fault)
    return fault
  }

  /** Why the lock or the file is another's. */
  #foreign(bytes?: number): string | undefined {
    const { lock } = this.#options
    let stat: FileStat | undefined
    try {
      stat = this.files.stat(this.path)
    } catch (error) {
      return `${this.path}: ${systemCode(error)}`
    }
    if (stat === undefined) return `${this.path} was removed`
    if (!isSameFile(stat, this.#stat)) return `${this.path} was replaced`
    if (bytes !== undefined && stat.size !== bytes)
      return `${this.path} was changed by another program`
    return lock?.isHeld() === false
      ? `the socket of its lock, ${lock.socket}, was removed or replaced`
      : undefined
  }

  /** Nothing is sealed until the key file has all needed keys again. */
  #lookAtKeys(): string | undefined {
    const fault = this.#keyWatch()
    const what = fault === undefined ? 'changes again' : `no changes at the moment: ${fault}`
    if (fault !== this.#keyFault) this.#options.warn(`the journal takes ${what}`)
    this.#keyFault = fault
    return fault
  }

  #watch(): () => string | undefined {
    return this.areKeysGiven ? () => undefined : watchKeys(this.files, this.keyFile, this.usedKeys)
  }

  time(): string {
    return isoTime(this.#options.wallMs())
  }

  location(): JournalLocation {
    const { path, keyFile, areKeysGiven } = this
    return { path, keyFile, areKeysGiven, bytes: this.end.goodBytes, isNew: this.#isNew }
  }

  status(): Status {
    const { records, head } = this.end
    const fault = this.fault()
    const keyFault = fault === undefined ? this.#lookAtKeys() : undefined
    const mayHeal = keyFault !== undefined
    return {
      fault: fault ?? keyFault,
      ...(mayHeal && { mayHeal }),
      fullSince: this.#fullSince,
      records,
      head
    }
  }

  /** The key file must have the keys, durably. The newest seals from the next write on. */
  sealWith(keys: Keyring): void {
    this.keys = keys
    this.usedKeys = new Set([...this.usedKeys, keys.newest.name])
    this.#keyWatch = this.#watch()
  }

  async close(): Promise<void> {
    this.files.close(this.#descriptor)
  }
}

/**
 * Cuts a file durably to its good bytes. What is cut off is zeroed first: until the cut is durable,
 * a power cut during the next write could mix its sectors with old ones.
 */
export function cutBack(files: Files, file: Descriptor, goodBytes: number): void {
  const { size } = files.openStat(file)
  const blockEnd = Math.ceil(goodBytes / BLOCK_BYTES) * BLOCK_BYTES
  // First the rest of the last block: a tail that begins with zeros within a block is no record. If
  // the good bytes end with a block, zeros would look like a lost block, and no old bytes share a
  // block with good ones.
  if (blockEnd > goodBytes) {
    for (let at = goodBytes, end = blockEnd; at < size; at = end, end = at + READ_CHUNK_BYTES) {
      writeAll(files, file, Buffer.alloc(Math.min(end, size) - at), at)
    }
  }
  files.truncate(file, goodBytes)
  settle(files, file, Math.max(0, goodBytes - 1))
}

/**
 * Makes a file durable, and writes its bytes from `offset` on again (README, Recovery 6). If the
 * runtime refuses to sync, the last block is written again, which brings the file's length to the
 * device.
 */
export function settle(files: Files, file: Descriptor, offset: number): void {
  const isSynced = trySync(() => files.syncOpen(file))
  const lastBlock =
    Math.floor(Math.max(0, files.openStat(file).size - 1) / BLOCK_BYTES) * BLOCK_BYTES
  let at = isSynced ? offset : Math.min(offset, lastBlock)
  for (const piece of piecesOf(files, file, at)) {
    writeAll(files, file, piece, at)
    at += piece.length
  }
}

function writeAll(files: Files, descriptor: Descriptor, bytes: Buffer, offset: number): void {
  for (let at = 0; at < bytes.length;)
    at += files.writeAt(descriptor, bytes.subarray(at), offset + at)
}
