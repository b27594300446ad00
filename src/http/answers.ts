/** The replies that are no route's own (contract §5, §7, §8). */
import { TEXTS } from '../contract.ts'
import { Failure, type FailureCode, type FieldErrors } from '../errors.ts'
import { BUSY, jsonReply, messageReply, statusReply, type Reply } from './reply.ts'

/** A head that is malformed, or has a field twice. */
export const BAD_REQUEST: Reply = statusReply(400)
export const TOO_MANY_FIELDS: Reply = statusReply(431)
/** A body whose pieces each cost more than they hold. */
export const FRAGMENTED: Reply = messageReply(400, 'The body comes in too many small chunks: send larger ones.')
export const NOT_FOUND: Reply = statusReply(404)
export const UNEXPECTED: Reply = statusReply(417)
export const UNAUTHENTICATED: Reply = messageReply(401, 'Unauthenticated.', ['WWW-Authenticate', 'Bearer'])
export const FORBIDDEN: Reply = messageReply(403, 'Invalid ability provided.')
/** A `Host` that may be a web page's, in the open configuration. */
export const FOREIGN_HOST: Reply = messageReply(403,
  'This host is not allowed. The setting ALLOWED_HOSTS can allow it.')
export const FOREIGN_ORIGIN: Reply = messageReply(403,
  'This origin is not allowed. The setting CORS_ORIGINS can allow it.')
export const HTTPS_ONLY: Reply = messageReply(403, 'This service is reached by HTTPS only.')
export const TOO_LARGE: Reply = statusReply(413)
/** A body that is not declared as plain JSON. Both fields say what is taken (RFC 9110 §12.5.1, §12.5.3). */
export const UNSUPPORTED: Reply = messageReply(415,
  'Unsupported Media Type: send Content-Type: application/json, in UTF-8 and not compressed.',
  ['Accept', 'application/json', 'Accept-Encoding', 'identity'])
/** One request more than the rate limit allows (contract §8.2). */
export const TOO_MANY: Reply = jsonReply(429, { message: TEXTS.tooMany })
/** What the access log says where a client left before it was answered (nginx's number for it). */
export const CLIENT_GONE = 499
/** An entry is no longer what `If-Match` says (RFC 9110 §13.1.1). */
export const PRECONDITION_FAILED: Reply = statusReply(412)
/** A body that middleware in front of an embedded service has read, and made no object of. */
export const READ_BEFORE: Reply = messageReply(500,
  'Middleware has read the body before it came here: pass it on unread, or parsed as JSON in request.body.')

/** A body whose fields are wrong, each with its messages (contract §4.3, §7). */
export function invalid(errors: FieldErrors): Reply {
  return jsonReply(400, { message: TEXTS.invalid, errors, status: 400 })
}

/** Failures after which nothing was done, and the same may be asked again. */
const BUSY_FAILURES: readonly FailureCode[] = ['queue-full', 'journal-busy', 'hashes-busy', 'session-changed']

/** How an expected failure is answered; undefined where it is not expected, or is not for clients. */
export function failureReply(error: unknown, { isStale, storingFailed, reportsFailures }: {
  readonly isStale: boolean, readonly storingFailed: string | undefined, readonly reportsFailures: boolean | undefined
}): Reply | undefined {
  if (error instanceof Failure) {
    if (error.code === 'entry-changed') return PRECONDITION_FAILED
    if (error.code === 'entry-too-large') return TOO_LARGE
    if (BUSY_FAILURES.includes(error.code)) return BUSY
  }
  // The operator's program gets the reason, and no 503: it repeats what was answered so, and this may have been done.
  if (reportsFailures === true) return messageReply(500, (error as Error).message)
  if (!(error instanceof Failure)) return undefined
  if (error.code === 'journal-closed') return BUSY // a change is refused so before it is decided
  if (storingFailed !== undefined) return messageReply(500, storingFailed)
  return isStale || error.code === 'journal-unreachable' ? BUSY : undefined
}

/** An unexpected error; the operator's log has it under this id. */
export function serverError(id: string): Reply { return statusReply(500, ['X-Request-Id', id]) }

/** OPTIONS lists the methods of a path; any other method that the path does not have is refused. */
export function otherMethod(method: string, allow: readonly string[]): Reply {
  const headers = ['Allow', allow.join(', ')]
  return method === 'OPTIONS' ? { status: 204, headers } : statusReply(405, headers)
}

export const OPTIONS_OF_SERVER: Reply = otherMethod('OPTIONS', ['GET', 'HEAD', 'POST', 'OPTIONS'])
