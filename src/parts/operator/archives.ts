/** Where a journal came from: the ends of those before it that it names, and the archives that join it there. */
import { resolve } from 'node:path'
import { Failure } from '../../errors.ts'
import { CONTINUATIONS, type Continued, type JournalRecord } from '../../journal/journal.ts'
import { locationOf } from '../../journal/open-file.ts'
import {
  OperatorError, UsageError, type Arguments, type Context, type JournalStatus, type OnRecord, type Option
} from '../command.ts'

/** An end that a journal names: of the one before it, or of one before that. */
export interface EarlierEnd extends Continued {
  /** When that was re-encrypted or compacted. */
  readonly ended: string
}

/** An archive that joins a journal. */
export interface Archive {
  readonly status: JournalStatus
  readonly end: EarlierEnd
}

export const ARCHIVE: { readonly archive: Option } = {
  archive: { value: 'FILE', help: 'the journal before a compaction, also; may be given again', repeats: true }
}

/** A head that was noted, if one is given. */
export function notedHead({ head }: Arguments['flags']): string | undefined {
  if (head === undefined || /^[0-9a-f]{64}$/.test(head as string)) return head as string | undefined
  throw new UsageError('--head must be 64 hexadecimal digits')
}

/** A file that is a journal, or a copy of one. */
export function fileStatus({ store }: Pick<Context, 'store'>, file: string): JournalStatus {
  const path = resolve(file)
  const stat = store.files.stat(path)
  if (stat === undefined) throw new OperatorError(`there is no file ${path}`)
  return { path, keyFile: locationOf(store.settings).keyFile, bytes: stat.bytes, file: stat }
}

/** What a record says of an earlier journal; only the first records of one that came from others say anything. */
export function earlierEnd(record: JournalRecord): EarlierEnd | undefined {
  return CONTINUATIONS.has(record.type) ? { ...record.data as Continued, ended: record.time } : undefined
}

const REWRITINGS = { compacted: 'compaction', 're-encrypted': 're-encryption', salvaged: 'salvage' } as const

/** How a sentence about the end of an earlier journal goes on. */
export function before({ why, ended }: EarlierEnd): string {
  return `before the ${REWRITINGS[why]} of ${ended}`
}

/**
 * Verifies the archives that were given, and that each ends where the journal says that an earlier one did; the oldest
 * comes first. `ends` are those that the journal names. Throws `archive-foreign`, and as reading a journal does.
 */
export async function joinArchives(
  context: Context, ends: readonly EarlierEnd[], onRecord: (path: string) => OnRecord = () => () => {}
): Promise<readonly Archive[]> {
  const found = new Map<number, Archive>()
  for (const file of (context.flags['archive'] ?? []) as readonly string[]) {
    const status = fileStatus(context, file)
    const { records, head, tornBytes } = await context.store.read(status, onRecord(status.path))
    const at = ends.findIndex(end => end.head === head && end.records === records)
    if (at < 0 || tornBytes > 0) {
      const what = `${status.path} ends with head ${head} after ${records} records`
      throw new Failure('archive-foreign', `${what}, where no journal ended that this one has come from`)
    }
    found.set(at, { status, end: ends[at]! })
  }
  return [...found].sort(([a], [b]) => b - a).map(([, archive]) => archive)
}

/** The journals to read one after the other: the archives that were given, if they join, and it itself. */
export async function withArchives(context: Context, status: JournalStatus): Promise<readonly JournalStatus[]> {
  if (context.flags['archive'] === undefined) return [status]
  const ends: EarlierEnd[] = []
  await context.store.read(status, record => {
    const end = earlierEnd(record)
    if (end !== undefined) ends.push(end)
  })
  return [...(await joinArchives(context, ends)).map(archive => archive.status), status]
}
