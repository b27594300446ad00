/**
 * Cross-origin requests with credentials, for named origins (Fetch standard, "HTTP extensions"): the header fields by
 * which a browser lets a page of such an origin send its request and read the answer.
 */
import { CORS_MAX_AGE_SECONDS } from '../limits.ts'
import type { Reply } from './reply.ts'

const VARY = ['Vary', 'Origin']

/** The header fields that let a page read an answer, if its origin may (contract §5.8); `Vary` in any case. */
export function corsHeaders(origin: string | undefined, allowed: ReadonlySet<string>): string[] {
  if (origin === undefined || !allowed.has(origin)) return VARY
  return [
    ...VARY, 'Access-Control-Allow-Origin', origin, 'Access-Control-Allow-Credentials', 'true',
    'Access-Control-Expose-Headers', 'X-RateLimit-Limit, X-RateLimit-Remaining, Retry-After, ETag, Location'
  ]
}

/** The answer to a preflight, to which `corsHeaders` are added as to every other. */
export const PREFLIGHT: Reply = {
  status: 204,
  headers: [
    'Access-Control-Allow-Methods', 'GET, HEAD, POST',
    'Access-Control-Allow-Headers', 'Authorization, Content-Type, Accept, If-Match',
    'Access-Control-Max-Age', String(CORS_MAX_AGE_SECONDS)
  ]
}
