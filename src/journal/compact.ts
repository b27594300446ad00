/** The journal again from a checkpoint: the state in the place of all that led to it. */
import { dirname, basename, join } from 'node:path'
import { Failure } from '../errors.ts'
import type { Files } from '../disk/files.ts'
import { hasNoLinks } from '../disk/whole-file.ts'
import { CONTINUED, type Checkpoint, type Continued, type JournalRecord } from './journal.ts'
import type { Recovered } from './recover.ts'
import { continued, recordsOf, replaceJournal, type ReplaceOptions } from './reencrypt.ts'

/** Writes the journal again; gives what it holds, and the path of the archive that the old file has become. */
export async function compactJournal(
  options: ReplaceOptions, checkpoint: Checkpoint, keepsHistory: boolean
): Promise<Recovered & { readonly archive?: string | undefined }> {
  const { path, files, time, from } = options
  if (from.records === 0) throw new Failure('input-invalid', `${path} has no records that could be compacted`)
  const earlier = continuations(options)
  const archive = keepsHistory ? archiveOf(path, earlier, from.records) : undefined
  if (archive !== undefined && files.stat(archive) !== undefined) {
    throw new Failure('input-invalid', `${archive} exists already; move it away`)
  }
  const records = function * (): Generator<Omit<JournalRecord, 'seq'>> {
    yield continued('compacted', options)
    yield * earlier
    for (const event of checkpoint.events) yield { ...event, time }
  }
  try {
    const made = await replaceJournal(options, { ...checkpoint, records: records(), keepsAs: archive })
    return { ...made, archive }
  } catch (error) {
    if (archive === undefined || !hasNoLinks(error)) throw error
    const why = 'its file system gives a file no second name; back it up, and compact it with --drop-history'
    throw new Failure('write-failed', `${path} cannot be kept as an archive: ${why}`, { cause: error })
  }
}

/** The records that a journal begins with which tell of those before it, the newest first. */
function continuations(options: ReplaceOptions): readonly JournalRecord[] {
  const found: JournalRecord[] = []
  for (const record of recordsOf(options)) {
    if (record.type !== CONTINUED) break
    found.push(record)
  }
  return found
}

/** `journal-FIRST-LAST.jsonl`: over all compactions the numbers go on, so no two archives have one name. */
function archiveOf(path: string, earlier: readonly JournalRecord[], records: number): string {
  const before = earlier.map(({ data }) => data as Continued).filter(({ why }) => why === 'compacted')
    .reduce((sum, { records }) => sum + records, 0)
  return join(dirname(path), `${stemOf(path)}-${before + 1}-${before + records}.jsonl`)
}

/**
 * The name that a compaction which was killed has given the journal: its file is the journal still, and was to become
 * an archive.
 */
export function halfArchive(files: Files, path: string): string | undefined {
  const stat = files.stat(path)
  if (stat?.links !== 2) return undefined
  const start = `${stemOf(path)}-`
  const isArchive = (name: string): boolean =>
    name.startsWith(start) && /^\d+-\d+\.jsonl$/.test(name.slice(start.length))
  return files.list(dirname(path)).filter(isArchive).map(name => join(dirname(path), name)).find(name => {
    const other = files.stat(name)
    return other?.inode === stat.inode && other.device === stat.device
  })
}

function stemOf(path: string): string { return basename(path).replace(/\.jsonl$/, '') }
