import type { Buffer } from 'node:buffer'
import { TEXTS } from '../contract.ts'
import { Failure, type FailureCode, type FieldErrors } from '../errors.ts'
import { CORS_MAX_AGE_SECONDS, HSTS_MAX_AGE_SECONDS } from '../limits.ts'
import type { Tells } from '../entries/entry.ts'

/** `headers`: names and values in turn. */
export interface Reply {
  readonly status: number
  readonly body?: Body
  readonly headers?: readonly string[]
  /** By default JSON that must not be stored. */
  readonly kind?: Kind
  readonly isLast?: boolean
  /** The passwords in the body. It is sent once it is recorded who is told them. */
  readonly tells?: Tells | undefined
  /**
   * Makes the answer again in the turn in which it is recorded. Without it, the handler does, and
   * must not wait.
   */
  readonly again?: () => Reply
  /** For the access log: the user, the token's hash, the entry. */
  readonly logged?: {
    readonly user?: number | undefined
    readonly token?: string
    readonly entry?: number | 'all'
  }
}

/** Readers of a list share a Buffer. */
export type Body = string | Buffer

export interface Kind {
  readonly type: string
  readonly cache: string
}

export const JSON_KIND: Kind = { type: 'application/json; charset=utf-8', cache: 'no-store' }

export const HTTP_TEXTS = {
  400: 'Bad Request',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  412: 'Precondition Failed',
  413: 'Payload Too Large',
  417: 'Expectation Failed',
  431: 'Request Header Fields Too Large',
  500: 'Server Error',
  503: 'Service Unavailable'
} as const

/** Statuses of requests that node:http refuses or cannot answer. */
export type Refused = 400 | 405 | 408 | 413 | 431

export function jsonReply(status: number, value: unknown, headers: readonly string[] = []): Reply {
  return { status, body: JSON.stringify(value), headers }
}

/** The form of most answers (contract §1, §7). */
export function messageReply(
  status: number,
  message: string,
  headers: readonly string[] = []
): Reply {
  return jsonReply(status, { message, status }, headers)
}

/** `{"message": <HTTP's text>, "status": <code>}`. */
export function statusReply(
  status: keyof typeof HTTP_TEXTS,
  headers: readonly string[] = []
): Reply {
  return messageReply(status, HTTP_TEXTS[status], headers)
}

/** Nothing was done, and the client may retry. */
export const BUSY: Reply = statusReply(503, ['Retry-After', '1'])
export const BAD_REQUEST: Reply = statusReply(400)
export const TOO_MANY_FIELDS: Reply = statusReply(431)
/** Each piece costs more than it holds. */
export const FRAGMENTED: Reply = messageReply(
  400,
  'The body comes in too many small chunks: send larger ones.'
)
export const NOT_FOUND: Reply = statusReply(404)
export const UNEXPECTED: Reply = statusReply(417)
export const UNAUTHENTICATED: Reply = messageReply(401, 'Unauthenticated.', [
  'WWW-Authenticate',
  'Bearer'
])
/** RFC 6797 §6.1. */
export const HSTS: readonly string[] = [
  'Strict-Transport-Security',
  `max-age=${HSTS_MAX_AGE_SECONDS}`
]
export const FORBIDDEN: Reply = messageReply(403, 'Invalid ability provided.')
/** The host may be a web page's. */
export const FOREIGN_HOST: Reply = messageReply(
  403,
  'This host is not allowed. The setting ALLOWED_HOSTS can allow it.'
)
export const FOREIGN_ORIGIN: Reply = messageReply(
  403,
  'This origin is not allowed. The setting CORS_ORIGINS can allow it.'
)
export const HTTPS_ONLY: Reply = messageReply(403, 'This service is reached by HTTPS only.')
export const TOO_LARGE: Reply = statusReply(413)
/** The fields say which bodies are taken (RFC 9110 §12.5.1, §12.5.3). */
export const UNSUPPORTED: Reply = messageReply(
  415,
  'Unsupported Media Type: send Content-Type: application/json, in UTF-8 and not compressed.',
  ['Accept', 'application/json', 'Accept-Encoding', 'identity']
)
/** Contract §8.2. */
export const TOO_MANY: Reply = jsonReply(429, { message: TEXTS.tooMany })
/** For who does not know the password yet. */
export const UNRECORDED: Reply = messageReply(500, 'Error recording who is given a password')
/** RFC 9110 §13.1.1. */
export const PRECONDITION_FAILED: Reply = statusReply(412)
export const READ_BEFORE: Reply = messageReply(
  500,
  'Middleware has read the body before it came here: pass it on unread, or parsed as JSON ' +
    'in request.body.'
)
/** For the log alone, by nginx's number. */
export const CLIENT_GONE: Reply = { status: 499 }
/** The Fetch standard's "CORS preflight". */
export const PREFLIGHT: Reply = {
  status: 204,
  headers: [
    'Access-Control-Allow-Methods',
    'GET, HEAD, POST',
    'Access-Control-Allow-Headers',
    'Authorization, Content-Type, Accept, If-Match, If-None-Match',
    'Access-Control-Max-Age',
    String(CORS_MAX_AGE_SECONDS)
  ]
}

/** A body's faults by field (contract §4.3, §7). */
export function invalidReply(errors: FieldErrors): Reply {
  return jsonReply(400, { message: TEXTS.invalid, errors, status: 400 })
}

export function otherMethod(method: string, allow: readonly string[]): Reply {
  const headers = ['Allow', allow.join(', ')]
  return method === 'OPTIONS' ? { status: 204, headers } : statusReply(405, headers)
}

export const OPTIONS_OF_SERVER: Reply = otherMethod('OPTIONS', ['GET', 'HEAD', 'POST', 'OPTIONS'])

/** Nothing was done, and the client may retry. */
const BUSY_FAILURES: readonly FailureCode[] = [
  'queue-full',
  'journal-busy',
  'hashes-busy',
  'session-changed',
  'journal-closed',
  'reads-recorded'
]

/** Undefined for an unexpected failure, and for one that is not for clients. */
export function failureReply(error: unknown, storingFailed: string | undefined): Reply | undefined {
  if (!(error instanceof Failure)) return undefined
  if (error.code === 'input-invalid' && error.errors !== undefined)
    return invalidReply(error.errors)
  if (error.code === 'move-forbidden') return FORBIDDEN
  if (error.code === 'entry-changed') return PRECONDITION_FAILED
  if (error.code === 'entry-too-large') return TOO_LARGE
  if (BUSY_FAILURES.includes(error.code)) return BUSY
  if (storingFailed !== undefined) return messageReply(500, storingFailed)
  return error.code === 'journal-unreachable' ? BUSY : undefined
}

/**
 * Fields by which pages of allowed origins may read an answer (contract §5.8). Caches need `Vary`
 * in any case.
 */
export function corsFields(origin: string | undefined, allowed: ReadonlySet<string>): string[] {
  if (origin === undefined || !allowed.has(origin)) return ['Vary', 'Origin']
  return [
    'Vary',
    'Origin',
    'Access-Control-Allow-Origin',
    origin,
    'Access-Control-Allow-Credentials',
    'true',
    'Access-Control-Expose-Headers',
    'X-RateLimit-Limit, X-RateLimit-Remaining, Retry-After, ETag, Location, X-Request-Id'
  ]
}

/**
 * Names and values in turn. `bytes`: of the body; undefined: its length must not be told. A 204 has
 * no length (RFC 9110 §8.6).
 */
export function headerFields(
  { body, headers = [], kind = JSON_KIND }: Reply,
  extra: readonly string[],
  bytes: number | undefined
): string[] {
  const fields: string[] = []
  if (body !== undefined) fields.push('Content-Type', kind.type)
  if (body !== undefined && bytes !== undefined) fields.push('Content-Length', String(bytes))
  fields.push('Cache-Control', kind.cache, 'X-Content-Type-Options', 'nosniff')
  for (const part of headers) fields.push(part)
  for (const part of extra) fields.push(part)
  return fields
}

export function isReply(thrown: unknown): thrown is Reply {
  return (
    typeof thrown === 'object' &&
    thrown !== null &&
    !(thrown instanceof Error) &&
    'status' in thrown
  )
}
