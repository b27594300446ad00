import { strict as assert } from 'node:assert'
import { MAX_LINE_BYTES } from '../../limits.ts'

/** Then the next endpoint is asked. */
export const ETCD_ATTEMPT_TIMEOUT_MS: number = 2_000
export const ETCD_READ_TIMEOUT_MS: number = 5_000
export const ETCD_WRITE_TIMEOUT_MS: number = 5_000
export const ETCD_RETRY_PAUSE_MS: number = 50
/** While the operator has to act. */
export const ETCD_FAULT_PAUSE_MS: number = 500
/** Between questions to a failed first endpoint. */
export const ETCD_LOOK_BACK_MS: number = 30_000
export const ETCD_PROBE_PAUSE_MS: number = 1_000
/** Longer silence begins the watch again: a cut-off endpoint says nothing. */
export const ETCD_WATCH_SILENCE_MS: number = 10_000
/**
 * How long others wait for a turn: this, and four times its last append; at most
 * `MAX_ETCD_TURN_MS`.
 */
export const ETCD_TURN_MS: number = 250
export const MAX_ETCD_TURN_MS: number = 1_000
/** For all waits before an attempt. */
export const MAX_ETCD_WAIT_MS: number = 2_000
export const MAX_ETCD_DROPPED_TURNS = 60
export const MAX_ETCD_NAMED_KEYS = 20
/** etcd's own `--max-txn-ops`. */
const MAX_TXN_OPERATIONS = 128
/** Leaves room to put the marker and change a turn. */
export const MAX_ETCD_COMMIT_RECORDS: number = MAX_TXN_OPERATIONS - 4
/** A transaction with so many takes no further record. */
export const MAX_ETCD_COMMIT_BYTES: number = 192 * 1024
/** With what may come before it, within etcd's `--max-request-bytes`. */
export const MAX_ETCD_RECORD_BYTES: number = 1280 * 1024
/** Records of the first page, bytes of a later one; never more than the most records. */
export const ETCD_FIRST_PAGE_RECORDS: number = 128
export const ETCD_PAGE_BYTES: number = 1024 * 1024
export const MAX_ETCD_PAGE_RECORDS: number = 8_192
/** A larger answer is asked for in parts. */
export const MAX_ETCD_ANSWER_BYTES: number = 64 * 1024 * 1024

assert.ok(
  MAX_ETCD_COMMIT_BYTES + MAX_ETCD_RECORD_BYTES <= 1.5 * 1024 * 1024 - 128 * 256,
  'a commit fits a request'
)
assert.ok(
  (MAX_LINE_BYTES * 4) / 3 + 1024 < MAX_ETCD_ANSWER_BYTES,
  'the longest line fits an answer'
)
assert.ok(
  ETCD_ATTEMPT_TIMEOUT_MS * 2 < ETCD_READ_TIMEOUT_MS,
  'two endpoints can be silent, and the third answer'
)
assert.ok(MAX_ETCD_WAIT_MS < ETCD_WRITE_TIMEOUT_MS, 'turns that are not taken do not fail a change')
