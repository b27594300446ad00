/** The bounds of this part. */
import { strict as assert } from 'node:assert'
import { MAX_LINE_BYTES } from '../../limits.ts'

/** How long one attempt at one endpoint of etcd may take before the next one is asked. */
export const ETCD_ATTEMPT_TIMEOUT_MS: number = 2_000
/** How long etcd is asked for the newest records before a read is answered 503. */
export const ETCD_READ_TIMEOUT_MS: number = 5_000
/** How long a change is tried before it is answered 500. */
export const ETCD_WRITE_TIMEOUT_MS: number = 8_000
/** Between one attempt and the next. */
export const ETCD_RETRY_PAUSE_MS: number = 50
/** Between one look for a key that the key file lacks and the next. */
export const ETCD_KEY_PAUSE_MS: number = 500
/** How long a watch may be silent before it is begun again: a paused or cut-off endpoint says nothing. */
export const ETCD_WATCH_SILENCE_MS: number = 10_000
/** How long an instance may take for its turn, besides four times what its last append took; and at most. */
export const ETCD_TURN_MS: number = 250
export const MAX_ETCD_TURN_MS: number = 2_000
/** How long an instance that waits for its turn relies on the watch before it asks. */
export const ETCD_TURN_POLL_MS: number = 25
/** What one transaction may hold: etcd's own `--max-txn-ops`. */
const MAX_TXN_OPERATIONS = 128
/** Records of a transaction. It also removes a turn, or else takes one, whose three conditions count as operations. */
export const MAX_ETCD_COMMIT_RECORDS: number = MAX_TXN_OPERATIONS - 4
/** Bytes after which a transaction takes no further record. */
export const MAX_ETCD_COMMIT_BYTES: number = 192 * 1024
/** The largest record: with what may come before it, it is within etcd's own `--max-request-bytes`. */
export const MAX_ETCD_RECORD_BYTES: number = 1280 * 1024
/** Records that are read at once. */
export const ETCD_PAGE_RECORDS: number = 128
/** The largest answer; what is larger is asked for in smaller parts. */
export const MAX_ETCD_ANSWER_BYTES: number = 64 * 1024 * 1024

assert.ok(MAX_ETCD_COMMIT_BYTES + MAX_ETCD_RECORD_BYTES <= 1.5 * 1024 * 1024 - 128 * 256, 'a commit fits a request')
assert.ok(MAX_LINE_BYTES * 4 / 3 + 1024 < MAX_ETCD_ANSWER_BYTES, 'the longest line fits an answer')
assert.ok(ETCD_ATTEMPT_TIMEOUT_MS * 2 < ETCD_READ_TIMEOUT_MS, 'two endpoints can be silent, and the third answer')
assert.ok(MAX_ETCD_TURN_MS < ETCD_WRITE_TIMEOUT_MS, 'a turn that is not taken does not fail a change')
