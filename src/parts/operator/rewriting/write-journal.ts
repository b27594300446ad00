/** Writes a whole journal, sealed with one key, and compares it with what reads back. */
import { createHash, type Hash } from 'node:crypto'
import type { Buffer } from 'node:buffer'
import type { Files } from '../../../journal/files.ts'
import { WHOLE, type JournalRecord } from '../../../journal/journal.ts'
import type { Key } from '../../../journal/keys.ts'
import { FIRST_HASH, sealBatch } from '../../../journal/line.ts'
import type { Recovered } from '../../../journal/recover.ts'
import { READ_CHUNK_BYTES } from '../../../limits.ts'
import { emptyState } from '../../../slices.ts'
import { breath } from '../../commands/signals.ts'
import type { NewFile } from '../../commands/whole-file.ts'
import { readWithBreaths } from '../commands/same-file.ts'
import { digestsOf, type Checkpoint } from './checkpoint.ts'

export type Unnumbered = Omit<JournalRecord, 'seq'>

/** `first` names the earlier journal; its time is that of the last record, too. */
export interface Content {
  readonly first: Unnumbered
  readonly records: Iterable<Unnumbered>
  /** What the records make must be its state. */
  readonly checkpoint?: Checkpoint
  /** The share of the records that were given, 0 to 1. */
  readonly share: () => number
}

export interface Sealing {
  readonly key: Key
  readonly nonce: () => Buffer
}

interface Writing extends Sealing {
  readonly files: Files
  /** Takes the done share, 0 to 1. */
  readonly onProgress?: (share: number) => void
}

/** The events of a checkpoint as records. */
export function contentOf(
  first: Unnumbered,
  checkpoint: Checkpoint,
  earlier: Iterable<Unnumbered> = []
): Content {
  const records = function* (): Generator<Unnumbered, void, void> {
    yield* earlier
    for (const event of checkpoint.events) yield { time: first.time, ...event }
  }
  return { first, records: records(), checkpoint, share: checkpoint.share }
}

/** The whole journal, some lines a piece. Adds a last record with the count. */
export function* sealedPieces(
  { first, records }: Content,
  { key, nonce }: Sealing,
  onRecord: (record: JournalRecord) => void = () => {}
): Generator<string, void, void> {
  let piece = ''
  let [seq, head] = [0, FIRST_HASH]
  for (const { time, type, by, data } of whole(first, records)) {
    const sealed = sealBatch([{ type, by, data, json: JSON.stringify(data) }], seq++, head, {
      time,
      key,
      nonce
    })
    onRecord(sealed.records[0]!)
    head = sealed.head
    piece += `${sealed.lines[0]}\n`
    if (piece.length < READ_CHUNK_BYTES && type !== WHOLE) continue
    yield piece
    piece = ''
  }
}

/** Throws if the records read back differ. */
export async function writeJournal(
  file: NewFile,
  content: Content,
  { files, key, nonce, onProgress = () => {} }: Writing
): Promise<Recovered> {
  const { checkpoint, share } = content
  const [written, read] = [createHash('sha256'), createHash('sha256')]
  for (const piece of sealedPieces(content, { key, nonce }, record => add(written, record))) {
    file.write(piece)
    onProgress(share() / 2)
    await breath()
  }
  const digests = checkpoint?.digests()
  const state = emptyState()
  const onlyThis = { find: (name: string) => (name === key.name ? key : undefined) }
  const onRead = (record: JournalRecord): void => {
    add(read, record)
    if (digests !== undefined) state.apply(record)
  }
  const made = await readWithBreaths(files, file.path, onlyThis, onRead, {
    onProgress: share => onProgress((1 + share) / 2)
  })
  // Two proofs: the file holds the records that were meant, and they make the state that was meant.
  if (written.digest('hex') !== read.digest('hex'))
    throw new Error('what was written does not read back the same')
  if (digests === undefined) return made
  const found = digestsOf(state)
  for (const [kind, digest] of digests)
    if (found.get(kind) !== digest) throw new Error(`the ${kind} would be others`)
  return made
}

function* whole(
  first: Unnumbered,
  records: Iterable<Unnumbered>
): Generator<Unnumbered, void, void> {
  yield first
  let count = 1
  for (const record of records) {
    count++
    yield record
  }
  yield { time: first.time, type: WHOLE, by: null, data: { records: count } }
}

/** Without the key, which a rewrite changes. */
function add(hash: Hash, { seq, time, type, by, data }: JournalRecord): void {
  hash.update(JSON.stringify({ seq, time, type, by, data }))
}
