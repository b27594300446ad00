/**
 * The guard of the open configuration: no web page may reach it. A page can send requests anywhere, but it cannot
 * choose the `Host` that its own name gives them (which defeats DNS rebinding), nor leave out its `Origin` on
 * anything but a plain GET (which defeats cross-site requests; the answer of such a GET is hidden from it).
 */
import { isIP } from 'node:net'

/** Whether a `Host` names this machine and not some page's domain: an IP literal, `localhost`, or an allowed name. */
export function isHostAllowed(host: string, allowed: ReadonlySet<string>): boolean {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(host)
  if (bracketed !== null) return isIP(bracketed[1]!) === 6
  const name = host.replace(/:\d+$/, '').toLowerCase()
  return name === 'localhost' || isIP(name) === 4 || allowed.has(name) || allowed.has(host.toLowerCase())
}

/** Whether an `Origin` is the service itself, as the request's `Host` names it, or an allowed one. */
export function isOriginAllowed(origin: string, scheme: string, host: string, allowed: ReadonlySet<string>): boolean {
  return origin === `${scheme}://${host.toLowerCase()}` || allowed.has(origin)
}
