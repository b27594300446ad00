/**
 * What refuses or answers a request before it is counted: HTTPS, host and origin, preflights. Each
 * throws its reply.
 */
import { isFromOtherSite, isHostAllowed, isTrusted, type AddressSet, type Peer } from './client.ts'
import type { Head } from './head.ts'
import type { RefusedProxy } from './proxy-warnings.ts'
import * as replies from './reply.ts'
import type { Match } from './router.ts'

/** An undefined option skips its step. */
export interface GuardOptions {
  readonly trustedProxies?: AddressSet | undefined
  /** Whether requests must come by HTTPS, to this program or a trusted proxy. */
  readonly asksForHttps?: boolean
  /** Names allowed in `Host`, in the open configuration. */
  readonly guardedHosts?: ReadonlySet<string> | undefined
  /** Origins whose pages may read answers under `/api`. */
  readonly corsOrigins?: ReadonlySet<string> | undefined
  readonly authenticate?: unknown
}

export interface Guarded {
  /** Limited and shared with other origins (contract §8, §5.8). */
  readonly isUnderApi: boolean
  readonly peer: Peer
  readonly match: Match
}

export function isHttps(
  { trustedProxies }: GuardOptions,
  { peer }: Pick<Guarded, 'peer'>,
  { 'x-forwarded-proto': said }: Head
): boolean {
  return (
    peer.isSecure || (said?.toLowerCase() === 'https' && isTrusted(peer.address, trustedProxies))
  )
}

/** Contract §5.9. */
export function assertHttps(
  options: GuardOptions,
  context: Guarded,
  head: Head,
  warnOfProxy: (refused: RefusedProxy) => void
): void {
  if (options.asksForHttps !== true || isHttps(options, context, head)) return
  // A token must not travel in clear, whatever the route allows.
  const showsToken = options.authenticate !== undefined && head.authorization !== undefined
  if (context.match?.route?.allowsHttp === true && !showsToken) return
  const { address } = context.peer
  const isKnown = isTrusted(address, options.trustedProxies)
  warnOfProxy({ address, isTrusted: isKnown, said: head['x-forwarded-proto'] })
  throw replies.HTTPS_ONLY
}

/**
 * Refuses pages of other sites in the open configuration. A page cannot choose its `Host` (DNS
 * rebinding), nor hide its `Origin` or, on a GET, its site (cross-site requests).
 */
export function assertOwnPage(options: GuardOptions, context: Guarded, head: Head): void {
  const { guardedHosts, corsOrigins } = options
  if (guardedHosts === undefined) return
  const { host = '', origin, 'sec-fetch-site': site } = head
  if (!isHostAllowed(host, guardedHosts)) throw replies.FOREIGN_HOST
  const isForeign =
    origin === undefined
      ? context.isUnderApi && isFromOtherSite(site)
      : corsOrigins?.has(origin) !== true &&
        origin !== `${isHttps(options, context, head) ? 'https' : 'http'}://${host.toLowerCase()}`
  if (isForeign) throw replies.FOREIGN_ORIGIN
}

/** The origins whose pages may read the answer. Undefined: none. */
export function sharedWith(
  { corsOrigins }: GuardOptions,
  { isUnderApi, match }: Guarded
): GuardOptions['corsOrigins'] {
  const isShared = isUnderApi && (match?.route ?? match)?.isNeverShared !== true
  return isShared ? corsOrigins : undefined
}

/** Fetch, "CORS preflight"; contract §5.8. */
export function answerPreflight(options: GuardOptions, context: Guarded, head: Head): void {
  const { method, origin, 'access-control-request-method': wanted } = head
  if (method !== 'OPTIONS' || !context.isUnderApi || wanted === undefined || origin === undefined)
    return
  throw sharedWith(options, context)?.has(origin) === true
    ? replies.PREFLIGHT
    : replies.OPTIONS_OF_SERVER
}
