/** What a request is refused for before its body is read. A guard gives the answer, or undefined to let it pass. */
import { clientKey, isTrusted } from '../http/address.ts'
import { PREFLIGHT } from '../http/cors.ts'
import type { Head } from '../http/head.ts'
import { foreignIn } from '../http/origin.ts'
import type { Reply } from '../http/reply.ts'
import type { Found } from '../http/router.ts'
import { hasAbility, type Session } from '../store/session.ts'
import {
  FORBIDDEN, FOREIGN_HOST, FOREIGN_ORIGIN, HTTPS_ONLY, NOT_FOUND, otherMethod, SERVER_OPTIONS, TOO_MANY,
  UNAUTHENTICATED, UNEXPECTED
} from './answers.ts'
import type { Exchange, RoutedExchange } from './exchange.ts'
import type { Route } from './route.ts'

const NONE: ReadonlySet<string> = new Set()

/** Whether a request is for what is limited and shared with other origins (contract §8, §9). */
export function isUnderApi({ head, target }: Exchange): boolean {
  const path = head?.path ?? target
  return path.startsWith('/api/') || path === '/api'
}

function isHttps({ options, peer }: Exchange, { 'x-forwarded-proto': proto }: Head): boolean {
  return peer.isSecure ||
    (proto?.toLowerCase() === 'https' && isTrusted(peer.address, options.trustedProxies))
}

/** A request without HTTPS where that is required (contract §5.9). */
export function withoutHttps(x: Exchange, head: Head): Reply | undefined {
  const isRefused = x.options.asksForHttps === true && x.route?.allowsHttp !== true && !isHttps(x, head)
  return isRefused ? HTTPS_ONLY : undefined
}

/** In the open configuration, what a web page may have sent. */
export function foreignPage(x: Exchange, head: Head): Reply | undefined {
  const { guardedHosts, corsOrigins = NONE } = x.options
  if (guardedHosts === undefined) return undefined
  const foreign = foreignIn(head, guardedHosts, corsOrigins, isHttps(x, head) ? 'https' : 'http')
  if (foreign === 'host') return FOREIGN_HOST
  return foreign === 'origin' || (foreign === 'site' && isUnderApi(x)) ? FOREIGN_ORIGIN : undefined
}

/** What a browser asks before the real request (Fetch, "CORS preflight"; contract §5.8) is answered at once. */
export function preflight(x: Exchange, head: Head): Reply | undefined {
  const isAsked = head.method === 'OPTIONS' && head['access-control-request-method'] !== undefined
  if (!isAsked || head.origin === undefined || !isUnderApi(x)) return undefined
  return x.options.corsOrigins?.has(head.origin) === true ? PREFLIGHT : SERVER_OPTIONS
}

/** Who sent the request, in the protected configuration. It refuses nothing; `unauthorized` does. */
export function authenticate({ options }: Exchange, { token }: Head): Session | undefined {
  return token === undefined ? undefined : options.authenticate?.(token)
}

/** Counts a request in the limits of `/api` and its route (contract §8, §8.4); if either is used up, in neither. */
export function tooMany(x: Exchange): Reply | undefined {
  const { options: { rateLimit, limitsByUser }, session, client, route } = x
  const general = isUnderApi(x) ? rateLimit : undefined
  const own = route?.rateLimit
  if (general === undefined && own === undefined) return undefined
  const address = clientKey(client)
  const key = limitsByUser === true && session !== undefined ? `user ${session.user}` : address
  const refused = own?.peek(address)
  if (refused?.allowed === false) {
    const { limit, remaining, retryAfterSeconds } = general?.peek(key) ?? refused
    x.verdict = {
      allowed: false, limit, remaining, retryAfterSeconds: Math.max(retryAfterSeconds, refused.retryAfterSeconds)
    }
    return TOO_MANY
  }
  x.verdict = general?.take(key)
  if (x.verdict?.allowed === false) return TOO_MANY
  const ownVerdict = own?.take(address)
  x.verdict ??= ownVerdict
  return undefined
}

/** Notes the limit of a request that does not count: a page must not use it up for the person at the browser. */
export function uncounted(x: Exchange): void {
  const verdict = isUnderApi(x) ? x.options.rateLimit?.peek(clientKey(x.client)) : undefined
  if (verdict !== undefined) x.verdict = { ...verdict, allowed: true }
}

/** An expectation that cannot be met, and what asks about the whole server (RFC 9110 §9.3.7). */
export function unexpected({ expect, path }: Head): Reply | undefined {
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') return UNEXPECTED
  return path === '*' ? SERVER_OPTIONS : undefined
}

/** A path that does not exist, or a method that it does not have. */
export function unrouted(found: Found<Route>, { method }: Head): Reply | undefined {
  if (found === undefined) return NOT_FOUND
  return found.target === undefined ? otherMethod(method, found.allow) : undefined
}

/** A request without a valid token, or without the ability that the route asks for (contract §5.1, §5.2, §5.6). */
export function unauthorized({ options, session, route: { isPublic, ability } }: RoutedExchange): Reply | undefined {
  if (options.authenticate === undefined || isPublic === true) return undefined
  if (session === undefined) return UNAUTHENTICATED
  return ability === undefined || hasAbility(session.abilities, ability) ? undefined : FORBIDDEN
}

/** Whether a request need not wait for what others have written. */
export function allowsStaleReads({ options, route }: RoutedExchange): boolean {
  return route.allowsStaleReads === true && (options.authenticate === undefined || route.isPublic === true)
}
