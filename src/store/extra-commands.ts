/** Changes beyond the contract, for parts: what they record, and how many bytes that takes. */
import { Buffer } from 'node:buffer'
import type { JournalRecord } from '../journal/journal.ts'
import type { EntryChanges, EntryRow } from './entry.ts'
import { OPERATOR, type Events } from './events.ts'
import type { Session } from './session.ts'
import { event } from './state.ts'
import { bytesOf, expectedEntry, type Precondition, type Store } from './store.ts'

/** Makes a deleted entry active again; false for an unknown id. */
export function restoreEntry(
  store: Store, id: number, by: Session | null, isExpected?: Precondition
): Promise<boolean> {
  return store.commit(state => {
    const old = expectedEntry(state, id, isExpected)
    const restoration = old?.status === 0 ? event('entry.restored', by?.user ?? null, { id: old.id }) : undefined
    return { event: restoration, outcome: () => old !== undefined, heldBytes: bytesOf(old) }
  }, by)
}

/** Removes every value of an entry: its id stays unknown from then on. False for an unknown id. */
export function purgeEntry(store: Store, id: number): Promise<boolean> {
  return store.commit(({ entries }) => {
    const old = entries.get(id)
    return { event: old && event('entry.purged', null, { id: old.id }), outcome: () => old !== undefined }
  })
}

/** Creates entries, all of them or none, and returns the id of the first; the others follow it. */
export function importEntries(store: Store, entries: readonly EntryRow[], by: number | null): Promise<number> {
  return store.commit(state => {
    const first = state.entries.size + 1
    return {
      event: entries.length > 0 ? event('entries.imported', by, { first, entries }) : undefined,
      outcome: () => first
    }
  })
}

/** What an imported entry takes in a record, bytes. */
export function importedBytes(entry: EntryRow): number { return Buffer.byteLength(JSON.stringify(entry)) + 1 }

/** Records that the operator was shown passwords. */
export function recordDisclosure(store: Store, disclosure: Events['entries.disclosed']): Promise<void> {
  return store.commit(() => ({ event: event('entries.disclosed', null, disclosure), outcome: () => undefined }))
}

/** The fields that a record gives an entry, none where it deletes it; undefined where it is about something else. */
export function changesIn({ type, data }: JournalRecord, id: number): EntryChanges | undefined {
  if (type === 'entries.imported' || type === 'entries.kept') {
    const { first, entries } = data as Events['entries.kept']
    return entries[id - first] ?? undefined
  }
  return type.startsWith('entry.') && (data as Events['entry.deleted']).id === id ? data as EntryChanges : undefined
}

/** `operator`, with the name of the account where it is known, of a record that an operator caused. */
export function operatorIn({ data }: Pick<JournalRecord, 'data'>): string | undefined {
  const { [OPERATOR]: name } = data as { readonly [OPERATOR]?: string }
  return name === '' ? 'operator' : name && `operator:${name}`
}
