/** Reads journal records for histories. */
import type { JournalRecord } from '../../journal/journal.ts'
import type { EntryChanges } from '../../entries/entry.ts'
import { isOfEntries, type Events } from '../../store/events.ts'
import { OPERATOR, operatorNamed } from '../../knowledge/knowledge-events.ts'

/** Undefined if the record is not about the entry; no fields if it deletes it. */
export function changesIn({ type, data }: JournalRecord, id: number): EntryChanges | undefined {
  if (/\.(imported|kept)$/.test(type) && isOfEntries(type)) {
    const { first, entries } = data as Events['entries.kept']
    return entries[id - first] ?? undefined
  }
  const isOfOne = /^(entry|fields)\./.test(type) && (data as Events['entry.deleted']).id === id
  return isOfOne ? (data as EntryChanges) : undefined
}

export function operatorIn({ data }: Pick<JournalRecord, 'data'>): string | undefined {
  const { [OPERATOR]: name } = data as { readonly [OPERATOR]?: string }
  return name === undefined ? undefined : operatorNamed(name)
}
