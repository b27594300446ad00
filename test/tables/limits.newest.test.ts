/** Bounds that stand in a relation to others: whoever changes one of them learns which others it touches. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as limits from '../../src/limits.ts'

const KIB = 1024
/** The lines before the largest line of a write. */
const LINES_BEFORE_BYTES = limits.MAX_COMMIT_BYTES / 3 * 4 + limits.MAX_COMMIT_RECORDS * limits.LINE_OVERHEAD_BYTES

const RELATIONS: { readonly [what: string]: readonly [least: number, most: number] } = {
  'headers are a part of the request': [limits.HEADERS_TIMEOUT_MS, limits.REQUEST_TIMEOUT_MS],
  'more fields are kept than are taken': [limits.MAX_HEADER_FIELDS + 1, limits.KEPT_HEADER_FIELDS],
  'a timeout is looked at before it doubles': [limits.TIMEOUT_CHECK_MS, limits.HEADERS_TIMEOUT_MS],
  'the largest body fits while it is read': [2 * limits.MAX_BODY_SETTING_BYTES, limits.MAX_BODIES_BYTES],
  'the default of a body is within what the setting takes': [limits.MAX_BODY_BYTES, limits.MAX_BODY_SETTING_BYTES],
  'a full write fits the queue': [limits.MAX_COMMIT_RECORDS, limits.MAX_COMMIT_QUEUE_RECORDS],
  'the largest body fits a line': [limits.MAX_BODY_SETTING_BYTES + 1, limits.MAX_EVENT_BYTES],
  'the largest body fits an entry': [limits.MAX_BODY_SETTING_BYTES + KIB, limits.MAX_ENTRY_BYTES],
  'the largest entry fits an import': [limits.MAX_ENTRY_BYTES + KIB, limits.MAX_IMPORT_BYTES],
  'the largest import fits a body on the socket': [limits.MAX_IMPORT_BYTES + KIB, limits.MAX_LOCAL_BODY_BYTES],
  'the largest import fits a line': [limits.MAX_LOCAL_BODY_BYTES + KIB, limits.MAX_EVENT_BYTES],
  'the start takes the largest write for one': [limits.MAX_LINE_BYTES + LINES_BEFORE_BYTES, limits.MAX_WRITE_BYTES],
  'a change of each connection fits the queue': [limits.MAX_CONNECTIONS, limits.MAX_COMMIT_QUEUE_RECORDS],
  'a short body is written at once': [limits.SHORT_BODY_BYTES, limits.SEND_COPIED_BYTES],
  'answers that are copied wait in smaller slices': [limits.SEND_COPIED_BYTES, limits.SEND_BYTES]
}

for (const [what, [least, most]] of Object.entries(RELATIONS)) {
  test(what, () => assert.ok(least <= most, `${least} is more than ${most}`))
}
