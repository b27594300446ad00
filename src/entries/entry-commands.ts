/** The changes of entries (contract §4.3 to §4.5), and restoration. */
import { Buffer } from 'node:buffer'
import { Failure } from '../errors.ts'
import { MAX_ENTRY_BYTES } from '../limits.ts'
import {
  changedEntry,
  ENTRY_FIELDS,
  entryOf,
  hasMore,
  type Entry,
  type EntryChanges,
  type EntryFields
} from './entry.ts'
import { assertSettable } from './entry-shapes.ts'
import type { EncodedEvent } from '../journal/journal.ts'
import { told, type Reader } from '../knowledge/disclosure.ts'
import { event } from '../store/events.ts'
import type { Draft } from '../store/state.ts'
import type { Commits } from '../store/store.ts'
import { invalid, sees, type Groups, type Session } from '../rights/rights.ts'

export type Precondition = (entry: Entry, tag: () => string) => boolean

/**
 * In the only group of `by`, if it has one and none is given. Rejects with `entry-too-large`, and
 * with `input-invalid` for a group out of sight.
 */
export function createEntry(
  commits: Commits,
  fields: EntryFields,
  by: Session | null
): Promise<Entry> {
  return commits.commit(
    draft => {
      const [only, ...others] = by?.groups ?? []
      const grupo = grupoOf(
        draft,
        fields.grupo || (others.length === 0 ? only : undefined),
        by?.groups
      )
      const entry = entryOf(draft.size + 1, grupo === undefined ? fields : { ...fields, grupo }, 1)
      assertFits(entry)
      const { status, ...made } = entry
      return [
        [event(hasMore(made) ? 'fields.created' : 'entry.created', by?.user ?? null, made)],
        entry
      ]
    },
    by,
    lengthOf(fields)
  )
}

interface UpdateOptions {
  readonly isExpected?: Precondition | undefined
  readonly mayMove?: boolean
  readonly tells?: { readonly reader: Reader; readonly operation: string }
}

/**
 * As `createEntry` and `deleteEntry`; undefined for an unknown id. Rejects with `move-forbidden` if
 * the group would be another one and `mayMove` is false.
 */
export function updateEntry(
  commits: Commits,
  id: number,
  given: EntryChanges,
  by: Session | null,
  { isExpected, mayMove = true, tells }: UpdateOptions = {}
): Promise<Entry | undefined> {
  return commits.commit(
    draft => {
      const tell = (): readonly EncodedEvent[] =>
        tells === undefined ? [] : told(commits.state, draft, tells.reader, tells.operation, id)
      const old = expectedEntry(draft, id, by, isExpected)
      if (old === undefined) return [[], undefined]
      const fields =
        given.grupo === undefined
          ? given
          : { ...given, grupo: grupoOf(draft, given.grupo, by?.groups) ?? '' }
      const changed = ENTRY_FIELDS.filter(
        field => fields[field] !== undefined && fields[field] !== (old[field] ?? '')
      )
      if (changed.length === 0) return [tell(), old]
      if (!mayMove && changed.includes('grupo')) throw new Failure('move-forbidden', `entry ${id}`)
      const changes: EntryChanges = Object.fromEntries(changed.map(field => [field, fields[field]]))
      assertSettable(changes)
      const entry = changedEntry(old, changes)
      assertFits(entry)
      const type = hasMore(changes) ? 'fields.updated' : 'entry.updated'
      const set = event(type, by?.user ?? null, { id, ...changes })
      // whoever sets a password knows it
      return [changed.includes('password') ? [set] : [set, ...tell()], entry]
    },
    by,
    lengthOf(given)
  )
}

/**
 * False for an unknown id, and for one out of sight of `by`. Rejects with `entry-changed` if it is
 * not as expected.
 */
export function deleteEntry(
  commits: Commits,
  id: number,
  by: Session | null,
  isExpected?: Precondition
): Promise<boolean> {
  return setStatus(commits, 'entry.deleted', 0, id, by, isExpected)
}

/** As `deleteEntry`. */
export function restoreEntry(
  commits: Commits,
  id: number,
  by: Session | null,
  isExpected?: Precondition
): Promise<boolean> {
  return setStatus(commits, 'entry.restored', 1, id, by, isExpected)
}

function setStatus(
  commits: Commits,
  type: 'entry.deleted' | 'entry.restored',
  status: Entry['status'],
  id: number,
  by: Session | null,
  isExpected: Precondition | undefined
): Promise<boolean> {
  return commits.commit(draft => {
    const old = expectedEntry(draft, id, by, isExpected)
    const isChange = old !== undefined && old.status !== status
    return [isChange ? [event(type, by?.user ?? null, { id })] : [], old !== undefined]
  }, by)
}

/**
 * Judged in the turn of the change, since an earlier change may have moved the entry. Out of sight
 * is unknown.
 */
function expectedEntry(
  draft: Draft,
  id: number,
  by: Session | null,
  isExpected: Precondition = () => true
): Entry | undefined {
  const entry = draft.get(id)
  if (entry === undefined || !sees(by?.groups, entry.grupo)) return undefined
  if (isExpected(entry, () => draft.tagOf(entry))) return entry
  throw new Failure('entry-changed', `entry ${id}`)
}

/**
 * As the journal spells it; undefined for an empty text. Throws `input-invalid` for a group out of
 * sight.
 */
function grupoOf(draft: Draft, given: string | undefined, groups: Groups): string | undefined {
  const grupo = given ? draft.names.spelled(given, 'grupo') : undefined
  if (sees(groups, grupo)) return grupo
  const one =
    groups!.length === 0 ? 'a group of yours, and you have none' : `one of ${groups!.join(', ')}`
  throw invalid('grupo', `The grupo field must be ${one}.`)
}

/** In UTF-16 units. */
function lengthOf(fields: EntryChanges): number {
  let length = 0
  for (const field of ENTRY_FIELDS) length += fields[field]?.length ?? 0
  return length
}

/** The most bytes of JSON for a UTF-16 unit; and for id and names. */
const [UNIT_BYTES, OTHER_BYTES] = [6, 1024]

/** A larger entry could not be exported or imported. */
function assertFits(entry: Entry): void {
  if (lengthOf(entry) * UNIT_BYTES + OTHER_BYTES <= MAX_ENTRY_BYTES) return
  if (Buffer.byteLength(JSON.stringify(entry)) <= MAX_ENTRY_BYTES) return
  throw new Failure('entry-too-large', `it may have ${MAX_ENTRY_BYTES} bytes as JSON`)
}
