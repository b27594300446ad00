/**
 * Writing a whole journal again: into a new file beside it, which is read back and compared, and then takes its name.
 */
import type { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { Failure } from '../errors.ts'
import { REWRITE_SLICE_BYTES } from '../limits.ts'
import type { Files } from '../disk/files.ts'
import { makeWhole } from '../disk/whole-file.ts'
import { CONTINUED, type Apply, type Continued, type JournalRecord } from './journal.ts'
import type { Key, KeyFinder, Keyring } from './keys.ts'
import { FIRST_HASH, formatLine } from './line.ts'
import { NOTHING, readInSteps, type Recovered } from './recover.ts'

/** What writing a journal again needs. */
export interface ReplaceOptions {
  readonly files: Files
  readonly path: string
  /** What it is now. */
  readonly from: Pick<Recovered, 'records' | 'head' | 'goodBytes'> & Pick<Continued, 'time'>
  /** The time now, as a line has it. */
  readonly time: string
  /** All keys; the newest seals. */
  readonly keys: Keyring
  readonly nonce: () => Buffer
  /** Gets the share that is done, 0 to 1. */
  readonly onProgress: (share: number) => void
  /** Aborts it; the old journal stays. */
  readonly signal: AbortSignal
}

/** What the new journal holds, and what is made of the old one. */
interface Replacement {
  /** From the first on. They need no numbers yet. */
  readonly records: Iterable<Omit<JournalRecord, 'seq'>>
  /** How much of them was given, 0 to 1. */
  readonly share: () => number
  /** The name that the old file keeps. */
  readonly keepsAs?: string | undefined
  /** Takes each record as it reads back; throws, then or in the end, where it should be another. */
  readonly apply?: Apply
  readonly compare?: () => Iterable<void>
}

/** A hash over the contents of records in order, independent of the key. */
class Digest {
  readonly #hash = createHash('sha256')

  readonly add = ({ seq, time, type, by, data }: JournalRecord): void => {
    this.#hash.update(JSON.stringify({ seq, time, type, by, data }))
  }

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
export async function reencryptJournal(options: ReplaceOptions): Promise<Recovered> {
  const { goodBytes, records } = options.from
  let reached = 0
  const all = function * (): Replacement['records'] & Generator {
    if (records > 0) yield continued('re-encrypted', options)
    yield * recordsOf(options, bytes => { reached = bytes })
  }
  return replaceJournal(options, { records: all(), share: () => reached / goodBytes })
}

/** The first record of a journal that another one becomes. */
export function continued(why: Continued['why'], { from, time }: ReplaceOptions): Omit<JournalRecord, 'seq'> {
  const data: Continued = { why, head: from.head, records: from.records, time: from.time }
  return { time, type: CONTINUED, by: null, data }
}

/** The records of a journal, verified as they are read. */
export function * recordsOf(
  { files, path, keys, from: { goodBytes } }: ReplaceOptions, onRead: (reached: number) => void = () => {}
): Generator<JournalRecord, void, void> {
  let record: JournalRecord
  let reached = 0
  for (const found of readInSteps(files, path, keys, one => { record = one }, goodBytes)) {
    onRead(reached = found.goodBytes)
    yield record!
  }
  if (reached !== goodBytes) throw new Failure('journal-damaged', `${path} ends before its last record`)
}

/**
 * Writes a journal of records, numbered from 1 on, in the place of another one, whose file is untouched until the new
 * one was read back and compared. Nothing is appended meanwhile; the event loop is left free after each slice of bytes.
 * Gives what the new file holds. Leaves nothing when it fails.
 */
export function replaceJournal(options: ReplaceOptions, replacement: Replacement): Promise<Recovered> {
  const { files, path, keys, nonce, onProgress, signal } = options
  const { records, share, keepsAs, apply = () => {}, compare = () => [] } = replacement
  return makeWhole(files, path, async file => {
    const lineOf = sealer(keys.newest, nonce)
    let bytes = 0
    const endSlice = async (done: number): Promise<void> => {
      onProgress(done)
      await new Promise(resolve => setImmediate(resolve))
      signal.throwIfAborted()
    }
    const written = new Digest()
    let slice = ''
    const flush = (): void => {
      file.write(slice)
      bytes += slice.length
      slice = ''
    }
    let seq = 0
    for (const unnumbered of records) {
      const record = { ...unnumbered, seq: ++seq }
      written.add(record)
      slice += `${lineOf(record)}\n`
      if (slice.length < REWRITE_SLICE_BYTES) continue
      flush()
      await endSlice(share() / 2)
    }
    flush()
    const read = new Digest()
    const take = (record: JournalRecord): void => { read.add(record); apply(record) }
    let found = NOTHING
    let reached = 0
    for (found of readInSteps(files, file.path, onlyNewest(keys), take)) {
      if (found.goodBytes - reached < REWRITE_SLICE_BYTES) continue
      reached = found.goodBytes
      await endSlice((1 + reached / bytes) / 2)
    }
    read.compare(written)
    for (const _ of compare()) await endSlice(1)
    return found
  }, { replaces: true, keepsAs })
}
