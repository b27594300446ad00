/**
 * What a change of an entry changes beside it: who knows the password, and who deleted the entry.
 */
import type { Entry } from '../entries/entry.ts'
import type { Tables } from '../store/events.ts'
import type { Knower } from './knowledge.ts'

/** `setMs`: see `EntryTable.set`. */
export function put(
  { entries, knowledge }: Tables,
  entry: Entry,
  old: Entry | undefined,
  setMs?: number,
  by?: Knower
): void {
  const { id, password, status, grupo } = entry
  if (old?.password !== password) knowledge.set(id, by, old && { from: old.password, to: password })
  else if (old.status < status || old.grupo !== grupo) knowledge.changeLists(id)
  else if (old.status > status) knowledge.leaveLists(id)
  entries.set(entry, setMs)
}

export function purge({ entries, knowledge, deletions }: Tables, id: number): void {
  knowledge.forget(id, entries.get(id)?.password)
  deletions.delete(id)
  entries.delete(id)
}
