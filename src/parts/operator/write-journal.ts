/** Writes a whole journal, sealed with one key, and compares it with what reads back. */
import { createHash, type Hash } from 'node:crypto'
import type { Buffer } from 'node:buffer'
import type { Files } from '../../journal/files.ts'
import { WHOLE, type JournalRecord } from '../../journal/journal.ts'
import type { Key } from '../../journal/keys.ts'
import { FIRST_HASH, sealBatch } from '../../journal/line.ts'
import { readInSteps, type Recovered } from '../../journal/recover.ts'
import { READ_CHUNK_BYTES } from '../../limits.ts'
import type { NewFile } from '../whole-file.ts'

export type Unnumbered = Omit<JournalRecord, 'seq'>

/** `time` is that of the last record. */
export interface Writing {
  readonly files: Files
  readonly key: Key
  readonly nonce: () => Buffer
  readonly time: string
  readonly onRecord?: (record: JournalRecord) => void
}

/**
 * Adds a last record with the count. Yields the share that was read back, 0 while writing. Throws if the records read
 * back differ.
 */
export function * writeJournal(
  file: NewFile, records: Iterable<Unnumbered>, { files, key, nonce, time: endTime, onRecord = () => {} }: Writing
): Generator<number, Recovered, void> {
  const [written, read] = [createHash('sha256'), createHash('sha256')]
  let slice = ''
  let [seq, head, bytes] = [0, FIRST_HASH, 0]
  for (const { time, type, by, data } of ended(records, endTime)) {
    const sealed = sealBatch([{ type, by, data, json: JSON.stringify(data) }], seq++, head, { time, key, nonce })
    add(written, sealed.records[0]!)
    head = sealed.head
    slice += `${sealed.lines[0]}\n`
    if (slice.length < READ_CHUNK_BYTES && type !== WHOLE) continue
    file.write(slice)
    bytes += slice.length
    slice = ''
    yield 0
  }
  const onlyThis = { find: (name: string) => name === key.name ? key : undefined }
  const steps = readInSteps(files, file.path, onlyThis, record => { add(read, record); onRecord(record) })
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) {
      if (written.digest('hex') === read.digest('hex')) return step.value
      throw new Error('what was written does not read back the same')
    }
    yield step.value.goodBytes / bytes
  }
}

function * ended(records: Iterable<Unnumbered>, time: string): Generator<Unnumbered, void, void> {
  let count = 0
  for (const record of records) {
    count++
    yield record
  }
  yield { time, type: WHOLE, by: null, data: { records: count } }
}

/** Without the key, which a rewrite changes. */
function add(hash: Hash, { seq, time, type, by, data }: JournalRecord): void {
  hash.update(JSON.stringify({ seq, time, type, by, data }))
}
