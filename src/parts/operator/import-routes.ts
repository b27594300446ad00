/**
 * Importing entries. They arrive in parts, none of which keeps other requests waiting for long, are collected here, and
 * become one record when the last part is there. The collection is bounded, and dropped when another import begins.
 */
import { strict as assert } from 'node:assert'
import { randomUUID } from 'node:crypto'
import { Failure } from '../../errors.ts'
import { jsonReply, messageReply } from '../../http/reply.ts'
import { check, text, type Rule } from '../../store/validate.ts'
import { MAX_BODY_SETTING_BYTES, MAX_ENTRY_BYTES, MAX_EVENT_BYTES } from '../../limits.ts'
import { CREATE_SHAPE, rowOf, type EntryRow } from '../../store/entry.ts'
import { importedBytes, importEntries } from './operator-changes.ts'
import type { Commits } from '../../store/store.ts'
import { route, type Route } from '../../http/route.ts'
import { listOf, oneOf } from './request-rules.ts'

/** The entries of one import, as JSON: they are one record. */
export const MAX_IMPORT_BYTES: number = 20 * 1024 * 1024

assert.ok(MAX_BODY_SETTING_BYTES < MAX_IMPORT_BYTES, 'what was once taken can be imported')
assert.ok(MAX_IMPORT_BYTES + 1024 < MAX_EVENT_BYTES, 'the largest import fits a line')

const ADDED = messageReply(200, 'added')
const OVER = messageReply(409, 'this import is over: it was made, another one has begun, or the service was ' +
  'restarted; look which entries are there, and import what is not')
const TOO_LARGE = messageReply(413, `an import takes at most ${MAX_IMPORT_BYTES} bytes, ` +
  `${MAX_ENTRY_BYTES} of them for each entry; nothing was imported`)

/** What an imported entry must be. */
export const IMPORTED: { readonly [F in keyof EntryRow]: Rule<EntryRow[F]> } = { ...CREATE_SHAPE, status: oneOf(0, 1) }

/** The operator's routes for an import: begin, add parts, commit. */
export function importRoutes(store: Commits): readonly Route[] {
  let current: { readonly id: string, readonly entries: EntryRow[], bytes: number } | undefined
  return [
    route({
      operation: 'beginImport', method: 'POST', path: '/operator/import/begin',
      shape: {},
      handle: () => {
        current = { id: randomUUID(), entries: [], bytes: 0 }
        return jsonReply(200, { id: current.id })
      }
    }),
    route({
      operation: 'addToImport', method: 'POST', path: '/operator/import/add',
      shape: { id: text, entries: listOf(IMPORTED) },
      handle: ({ body }) => {
        if (current?.id !== body.id) return OVER
        let largest = 0
        for (const given of body.entries) {
          const checked = check(IMPORTED, given)
          if (!checked.ok) continue // which `listOf` has refused
          const entry = rowOf(checked.value)
          const bytes = importedBytes(entry)
          largest = Math.max(largest, bytes)
          current.entries.push(entry)
          current.bytes += bytes
        }
        if (current.bytes <= MAX_IMPORT_BYTES && largest <= MAX_ENTRY_BYTES) return ADDED
        current = undefined
        return TOO_LARGE
      }
    }),
    route({
      operation: 'commitImport', method: 'POST', path: '/operator/import/commit',
      shape: { id: text },
      handle: async ({ body }) => {
        if (current?.id !== body.id) return OVER
        const whole = current
        current = undefined
        try {
          return jsonReply(200, { first: await importEntries(store, whole.entries) })
        } catch (error) {
          // The operator's program repeats what was answered 503: nothing was recorded.
          if (error instanceof Failure && ['queue-full', 'journal-busy'].includes(error.code)) current ??= whole
          throw error
        }
      }
    })
  ]
}
