/** The bounds of this part. */
import { strict as assert } from 'node:assert'
import { MAX_LINE_BYTES } from '../../limits.ts'

/** How long one attempt at one endpoint may take before the next endpoint is asked. */
export const ETCD_ATTEMPT_TIMEOUT_MS: number = 2_000
/** How long etcd is asked for the newest records. */
export const ETCD_READ_TIMEOUT_MS: number = 5_000
/** How long a change is tried; before that it may have waited as long in the queue. */
export const ETCD_WRITE_TIMEOUT_MS: number = 5_000
/** Between one attempt and the next. */
export const ETCD_RETRY_PAUSE_MS: number = 50
/** The same while the operator has to do something: a key that the key file lacks, damage. */
export const ETCD_FAULT_PAUSE_MS: number = 500
/** How long the first endpoint is left alone once it has failed. */
export const ETCD_LOOK_BACK_MS: number = 30_000
/** Between one question whether etcd takes writes again and the next. */
export const ETCD_PROBE_PAUSE_MS: number = 1_000
/** How long records may be missing before that is reported. */
export const ETCD_BEHIND_MS: number = 1_000
/** How long a watch may be silent before it is begun again: a paused or cut-off endpoint says nothing. */
export const ETCD_WATCH_SILENCE_MS: number = 10_000
/** How long others wait for an instance's turn, besides four times what its last append took; and at most. */
export const ETCD_TURN_MS: number = 250
export const MAX_ETCD_TURN_MS: number = 1_000
/** How long an instance waits for others before an attempt, in all. */
export const MAX_ETCD_WAIT_MS: number = 2_000
/** How long an instance waits for the others' next writes while none comes. */
export const MAX_ETCD_PACE_MS: number = 400
/** For how long after its last turn an instance counts as writing at the same time. */
export const ETCD_RIVAL_MS: number = 10_000
/** Turns that are removed at once. */
export const MAX_ETCD_DROPPED_TURNS = 60
/** Keys of others that are named. */
export const MAX_ETCD_NAMED_KEYS = 20
/** What one transaction may hold: etcd's own `--max-txn-ops`. */
const MAX_TXN_OPERATIONS = 128
/** Records of a transaction, which may also put the marker and remove a turn, or take a turn under two conditions. */
export const MAX_ETCD_COMMIT_RECORDS: number = MAX_TXN_OPERATIONS - 4
/** Bytes after which a transaction takes no further record. */
export const MAX_ETCD_COMMIT_BYTES: number = 192 * 1024
/** The largest record: with what may come before it, it is within etcd's own `--max-request-bytes`. */
export const MAX_ETCD_RECORD_BYTES: number = 1280 * 1024
/** Records that are read at once: at first; then as many as these bytes hold; at most. */
export const ETCD_FIRST_PAGE_RECORDS: number = 128
export const ETCD_PAGE_BYTES: number = 1024 * 1024
export const MAX_ETCD_PAGE_RECORDS: number = 8_192
/** The largest answer; what is larger is asked for in smaller parts. */
export const MAX_ETCD_ANSWER_BYTES: number = 64 * 1024 * 1024

assert.ok(MAX_ETCD_COMMIT_BYTES + MAX_ETCD_RECORD_BYTES <= 1.5 * 1024 * 1024 - 128 * 256, 'a commit fits a request')
assert.ok(MAX_LINE_BYTES * 4 / 3 + 1024 < MAX_ETCD_ANSWER_BYTES, 'the longest line fits an answer')
assert.ok(ETCD_ATTEMPT_TIMEOUT_MS * 2 < ETCD_READ_TIMEOUT_MS, 'two endpoints can be silent, and the third answer')
assert.ok(MAX_ETCD_WAIT_MS < ETCD_WRITE_TIMEOUT_MS, 'turns that are not taken do not fail a change')
