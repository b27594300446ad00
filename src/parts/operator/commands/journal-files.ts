import { Buffer } from 'node:buffer'
import { basename, dirname, resolve } from 'node:path'
import type { Files } from '../../../journal/files.ts'
import { isPartOf, locationOf } from '../../../journal/folder.ts'
import { REWRITTEN, type EncodedEvent, type JournalRecord } from '../../../journal/journal.ts'
import { FIRST_HASH } from '../../../journal/line.ts'
import { event } from '../../../store/events.ts'
import {
  OperatorError,
  UsageError,
  type Arguments,
  type OperatorCommand,
  type Context,
  type JournalStatus
} from '../../commands/command.ts'

/** Types of records that name the end of an earlier journal. */
export const CONTINUED = 'journal.continued'
export const CONTINUATIONS: ReadonlySet<string> = new Set([CONTINUED, REWRITTEN])

export interface Continued {
  readonly why: 're-encrypted' | 'compacted' | 'salvaged' | 'repaired'
  readonly head: string
  readonly records: number
  /** Null: the earlier journal had no record. */
  readonly time: string | null
  /** Of a salvage: the file, how many lines opened, which are lost (the first 1,000 places). */
  readonly source?: string
  readonly opened?: number
  readonly lost?: readonly LostLines[]
}

/** `to` null: of the newest lines, whose number is unknown. */
export interface LostLines {
  readonly from: number
  readonly to: number | null
  readonly bytes: number
}

export interface EarlierEnd extends Continued {
  readonly ended: string
}

/** Throws a `UsageError` unless it is 64 hexadecimal digits, and the head of some record. */
export function notedHead({ head }: Arguments['flags']): string | undefined {
  if (head === FIRST_HASH)
    throw new UsageError('--head is the head of an empty journal, and proves nothing of this one')
  if (head === undefined || /^[0-9a-f]{64}$/.test(head as string)) return head as string | undefined
  throw new UsageError('--head must be 64 hexadecimal digits')
}

/** Each id that is left out costs bytes of journal and memory. */
const MAX_NEXT_ID = 10_000_000
const LEFT_OUT_ROWS = 2_000

export const NEXT_ID: OperatorCommand['options'] = {
  'next-id': { value: 'N', help: 'give no id below this one to a new entry' }
}

/** 1 without the flag. Throws a `UsageError` unless it is an integer up to `MAX_NEXT_ID`. */
export function nextIdOf(flags: Arguments['flags']): number {
  const nextId = Number(flags['next-id'] ?? 1)
  if (Number.isSafeInteger(nextId) && nextId >= 1 && nextId <= MAX_NEXT_ID) return nextId
  throw new UsageError(`--next-id must be an integer from 1 to ${MAX_NEXT_ID}`)
}

export function* leavingOut(
  what: 'entries' | 'users',
  first: number,
  last: number
): Generator<EncodedEvent, void, void> {
  for (let from = first; from <= last; from += LEFT_OUT_ROWS) {
    const rows = Array.from({ length: Math.min(LEFT_OUT_ROWS, last - from + 1) }, () => null)
    yield what === 'entries'
      ? event('entries.kept', null, { first: from, entries: rows })
      : event('users.kept', null, { first: from, users: rows })
  }
}

/** Throws an `OperatorError` if there is no file. */
export function fileStatus({ store }: Pick<Context, 'store'>, file: string): JournalStatus {
  const path = resolve(file)
  const stat = store.files.stat(path)
  if (stat === undefined) throw new OperatorError(`there is no file ${path}`)
  return { path, keyFile: locationOf(store.settings).keyFile, bytes: stat.size, file: stat }
}

/** Throws an `OperatorError` for a name of files that a start removes. */
export function assertKept(
  { files, settings }: Pick<Context['store'], 'files' | 'settings'>,
  path: string
): void {
  const own = locationOf(settings).path
  if (files.real(dirname(path)) !== files.real(dirname(own)) || !isPartOf(own, basename(path)))
    return
  const what = "has the name of a killed command's left-over, which a start removes"
  throw new OperatorError(`${path} ${what}; name another file`)
}

const PACKED: readonly (readonly [bytes: string, name: string])[] = [
  ['1f8b', 'gzip'],
  ['28b52ffd', 'zstd'],
  ['fd377a58', 'xz'],
  ['425a68', 'bzip2'],
  ['504b0304', 'zip'],
  ['6167652d', 'age']
]

export function assertNotPacked(files: Files, path: string, what: string = 'a journal'): void {
  if (files.stat(path) === undefined) throw new OperatorError(`there is no file ${path}`)
  const start = Buffer.alloc(8)
  const descriptor = files.openToRead(path)
  try {
    if (files.stat(path)?.isFile() === true) files.readAt(descriptor, start, 0)
  } finally {
    files.close(descriptor)
  }
  const packed = packedAs(start)
  if (packed !== undefined)
    throw new OperatorError(`${path} is not ${what}: ${packed}; unpack it first`)
}

/** Undefined: not packed. */
export function packedAs(start: Buffer): string | undefined {
  const digits = start.toString('hex', 0, 8)
  return PACKED.find(([bytes]) => digits.startsWith(bytes))?.[1]
}

/** Undefined unless it is one of the first records of a rewritten journal. */
export function earlierEnd(record: JournalRecord): EarlierEnd | undefined {
  return CONTINUATIONS.has(record.type)
    ? { ...(record.data as Continued), ended: record.time }
    : undefined
}

export function sealingKeys(lines: string): readonly string[] {
  return [
    ...new Set(Array.from(lines.matchAll(/,"key":"([0-9a-f]{8})","sealed":"/g), ([, key]) => key!))
  ]
}
