/**
 * Rewrites the journal of a folder that no service has into a new file, reads that back, and gives
 * it the name. Its first record names the old journal; its last says that it is whole.
 */
import { dirname, join } from 'node:path'
import { Failure } from '../../../errors.ts'
import type { FileJournal } from '../../../journal/file-journal.ts'
import { REWRITTEN, WHOLE, type JournalRecord } from '../../../journal/journal.ts'
import { readInSteps } from '../../../journal/recover.ts'
import type { State } from '../../../store/state.ts'
import { isExpired } from '../../../rights/rights.ts'
import { OperatorError } from '../../commands/command.ts'
import type { Ending } from '../../commands/signals.ts'
import { makeWhole } from '../../commands/whole-file.ts'
import { CONTINUATIONS, CONTINUED, type Continued } from '../commands/journal-files.ts'
import { ofFile } from '../system-error.ts'
import { checkpointOf, type Checkpoint } from './checkpoint.ts'
import { contentOf, writeJournal, type Content, type Unnumbered } from './write-journal.ts'

/**
 * The folder's lock is held, so nothing is appended. The journal is closed once it was rewritten.
 */
export interface Offline {
  readonly journal: FileJournal
  /** Takes the done share, 0 to 1. */
  readonly onProgress: (share: number) => void
  readonly ending: Ending
}

export interface Rewritten {
  readonly path: string
  readonly records: number
  readonly head: string
  readonly bytes: number
  /** Of the old journal. */
  readonly before: { readonly records: number; readonly head: string; readonly bytes: number }
  /** Names of keys that only an archive may need. */
  readonly unneeded: readonly string[]
  /** The file that keeps the old journal; null: none. */
  readonly archive: string | null
}

export function reencrypt(offline: Offline): Promise<Rewritten> {
  const { journal } = offline
  let reached = 0
  const records = function* (): Generator<Unnumbered, void, void> {
    for (const record of recordsOf(journal, bytes => {
      reached = bytes
    })) {
      // The count of the old file. The new file ends with one of its own.
      if (record.type !== WHOLE) yield asEarlier(record)
    }
  }
  const first = firstOf(journal, 're-encrypted')
  return replaced(offline, {
    first,
    records: records(),
    share: () => reached / journal.end.goodBytes
  })
}

/**
 * `keepsHistory` keeps the old journal as an archive. Not asynchronous, so that no waiting function
 * holds the state once it was written.
 */
export function compact(
  offline: Offline,
  state: State,
  keepsHistory: boolean,
  change: (made: Checkpoint) => Checkpoint = made => made
): Promise<Rewritten> {
  const { journal } = offline
  const { path, files, end } = journal
  if (end.records === 0) throw new OperatorError(`${path} has no records that could be compacted`)
  const earlier = continuations(journal)
  // `--drop-history` is the only way to lose the old journal.
  const archive = keepsHistory ? archiveOf(path, earlier, end.records) : undefined
  if (archive !== undefined && files.stat(archive) !== undefined) {
    throw new OperatorError(`${archive} exists already; move it away`)
  }
  const checkpoint = change(checkpointAt(state, journal))
  return replaced(
    offline,
    contentOf(firstOf(journal, 'compacted'), checkpoint, earlier.map(asEarlier)),
    archive
  )
}

async function replaced(
  { journal, onProgress, ending }: Offline,
  content: Content,
  archive?: string
): Promise<Rewritten> {
  const { files, path, keys, nonce, end: before } = journal
  try {
    const how = { files, key: keys.newest, nonce, onProgress }
    // The name goes to the new file only if lock, keys and old file are still what they were when
    // it was read.
    const options = {
      replaces: files.stat(path),
      keepsAs: archive,
      confirm: () => journal.assertWritable(),
      ending
    }
    const made = await makeWhole(files, path, part => writeJournal(part, content, how), options)
    return {
      path,
      records: made.records,
      head: made.head,
      bytes: made.goodBytes,
      archive: archive ?? null,
      unneeded: keys.names.filter(name => name !== keys.newest.name),
      before: { records: before.records, head: before.head, bytes: before.goodBytes }
    }
  } catch (error) {
    throw ofFile(error, path)
  } finally {
    onProgress(1)
  }
}

/** Names the journal before, so that a head of it that was noted is still found. */
export function firstOf(journal: FileJournal, why: Continued['why']): Unnumbered {
  const { head, records, time } = journal.end
  const data: Continued = { why, head, records, time }
  return { time: journal.time(), type: REWRITTEN, by: null, data }
}

/**
 * Without the tokens that were expired when the newest record was made, and are expired now. Only
 * both together prove that: a clock that is ahead at one of the two times ends no token.
 */
export function checkpointAt(state: State, journal: FileJournal): Checkpoint {
  const now = journal.time()
  const newest = journal.end.time ?? now
  return checkpointOf(
    state,
    token => !(isExpired(token, Date.parse(newest)) && isExpired(token, Date.parse(now)))
  )
}

/**
 * `journal.rewritten` is always the first record of a journal; of the journals before it stays the
 * other type.
 */
function asEarlier(record: JournalRecord): Unnumbered {
  return record.type === REWRITTEN ? { ...record, type: CONTINUED } : record
}

function* recordsOf(
  { files, path, keys, end: { goodBytes } }: FileJournal,
  onRead: (bytes: number) => void = () => {}
): Generator<JournalRecord, void, void> {
  let read: JournalRecord[] = []
  let reached = 0
  for (const found of readInSteps(
    files,
    path,
    keys,
    record => {
      read.push(record)
    },
    goodBytes
  )) {
    reached = found.goodBytes
    onRead(reached)
    yield* read
    read = []
  }
  if (reached !== goodBytes)
    throw new Failure('journal-damaged', `${path} ends before its last record`)
}

/** The records that name earlier journals, newest first. */
function continuations(journal: FileJournal): readonly JournalRecord[] {
  const found: JournalRecord[] = []
  for (const record of recordsOf(journal)) {
    if (!CONTINUATIONS.has(record.type)) break
    found.push(record)
  }
  return found
}

/** Numbers go on over all compactions, so archive names never collide. */
function archiveOf(path: string, earlier: readonly JournalRecord[], records: number): string {
  const before = earlier
    .map(({ data }) => data as Continued)
    .filter(({ why }) => why === 'compacted')
    .reduce((sum, { records }) => sum + records, 0)
  return join(dirname(path), `archive-${before + 1}-${before + records}.jsonl`)
}
