/** The deleted entries, newest first. */
import { Buffer } from 'node:buffer'
import { LIST_PAGE_ENTRIES } from '../../limits.ts'
import type { Entries } from '../../store/entries.ts'

const COMMA = Buffer.from(',')

/** JSON in pieces: as many entries below `id` as `maxBytes` hold, at least one. */
export function deletedBelow(entries: Entries, id: number, maxBytes: number): readonly Buffer[] {
  const pieces: Buffer[] = []
  let bytes = 0
  for (let at = Math.min(id - 1, entries.size); at > 0; at--) {
    const page = Math.floor((at - 1) / LIST_PAGE_ENTRIES)
    if (entries.pageDeleted(page) === 0) { at = page * LIST_PAGE_ENTRIES + 1; continue }
    const text = entries.text(at)
    if (text === undefined || entries.isActive(at)) continue
    const piece = typeof text === 'string' ? Buffer.from(text) : text // a long text is shared by its readers
    bytes += piece.length + COMMA.length
    if (bytes > maxBytes && pieces.length > 0) break
    pieces.push(COMMA, piece)
  }
  return [Buffer.from('['), ...pieces.slice(1), Buffer.from(']')]
}
