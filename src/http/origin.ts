/** What is known of the web page that may have sent a request: by its `Host`, its `Origin` and its site. */
import { isOwnLiteral } from './client.ts'
import type { Head } from './head.ts'
import { OPTIONS_OF_SERVER, PREFLIGHT } from './reply.ts'

/** The host that was allowed last: mostly it is that of the next request as well. */
const lastAllowed = new WeakMap<ReadonlySet<string>, string>()

/** Whether a `Host` names this machine and not some page's domain: an IP literal, `localhost`, or an allowed name. */
export function isHostAllowed(host: string, allowed: ReadonlySet<string>): boolean {
  if (lastAllowed.get(allowed) === host) return true
  const given = host.toLowerCase()
  const name = /^(\[[^\]]+\]|[^:]*)(?::\d+)?$/.exec(given)?.[1] ?? ''
  const isAllowed = name === 'localhost' || allowed.has(given) || allowed.has(name) || isOwnLiteral(name)
  if (isAllowed) lastAllowed.set(allowed, host)
  return isAllowed
}

/** Whether a browser reports that another site's page sent a request (Fetch Metadata). */
export function isFromOtherSite(site: string | undefined): boolean {
  return site === 'cross-site' || site === 'same-site'
}

/** Throws the answer to what a browser asks before the real request (Fetch, "CORS preflight"; contract §5.8). */
export function answerPreflight(head: Head, allowed: ReadonlySet<string> | undefined): void {
  const isAsked = head.method === 'OPTIONS' && head['access-control-request-method'] !== undefined
  if (!isAsked || head.origin === undefined) return
  throw allowed?.has(head.origin) === true ? PREFLIGHT : OPTIONS_OF_SERVER
}

const VARY = ['Vary', 'Origin']

/** The header fields that let a page read an answer, if its origin may (contract §5.8); `Vary` in any case. */
export function corsHeaders(origin: string | undefined, allowed: ReadonlySet<string>): string[] {
  if (origin === undefined || !allowed.has(origin)) return VARY
  return [
    ...VARY, 'Access-Control-Allow-Origin', origin, 'Access-Control-Allow-Credentials', 'true',
    'Access-Control-Expose-Headers', 'X-RateLimit-Limit, X-RateLimit-Remaining, Retry-After, ETag, Location'
  ]
}
