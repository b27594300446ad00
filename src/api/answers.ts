/** The answers that no route gives by itself but the way to it, their texts word for word (contract §5, §7, §8). */
import { jsonReply, said, statusReply, type Reply } from '../http/reply.ts'
import type { FieldErrors } from '../json/shape.ts'

/** A head that is malformed, or says something twice. */
export const BAD_REQUEST: Reply = statusReply(400)
/** No such path. */
export const NOT_FOUND: Reply = statusReply(404)
/** An expectation that is not `100-continue`. */
export const UNEXPECTED: Reply = statusReply(417)
/** No token, or one that is not valid. */
export const UNAUTHENTICATED: Reply = said(401, 'Unauthenticated.', ['WWW-Authenticate', 'Bearer'])
/** A token without the ability that the route asks for. */
export const UNABLE: Reply = said(403, 'Invalid ability provided.')
/** A `Host` that may be a web page's, in the open configuration. */
export const FOREIGN_HOST: Reply = said(403, 'This host is not allowed. The setting ALLOWED_HOSTS can allow it.')
/** A web page of another origin, in the open configuration. */
export const FOREIGN_ORIGIN: Reply = said(403, 'This origin is not allowed. The setting CORS_ORIGINS can allow it.')
/** What did not come by HTTPS where it must. */
export const HTTPS_ONLY: Reply = said(403, 'This service is reached by HTTPS only.')
/** A body over the limit. */
export const TOO_LARGE: Reply = statusReply(413)
/** A body that does not say it is JSON. */
export const UNSUPPORTED: Reply = statusReply(415)
/** One request more than the rate limit allows. */
export const TOO_MANY: Reply = jsonReply(429, { message: 'Too Many Requests' })
/** A queue that is full. */
export const BUSY: Reply = statusReply(503, ['Retry-After', '1'])

/** A body whose fields are wrong, each with its messages. */
export function invalid(errors: FieldErrors): Reply {
  return jsonReply(400, { message: 'Invalid data', errors, status: 400 })
}

/** What nobody foresaw; the operator's log tells it under this id. */
export function serverError(id: string): Reply { return statusReply(500, ['X-Request-Id', id]) }

/** OPTIONS tells the methods of a path; another one that the path does not have is refused. */
export function otherMethod(method: string, allow: readonly string[]): Reply {
  const headers = ['Allow', allow.join(', ')]
  return method === 'OPTIONS' ? { status: 204, headers } : statusReply(405, headers)
}

/** The methods of the whole server. */
export const SERVER_OPTIONS: Reply = otherMethod('OPTIONS', ['GET', 'HEAD', 'POST', 'OPTIONS'])
