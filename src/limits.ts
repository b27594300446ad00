/**
 * The bounds of the program, the unit last in the name; a few that cannot be reached from outside are where they are
 * used. A bound that an operator may change is a setting (`config/core-settings.ts`) and has its default here.
 */
import { strict as assert } from 'node:assert'

/** A request's line and headers; what is larger is answered 431. */
export const MAX_HEADER_BYTES: number = 16 * 1024
/** Fields of a request's head; more are answered 431. */
export const MAX_HEADER_FIELDS: number = 100
/** A request's body, unless `MAX_BODY_BYTES` says otherwise; what is larger is answered 413. */
export const MAX_BODY_BYTES: number = 64 * 1024
export const MAX_BODY_SETTING_BYTES: number = 16 * 1024 * 1024
/** Bodies that are being read, all together; beyond that the one that has taken longest is answered 503. */
export const MAX_BODIES_BYTES: number = 64 * 1024 * 1024
/** Pieces of a body, as chunks, that may hold fewer bytes than these on average; then it is refused. */
export const MAX_SMALL_PIECES: number = 256
export const SMALL_PIECE_BYTES: number = 64
/** An e-mail address (RFC 5321 §4.5.3.1). */
export const MAX_EMAIL_CHARACTERS: number = 254
export const MAX_JSON_DEPTH_LEVELS: number = 64
/** The keys of one JSON object: more than a body of the usual size can have. */
export const MAX_JSON_KEYS: number = 10_000

/** From a connection's first byte to the end of the headers. */
export const HEADERS_TIMEOUT_MS: number = 15_000
/** From a request's first byte to the end of its body. */
export const REQUEST_TIMEOUT_MS: number = 30_000
/** How long an idle connection is kept for its next request, at least; its client is told. */
export const KEEP_ALIVE_TIMEOUT_MS: number = 65_000
/** How long a reader has for an answer, and how many of its bytes give it a second more. */
export const ANSWER_TIMEOUT_MS: number = 60_000
export const ANSWER_BYTES_PER_SECOND: number = 16 * 1024
/** What answers hold that are not taken yet, beside the newest of them; beyond that the oldest is cut. */
export const MAX_UNSENT_BYTES: number = 64 * 1024 * 1024
/** How often these timeouts, and silent connections, are looked at. */
export const TIMEOUT_CHECK_MS: number = 5_000
/** How many connections are open at once; for one more, one gives way that waits for a head. */
export const MAX_CONNECTIONS: number = 16_384
/** How many of the descriptors that the process may have are kept for its files. */
export const DESCRIPTOR_RESERVE: number = 128
/** A body of at most this length is copied and sent with its head. */
export const SHORT_BODY_BYTES: number = 8 * 1024
/** What is written of a longer one before a reader has taken what was written before; of a list, readers share it. */
export const SEND_BYTES: number = 1024 * 1024
/** The same where each reader has a copy, as over TLS. */
export const SEND_COPIED_BYTES: number = 128 * 1024
/** In how many pieces: each costs some bytes as well. */
export const SEND_PIECES: number = 64
/** How much is read and thrown away behind the last answer of a connection, before it is cut. */
export const MAX_DRAIN_BYTES: number = 1024 * 1024
/** How long that may take. */
export const DRAIN_TIMEOUT_MS: number = 2_000
/** How long a stop waits for requests in flight. */
export const SHUTDOWN_TIMEOUT_MS: number = 10_000
/** How often it closes the connections that are idle; the first time after as long. */
export const SHUTDOWN_SWEEP_MS: number = 200

export const CORS_MAX_AGE_SECONDS: number = 600
export const HSTS_MAX_AGE_SECONDS: number = 31_536_000
/** How often the files of the certificate are looked at. */
export const TLS_CHECK_MS: number = 2_000
/** What may wait for a slow reader of the access log; further lines are dropped and counted. */
export const MAX_ACCESS_LOG_PENDING_BYTES: number = 1024 * 1024
/** How long the last line of output may take at the end. */
export const LAST_LINE_TIMEOUT_MS: number = 500
/** Requests a client may make in a minute, unless `RATE_LIMIT` says otherwise (contract §8). */
export const RATE_LIMIT_REQUESTS: number = 60
/** Logins that a client may try in a minute, unless `LOGIN_LIMIT` says otherwise (contract §8.5). */
export const LOGIN_LIMIT_REQUESTS: number = 6
/** Tokens from logins of a user, unless a setting says otherwise. */
export const TOKENS_PER_USER: number = 1_000
/** Passwords that are hashed at once: each takes 32 MiB and a thread of the pool, which the journal needs as well. */
export const MAX_HASHES: number = 2
/** How long a password may wait to be hashed; then it is answered 503. */
export const MAX_HASH_WAIT_MS: number = 20_000
/** Passwords that wait to be hashed, some seconds' worth; for a further one, one at random is answered 503. */
export const MAX_HASH_QUEUE: number = 64
/** The largest time to live that a token can be given: a hundred years. */
export const MAX_TOKEN_TTL_MINUTES: number = 52_560_000
/** The least length of a new login password. Length counts and composition does not (NIST SP 800-63B). */
export const MIN_LOGIN_PASSWORD_CHARACTERS: number = 12
/** In UTF-16 units. */
export const MAX_LOGIN_PASSWORD_LENGTH: number = 1024
export const TOKEN_SWEEP_MS: number = 60_000
/** Clients that one generation of a rate limit's table holds; it holds two, and there are up to three tables. */
export const MAX_RATE_LIMIT_CLIENTS: number = 15_000
/** The same of pairs of a client and the e-mail address that it logs in with. */
export const MAX_LOGIN_PAIRS: number = 5_000

/** Records that one write to the journal may hold. */
export const MAX_COMMIT_RECORDS: number = 1024
/** Further turns of the event loop that a write may wait for records. */
export const MAX_GATHER_TURNS: number = 16
/** Bytes of events, as JSON, after which a write to the journal takes no further one. */
export const MAX_COMMIT_BYTES: number = 1024 * 1024
/** Changes that may wait for the journal; a further one is answered 503. */
export const MAX_COMMIT_QUEUE_RECORDS: number = 20_000
/** What all of them may hold, unless one alone holds more. */
export const MAX_COMMIT_QUEUE_BYTES: number = 8 * 1024 * 1024
/** How long a change may wait for the journal; then it is withdrawn, and answered 503. */
export const MAX_COMMIT_WAIT_MS: number = 5_000
/** A line of the journal; this program writes none longer. */
export const MAX_LINE_BYTES: number = 32 * 1024 * 1024
/** What a line has besides its event's JSON in base64: the keys, the numbers, the nonce, the tag, the hash. */
export const LINE_OVERHEAD_BYTES: number = 512
/** An event as JSON. */
export const MAX_EVENT_BYTES: number = (MAX_LINE_BYTES - LINE_OVERHEAD_BYTES) / 4 * 3
/** A write to the journal: the largest line, and the lines before it. */
export const MAX_WRITE_BYTES: number = MAX_LINE_BYTES + 2 * 1024 * 1024
/** A sector: what a device writes completely or not at all. */
export const SECTOR_BYTES: number = 512
/** What a file system reads and writes at a time. */
export const BLOCK_BYTES: number = 4096
/** What is read or written of a journal at a time; requests are served in between. */
export const READ_CHUNK_BYTES: number = 256 * 1024
/** An entry as JSON: however it has grown, it can be exported and imported. A larger one of an older version stays. */
export const MAX_ENTRY_BYTES: number = 18 * 1024 * 1024
/** The entries of a page: a change costs the next list one page, and so does a reader of an older list. */
export const LIST_PAGE_ENTRIES: number = 64
/** Characters after which the texts of a page begin another piece of the list. */
export const LIST_PIECE_BYTES: number = 64 * 1024
/** Characters up to which an entry's text is a string on the heap. */
export const LONG_ENTRY_CHARACTERS: number = 1024
/** Tags of entries that are kept; with one more, all are made anew when they are asked for. */
export const MAX_KEPT_TAGS: number = 16_384

/** The body of a request on the lock socket, and the largest event that it may become. */
export const MAX_LOCAL_BODY_BYTES: number = 20 * 1024 * 1024

/** Asserts the relations between bounds; both programs call it when they start. */
export function assertLimits(): void {
  assert.ok(HEADERS_TIMEOUT_MS <= REQUEST_TIMEOUT_MS, 'headers are a part of the request')
  assert.ok(TIMEOUT_CHECK_MS <= HEADERS_TIMEOUT_MS, 'a timeout is looked at before it doubles')
  assert.ok(2 * MAX_BODY_SETTING_BYTES <= MAX_BODIES_BYTES, 'the largest body fits while it is read')
  assert.ok(MAX_BODY_BYTES <= MAX_BODY_SETTING_BYTES, 'the default is within what the setting takes')
  assert.ok(MAX_COMMIT_RECORDS <= MAX_COMMIT_QUEUE_RECORDS, 'a full write fits the queue')
  assert.ok(MAX_BODY_SETTING_BYTES < MAX_EVENT_BYTES, 'the largest body fits a line')
  assert.ok(MAX_BODY_SETTING_BYTES + 1024 < MAX_ENTRY_BYTES, 'the largest body fits an entry')
  assert.ok(MAX_ENTRY_BYTES + 1024 < MAX_LOCAL_BODY_BYTES, 'the largest entry fits an import')
  const linesBefore = MAX_COMMIT_BYTES / 3 * 4 + MAX_COMMIT_RECORDS * LINE_OVERHEAD_BYTES
  assert.ok(MAX_LINE_BYTES + linesBefore <= MAX_WRITE_BYTES, 'recovery takes the largest write for one')
  assert.ok(MAX_CONNECTIONS <= MAX_COMMIT_QUEUE_RECORDS, 'a change of each connection fits the queue')
}
