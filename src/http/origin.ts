/**
 * The guard of the open configuration: no web page may reach it. A page can send requests anywhere, but it cannot
 * choose the `Host` that its own name gives them (which defeats DNS rebinding), nor leave out its `Origin` or, on a
 * plain GET, what the browser reports about its site (which defeats cross-site requests).
 */
import { isIPv4, isIPv6 } from 'node:net'
import { isMapped, isUnspecified } from './address.ts'
import type { Head } from './head.ts'

const HOST_AND_PORT = /^(?:\[([^\]]+)\]|([^:]*))(?::\d+)?$/

/**
 * Whether a `Host` names this machine and not some page's domain: an IP literal, `localhost`, or an allowed name. The
 * unspecified address and IPv4 mapped into IPv6 are foreign: to browsers they are not this machine's own, so that they
 * let pages of other sites send there what they do not send to 127.0.0.1, and without saying so.
 */
export function isHostAllowed(host: string, allowed: ReadonlySet<string>): boolean {
  if (lastAllowed.get(allowed) === host) return true
  const isAllowed = namesThisMachine(host, allowed)
  if (isAllowed) lastAllowed.set(allowed, host)
  return isAllowed
}

/** The host that was allowed last: mostly it is that of the next request as well. */
const lastAllowed = new WeakMap<ReadonlySet<string>, string>()

function namesThisMachine(host: string, allowed: ReadonlySet<string>): boolean {
  const given = host.toLowerCase()
  const [, bracketed, name = ''] = HOST_AND_PORT.exec(given) ?? []
  if (name === 'localhost' || allowed.has(given) || allowed.has(name)) return true
  if (bracketed === undefined) return isIPv4(name) && !isUnspecified(name)
  return isIPv6(bracketed) && !isUnspecified(bracketed) && !isMapped(bracketed)
}

/**
 * Whether a browser reports that another site's page sent a request (Fetch Metadata); for requests without an `Origin`.
 */
export function isFromOtherSite(fetchSite: string | undefined): boolean {
  return fetchSite === 'cross-site' || fetchSite === 'same-site'
}

/** Whether an `Origin` is the service itself, as the request's `Host` names it, or an allowed one. */
export function isOriginAllowed(origin: string, scheme: string, host: string, allowed: ReadonlySet<string>): boolean {
  return origin === `${scheme}://${host.toLowerCase()}` || allowed.has(origin)
}

/** What of a request is a foreign page's: its `Host`, its `Origin`, or, where it has none, its site. */
export function foreignIn(
  head: Head, hosts: ReadonlySet<string>, origins: ReadonlySet<string>, scheme: 'http' | 'https'
): 'host' | 'origin' | 'site' | undefined {
  const { host = '', origin } = head
  if (!isHostAllowed(host, hosts)) return 'host'
  if (origin === undefined) return isFromOtherSite(head['sec-fetch-site']) ? 'site' : undefined
  return isOriginAllowed(origin, scheme, host, origins) ? undefined : 'origin'
}
