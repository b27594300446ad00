/**
 * `POST /api/proxyLogin`: a token for a user for whom a trusted proxy or host vouches. All refusals
 * are answered alike.
 */
import { Buffer } from 'node:buffer'
import { clientKey, isTrusted, peerOf, type Peer } from '../../http/client.ts'
import { isHttps } from '../../http/guards.ts'
import type { Head } from '../../http/head.ts'
import type { IncomingMessage } from '../../http/listener.ts'
import { RateLimit } from '../../http/rate-limit.ts'
import type { Call } from '../../http/router.ts'
import { INVALID_CREDENTIALS, loginReply, assertWithin } from '../../accounts/login-routes.ts'
import { LOGIN_LIMIT_REQUESTS, MAX_LOGIN_PAIRS, PROXY_WARNING_MS } from '../../limits.ts'
import type { PartContext } from '../../part.ts'
import type { Accounts } from '../../accounts/accounts.ts'
import { vouchedUser } from '../../accounts/logins.ts'
import { addressOf } from '../../rights/rights.ts'
import { email as emailRule } from '../../rights/validate.ts'
import {
  answered,
  TEXT,
  type DescribedRoute,
  type RouteDescription
} from '../routes/described-route.ts'
import type { ProxyLoginSettings } from './part.ts'
import { SECRET_HEADER, type Secret } from './secret.ts'

interface ProxyLogin extends Pick<
  PartContext<ProxyLoginSettings>,
  'settings' | 'store' | 'log' | 'vouchedFor'
> {
  readonly accounts: Accounts
  /** Undefined if only the host vouches. */
  readonly secret: Secret | undefined
}

/** `kind`: refusals of one kind are warned of once in a while. Undefined: no warning. */
interface Refusal {
  readonly kind?: string
  readonly why: string
}

export function proxyLoginRoute(context: ProxyLogin): DescribedRoute {
  const {
    settings: { loginLimit, tokenTtlMinutes },
    accounts,
    store: { state },
    log
  } = context
  const warnOf = onceInAWhile(log.warn)
  // As for a login by password.
  const pairs = loginLimit === 0 ? undefined : new RateLimit(LOGIN_LIMIT_REQUESTS, MAX_LOGIN_PAIRS)
  return {
    operation: 'proxyLogin',
    method: 'POST',
    path: '/api/proxyLogin',
    description: DESCRIPTION,
    isPublic: true,
    isNeverShared: true,
    limit: loginLimit === 0 ? undefined : new RateLimit(loginLimit),
    storingFailed: 'Error logging in',
    handle: async call => {
      const email = vouchedIn(context, call)
      if (typeof email !== 'string') {
        warnOf(email)
        return INVALID_CREDENTIALS
      }
      const user = vouchedUser(state, email)
      assertWithin(pairs, `${clientKey(call.client)} ${addressOf(email)}`)
      const issued = await accounts.loginVouched(email, tokenTtlMinutes!)
      if (issued === undefined) warnOf(refusalOf(email, user?.isLocked))
      return loginReply(issued, user?.id)
    }
  }
}

function vouchedIn(
  { settings, vouchedFor, secret }: ProxyLogin,
  { request, head }: Call<unknown>
): string | Refusal {
  const peer = request && peerOf(request.socket)
  if (request === undefined || peer === undefined) return { why: 'its connection has ended' }
  const { trustProxy, proxyLoginHeader } = settings
  if (!isOwnPage({ trustedProxies: trustProxy }, peer, head)) {
    return { kind: 'page', why: 'it does not come from the page of this service' }
  }
  const user = vouchedFor?.(request)
  if (user !== undefined)
    return isAddress(user) ? user : { kind: 'host', why: 'the host vouches for no address' }
  if (secret === undefined || proxyLoginHeader === undefined)
    return { why: 'the host vouches for nobody' }
  if (!isTrusted(peer.address, trustProxy)) {
    return {
      kind: 'peer',
      why: `${peer.address || 'a Unix socket'}, which sends it, is not in TRUST_PROXY`
    }
  }
  const [shown, ...others] = valuesOf(request, SECRET_HEADER)
  if (shown === undefined || others.length > 0) {
    return {
      kind: 'secret',
      why: `the proxy must set X-Proxy-Login-Secret, once, where it sets ${proxyLoginHeader}`
    }
  }
  if (!secret(shown)) {
    return {
      kind: 'secret',
      why:
        'X-Proxy-Login-Secret is not what PROXY_LOGIN_SECRET_FILE had ' +
        'at the start of the service'
    }
  }
  const [value, ...more] = valuesOf(request, proxyLoginHeader.toLowerCase())
  const email = value && Buffer.from(value, 'latin1').toString('utf8')
  if (email !== undefined && more.length === 0 && isAddress(email)) return email
  return {
    kind: 'header',
    why: `the proxy must set ${proxyLoginHeader}, once, to one e-mail address`
  }
}

/** Of one person, fit for a log; U+FFFD was no UTF-8. */
function isAddress(given: string): boolean {
  return !/[,\ufffd\p{C}]/u.test(given) && emailRule.fault('email', given) === undefined
}

/**
 * A page cannot forge its site (Fetch Metadata), nor, in a browser without that, its `Origin` on a
 * POST.
 */
function isOwnPage(trusted: Parameters<typeof isHttps>[0], peer: Peer, head: Head): boolean {
  const { host = '', origin, 'sec-fetch-site': site } = head
  if (site !== undefined) return site === 'same-origin'
  return origin === `${isHttps(trusted, { peer }, head) ? 'https' : 'http'}://${host.toLowerCase()}`
}

/** One for each line of the field: node:http would join or drop some. */
function valuesOf({ rawHeaders }: IncomingMessage, name: string): readonly string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]!.toLowerCase() === name)
}

function refusalOf(email: string, isLocked: boolean | undefined): Refusal {
  return isLocked === true
    ? {
        kind: 'locked',
        why: `a salvage has locked ${email}: user password ${email}, with --remove for no password`
      }
    : { kind: 'user', why: `no user has the address ${email}: user add ${email} --no-password` }
}

function onceInAWhile(
  warn: (line: string) => void,
  nowMs: () => number = () => performance.now()
): (refusal: Refusal) => void {
  const warnedMs = new Map<string, number>()
  return ({ kind, why }) => {
    if (kind === undefined || (warnedMs.get(kind) ?? -Infinity) > nowMs() - PROXY_WARNING_MS) return
    warnedMs.set(kind, nowMs())
    warn(`a login at /api/proxyLogin was refused: ${why}`)
  }
}

const DESCRIPTION: RouteDescription = {
  tag: 'session',
  summary: 'Log in as whom a proxy in front of the service vouches for',
  description:
    'Issues a token as a login does, without password and code, if a trusted proxy names a ' +
    'user. For the page of the service alone: no other origin may ask.',
  answers: {
    loggedIn: answered({
      token: ['pes_47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU', TEXT],
      user: [
        {
          id: 1,
          email: 'ana@example.org',
          name: 'ana',
          abilities: ['*'],
          secondFactor: false,
          hasPassword: false
        },
        { $ref: '#/components/schemas/User' }
      ],
      expires: ['2026-01-31T12:00:00.000Z', TEXT]
    }),
    refused: INVALID_CREDENTIALS
  }
}
