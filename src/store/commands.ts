/** The changes of entries (contract §4.3 to §4.5), and restoration. */
import { Buffer } from 'node:buffer'
import { Failure } from '../errors.ts'
import { MAX_ENTRY_BYTES } from '../limits.ts'
import {
  changedEntry, ENTRY_FIELDS, entryOf, hasMore, type Entry, type EntryChanges, type EntryFields
} from './entry.ts'
import { event } from './events.ts'
import type { Session } from './session.ts'
import type { Draft } from './state.ts'
import type { Commits } from './store.ts'

export type Precondition = (entry: Entry, tag: () => string) => boolean

/** Rejects with `entry-too-large`. */
export function createEntry(commits: Commits, fields: EntryFields, by: Session | null): Promise<Entry> {
  return commits.commit(draft => {
    const entry = entryOf(draft.size + 1, fields, 1)
    assertFits(entry)
    const { status, ...made } = entry
    return [[event(hasMore(made) ? 'fields.created' : 'entry.created', by?.user ?? null, made)], entry]
  }, by, lengthOf(fields))
}

/** As `createEntry` and `deleteEntry`; undefined for an unknown id. */
export function updateEntry(
  commits: Commits, id: number, fields: EntryChanges, by: Session | null, isExpected?: Precondition
): Promise<Entry | undefined> {
  return commits.commit(draft => {
    const old = expectedEntry(draft, id, isExpected)
    const changed = ENTRY_FIELDS.filter(field => fields[field] !== undefined && fields[field] !== (old?.[field] ?? ''))
    if (old === undefined || changed.length === 0) return [[], old]
    const changes: EntryChanges = Object.fromEntries(changed.map(field => [field, fields[field]]))
    const entry = changedEntry(old, changes)
    assertFits(entry)
    const type = hasMore(changes) ? 'fields.updated' : 'entry.updated'
    return [[event(type, by?.user ?? null, { id, ...changes })], entry]
  }, by, lengthOf(fields))
}

/** False for an unknown id. Rejects with `entry-changed` if it is not as expected. */
export function deleteEntry(
  commits: Commits, id: number, by: Session | null, isExpected?: Precondition
): Promise<boolean> {
  return setStatus(commits, 'entry.deleted', 0, id, by, isExpected)
}

/** As `deleteEntry`. */
export function restoreEntry(
  commits: Commits, id: number, by: Session | null, isExpected?: Precondition
): Promise<boolean> {
  return setStatus(commits, 'entry.restored', 1, id, by, isExpected)
}

function setStatus(
  commits: Commits, type: 'entry.deleted' | 'entry.restored', status: Entry['status'], id: number,
  by: Session | null, isExpected: Precondition | undefined
): Promise<boolean> {
  return commits.commit(draft => {
    const old = expectedEntry(draft, id, isExpected)
    const isChange = old !== undefined && old.status !== status
    return [isChange ? [event(type, by?.user ?? null, { id })] : [], old !== undefined]
  }, by)
}

function expectedEntry(draft: Draft, id: number, isExpected: Precondition = () => true): Entry | undefined {
  const entry = draft.get(id)
  if (entry === undefined || isExpected(entry, () => draft.tagOf(entry))) return entry
  throw new Failure('entry-changed', `entry ${id}`)
}

/** In UTF-16 units. */
function lengthOf(fields: EntryChanges): number {
  let length = 0
  for (const field of ENTRY_FIELDS) length += fields[field]?.length ?? 0
  return length
}

/** The most bytes of JSON for a UTF-16 unit, and for id and names. */
const [UNIT_BYTES, OTHER_BYTES] = [6, 1024]

/** A larger entry could not be exported or imported. */
function assertFits(entry: Entry): void {
  if (lengthOf(entry) * UNIT_BYTES + OTHER_BYTES <= MAX_ENTRY_BYTES) return
  if (Buffer.byteLength(JSON.stringify(entry)) <= MAX_ENTRY_BYTES) return
  throw new Failure('entry-too-large', `it may have ${MAX_ENTRY_BYTES} bytes as JSON`)
}
