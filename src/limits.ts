/**
 * Bounds and defaults of settings, the unit last in the name. `test/tables/limits.newest.test.ts`
 * has the relations between them.
 */

/** Request line and headers; above: 431. */
export const MAX_HEADER_BYTES: number = 16 * 1024
/** Above: 431. */
export const MAX_HEADER_FIELDS: number = 100
/** More than are allowed, so that a proxy's field is found behind too many of a client. */
export const KEPT_HEADER_FIELDS: number = 160
/** Default of `MAX_BODY_BYTES`; above: 413. */
export const MAX_BODY_BYTES: number = 64 * 1024
export const MAX_BODY_SETTING_BYTES: number = 16 * 1024 * 1024
/** Of all bodies being read; above: 503 for the oldest. */
export const MAX_BODIES_BYTES: number = 64 * 1024 * 1024
/** A body of more pieces must have at least `SMALL_PIECE_BYTES` a piece on average. */
export const MAX_SMALL_PIECES: number = 256
export const SMALL_PIECE_BYTES: number = 64
/** RFC 5321 §4.5.3.1. */
export const MAX_EMAIL_CHARACTERS: number = 254
/** Of a group's name. */
export const MAX_GROUP_CHARACTERS: number = 64
export const MAX_JSON_DEPTH_LEVELS: number = 64
export const MAX_JSON_KEYS: number = 10_000
/** In a body whose route takes none: 16 MiB of them would block the process for seconds. */
export const MAX_NESTED_VALUES: number = 100_000

/** From a connection's first byte to the end of the headers. */
export const HEADERS_TIMEOUT_MS: number = 15_000
/** From a request's first byte to the end of its body. */
export const REQUEST_TIMEOUT_MS: number = 30_000
/** A client may wait so long between requests, and is told so. */
export const KEEP_ALIVE_TIMEOUT_MS: number = 65_000
/** A reader has this time for an answer, and a second more for each `ANSWER_BYTES_PER_SECOND`. */
export const ANSWER_TIMEOUT_MS: number = 60_000
export const ANSWER_BYTES_PER_SECOND: number = 16 * 1024
/** Of answers that readers have not taken yet, without the newest; above: the oldest is cut. */
export const MAX_UNSENT_BYTES: number = 64 * 1024 * 1024
export const TIMEOUT_CHECK_MS: number = 5_000
/**
 * So many connections are looked at for a newcomer; the one whose client has paid least gives way.
 */
export const MAX_LOOKS: number = 64
/**
 * Each byte of a request or an answer pays for its client at the rate of `ANSWER_BYTES_PER_SECOND`.
 */
export const BYTES_PER_PAID_MS: number = ANSWER_BYTES_PER_SECOND / 1000
/** What a request pays by itself; bytes can pay no more ahead. */
export const PAID_AHEAD_MS: number = 8_000
/** For this time, a new request counts as paid twice. */
export const NEW_REQUEST_MS: number = 500
/** Above: one gives way. */
export const MAX_CONNECTIONS: number = 16_384
/** Descriptors kept for the process's files. */
export const DESCRIPTOR_RESERVE: number = 128
/** Shorter bodies are sent in one piece with their head. */
export const SHORT_BODY_BYTES: number = 8 * 1024
/** Bytes written ahead of a reader; readers of a list share them. */
export const SEND_BYTES: number = 1024 * 1024
/** As `SEND_BYTES`, if each reader has a copy of its own, as over TLS. */
export const SEND_COPIED_BYTES: number = 128 * 1024
/** Read and thrown away behind a connection's last answer. */
export const MAX_DRAIN_BYTES: number = 1024 * 1024
export const DRAIN_TIMEOUT_MS: number = 2_000
export const SHUTDOWN_TIMEOUT_MS: number = 10_000
/** Between sweeps of idle connections; the first sweep waits as long. */
export const SHUTDOWN_SWEEP_MS: number = 200

export const PROXY_WARNING_MS: number = 3_600_000
/** Each proxy whose requests are refused is named once in a warning; so many at most. */
export const MAX_WARNED_PROXIES: number = 20
export const CORS_MAX_AGE_SECONDS: number = 600
export const HSTS_MAX_AGE_SECONDS: number = 31_536_000
export const TLS_CHECK_MS: number = 2_000
/** Above: lines are dropped and counted. */
export const MAX_ACCESS_LOG_PENDING_BYTES: number = 1024 * 1024
export const LAST_LINE_TIMEOUT_MS: number = 500
/** Of all rate limits, of logins too (contract §8.1). */
export const RATE_LIMIT_WINDOW_SECONDS: number = 60
/** The same in words. */
export const RATE_LIMIT_WINDOW: string = 'a minute'
/** Default of `RATE_LIMIT`: requests in a window (contract §8). */
export const RATE_LIMIT_REQUESTS: number = 60
/** Default of `LOGIN_LIMIT`: logins in a window (contract §8.5). */
export const LOGIN_LIMIT_REQUESTS: number = 6
export const TOKENS_PER_USER: number = 1_000
/** N = 2^ln, block size r, parallelism p. */
export const SCRYPT_COST: { readonly ln: number; readonly r: number; readonly p: number } = {
  ln: 15,
  r: 8,
  p: 3
}
/** Each hash takes 32 MiB and a thread of the pool, which the journal needs as well. */
export const MAX_HASHES: number = 2
/** After that: 503. */
export const MAX_HASH_WAIT_MS: number = 20_000
/** Some seconds of hashing; above: 503, unknown clients first. */
export const MAX_HASH_QUEUE: number = 64
/** A hundred years. */
export const MAX_TOKEN_TTL_MINUTES: number = 52_560_000
/** Length counts, composition does not (NIST SP 800-63B). */
export const MIN_LOGIN_PASSWORD_CHARACTERS: number = 12
/** In UTF-16 units. */
export const MAX_LOGIN_PASSWORD_LENGTH: number = 1024
/** In UTF-16 units, with spaces. */
export const MAX_CODE_LENGTH: number = 32
export const MAX_OTP_PERIOD_SECONDS: number = 300
export const TOKEN_SWEEP_MS: number = 60_000
/** For each of the two generations of a table; there are up to three tables. */
export const MAX_RATE_LIMIT_CLIENTS: number = 15_000
/** As `MAX_RATE_LIMIT_CLIENTS`, of pairs of client and e-mail address. */
export const MAX_LOGIN_PAIRS: number = 5_000
/** Clients that have shown a valid token; above: half of them go, those seen longest ago. */
export const MAX_KNOWN_CLIENTS: number = 10_000
/**
 * Wrong codes of a user, with the right password, in `WRONG_CODES_MS`; after that, all codes are
 * refused for as long.
 */
export const MAX_WRONG_CODES: number = 20
export const WRONG_CODES_MS: number = 3_600_000

export const MAX_COMMIT_RECORDS: number = 1024
export const MAX_GATHER_TURNS: number = 16
/** Of the events of a write, as JSON; a change of more has a write of its own. */
export const MAX_COMMIT_BYTES: number = 1024 * 1024
/** Changes that wait; above: 503. */
export const MAX_COMMIT_QUEUE_RECORDS: number = 20_000
/** In bytes; a single change may be larger. */
export const MAX_COMMIT_QUEUE_BYTES: number = 8 * 1024 * 1024
/** After that, the change is withdrawn: 503. */
export const MAX_COMMIT_WAIT_MS: number = 5_000
/** The longest line that this program writes. */
export const MAX_LINE_BYTES: number = 32 * 1024 * 1024
/** A line without its event: keys, numbers, nonce, tag, hash. */
export const LINE_OVERHEAD_BYTES: number = 512
/** As JSON. */
export const MAX_EVENT_BYTES: number = ((MAX_LINE_BYTES - LINE_OVERHEAD_BYTES) / 4) * 3
/** For a write without a long line. */
export const MAX_SHORT_WRITE_BYTES: number =
  Math.ceil(MAX_COMMIT_BYTES / 3) * 4 + MAX_COMMIT_RECORDS * LINE_OVERHEAD_BYTES
/** A write with the longest line. Versions before 1.1 wrote further lines before it. */
export const MAX_WRITE_BYTES: number = MAX_LINE_BYTES + 2 * 1024 * 1024
/** A device writes a sector completely or not at all. */
export const SECTOR_BYTES: number = 512
export const BLOCK_BYTES: number = 4096
export const READ_CHUNK_BYTES: number = 256 * 1024
/**
 * As JSON, so that every entry can be exported and imported. Larger entries of older versions are
 * kept.
 */
export const MAX_ENTRY_BYTES: number = 18 * 1024 * 1024
/** A change makes one page of the list again, and copies the others. */
export const LIST_PAGE_ENTRIES: number = 64
/** About 2 MB; above, all are dropped. */
export const MAX_KEPT_TAGS: number = 16_384
/** Lists of callers with groups, of each kind of list: those used last. */
export const MAX_KEPT_LISTS: number = 8
/** Without the newest. */
export const MAX_KEPT_LIST_BYTES: number = 64 * 1024 * 1024

/** A request's body on the lock socket, and its largest event. */
export const MAX_LOCAL_BODY_BYTES: number = 20 * 1024 * 1024
/**
 * Of an import's rows, as JSON: they are one body on the lock socket, with some words around them.
 */
export const MAX_IMPORT_BYTES: number = MAX_LOCAL_BODY_BYTES - 1024
