/**
 * Compressed lists. A list holds no passwords or notes, so its size tells of no secret beside an
 * attacker's text (BREACH).
 */
import type { Buffer } from 'node:buffer'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Listing, ListForm } from './listing.ts'

/** Below this, compression saves no packet. */
const MIN_PACKED_BYTES = 2 * 1024
/** Above this, copy and compressed text take too much memory. */
const MAX_PACKED_BYTES = 16 * 1024 * 1024
const pack = promisify(gzip)

export function isPackable({ bytes: { length } }: Listing): boolean {
  return length >= MIN_PACKED_BYTES && length <= MAX_PACKED_BYTES
}

/**
 * Undefined while another list is packed: one at a time, and one kept for each form, bound the cost
 * of lists that always change.
 */
export function packer(): (
  list: Listing,
  form: ListForm | 'in sight'
) => Promise<Buffer> | undefined {
  const kept = new Map<string, { readonly tag: string; readonly bytes: Promise<Buffer> }>()
  let isBusy = false
  return (list, form) => {
    const known = kept.get(form)
    if (known?.tag === list.tag) return known.bytes
    if (isBusy) return undefined
    isBusy = true
    const bytes = pack(list.bytes).finally(() => {
      isBusy = false
    })
    kept.set(form, { tag: list.tag, bytes })
    return bytes
  }
}
