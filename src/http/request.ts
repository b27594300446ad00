/** The way of a request, from its head to its answer: `pipelineOf` tells it from top to bottom. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { nowMs } from '../clock.ts'
import { Failure } from '../errors.ts'
import type { Observer } from '../log.ts'
import { covers, type Session } from '../store/session.ts'
import { bodyKind, bodyOf, discard, isRestShort } from './body.ts'
import { clientAddress, clientKey, isTrusted, peerOf, type AddressSet, type Peer } from './client.ts'
import { forwardedFor, hasTooManyFields, readHead, type Head } from './head.ts'
import { answerPreflight, corsHeaders, isFromOtherSite, isHostAllowed } from './origin.ts'
import { limitHeaders, type RateLimit, type Verdict } from './rate-limit.ts'
import * as replies from './reply.ts'
import { failureReply, otherMethod, statusReply, type Reply } from './reply.ts'
import type { Route } from './route.ts'
import { NO_PARAMS, type Found, type Params, type Router } from './router.ts'
import { endWith, sendReply } from './send.ts'

/** The step of an option that is undefined is left out. */
export interface PipelineOptions {
  readonly router: Router<Route>
  /** The limit for everything under `/api`, and whether requests with a token count against its user. */
  readonly rateLimit?: RateLimit | undefined
  readonly limitsByUser?: boolean
  readonly trustedProxies?: AddressSet | undefined
  /** Whether a request is refused that reached neither this program nor a trusted proxy by HTTPS. */
  readonly asksForHttps?: boolean
  /** The guard of the open configuration: the names that a `Host` may have besides its own. */
  readonly guardedHosts?: ReadonlySet<string> | undefined
  /** Origins whose pages may read answers under `/api`. */
  readonly corsOrigins?: ReadonlySet<string> | undefined
  /** The protected configuration: who a token belongs to. */
  readonly authenticate?: ((token: string) => Session | undefined) | undefined
  /** See `Journal.catchUp`. */
  readonly catchUp?: (() => Promise<void>) | undefined
  readonly maxBodyBytes: number
  /** Header fields of every answer, names and values in turn. */
  readonly headers?: readonly string[]
  readonly observers?: readonly Observer[]
  /** Takes what the operator should know and the client should not. */
  readonly warn: (line: string) => void
}

/** Answers requests; the target is another one than the request's where an embedder serves below a prefix. */
export interface Pipeline {
  (request: IncomingMessage, response: ServerResponse, target?: string): void
  readonly isStopping: () => boolean
  /** From now on each answer ends its connection; resolves once none is under way, or after `timeoutMs`. */
  stop(timeoutMs: number): Promise<void>
}

/** A request, and what has been found out about it so far. */
interface Asked {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly socket: IncomingMessage['socket']
  readonly startMs: number
  readonly head: Head | undefined
  /** Whether it is for what is limited and shared with other origins (contract §8, §9). */
  readonly isUnderApi: boolean
  readonly peer: Peer
  /** The client's address. */
  readonly client: string
  readonly found: Found<Route>
  readonly route: Route | undefined
  readonly params: Params
  session: Session | undefined
  /** What the rate limit says of it, once it was counted. */
  verdict: Verdict | undefined
  /** Whether what others have written is being asked for. */
  isStale: boolean
  isAnswered: boolean
  isEnded: boolean
}

/** Makes the function that answers every request. */
export function pipelineOf(options: PipelineOptions): Pipeline {
  const { observers = [], warn } = options
  let underWay = 0
  let [isStopping, hasWarned] = [false, false]
  let onIdle = (): void => {}

  /** The way of a request. Whatever refuses it throws the reply, and no body is read before it has to be. */
  async function carryOut(asked: Asked): Promise<void> {
    const { request, response, head, params } = asked
    try {
      if (head === undefined) {
        count(options, asked)
        throw hasTooManyFields(request) ? replies.TOO_MANY_FIELDS : replies.BAD_REQUEST
      }
      // No upgrade is supported; whether node:http reads on behind the offer of one depends on its version.
      if (head.upgrade !== undefined) endWith(response)
      assertHttps(options, asked, head)
      assertOwnPage(options, asked, head)
      if (asked.isUnderApi) answerPreflight(head, options.corsOrigins)
      asked.session = sessionOf(options, head)
      count(options, asked)
      const route = routeOf(asked, head)
      if (options.catchUp !== undefined && needsOthers(options, route)) {
        asked.isStale = true
        await options.catchUp()
        asked.isStale = false
        asked.session = sessionOf(options, head)
      }
      assertMay(options, asked.session, route)
      const refusal = route.before?.(params)
      if (refusal !== undefined) throw refusal
      let body: unknown
      if (route.shape !== undefined) {
        body = await bodyOf(request, response, head, route.shape, options.maxBodyBytes)
        if (asked.session !== undefined) asked.session = sessionOf(options, head) // it may have been revoked meanwhile
        assertMay(options, asked.session, route)
      } else if (bodyKind(head) !== 'none') discard(request) // nobody asked for it
      const { client, session, socket } = asked
      const reply = route.handle({ head, params, body, client, session, isGone: () => socket.destroyed })
      answer(asked, 'then' in reply ? await reply : reply) // at once, where nothing had to be waited for
    } catch (thrown) {
      fail(asked, thrown)
    }
  }

  /** The one place where a request is answered. */
  function answer(asked: Asked, reply: Reply, id?: string): void {
    const { request, response, head } = asked
    asked.isAnswered = true
    if (asked.socket.destroyed || request.socket === null || reply === replies.CLIENT_GONE) {
      response.destroy()
      return end(asked, replies.CLIENT_GONE.status, reply.logged, id)
    }
    if (response.headersSent) {
      if (!hasWarned) warn(ANSWERED_BY_HOST)
      hasWarned = true
      return end(asked, replies.CLIENT_GONE.status, reply.logged, id)
    }
    const extra = [...options.headers ?? []]
    const verdict = asked.verdict ?? leftFor(options, asked)
    if (verdict !== undefined) extra.push(...limitHeaders(verdict))
    if (options.corsOrigins !== undefined && head !== undefined && asked.isUnderApi) {
      extra.push(...corsHeaders(head.origin, options.corsOrigins))
    }
    const isLast = reply.isLast === true || isStopping || !(request.complete || isRestShort(head))
    sendReply(response, reply, extra, isLast)
    end(asked, reply.status, reply.logged, id)
  }

  /** A step has thrown: the reply, or what went wrong, as a rejected handler does. */
  function fail(asked: Asked, thrown: unknown): void {
    const { response, route, isStale } = asked
    if (!asked.isAnswered) {
      try {
        if (isReply(thrown)) return answer(asked, thrown)
        const expected = failureReply(thrown, { isStale, storingFailed: route?.storingFailed })
        const id = randomUUID()
        if (expected === undefined) warn(`request ${id} failed: ${describe(thrown)}`)
        return answer(asked, expected ?? statusReply(500, ['X-Request-Id', id]), id)
      } catch (error) {
        return fail(asked, error)
      }
    }
    const id = randomUUID()
    warn(`request ${id} could not be answered: ${describe(thrown)}`)
    if (!response.writableEnded) response.destroy()
    if (!asked.isEnded) end(asked, 500, undefined, id)
  }

  function end(asked: Asked, status: number, logged: Reply['logged'], id: string | undefined): void {
    asked.isEnded = true
    const { request: { method = '' }, route, params, client, session, startMs } = asked
    const ended = { id, method, route, params, client, session, logged, status, ms: nowMs() - startMs }
    for (const one of observers) one.requestEnded?.(ended)
  }

  const pipeline = (request: IncomingMessage, response: ServerResponse, target: string = request.url ?? ''): void => {
    const peer = peerOf(request.socket)
    if (peer === undefined) return // its client is gone
    underWay++
    void carryOut(begun(options, peer, request, response, target)).then(() => {
      if (--underWay === 0) onIdle()
    })
  }
  const stop = (timeoutMs: number): Promise<void> => new Promise(resolve => {
    isStopping = true
    const timer = setTimeout(() => resolve(), timeoutMs)
    const before = onIdle
    onIdle = () => { clearTimeout(timer); resolve(); before() }
    if (underWay === 0) onIdle()
  })
  return Object.assign(pipeline, { isStopping: () => isStopping, stop })
}

const ANSWERED_BY_HOST = 'a request was answered by the host while the service worked on it, and what it asked for ' +
  'was done: a framework that answers by itself has to be told not to, such as Koa by ctx.respond = false'

function begun(
  { router, trustedProxies }: PipelineOptions, peer: Peer, request: IncomingMessage, response: ServerResponse,
  target: string
): Asked {
  const head = readHead(request, target)
  const path = head?.path ?? target
  const found = head && router.find(head.method, path)
  return {
    request, response, socket: request.socket, startMs: nowMs(), head, peer,
    isUnderApi: path.startsWith('/api/') || path === '/api',
    client: clientAddress(peer, forwardedFor(request, head), trustedProxies),
    found, route: found?.target, params: found?.target === undefined ? NO_PARAMS : found.params,
    session: undefined, verdict: undefined, isStale: false, isAnswered: false, isEnded: false
  }
}

function isReply(thrown: unknown): thrown is Reply {
  return typeof thrown === 'object' && thrown !== null && !(thrown instanceof Error) && 'status' in thrown
}

/** What the log says of an error: of an expected failure its sentence, else the stack. */
function describe(error: unknown): string {
  if (error instanceof Failure) return error.message
  return String(error instanceof Error ? error.stack : error)
}

function isHttps({ trustedProxies }: PipelineOptions, { peer }: Asked, { 'x-forwarded-proto': said }: Head): boolean {
  return peer.isSecure || (said?.toLowerCase() === 'https' && isTrusted(peer.address, trustedProxies))
}

/** Refuses a request without HTTPS where that is required (contract §5.9). */
function assertHttps(options: PipelineOptions, asked: Asked, head: Head): void {
  if (options.asksForHttps !== true || asked.route?.allowsHttp === true) return
  if (!isHttps(options, asked, head)) throw replies.HTTPS_ONLY
}

/**
 * In the open configuration, refuses what a web page may have sent. A page can send requests anywhere, but it cannot
 * choose the `Host` that its own name gives them (which defeats DNS rebinding), nor leave out its `Origin` or, on a
 * plain GET, what the browser reports about its site (which defeats cross-site requests).
 */
function assertOwnPage(options: PipelineOptions, asked: Asked, head: Head): void {
  const { guardedHosts, corsOrigins } = options
  if (guardedHosts === undefined) return
  const { host = '', origin, 'sec-fetch-site': site } = head
  if (!isHostAllowed(host, guardedHosts)) throw replies.FOREIGN_HOST
  const isForeign = origin === undefined ? asked.isUnderApi && isFromOtherSite(site)
    : corsOrigins?.has(origin) !== true &&
      origin !== `${isHttps(options, asked, head) ? 'https' : 'http'}://${host.toLowerCase()}`
  if (isForeign) throw replies.FOREIGN_ORIGIN
}

/** Who sent the request, in the protected configuration; a token that is not valid is refused where one is needed. */
function sessionOf({ authenticate }: PipelineOptions, { token }: Head): Session | undefined {
  return token === undefined ? undefined : authenticate?.(token)
}

const generalLimit = ({ rateLimit }: PipelineOptions, { isUnderApi }: Asked): RateLimit | undefined =>
  isUnderApi ? rateLimit : undefined
const addressKey = ({ client, peer }: Asked): string => client === peer.address ? peer.key : clientKey(client)

/** Counts a request in the limits of `/api` and its route (contract §8, §8.4); if either is used up, in neither. */
function count(options: PipelineOptions, asked: Asked): void {
  const { session, route } = asked
  const general = generalLimit(options, asked)
  const own = route?.limit
  if (general === undefined && own === undefined) return
  const address = addressKey(asked)
  const key = options.limitsByUser === true && session !== undefined ? `user ${session.user}` : address
  const refused = own?.peek(address)
  if (refused?.allowed === false) {
    const { limit, remaining, retryAfterSeconds } = general?.peek(key) ?? refused
    const longest = Math.max(retryAfterSeconds, refused.retryAfterSeconds)
    asked.verdict = { allowed: false, limit, remaining, retryAfterSeconds: longest }
    throw replies.TOO_MANY
  }
  asked.verdict = general?.take(key)
  if (asked.verdict?.allowed === false) throw replies.TOO_MANY
  const ownVerdict = own?.take(address)
  asked.verdict ??= ownVerdict
}

/** What is left for a client whose request was not counted. */
function leftFor(options: PipelineOptions, asked: Asked): Verdict | undefined {
  const verdict = generalLimit(options, asked)?.peek(addressKey(asked))
  return verdict && { ...verdict, allowed: true }
}

function routeOf({ found }: Asked, { expect, path, method }: Head): Route {
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') throw replies.UNEXPECTED
  if (path === '*') throw replies.OPTIONS_OF_SERVER // it asks about the whole server (RFC 9110 §9.3.7)
  if (found === undefined) throw replies.NOT_FOUND
  if (found.target === undefined) throw otherMethod(method, found.allow)
  return found.target
}

/** Whether a request has to know what others have just written; a create is decided when its turn comes. */
function needsOthers({ authenticate }: PipelineOptions, { method, isPublic, before }: Route): boolean {
  return method === 'GET' ? isPublic !== true : authenticate !== undefined || before !== undefined
}

/** Refuses who has no valid token, or whose token lacks the ability of the route (contract §5.1, §5.2, §5.6). */
function assertMay({ authenticate }: PipelineOptions, session: Session | undefined, route: Route): void {
  if (authenticate === undefined || route.isPublic === true) return
  if (session === undefined) throw replies.UNAUTHENTICATED
  if (route.ability !== undefined && !covers(session.abilities, route.ability)) throw replies.FORBIDDEN
}
