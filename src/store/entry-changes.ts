/** What a change of an entry changes beside it: who knows the password, and who deleted the entry. */
import type { Entry } from './entry.ts'
import type { Tables } from './events.ts'
import type { Knower } from './knowledge.ts'

/** `setMs`: see `EntryTable.set`. */
export function put(
  { entries, knowledge }: Tables, entry: Entry, old: Entry | undefined, setMs?: number, by?: Knower
): void {
  if (old?.password !== entry.password) knowledge.set(entry.id, by, old?.password)
  else if (old.status < entry.status || old.grupo !== entry.grupo) knowledge.renew(entry.id)
  else if (old.status > entry.status) knowledge.settle(entry.id)
  entries.set(entry, setMs)
}

export function purge({ entries, knowledge, deletions }: Tables, id: number): void {
  knowledge.forget(id, entries.get(id)?.password)
  deletions.delete(id)
  entries.delete(id)
}
