/**
 * The guard of the open configuration: no web page may reach it. A page can send requests anywhere, but it cannot
 * choose the `Host` that its own name gives them (which defeats DNS rebinding), nor leave out its `Origin` or, on a
 * plain GET, what the browser says of its site (which defeats cross-site requests).
 */
import { isIP } from 'node:net'

/** Whether a `Host` names this machine and not some page's domain: an IP literal, `localhost`, or an allowed name. */
export function isHostAllowed(host: string, allowed: ReadonlySet<string>): boolean {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(host)
  if (bracketed !== null) return isIP(bracketed[1]!) === 6
  const name = host.replace(/:\d+$/, '').toLowerCase()
  return name === 'localhost' || isIP(name) === 4 || allowed.has(name) || allowed.has(host.toLowerCase())
}

/** Whether a browser says that another site's page asks (Fetch Metadata); for what is sent without an `Origin`. */
export function isFromOtherSite(fetchSite: string | undefined): boolean {
  return fetchSite === 'cross-site' || fetchSite === 'same-site'
}

/** Whether an `Origin` is the service itself, as the request's `Host` names it, or an allowed one. */
export function isOriginAllowed(origin: string, scheme: string, host: string, allowed: ReadonlySet<string>): boolean {
  return origin === `${scheme}://${host.toLowerCase()}` || allowed.has(origin)
}
