/** Files that are journals or copies of them: what they are, which keys they need, which earlier journals they name. */
import { Buffer } from 'node:buffer'
import { resolve } from 'node:path'
import type { Files } from '../../journal/files.ts'
import { locationOf } from '../../journal/folder.ts'
import { REWRITTEN, type JournalRecord } from '../../journal/journal.ts'
import { OperatorError, UsageError, type Arguments, type Context, type JournalStatus } from '../command.ts'

/** The types of records that name the end of a journal before. */
export const CONTINUED = 'journal.continued'
export const CONTINUATIONS: ReadonlySet<string> = new Set([CONTINUED, REWRITTEN])

/** What such a record says of the journal before. */
export interface Continued {
  readonly why: 're-encrypted' | 'compacted' | 'salvaged' | 'repaired'
  /** Its last line's hash, how many records it had, and when the last one was recorded, if there was one. */
  readonly head: string
  readonly records: number
  readonly time: string | null
  /**
   * Of a salvaged one: its file, the archive that took the place of its checkpoint, how many lines were opened, which
   * are lost (the first 1,000 places).
   */
  readonly source?: string
  readonly archive?: string
  readonly opened?: number
  readonly lost?: readonly LostLines[]
}

/** Lines that could not be opened; `to` is null for the newest, of which it is not known how many there were. */
export interface LostLines {
  readonly from: number
  readonly to: number | null
  /** How many bytes are in their place. */
  readonly bytes: number
}

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

/** What files begin with that a journal may have been packed into. */
const PACKED: readonly (readonly [bytes: string, name: string])[] = [
  ['1f8b', 'gzip'], ['28b52ffd', 'zstd'], ['fd377a58', 'xz'], ['425a68', 'bzip2'], ['504b0304', 'zip'],
  ['6167652d', 'age']
]

/** Throws an `OperatorError` that says what a file is, if it is a packed one. */
export function assertNotPacked(files: Files, path: string, what: string = 'a journal'): void {
  if (files.stat(path) === undefined) throw new OperatorError(`there is no file ${path}`)
  const start = Buffer.alloc(8)
  const descriptor = files.openToRead(path)
  try {
    if (files.stat(path)?.isFile === true) files.readAt(descriptor, start, 0)
  } finally {
    files.close(descriptor)
  }
  const packed = packedAs(start)
  if (packed !== undefined) throw new OperatorError(`${path} is not ${what}: ${packed}; unpack it first`)
}

/** What a file that begins so was packed with; undefined: nothing. */
export function packedAs(start: Buffer): string | undefined {
  const digits = start.toString('hex', 0, 8)
  return PACKED.find(([bytes]) => digits.startsWith(bytes))?.[1]
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

/** The names of the keys that have sealed some lines, each once. */
export function sealingKeys(lines: string): readonly string[] {
  return [...new Set(Array.from(lines.matchAll(/,"key":"([0-9a-f]{8})","sealed":"/g), ([, key]) => key!))]
}
