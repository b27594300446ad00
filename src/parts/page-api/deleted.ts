import { Buffer } from 'node:buffer'
import { openFieldsOf, type Entry } from '../../entries/entry.ts'
import { idsOn, pageOf } from '../../entries/paged-list.ts'
import type { State } from '../../store/state.ts'
import { sees, type Groups } from '../../rights/rights.ts'
import { nameOf } from './names.ts'

type Deleted = Pick<State, 'entries' | 'deletions' | 'users'>

/**
 * A JSON array, newest first, without secrets: as many entries in sight below `id` as `maxBytes`
 * hold, at least one.
 */
export function deletedBelow(
  state: Deleted,
  id: number,
  maxBytes: number,
  groups?: Groups
): string {
  const { entries } = state
  const texts: string[] = []
  let bytes = 0
  for (let at = Math.min(id - 1, entries.size); at > 0; at--) {
    const page = pageOf(at)
    if (entries.pageDeleted(page) === 0) {
      at = idsOn(page)[0]!
      continue
    }
    if (!entries.has(at) || entries.isActive(at) || !sees(groups, entries.grupo(at))) continue
    const text = rowText(state, entries.get(at)!)
    bytes += Buffer.byteLength(text) + 1
    if (bytes > maxBytes && texts.length > 0) break
    texts.push(text)
  }
  return `[${texts.join()}]`
}

function rowText(state: Deleted, entry: Entry): string {
  const { id, status } = entry
  const { ms, by } = state.deletions.get(id) ?? {}
  const deleted = ms === undefined ? undefined : new Date(ms).toISOString()
  return JSON.stringify({
    id,
    ...openFieldsOf(entry),
    status,
    deleted,
    deletedBy: by === undefined ? undefined : nameOf(state, by)
  })
}
