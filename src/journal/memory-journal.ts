/** A journal that keeps nothing, `JOURNAL=memory`: for tests, and for a service without a disk. */
import { randomBytes } from 'node:crypto'
import { MAX_COMMIT_BYTES, MAX_COMMIT_RECORDS, MAX_EVENT_BYTES } from '../limits.ts'
import type { Apply, Journal } from './journal.ts'
import { KEY_BYTES } from './keys.ts'
import { FIRST_HASH } from './line.ts'

/** Opens an empty journal; its records have no lines, so its head never moves. */
export function openMemoryJournal(wallMs: () => number, apply: Apply): Journal {
  let records = 0
  return {
    maxRecords: MAX_COMMIT_RECORDS, maxBytes: MAX_COMMIT_BYTES, maxEventBytes: MAX_EVENT_BYTES,
    tagKey: randomBytes(KEY_BYTES),
    append: async decide => {
      const time = new Date(wallMs()).toISOString()
      for (const { type, by, data } of decide()) apply({ seq: ++records, time, type, by, data })
    },
    status: () => ({ fault: undefined, records, head: FIRST_HASH }),
    close: async () => {}
  }
}
