/** What a record of the journal says of an entry, and which operator caused it: for histories. */
import type { JournalRecord } from '../journal/journal.ts'
import type { EntryChanges } from '../store/entry.ts'
import { isOfEntries, OPERATOR, type Events } from '../store/events.ts'

/** The fields that a record gives an entry, none if it deletes it; undefined if it is about something else. */
export function changesIn({ type, data }: JournalRecord, id: number): EntryChanges | undefined {
  if (/\.(imported|kept)$/.test(type) && isOfEntries(type)) {
    const { first, entries } = data as Events['entries.kept']
    return entries[id - first] ?? undefined
  }
  const isOfOne = /^(entry|fields)\./.test(type) && (data as Events['entry.deleted']).id === id
  return isOfOne ? data as EntryChanges : undefined
}

/** `operator`, with the name of the account if it is known, of a record that an operator caused. */
export function operatorIn({ data }: Pick<JournalRecord, 'data'>): string | undefined {
  const { [OPERATOR]: name } = data as { readonly [OPERATOR]?: string }
  return name === '' ? 'operator' : name && `operator:${name}`
}
