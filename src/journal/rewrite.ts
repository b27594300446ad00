/**
 * Sealing a whole journal anew: into a new file beside it, which is read back and compared, and then takes its name.
 * Until then the old file is untouched. Work is done a slice at a time, so that reads are answered in between.
 */
import type { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import { Failure } from '../errors.ts'
import { REWRITE_SLICE_BYTES } from '../limits.ts'
import { createWriter, type Files } from './files.ts'
import type { JournalRecord } from './journal.ts'
import type { Key, KeyFinder, Keyring } from './keys.ts'
import { FIRST_HASH, formatLine } from './line.ts'
import { readInSteps, type Recovered } from './recover.ts'

/** What sealing anew needs, wherever the journal is. */
export interface SealAnew {
  /** All keys; the newest seals. */
  readonly keys: Keyring
  readonly nonce: () => Buffer
  /** Takes how much is done, 0 to 1. */
  readonly onProgress: (share: number) => void
}

interface RewriteOptions extends SealAnew {
  readonly files: Files
  readonly path: string
  /** The journal's length. */
  readonly bytes: number
}

/** What records say in their order, whatever they are sealed with. */
export class Digest {
  readonly #hash = createHash('sha256')

  readonly add = (record: JournalRecord): void => { this.#hash.update(JSON.stringify(record)) }

  /** Throws where others were added to another one. */
  compare(other: Digest): void {
    if (this.#hash.digest('hex') !== other.#hash.digest('hex')) throw new Error('what was written reads otherwise')
  }
}

/** Makes the lines of records that follow one another from the first on, without line ends. */
export function sealer(key: Key, nonce: () => Buffer): (record: JournalRecord) => string {
  let previousHash = FIRST_HASH
  return record => {
    const { seq, time } = record
    const line = formatLine(record, { seq, time, previousHash, key, nonce: nonce(), startsWrite: true })
    previousHash = line.hash
    return line.text
  }
}

/** The names of all keys but the newest. */
export function olderKeys({ names, newest }: Keyring): string[] { return names.filter(name => name !== newest.name) }

/** Finds the newest key alone. */
export function onlyNewest({ newest }: Keyring): KeyFinder {
  return { find: name => name === newest.name ? newest : undefined }
}

const freshName = (path: string): string => `${path}.rewrite`

/** Removes the file of a rewrite that a crash ended. */
export function removeLeftovers(files: Files, path: string): void {
  if (files.stat(freshName(path)) !== undefined) files.remove(freshName(path))
}

/** Rewrites a journal that nobody writes meanwhile; gives what the new file holds. Leaves nothing when it fails. */
export async function rewriteJournal(options: RewriteOptions): Promise<Recovered> {
  const { files, path, keys } = options
  const fresh = freshName(path)
  // The swap must be durable before a record is acknowledged in the new file; this throws where that is refused.
  files.syncFolder(dirname(path))
  try {
    const before = new Digest()
    const read = await seal(options, fresh, before)
    if (read.goodBytes !== options.bytes) throw new Failure('journal-damaged', `${path} ends before its last record`)
    const after = new Digest()
    const made = await slowly(
      readInSteps(files, fresh, onlyNewest(keys), after.add),
      reached => options.onProgress((1 + reached / options.bytes) / 2))
    after.compare(before)
    files.rename(fresh, path)
    files.syncFolder(dirname(path))
    return made
  } catch (error) {
    removeLeftovers(files, path)
    throw error
  }
}

/** Writes every record of the journal into the fresh file, and into the hash. */
async function seal(options: RewriteOptions, fresh: string, digest: Digest): Promise<Recovered> {
  const { files, path, keys, bytes, nonce, onProgress } = options
  const writer = createWriter(files, fresh)
  let text = ''
  const lineOf = sealer(keys.newest, nonce)
  const flush = (): void => {
    writer.write(text)
    text = ''
  }
  const add = (record: JournalRecord): void => {
    digest.add(record)
    text += `${lineOf(record)}\n`
    if (text.length > REWRITE_SLICE_BYTES) flush()
  }
  try {
    const read = await slowly(readInSteps(files, path, keys, add, bytes), reached => onProgress(reached / bytes / 2))
    flush()
    return read
  } finally {
    writer.close()
  }
}

/** Runs steps to their end, leaving the event loop free after each slice of bytes; gives what they return. */
async function slowly<T>(steps: Generator<number, T, void>, onSlice: (reachedBytes: number) => void): Promise<T> {
  for (let sliceEnd = REWRITE_SLICE_BYTES; ;) {
    const step = steps.next()
    if (step.done === true) return step.value
    if (step.value < sliceEnd) continue
    sliceEnd = step.value + REWRITE_SLICE_BYTES
    onSlice(step.value)
    await new Promise(resolve => setImmediate(resolve))
  }
}
