/** What is asked of entries: the contract's three changes (contract §4.3 to §4.5), and the way back from a deletion. */
import { Buffer } from 'node:buffer'
import { Failure } from '../errors.ts'
import { MAX_ENTRY_BYTES } from '../limits.ts'
import {
  changedEntry, ENTRY_FIELDS, entryOf, entryText, hasMore, type Entry, type EntryChanges, type EntryFields
} from './entry.ts'
import { event } from './events.ts'
import type { Session } from './session.ts'
import type { Draft } from './state.ts'
import type { Commits } from './store.ts'

/** Whether an entry is still what a caller takes it for; `tag` gives its tag. */
export type Precondition = (entry: Entry, tag: () => string) => boolean

/** Creates an active entry and returns it. */
export function createEntry(commits: Commits, fields: EntryFields, by: Session | null): Promise<Entry> {
  return commits.commit(draft => {
    const entry = entryOf(draft.size + 1, fields, 1)
    assertFits(entry)
    const { status, ...made } = entry
    return [[event(hasMore(made) ? 'fields.created' : 'entry.created', by?.user ?? null, made)], entry]
  }, by, lengthOf(fields))
}

/** Changes the given fields of an entry and returns it as changed; otherwise as `deleteEntry`. */
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

/** Marks an entry as deleted; false for an unknown id. Rejects with `entry-changed` if it is not as expected. */
export function deleteEntry(
  commits: Commits, id: number, by: Session | null, isExpected?: Precondition
): Promise<boolean> {
  return setStatus(commits, 'entry.deleted', 0, id, by, isExpected)
}

/** Makes a deleted entry active again; otherwise as `deleteEntry`. */
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

/** A UTF-16 unit takes at most as many bytes as JSON, and id and names at most these. */
const [UNIT_BYTES, OTHER_BYTES] = [6, 1024]

/** Throws `entry-too-large` if an entry could not be exported, or imported, any more. */
function assertFits(entry: Entry): void {
  if (lengthOf(entry) * UNIT_BYTES + OTHER_BYTES <= MAX_ENTRY_BYTES) return
  if (Buffer.byteLength(entryText(entry)) <= MAX_ENTRY_BYTES) return
  throw new Failure('entry-too-large', `it may have ${MAX_ENTRY_BYTES} bytes as JSON`)
}
