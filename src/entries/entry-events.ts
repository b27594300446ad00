/** The events of entries, and their effects. */
import type { JournalRecord } from '../journal/journal.ts'
import { authorOf, namedIn } from '../knowledge/knowledge-events.ts'
import type { Knower } from '../knowledge/knowledge.ts'
import {
  assertNext,
  known,
  type Id,
  type Reduce,
  type Slice,
  type Tables
} from '../store/events.ts'
import {
  changedEntry,
  ENTRY_FIELDS,
  entryOf,
  REQUIRED_FIELDS,
  type Entry,
  type EntryChanges,
  type EntryFields,
  type EntryRow
} from './entry.ts'

/** Times are ISO 8601; `changed`: when the password was set. */
export type KeptRow = EntryRow & {
  readonly changed?: string | undefined
  readonly deleted?: string | undefined
  readonly deletedBy?: Knower | undefined
}

interface Rows<R> {
  readonly first: number
  readonly entries: readonly R[]
}

/**
 * A record with fields beyond the contract's three has the type `fields.…`: versions that would
 * drop those fields refuse it.
 */
export interface EntryEvents {
  'entry.created': Id & EntryFields
  'fields.created': Id & EntryFields
  'entry.updated': Id & EntryChanges
  'fields.updated': Id & EntryChanges
  'entry.deleted': Id
  'entry.restored': Id
  /** All values were removed; the id stays unknown. */
  'entry.purged': Id
  /** All in one record, since a record is whole or missing. */
  'entries.imported': Rows<EntryRow>
  'fields.imported': Rows<EntryRow>
  /** Kept by a compaction; null for purged entries. */
  'entries.kept': Rows<EntryRow | null>
  'fields.kept': Rows<KeptRow | null>
}

const ROWS = ['first', 'entries'] as const
const FIRST_ROW = [...REQUIRED_FIELDS, 'status']

function put(tables: Tables, entry: Entry, old?: Entry, setMs?: number, by?: Knower): void {
  const { entries, knowledge } = tables
  knowledge.put(entry, old, by)
  entries.set(entry, setMs)
}

function purge({ entries, knowledge, deletions }: Tables, id: number): void {
  const old = entries.get(id)
  if (old !== undefined) knowledge.purge(old)
  deletions.delete(id)
  entries.delete(id)
}

const created: Reduce<EntryEvents['entry.created']> = (tables, data, timeMs, by) => {
  assertNext(tables.entries, data.id)
  put(tables, entryOf(data.id, data, 1), undefined, timeMs, authorOf(tables.knowledge, data, by))
}
const updated: Reduce<EntryEvents['entry.updated']> = (tables, data, timeMs, by) => {
  const old = known(tables.entries, data.id)
  const setMs = data.password === undefined ? undefined : timeMs
  put(tables, changedEntry(old, data), old, setMs, authorOf(tables.knowledge, data, by))
}
const imported: Reduce<EntryEvents['entries.imported']> = (tables, data, timeMs, by) => {
  const { first, entries: rows } = data
  assertNext(tables.entries, first)
  const author = authorOf(tables.knowledge, data, by)
  for (const [i, row] of rows.entries())
    put(tables, entryOf(first + i, row, row.status), undefined, timeMs, author)
  // These passwords came from elsewhere.
  if (rows.length > 0) tables.knowledge.tellOthers([[first, first + rows.length - 1]], timeMs)
}
const kept: Reduce<EntryEvents['fields.kept']> = (tables, { first, entries: rows }) => {
  assertNext(tables.entries, first)
  for (const [i, row] of rows.entries()) {
    const id = first + i
    if (row === null) {
      purge(tables, id)
      continue
    }
    const { changed, deleted, deletedBy, status } = row
    put(
      tables,
      entryOf(id, row, status),
      undefined,
      changed === undefined ? undefined : Date.parse(changed),
      undefined
    )
    if (deleted !== undefined) tables.deletions.set(id, { ms: Date.parse(deleted), by: deletedBy })
  }
}
const deleted: Reduce<Id> = (tables, data, timeMs, by) => {
  const old = known(tables.entries, data.id)
  put(tables, { ...old, status: 0 }, old)
  if (old.status === 1) tables.deletions.set(data.id, { ms: timeMs, by: namedIn(data, by) })
}
const restored: Reduce<Id> = (tables, { id }) => {
  const old = known(tables.entries, id)
  put(tables, { ...old, status: 1 }, old)
  tables.deletions.delete(id)
}

const TYPES: Slice<EntryEvents>['types'] = {
  'entry.created': { fields: ['id', ...REQUIRED_FIELDS], reduce: created },
  'fields.created': { fields: ['id', ...ENTRY_FIELDS], reduce: created },
  'entry.updated': { fields: ['id', ...REQUIRED_FIELDS], reduce: updated },
  'fields.updated': { fields: ['id', ...ENTRY_FIELDS], reduce: updated },
  'entry.deleted': { fields: ['id'], reduce: deleted },
  'entry.restored': { fields: ['id'], reduce: restored },
  'entry.purged': {
    fields: ['id'],
    reduce: (tables, { id }) => purge(tables, known(tables.entries, id).id)
  },
  'entries.imported': { fields: ROWS, rows: ['entries', FIRST_ROW], reduce: imported },
  'fields.imported': {
    fields: ROWS,
    rows: ['entries', [...ENTRY_FIELDS, 'status']],
    reduce: imported
  },
  'entries.kept': { fields: ROWS, rows: ['entries', FIRST_ROW], reduce: kept },
  'fields.kept': {
    fields: ROWS,
    rows: ['entries', [...ENTRY_FIELDS, 'status', 'changed', 'deleted', 'deletedBy']],
    reduce: kept
  }
}

export const ENTRY_EVENTS: Slice<EntryEvents> = {
  types: TYPES,
  isInDrafts: true,
  changesRights: false
}

/** Undefined if the record is not about the entry; no fields for a deletion. */
export function changesIn({ type, data }: JournalRecord, id: number): EntryChanges | undefined {
  if (!Object.hasOwn(TYPES, type)) return undefined
  if (TYPES[type as keyof EntryEvents].rows !== undefined) {
    const { first, entries } = data as EntryEvents['entries.kept']
    return entries[id - first] ?? undefined
  }
  return (data as Id).id === id ? (data as EntryChanges) : undefined
}
