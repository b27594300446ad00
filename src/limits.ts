/**
 * The program's bounds, the unit last in the name, with the defaults of settings.
 * `test/tables/limits.newest.test.ts` has the relations between them.
 */

/** Request line and headers; above: 431. */
export const MAX_HEADER_BYTES: number = 16 * 1024
/** Above: 431. */
export const MAX_HEADER_FIELDS: number = 100
/**
 * Fields that node:http keeps of a head, so that a proxy's are found behind too many of a client.
 */
export const KEPT_HEADER_FIELDS: number = 160
/** Default of `MAX_BODY_BYTES`; above: 413. */
export const MAX_BODY_BYTES: number = 64 * 1024
export const MAX_BODY_SETTING_BYTES: number = 16 * 1024 * 1024
/** All bodies being read; above: 503 for the oldest. */
export const MAX_BODIES_BYTES: number = 64 * 1024 * 1024
/** A body with more pieces must average at least these bytes a piece. */
export const MAX_SMALL_PIECES: number = 256
export const SMALL_PIECE_BYTES: number = 64
/** RFC 5321 §4.5.3.1. */
export const MAX_EMAIL_CHARACTERS: number = 254
/** Of a group's name. */
export const MAX_GROUP_CHARACTERS: number = 64
export const MAX_JSON_DEPTH_LEVELS: number = 64
/** More than usual bodies can have. */
export const MAX_JSON_KEYS: number = 10_000
/** In a body whose route takes none: 16 MiB of them would keep everybody waiting for seconds. */
export const MAX_NESTED_VALUES: number = 100_000

/** From a connection's first byte to the end of the headers. */
export const HEADERS_TIMEOUT_MS: number = 15_000
/** From a request's first byte to the end of its body. */
export const REQUEST_TIMEOUT_MS: number = 30_000
/** At least; clients are told. */
export const KEEP_ALIVE_TIMEOUT_MS: number = 65_000
/** A reader's time for an answer, plus a second for each of these bytes. */
export const ANSWER_TIMEOUT_MS: number = 60_000
export const ANSWER_BYTES_PER_SECOND: number = 16 * 1024
/** Answers not yet taken, beside the newest; above: the oldest is cut. */
export const MAX_UNSENT_BYTES: number = 64 * 1024 * 1024
export const TIMEOUT_CHECK_MS: number = 5_000
/** Connections that are looked at for a newcomer: the one whose client has paid least gives way. */
export const MAX_LOOKS: number = 64
/** As `ANSWER_BYTES_PER_SECOND`: each byte of a request or an answer pays for its client. */
export const BYTES_PER_PAID_MS: number = ANSWER_BYTES_PER_SECOND / 1000
/** What a request pays by itself, and the most that bytes can pay ahead. */
export const PAID_AHEAD_MS: number = 8_000
/** For so long, a request that comes has paid as much once more. */
export const NEW_REQUEST_MS: number = 500
/** Above: one gives way. */
export const MAX_CONNECTIONS: number = 16_384
/** Descriptors kept for the process's files. */
export const DESCRIPTOR_RESERVE: number = 128
/** Shorter bodies are copied and sent with their head. */
export const SHORT_BODY_BYTES: number = 8 * 1024
/** Bytes written ahead of a reader; readers of a list share them. */
export const SEND_BYTES: number = 1024 * 1024
/** The same if each reader has a copy, as over TLS. */
export const SEND_COPIED_BYTES: number = 128 * 1024
/** Thrown away behind a connection's last answer. */
export const MAX_DRAIN_BYTES: number = 1024 * 1024
export const DRAIN_TIMEOUT_MS: number = 2_000
export const SHUTDOWN_TIMEOUT_MS: number = 10_000
/** Between sweeps of idle connections; the first sweep waits as long. */
export const SHUTDOWN_SWEEP_MS: number = 200

/** Between two warnings of one kind about logins by a proxy. */
export const PROXY_WARNING_MS: number = 3_600_000
/** Proxies whose refused requests are warned of, each once. */
export const MAX_WARNED_PROXIES: number = 20
export const CORS_MAX_AGE_SECONDS: number = 600
export const HSTS_MAX_AGE_SECONDS: number = 31_536_000
export const TLS_CHECK_MS: number = 2_000
/** Above: lines are dropped and counted. */
export const MAX_ACCESS_LOG_PENDING_BYTES: number = 1024 * 1024
export const LAST_LINE_TIMEOUT_MS: number = 500
/** Of the rate limits (contract §8.1). */
export const RATE_LIMIT_WINDOW_SECONDS: number = 60
/** In words. */
export const RATE_LIMIT_WINDOW: string = 'a minute'
/** Default of `RATE_LIMIT`: requests in a window (contract §8). */
export const RATE_LIMIT_REQUESTS: number = 60
/** Default of `LOGIN_LIMIT`: logins in a window (contract §8.5). */
export const LOGIN_LIMIT_REQUESTS: number = 6
export const TOKENS_PER_USER: number = 1_000
/** What a new hash of a password costs: N = 2^ln, block size r, parallelism p. */
export const SCRYPT_COST: { readonly ln: number; readonly r: number; readonly p: number } = {
  ln: 15,
  r: 8,
  p: 3
}
/** Each hash takes 32 MiB and a thread of the pool, which the journal needs as well. */
export const MAX_HASHES: number = 2
/** Then: 503. */
export const MAX_HASH_WAIT_MS: number = 20_000
/** Some seconds' worth; above: 503, for unknown clients first. */
export const MAX_HASH_QUEUE: number = 64
/** A hundred years. */
export const MAX_TOKEN_TTL_MINUTES: number = 52_560_000
/** Length counts, composition does not (NIST SP 800-63B). */
export const MIN_LOGIN_PASSWORD_CHARACTERS: number = 12
/** In UTF-16 units. */
export const MAX_LOGIN_PASSWORD_LENGTH: number = 1024
/** In UTF-16 units, with spaces. */
export const MAX_CODE_LENGTH: number = 32
/** Of one-time codes. */
export const MAX_OTP_PERIOD_SECONDS: number = 300
export const TOKEN_SWEEP_MS: number = 60_000
/** Clients in one of a table's two generations; there are up to three tables. */
export const MAX_RATE_LIMIT_CLIENTS: number = 15_000
/** Pairs of client and e-mail address in a generation. */
export const MAX_LOGIN_PAIRS: number = 5_000
/** That have shown a valid token; above: half of them go, those seen longest ago. */
export const MAX_KNOWN_CLIENTS: number = 10_000
/**
 * Of a user, with the right password, in the time below; then: all codes are refused for as long.
 */
export const MAX_WRONG_CODES: number = 20
export const WRONG_CODES_MS: number = 3_600_000

export const MAX_COMMIT_RECORDS: number = 1024
export const MAX_GATHER_TURNS: number = 16
/** Of the events of a write, as JSON; a change of more has a write of its own. */
export const MAX_COMMIT_BYTES: number = 1024 * 1024
/** Changes that wait; above: 503. */
export const MAX_COMMIT_QUEUE_RECORDS: number = 20_000
/** The same in bytes, unless a single change is larger. */
export const MAX_COMMIT_QUEUE_BYTES: number = 8 * 1024 * 1024
/** Then the change is withdrawn: 503. */
export const MAX_COMMIT_WAIT_MS: number = 5_000
/** This program writes no longer line. */
export const MAX_LINE_BYTES: number = 32 * 1024 * 1024
/** A line without its event: keys, numbers, nonce, tag, hash. */
export const LINE_OVERHEAD_BYTES: number = 512
/** As JSON. */
export const MAX_EVENT_BYTES: number = ((MAX_LINE_BYTES - LINE_OVERHEAD_BYTES) / 4) * 3
/** Of a write without a long line. */
export const MAX_SHORT_WRITE_BYTES: number =
  Math.ceil(MAX_COMMIT_BYTES / 3) * 4 + MAX_COMMIT_RECORDS * LINE_OVERHEAD_BYTES
/** The largest line. Versions before 1.1 wrote lines before it. */
export const MAX_WRITE_BYTES: number = MAX_LINE_BYTES + 2 * 1024 * 1024
/** A device writes a sector completely or not at all. */
export const SECTOR_BYTES: number = 512
export const BLOCK_BYTES: number = 4096
export const READ_CHUNK_BYTES: number = 256 * 1024
/**
 * As JSON, so that every entry can be exported and imported. Larger entries of older versions stay.
 */
export const MAX_ENTRY_BYTES: number = 18 * 1024 * 1024
/** A change costs the next list one page, and a copy of the others. */
export const LIST_PAGE_ENTRIES: number = 64
/** About 2 MB; above, all are dropped. */
export const MAX_KEPT_TAGS: number = 16_384
/** Of callers with groups: those used last, of each kind of list. */
export const MAX_KEPT_LISTS: number = 8
/** Beside the newest. */
export const MAX_KEPT_LIST_BYTES: number = 64 * 1024 * 1024

/** A request's body on the lock socket, and its largest event. */
export const MAX_LOCAL_BODY_BYTES: number = 20 * 1024 * 1024
/** The rows of an import, as JSON: it is one body on the socket, with some words around it. */
export const MAX_IMPORT_BYTES: number = MAX_LOCAL_BODY_BYTES - 1024
