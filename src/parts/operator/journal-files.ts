/** Files that are journals or copies of them, and the ends of earlier journals that they name. */
import { resolve } from 'node:path'
import { CONTINUATIONS, type Continued, type JournalRecord } from '../../journal/journal.ts'
import { locationOf } from '../../journal/folder.ts'
import { OperatorError, UsageError, type Arguments, type Context, type JournalStatus } from '../command.ts'

/** An end that a journal names: of the one before it, or of one before that. */
export interface EarlierEnd extends Continued {
  /** When that was re-encrypted or compacted. */
  readonly ended: string
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

const REWRITINGS = {
  compacted: 'compaction', 're-encrypted': 're-encryption', salvaged: 'salvage', repaired: 'repair'
} as const

/** How a sentence about the end of an earlier journal goes on. */
export function before({ why, ended }: EarlierEnd): string {
  return `before the ${REWRITINGS[why]} of ${ended}`
}
