/**
 * The bounds of the program, the unit last in the name; a few that nobody meets from outside stand where they are used.
 * A bound that an operator may change is a setting (`settings.ts`) and has its default here.
 */
import { strict as assert } from 'node:assert'

/** A request's line and headers; what is larger is answered 431. */
export const MAX_HEADER_BYTES: number = 16 * 1024
/** A request's body, unless `MAX_BODY_BYTES` says otherwise; what is larger is answered 413. */
export const MAX_BODY_BYTES: number = 64 * 1024
/** The largest value that `MAX_BODY_BYTES` takes. */
export const MAX_BODY_SETTING_BYTES: number = 16 * 1024 * 1024
/** An e-mail address (RFC 5321 §4.5.3.1). */
export const MAX_EMAIL_CHARACTERS: number = 254
/** How deep arrays and objects may nest in a body. */
export const MAX_JSON_DEPTH_LEVELS: number = 64

/** From a connection's first byte to the end of the headers. */
export const HEADERS_TIMEOUT_MS: number = 15_000
/** From a request's first byte to the end of its body. */
export const REQUEST_TIMEOUT_MS: number = 30_000
/** How long an idle connection is kept for its next request. */
export const KEEP_ALIVE_TIMEOUT_MS: number = 65_000
/** How long a connection may stay without a byte in either direction while an answer is under way. */
export const SOCKET_TIMEOUT_MS: number = 120_000
/** How often the two request timeouts are looked at. */
export const TIMEOUT_CHECK_MS: number = 5_000
/** How many connections are open at once; further ones are closed at once. */
export const MAX_CONNECTIONS: number = 16_384
/** How many of them one client (an IPv4 address, the /64 of an IPv6 address) may have, unless it is a trusted proxy. */
export const MAX_CONNECTIONS_PER_CLIENT: number = 2_048
/** Requests that may wait behind a change on one connection; with a further one it is cut. */
export const MAX_PIPELINED_REQUESTS: number = 1_000
/** What is still read of a body that an answer did not wait for, before the connection is cut. */
export const MAX_DRAIN_BYTES: number = 1024 * 1024
/** How long that may take. */
export const DRAIN_TIMEOUT_MS: number = 2_000
/** How long a stop waits for requests in flight. */
export const SHUTDOWN_TIMEOUT_MS: number = 10_000
/** How often it closes the connections that have become idle meanwhile. */
export const SHUTDOWN_SWEEP_MS: number = 50

/** How hard the files of the page are compressed, of 11: above this the start gets slow, and they hardly shorter. */
export const BROTLI_QUALITY: number = 6
/** How long a browser may remember what a preflight allowed. */
export const CORS_MAX_AGE_SECONDS: number = 600
/** How long a browser shall remember to come by HTTPS. */
export const HSTS_MAX_AGE_SECONDS: number = 31_536_000
/** How often the files of the certificate are looked at. */
export const TLS_CHECK_MS: number = 2_000
/** What may wait for a slow reader of the access log; further lines are dropped and counted. */
export const MAX_ACCESS_LOG_PENDING_BYTES: number = 1024 * 1024
/** How long the last line of output may take at the end. */
export const LAST_LINE_TIMEOUT_MS: number = 500
/** Requests a client may make in a minute, unless `RATE_LIMIT` says otherwise (contract §8). */
export const RATE_LIMIT_REQUESTS: number = 60
/** Logins that a client may try in a minute, unless `LOGIN_LIMIT` says otherwise (contract §8). */
export const LOGIN_LIMIT_REQUESTS: number = 6
/** Passwords that are hashed at once: each takes 32 MiB and a thread of the pool, which the journal needs as well. */
export const MAX_HASHES: number = 2
/** Passwords that wait to be hashed; a further one is answered 503. */
export const MAX_HASH_QUEUE: number = 16
/** The largest time to live that a token can be given: a hundred years. */
export const MAX_TOKEN_TTL_MINUTES: number = 52_560_000
/** The length of a login password in UTF-16 units. */
export const MAX_LOGIN_PASSWORD_LENGTH: number = 1024
/** How often tokens that have expired are dropped from memory. */
export const TOKEN_SWEEP_MS: number = 60_000
/** Clients that one generation of the rate limit's table holds; it holds two generations. */
export const MAX_RATE_LIMIT_CLIENTS: number = 50_000

/** Records that one write to the journal may hold. */
export const MAX_COMMIT_RECORDS: number = 1024
/** Turns of the event loop that a write may wait for further records. */
export const MAX_GATHER_TURNS: number = 16
/** Bytes after which a write to the journal takes no further record. */
export const MAX_COMMIT_BYTES: number = 1024 * 1024
/** Changes that may wait for the journal; a further one is answered 503. */
export const MAX_COMMIT_QUEUE_RECORDS: number = 20_000
/** A line of the journal; more would not come from this program. */
export const MAX_LINE_BYTES: number = 32 * 1024 * 1024
/** What recovery reads at a time. */
export const READ_CHUNK_BYTES: number = 1024 * 1024
/** What a rewrite of the journal does before it lets others have their turn. */
export const REWRITE_SLICE_BYTES: number = 256 * 1024
/** How many entries share a page of the list: what a change costs the next list, and a reader of an older one. */
export const PAGE_ENTRIES: number = 64

/** How long one endpoint of etcd may stay silent before the next one is asked. */
export const ETCD_ATTEMPT_TIMEOUT_MS: number = 2_000
/** How long etcd is asked for the newest records before a read is answered 503. */
export const ETCD_READ_TIMEOUT_MS: number = 5_000
/** How long a change is tried before it is answered 500. */
export const ETCD_WRITE_TIMEOUT_MS: number = 8_000
/** Between one try and the next. */
export const ETCD_RETRY_PAUSE_MS: number = 50
/** Between one look for a key that the key file lacks and the next. */
export const ETCD_KEY_PAUSE_MS: number = 500
/** Between one try to take back what a rewrite that has failed has left and the next. */
export const ETCD_UNDO_PAUSE_MS: number = 1_000
/** How long a watch may stay silent before it is begun anew: whoever was paused or cut off says nothing. */
export const ETCD_WATCH_SILENCE_MS: number = 10_000
/** The most that an instance that has just written lets others go first. */
export const MAX_ETCD_YIELD_MS: number = 50
/** Records that one transaction may hold; etcd's own `--max-txn-ops`. */
export const MAX_ETCD_COMMIT_RECORDS: number = 128
/** Bytes after which a transaction takes no further record. */
export const MAX_ETCD_COMMIT_BYTES: number = 192 * 1024
/** The largest record: with what may come before it, it is within etcd's own `--max-request-bytes`. */
export const MAX_ETCD_RECORD_BYTES: number = 1280 * 1024
/** Records that are read at once. */
export const ETCD_PAGE_RECORDS: number = 128
/** The largest answer; what is larger is asked for in smaller parts. */
export const MAX_ETCD_ANSWER_BYTES: number = 64 * 1024 * 1024

/** The entries of one import, as JSON: they are one record. */
export const MAX_IMPORT_BYTES: number = 20 * 1024 * 1024
/** After how many bytes of entries the operator's program begins another part of an import. */
export const IMPORT_PART_BYTES: number = 128 * 1024
/** A file to import; most of what other programs write into theirs is not imported. */
export const MAX_IMPORT_FILE_BYTES: number = 64 * 1024 * 1024

/** Holds the bounds that lean on each other to their relations; both programs call it at their start. */
export function assertLimits(): void {
  assert.ok(MAX_CONNECTIONS_PER_CLIENT * 4 <= MAX_CONNECTIONS, 'one client cannot take all connections')
  assert.ok(HEADERS_TIMEOUT_MS <= REQUEST_TIMEOUT_MS, 'headers are a part of the request')
  assert.ok(TIMEOUT_CHECK_MS <= HEADERS_TIMEOUT_MS, 'a timeout is looked at before it doubles')
  assert.ok(MAX_BODY_BYTES <= MAX_BODY_SETTING_BYTES, 'the default is within what the setting takes')
  assert.ok(MAX_COMMIT_RECORDS <= MAX_COMMIT_QUEUE_RECORDS, 'a full write fits the queue')
  assert.ok(MAX_BODY_SETTING_BYTES * 4 / 3 < MAX_LINE_BYTES, 'the largest body fits a line in base64')
  assert.ok(MAX_BODY_SETTING_BYTES < MAX_IMPORT_BYTES, 'what was once taken can be imported')
  assert.ok((MAX_IMPORT_BYTES + 1024) * 4 / 3 < MAX_LINE_BYTES - 1024, 'the largest import fits a line in base64')
  assert.ok(MAX_ETCD_COMMIT_BYTES + MAX_ETCD_RECORD_BYTES <= 1.5 * 1024 * 1024 - 128 * 256, 'a commit fits a request')
  assert.ok(MAX_LINE_BYTES * 4 / 3 + 1024 < MAX_ETCD_ANSWER_BYTES, 'the longest line fits an answer of etcd')
  assert.ok(ETCD_ATTEMPT_TIMEOUT_MS * 2 < ETCD_READ_TIMEOUT_MS, 'two endpoints can be silent, and the third answer')
  assert.ok(MAX_CONNECTIONS <= MAX_COMMIT_QUEUE_RECORDS, 'a change of each connection fits the queue')
}
