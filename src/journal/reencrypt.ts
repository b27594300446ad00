/**
 * Writing a whole journal again: into a new file beside it, which is read back and compared, and then takes its name.
 */
import type { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { Failure } from '../errors.ts'
import { REWRITE_SLICE_BYTES } from '../limits.ts'
import type { Files } from '../disk/files.ts'
import { makeWhole } from '../disk/whole-file.ts'
import type { JournalRecord } from './journal.ts'
import type { Key, KeyFinder, Keyring } from './keys.ts'
import { FIRST_HASH, formatLine } from './line.ts'
import { NOTHING, readInSteps, type Recovered } from './recover.ts'

/** What re-encryption needs, wherever the journal is. */
interface ReencryptSources {
  /** All keys; the newest seals. */
  readonly keys: Keyring
  readonly nonce: () => Buffer
  /** Gets the share that is done, 0 to 1. */
  readonly onProgress: (share: number) => void
  /** Aborts it; the old journal stays. */
  readonly signal: AbortSignal
}

/** Those, and the file. */
export interface ReencryptOptions extends ReencryptSources {
  readonly files: Files
  readonly path: string
  /** The journal's length. */
  readonly bytes: number
}

/** A hash over the contents of records in order, independent of the key. */
class Digest {
  readonly #hash = createHash('sha256')

  readonly add = (record: JournalRecord): void => { this.#hash.update(JSON.stringify(record)) }

  /** Throws unless the other one was given the same records. */
  compare(other: Digest): void {
    if (this.#hash.digest('hex') !== other.#hash.digest('hex')) {
      throw new Error('what was written does not read back the same')
    }
  }
}

/** Makes the lines of records that follow one another from the first on, without line ends. */
function sealer(key: Key, nonce: () => Buffer): (record: JournalRecord) => string {
  let previousHash = FIRST_HASH
  return record => {
    const { seq, time } = record
    const line = formatLine({ ...record, json: JSON.stringify(record.data) }, { seq, time, previousHash, key,
      nonce: nonce(), startsWrite: true })
    previousHash = line.hash
    return line.text
  }
}

/** The names of all keys but the newest. */
export function olderKeys({ names, newest }: Keyring): string[] { return names.filter(name => name !== newest.name) }

/** Finds the newest key alone. */
function onlyNewest({ newest }: Keyring): KeyFinder {
  return { find: name => name === newest.name ? newest : undefined }
}

/** Seals every record of a journal again with the newest key. Rejects with `journal-damaged`. */
export async function reencryptJournal(options: ReencryptOptions): Promise<Recovered> {
  return replaceJournal(options, recordsOf(options))
}

function * recordsOf({ files, path, keys, bytes }: ReencryptOptions): Generator<JournalRecord, void, void> {
  let record: JournalRecord
  let reached = 0
  for (const found of readInSteps(files, path, keys, one => { record = one }, bytes)) {
    reached = found.goodBytes
    yield record!
  }
  if (reached !== bytes) throw new Failure('journal-damaged', `${path} ends before its last record`)
}

/**
 * Writes a journal of records, numbered from 1 on, in the place of another one, whose file is untouched until the new
 * one was read back and compared. No appends meanwhile; the event loop is left free after each slice of bytes.
 * Gives what the new file holds. Leaves nothing when it fails.
 */
function replaceJournal(options: ReencryptOptions, records: Iterable<JournalRecord>): Promise<Recovered> {
  const { files, path, keys, nonce, bytes, onProgress, signal } = options
  return makeWhole(files, path, async file => {
    const lineOf = sealer(keys.newest, nonce)
    let doneBytes = 0
    const endSlice = async (): Promise<void> => {
      onProgress(Math.min(1, doneBytes / 2 / bytes))
      await new Promise(resolve => setImmediate(resolve))
      signal.throwIfAborted()
    }
    const written = new Digest()
    let slice = ''
    const flush = (): void => {
      file.write(slice)
      doneBytes += slice.length
      slice = ''
    }
    for (const record of records) {
      written.add(record)
      slice += `${lineOf(record)}\n`
      if (slice.length < REWRITE_SLICE_BYTES) continue
      flush()
      await endSlice()
    }
    flush()
    const writtenBytes = doneBytes
    const read = new Digest()
    let found = NOTHING
    for (found of readInSteps(files, file.path, onlyNewest(keys), read.add)) {
      if (writtenBytes + found.goodBytes - doneBytes < REWRITE_SLICE_BYTES) continue
      doneBytes = writtenBytes + found.goodBytes
      await endSlice()
    }
    read.compare(written)
    return found
  }, { replaces: true })
}
