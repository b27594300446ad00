/**
 * Writing a whole journal again: into a new file beside it, which is read back and compared, and then takes its name.
 * It begins with a record that says what it was written from, and ends with one that says that it is whole.
 */
import { basename, dirname, join } from 'node:path'
import { Failure } from '../../errors.ts'
import {
  CONTINUED, CONTINUATIONS, REWRITTEN, WHOLE, type Continued, type DurableJournal, type JournalRecord
} from '../../journal/journal.ts'
import { readInSteps, type Recovered } from '../../journal/recover.ts'
import { hasNoLinks, makeWhole, type NewFile } from '../whole-file.ts'
import type { Checkpoint } from './checkpoint.ts'
import { replaceFile, type QuietFile } from './quiet-file.ts'
import { writeJournal, type Unnumbered } from './write-journal.ts'

/** How a journal is written again. */
export interface Rewrite {
  /** What takes the place of all records (a compaction); undefined: they are sealed again with the newest key. */
  readonly checkpoint?: Checkpoint
  /** Whether the journal before a compaction stays as an archive. */
  readonly keepsHistory?: boolean
  /** Gets the share that is done, 0 to 1. */
  readonly onProgress: (share: number) => void
  /** Throws where nobody waits for it any more. */
  readonly assertWanted: () => void
}

/** What a journal is once it was written again. */
export interface Rewritten {
  readonly records: number
  readonly head: string
  readonly bytes: number
  /** Of the journal before. */
  readonly before: { readonly records: number, readonly head: string, readonly bytes: number }
  /** The names of the keys that the journal no longer needs; an archive may. */
  readonly unneeded: readonly string[]
  /** The file that the journal before is kept in. */
  readonly archive: string | undefined
}

/**
 * Writes a journal again; `rewriteOf` says how, once nothing is appended any more. When it fails, or is not wanted any
 * more, the old file is as it was. Other requests are served after each slice of bytes.
 */
export async function rewriteJournal(
  journal: DurableJournal, rewriteOf: (file: QuietFile) => Rewrite
): Promise<Rewritten> {
  let rewritten: Rewritten | undefined
  await replaceFile(journal, async file => {
    const rewrite = rewriteOf(file)
    rewrite.assertWanted()
    const { made, archive } = await replaced(file, rewrite)
    const { end, keys: { names, newest } } = file
    rewritten = {
      records: made.records, head: made.head, bytes: made.goodBytes, archive,
      unneeded: names.filter(name => name !== newest.name),
      before: { records: end.records, head: end.head, bytes: end.goodBytes }
    }
    return { end: { ...made, time: file.time }, first: { seq: 1, ...firstOf(file, rewrite) } }
  })
  return rewritten!
}

async function replaced(
  file: QuietFile, rewrite: Rewrite
): Promise<{ readonly made: Recovered, readonly archive: string | undefined }> {
  const { path, files, end } = file
  const replaces = files.stat(path)
  if (end.records === 0 && rewrite.checkpoint !== undefined) {
    throw new Failure('input-invalid', `${path} has no records that could be compacted`)
  }
  const earlier = rewrite.checkpoint === undefined ? [] : continuations(file)
  const keeps = rewrite.checkpoint !== undefined && rewrite.keepsHistory === true
  const archive = keeps ? archiveOf(path, earlier, end.records) : undefined
  if (archive !== undefined && files.stat(archive) !== undefined) {
    throw new Failure('input-invalid', `${archive} exists already; move it away`)
  }
  try {
    const made = await makeWhole(files, path, part => writeAndCompare(part, file, rewrite, earlier),
      { replaces, keepsAs: archive, confirm: file.confirm })
    return { made, archive }
  } catch (error) {
    if (archive === undefined || !hasNoLinks(error)) throw error
    const why = 'its file system gives a file no second name; back it up, and compact it with --drop-history'
    throw new Failure('write-failed', `${path} cannot be kept as an archive: ${why}`, { cause: error })
  }
}

async function writeAndCompare(
  part: NewFile, file: QuietFile, rewrite: Rewrite, earlier: readonly JournalRecord[]
): Promise<Recovered> {
  const { checkpoint, onProgress, assertWanted } = rewrite
  const endSlice = async (share: number): Promise<void> => {
    onProgress(share)
    await new Promise(resolve => setImmediate(resolve))
    assertWanted()
  }
  const { files, keys: { newest: key }, nonce, time, end: { goodBytes } } = file
  let reached = 0
  const records = newRecords(file, rewrite, earlier, at => { reached = at })
  const onRecord = (record: JournalRecord): void => checkpoint?.apply(record)
  const steps = writeJournal(part, records, { files, key, nonce, time, onRecord })
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) {
      for (const _ of checkpoint?.compare() ?? []) await endSlice(1)
      return step.value
    }
    await endSlice(((checkpoint?.share() ?? reached / goodBytes) + step.value) / 2)
  }
}

/** The record that says what the journal was. */
function firstOf({ end: { records, head, time: ended }, time }: QuietFile, { checkpoint }: Rewrite): Unnumbered {
  const why = checkpoint === undefined ? 're-encrypted' : 'compacted'
  const data: Continued = { why, head, records, time: ended }
  return { time, type: REWRITTEN, by: null, data }
}

/** The first record says what this is; behind it is every record of the old journal, or the checkpoint. */
function * newRecords(
  file: QuietFile, rewrite: Rewrite, earlier: readonly JournalRecord[], onRead: (bytes: number) => void
): Generator<Unnumbered, void, void> {
  const { time } = file
  yield firstOf(file, rewrite)
  if (rewrite.checkpoint === undefined) {
    for (const record of recordsOf(file, onRead)) if (record.type !== WHOLE) yield asEarlier(record)
    return
  }
  for (const record of earlier) yield asEarlier(record)
  for (const event of rewrite.checkpoint.events) yield { ...event, time }
}

/** A record of a journal before as it is in this one, which has one beginning of its own. */
function asEarlier(record: JournalRecord): Unnumbered {
  return record.type === REWRITTEN ? { ...record, type: CONTINUED } : record
}

/** The records of a journal, verified as they are read. */
function * recordsOf(
  { files, path, keys, end: { goodBytes } }: QuietFile, onRead: (bytes: number) => void = () => {}
): Generator<JournalRecord, void, void> {
  let read: JournalRecord[] = []
  let reached = 0
  for (const found of readInSteps(files, path, keys, record => { read.push(record) }, goodBytes)) {
    reached = found.goodBytes
    onRead(reached)
    yield * read
    read = []
  }
  if (reached !== goodBytes) throw new Failure('journal-damaged', `${path} ends before its last record`)
}

/** The records at a journal's beginning that name the journals before it, the newest first. */
function continuations(file: QuietFile): readonly JournalRecord[] {
  const found: JournalRecord[] = []
  for (const record of recordsOf(file)) {
    if (!CONTINUATIONS.has(record.type)) break
    found.push(record)
  }
  return found
}

/** `journal-FIRST-LAST.jsonl`: over all compactions the numbers go on, so no two archives have one name. */
function archiveOf(path: string, earlier: readonly JournalRecord[], records: number): string {
  const before = earlier.map(({ data }) => data as Continued).filter(({ why }) => why === 'compacted')
    .reduce((sum, { records }) => sum + records, 0)
  const stem = basename(path).replace(/\.jsonl$/, '')
  return join(dirname(path), `${stem}-${before + 1}-${before + records}.jsonl`)
}
