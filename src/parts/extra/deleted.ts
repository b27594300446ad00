/** The deleted entries, newest first. */
import { Buffer } from 'node:buffer'
import type { Entries } from '../../store/entries.ts'
import { idsOn, pageOf } from '../../store/paged-list.ts'
import { sees, type Groups } from '../../store/users.ts'

/** A JSON array: as many entries in sight below `id` as `maxBytes` hold, at least one. */
export function deletedBelow(entries: Entries, id: number, maxBytes: number, groups?: Groups): string {
  const texts: string[] = []
  let bytes = 0
  for (let at = Math.min(id - 1, entries.size); at > 0; at--) {
    const page = pageOf(at)
    if (entries.pageDeleted(page) === 0) { at = idsOn(page)[0]!; continue }
    const text = entries.text(at)
    if (text === undefined || entries.isActive(at) || !sees(groups, entries.grupo(at))) continue
    bytes += Buffer.byteLength(text) + 1
    if (bytes > maxBytes && texts.length > 0) break
    texts.push(text)
  }
  return `[${texts.join()}]`
}
