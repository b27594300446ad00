/**
 * The guards: what a request is refused for before its body is read. A guard gives the answer, or undefined to let the
 * request pass, and changes nothing. The three lists below are asked in their order, each from its top.
 */
import { isOwnLiteral, isTrusted } from './address.ts'
import { PREFLIGHT } from './cors.ts'
import type { Reply } from './reply.ts'
import { covers } from '../store/session.ts'
import {
  FORBIDDEN, FOREIGN_HOST, FOREIGN_ORIGIN, HTTPS_ONLY, NOT_FOUND, otherMethod, OPTIONS_OF_SERVER, UNAUTHENTICATED,
  UNEXPECTED
} from './answers.ts'
import type { HeadContext, RouteContext } from './context.ts'

type Guard<C extends HeadContext> = (ctx: C) => Reply | undefined

const NONE: ReadonlySet<string> = new Set()

/** The answer of the first guard that does not let a request pass. */
export function refusalOf<C extends HeadContext>(guards: readonly Guard<C>[], ctx: C): Reply | undefined {
  for (const guard of guards) {
    const refusal = guard(ctx)
    if (refusal !== undefined) return refusal
  }
  return undefined
}

function isHttps({ options, peer, head }: HeadContext): boolean {
  return peer.isSecure ||
    (head['x-forwarded-proto']?.toLowerCase() === 'https' && isTrusted(peer.address, options.trustedProxies))
}

/** A request without HTTPS where that is required (contract §5.9). */
function withoutHttps(ctx: HeadContext): Reply | undefined {
  const isRefused = ctx.options.asksForHttps === true && ctx.route?.allowsHttp !== true && !isHttps(ctx)
  return isRefused ? HTTPS_ONLY : undefined
}

/**
 * In the open configuration, what a web page may have sent. A page can send requests anywhere, but it cannot choose the
 * `Host` that its own name gives them (which defeats DNS rebinding), nor leave out its `Origin` or, on a plain GET,
 * what the browser reports about its site (which defeats cross-site requests).
 */
function foreignPage(ctx: HeadContext): Reply | undefined {
  const { head: { host = '', origin, 'sec-fetch-site': site }, options: { guardedHosts, corsOrigins = NONE } } = ctx
  if (guardedHosts === undefined) return undefined
  if (!isHostAllowed(host, guardedHosts)) return FOREIGN_HOST
  const isForeign = origin === undefined ? ctx.isUnderApi && isFromOtherSite(site)
    : !corsOrigins.has(origin) && origin !== `${isHttps(ctx) ? 'https' : 'http'}://${host.toLowerCase()}`
  return isForeign ? FOREIGN_ORIGIN : undefined
}

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

/** What a browser asks before the real request (Fetch, "CORS preflight"; contract §5.8) is answered at once. */
function preflight({ head, options, isUnderApi }: HeadContext): Reply | undefined {
  const isAsked = head.method === 'OPTIONS' && head['access-control-request-method'] !== undefined
  if (!isAsked || head.origin === undefined || !isUnderApi) return undefined
  return options.corsOrigins?.has(head.origin) === true ? PREFLIGHT : OPTIONS_OF_SERVER
}

function unmetExpectation({ head: { expect } }: HeadContext): Reply | undefined {
  return expect !== undefined && expect.toLowerCase() !== '100-continue' ? UNEXPECTED : undefined
}

/** What asks about the whole server (RFC 9110 §9.3.7). */
function wholeServer({ head: { path } }: HeadContext): Reply | undefined {
  return path === '*' ? OPTIONS_OF_SERVER : undefined
}

function noSuchRoute({ found, head: { method } }: HeadContext): Reply | undefined {
  if (found === undefined) return NOT_FOUND
  return found.target === undefined ? otherMethod(method, found.allow) : undefined
}

/** A request without a valid token, or without the ability that the route asks for (contract §5.1, §5.2, §5.6). */
export function unauthorized({ options, session, route: { isPublic, ability } }: RouteContext): Reply | undefined {
  if (options.authenticate === undefined || isPublic === true) return undefined
  if (session === undefined) return UNAUTHENTICATED
  return ability === undefined || covers(session.abilities, ability) ? undefined : FORBIDDEN
}

/** What the route itself refuses without a look at the body, such as an unknown id. */
function refusedByRoute({ route, params }: RouteContext): Reply | undefined { return route.beforeBody?.(params) }

/** Asked first. What they answer does not count in the limits: a page must not use up those of a browser's user. */
export const UNCOUNTED_GUARDS: readonly Guard<HeadContext>[] = [withoutHttps, foreignPage, preflight]
/** Asked once the token was looked up and the request was counted. */
export const COUNTED_GUARDS: readonly Guard<HeadContext>[] = [unmetExpectation, wholeServer, noSuchRoute]
/** Asked once everything is known that others have written. */
export const ROUTE_GUARDS: readonly Guard<RouteContext>[] = [unauthorized, refusedByRoute]
