/** The way of a request, from its head to its answer: `replyTo` tells it. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { nowMs } from '../clock.ts'
import { Failure } from '../errors.ts'
import type { Observer } from '../log.ts'
import { covers, type Session } from '../store/session.ts'
import { bodyKind, bodyOf, discard, isRestShort, ListenerRequest } from './body.ts'
import {
  clientAddress, clientKey, isFromOtherSite, isHostAllowed, isTrusted, peerOf, type AddressSet, type Peer
} from './client.ts'
import { forwardedFor, hasTooManyFields, readHead, tokenIn, type Head } from './head.ts'
import { limitHeaders, type RateLimit, type Verdict } from './rate-limit.ts'
import * as replies from './reply.ts'
import { failureReply, statusReply, type Reply } from './reply.ts'
import type { Found, Route, Router } from './route.ts'
import { endWith, sendReply } from './send.ts'

/** The step of an option that is undefined is left out. */
export interface PipelineOptions {
  readonly router: Router
  /** The limit for everything under `/api`, and whether requests with a token count against its user. */
  readonly rateLimit?: RateLimit | undefined
  readonly limitsByUser?: boolean
  readonly trustedProxies?: AddressSet | undefined
  /** Whether a request is refused that reached neither this program nor a trusted proxy by HTTPS. */
  readonly asksForHttps?: boolean
  /** In the open configuration: the names that a `Host` may have besides this machine's own. */
  readonly guardedHosts?: ReadonlySet<string> | undefined
  /** Origins whose pages may read answers under `/api`. */
  readonly corsOrigins?: ReadonlySet<string> | undefined
  /** In the protected configuration: whose token it is. */
  readonly authenticate?: ((token: string) => Session | undefined) | undefined
  /** See `Journal.catchUp`. */
  readonly catchUp?: ((mustBeNewest?: boolean) => Promise<void>) | undefined
  readonly maxBodyBytes: number
  /** Header fields of every answer, names and values in turn. */
  readonly headers?: readonly string[]
  readonly observers?: readonly Observer[]
  /** Takes what the operator should know and the client should not. */
  readonly warn: (line: string) => void
}

/** Answers requests; the target is not the request's if an embedder serves below a prefix. */
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
  /** Undefined if it is malformed. */
  readonly head: Head | undefined
  /** Whether it is limited, and shared with other origins (contract §8, §5.8). */
  readonly isUnderApi: boolean
  readonly peer: Peer
  /** The client's address. */
  readonly client: string
  readonly found: Found
  session: Session | undefined
  /** What the rate limit says, once the request was counted. */
  verdict: Verdict | undefined
  /** The id that the log has, if it was given out or may be asked for. */
  id: string | undefined
  isEnded: boolean
}

/**
 * The way of a request: each step throws the reply that refuses it, and no body is read before it has to be. If nothing
 * has to be waited for, the answer is sent before a next request is looked at.
 */
async function carryOut(options: PipelineOptions, asked: Asked, state: PipelineState): Promise<void> {
  const { request, response, head, client, socket } = asked
  let reply: Reply | Promise<Reply>
  try {
    if (head === undefined) {
      count(options, asked)
      throw hasTooManyFields(request) ? replies.TOO_MANY_FIELDS : replies.BAD_REQUEST
    }
    if (head.upgrade !== undefined) endWith(response) // none is supported; some versions of Node read on behind it
    assertHttps(options, asked, head)
    assertOwnPage(options, asked, head)
    answerPreflight(options, asked, head)
    asked.session = sessionOf(options, head)
    count(options, asked)
    const { route, id } = foundFor(asked, head)
    if (options.catchUp !== undefined && needsOthers(options, route)) {
      const mustBeNewest = tokenIn(head) !== undefined && asked.session === undefined // it may be a new token
      await catchUp(() => options.catchUp!(mustBeNewest), route)
      asked.session = sessionOf(options, head)
    }
    assertMay(options, asked.session, route)
    const refusal = route.before?.(id)
    if (refusal !== undefined) throw refusal
    let body: unknown
    if (route.shape !== undefined) {
      body = await bodyOf(request, response, head, route.shape, options.maxBodyBytes)
      if (asked.session !== undefined) asked.session = sessionOf(options, head) // it may have been revoked meanwhile
      assertMay(options, asked.session, route)
    } else if (bodyKind(head) !== 'none') discard(request)
    reply = route.handle({ head, id, body, client, session: asked.session, isGone: () => socket.destroyed })
    if ('then' in reply) reply = await reply
  } catch (thrown) {
    reply = refusalOf(options, asked, thrown)
  }
  answer(options, asked, reply, state)
}

/** Makes the function that answers every request. */
export function pipelineOf(options: PipelineOptions): Pipeline {
  const state = { isStopping: false, hasWarned: false }
  let underWay = 0
  let onIdle = (): void => {}
  const pipeline = (request: IncomingMessage, response: ServerResponse, target: string = request.url ?? ''): void => {
    const peer = peerOf(request.socket)
    if (peer === undefined) return // its client is gone
    underWay++
    void carryOut(options, begun(options, peer, request, response, target), state).then(() => {
      if (--underWay === 0) onIdle()
    })
  }
  const stop = (timeoutMs: number): Promise<void> => new Promise(resolve => {
    state.isStopping = true
    const timer = setTimeout(() => resolve(), timeoutMs)
    const before = onIdle
    onIdle = () => { clearTimeout(timer); resolve(); before() }
    if (underWay === 0) onIdle()
  })
  return Object.assign(pipeline, { isStopping: () => state.isStopping, stop })
}

/** What requests share. */
interface PipelineState {
  readonly isStopping: boolean
  /** Whether the operator knows that the host answers, too. */
  hasWarned: boolean
}

function begun(
  { router, trustedProxies }: PipelineOptions, peer: Peer, request: IncomingMessage, response: ServerResponse,
  target: string
): Asked {
  const head = readHead(request, target)
  const path = head?.path ?? target
  return {
    request, response, socket: request.socket, startMs: nowMs(), head, peer,
    isUnderApi: path.startsWith('/api/') || path === '/api',
    client: clientAddress(peer, forwardedFor(request, head), trustedProxies),
    found: head && router.find(head.method, path),
    session: undefined, verdict: undefined, id: undefined, isEnded: false
  }
}

/** The reply that a step has thrown, or the answer to what went wrong. */
function refusalOf(options: PipelineOptions, asked: Asked, thrown: unknown): Reply {
  if (isReply(thrown)) return thrown
  asked.id = randomUUID()
  const expected = failureReply(thrown, asked.found?.route?.storingFailed)
  if (expected !== undefined) return expected
  options.warn(`request ${asked.id} failed: ${describe(thrown)}`)
  return statusReply(500, ['X-Request-Id', asked.id])
}

/** Answers a request, once, and tells the observers. Never throws. */
function answer(options: PipelineOptions, asked: Asked, reply: Reply, state: PipelineState): void {
  try {
    end(options, asked, send(options, asked, reply, state), reply.logged)
  } catch (error) {
    asked.id = randomUUID()
    options.warn(`request ${asked.id} could not be answered: ${describe(error)}`)
    if (!asked.response.writableEnded) asked.response.destroy()
    if (!asked.isEnded) end(options, asked, 500)
  }
}

/** Sends a reply, if anybody takes it; gives the status for the log. */
function send(options: PipelineOptions, asked: Asked, reply: Reply, state: PipelineState): number {
  const { request, response, head, socket } = asked
  if (socket.destroyed || request.socket === null || reply === replies.CLIENT_GONE) {
    response.destroy()
    return replies.CLIENT_GONE.status
  }
  if (response.headersSent) {
    if (!state.hasWarned) options.warn(ANSWERED_BY_HOST)
    state.hasWarned = true
    return replies.CLIENT_GONE.status
  }
  const isLast = reply.isLast === true || state.isStopping || !(request.complete || isRestShort(head))
  // Over TLS an answer is out a turn later than what follows its head is read: thousands of chunks, of each client.
  if (isLast && request instanceof ListenerRequest) request.isDiscarded = true
  sendReply(response, reply, extraFields(options, asked), isLast)
  return reply.status
}

const ANSWERED_BY_HOST = 'a request was answered by the host while the service worked on it, and what it asked for ' +
  'was done: a framework that answers by itself has to be told not to, such as Koa by ctx.respond = false'

/** The header fields that an answer has besides its reply's. */
function extraFields(options: PipelineOptions, asked: Asked): string[] {
  const { headers = [], corsOrigins } = options
  const fields = [...headers]
  const verdict = asked.verdict ?? limitOf(options, asked)?.peek(addressKey(asked))
  // A request that was not counted is not refused either: it is told what is left.
  if (verdict !== undefined) fields.push(...limitHeaders(asked.verdict ?? { ...verdict, allowed: true }))
  if (corsOrigins !== undefined && asked.head !== undefined && asked.isUnderApi) {
    fields.push(...corsFields(asked.head.origin, corsOrigins))
  }
  return fields
}

function end({ observers = [] }: PipelineOptions, asked: Asked, status: number, logged?: Reply['logged']): void {
  asked.isEnded = true
  const { id, request: { method = '' }, found, client, session, startMs } = asked
  const { route, id: entry } = found?.route === undefined ? { route: undefined, id: 0 } : found
  const ended = { id, method, route, entry, client, session, logged, status, ms: nowMs() - startMs }
  for (const one of observers) one.requestEnded?.(ended)
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

/** Contract §5.9. */
function assertHttps(options: PipelineOptions, asked: Asked, head: Head): void {
  if (options.asksForHttps !== true || asked.found?.route?.allowsHttp === true) return
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

/** Answers what a browser asks before the real request (Fetch, "CORS preflight"; contract §5.8). */
function answerPreflight({ corsOrigins }: PipelineOptions, { isUnderApi }: Asked, head: Head): void {
  const { method, origin, 'access-control-request-method': wanted } = head
  if (method !== 'OPTIONS' || !isUnderApi || wanted === undefined || origin === undefined) return
  throw corsOrigins?.has(origin) === true ? replies.PREFLIGHT : replies.OPTIONS_OF_SERVER
}

/** What lets a page read an answer, if its origin may (contract §5.8); `Vary` in any case. */
function corsFields(origin: string | undefined, allowed: ReadonlySet<string>): string[] {
  const vary = ['Vary', 'Origin']
  if (origin === undefined || !allowed.has(origin)) return vary
  return [
    ...vary, 'Access-Control-Allow-Origin', origin, 'Access-Control-Allow-Credentials', 'true',
    'Access-Control-Expose-Headers', 'X-RateLimit-Limit, X-RateLimit-Remaining, Retry-After, ETag, Location'
  ]
}

/** Who sent the request, in the protected configuration; a token that is not valid is refused if the route needs one. */
function sessionOf({ authenticate }: PipelineOptions, head: Head): Session | undefined {
  const token = authenticate && tokenIn(head)
  return token === undefined ? undefined : authenticate?.(token)
}

function limitOf({ rateLimit }: PipelineOptions, { isUnderApi }: Asked): RateLimit | undefined {
  return isUnderApi ? rateLimit : undefined
}

function addressKey({ client, peer }: Asked): string { return client === peer.address ? peer.key : clientKey(client) }

/** Counts a request in the limits of `/api` and of its route (contract §8, §8.4); if either is used up, in neither. */
function count(options: PipelineOptions, asked: Asked): void {
  const general = limitOf(options, asked)
  const own = asked.found?.route?.limit
  if (general === undefined && own === undefined) return
  const { session } = asked
  const address = addressKey(asked)
  const key = options.limitsByUser === true && session !== undefined ? `user ${session.user}` : address
  const refused = own?.peek(address)
  if (refused?.allowed === false) {
    const shown = general?.peek(key) ?? refused
    const retryAfterSeconds = Math.max(shown.retryAfterSeconds, refused.retryAfterSeconds)
    asked.verdict = { ...shown, allowed: false, retryAfterSeconds }
    throw replies.TOO_MANY
  }
  asked.verdict = general?.take(key)
  if (asked.verdict?.allowed === false) throw replies.TOO_MANY
  const ownVerdict = own?.take(address)
  asked.verdict ??= ownVerdict
}

function foundFor({ found }: Asked, { expect, path, method }: Head): { readonly route: Route, readonly id: number } {
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') throw replies.UNEXPECTED
  if (path === '*') throw replies.OPTIONS_OF_SERVER // it asks about the whole server (RFC 9110 §9.3.7)
  if (found === undefined) throw replies.NOT_FOUND
  if (found.route === undefined) throw replies.otherMethod(method, found.allow)
  return found
}

/** Whether a request has to know what others have just written; a create is decided when its turn comes. */
function needsOthers({ authenticate }: PipelineOptions, { method, isPublic, before }: Route): boolean {
  return method === 'GET' ? isPublic !== true : authenticate !== undefined || before !== undefined
}

async function catchUp(ask: () => Promise<void>, { storingFailed }: Route): Promise<void> {
  try {
    await ask()
  } catch (error) {
    throw error instanceof Failure ? failureReply(error, storingFailed) ?? replies.BUSY : error
  }
}

/** Refuses who has no valid token, or whose token lacks the ability of the route (contract §5.1, §5.2, §5.6). */
function assertMay({ authenticate }: PipelineOptions, session: Session | undefined, route: Route): void {
  if (authenticate === undefined || route.isPublic === true) return
  if (session === undefined) throw replies.UNAUTHENTICATED
  if (route.ability !== undefined && !covers(session.abilities, route.ability)) throw replies.FORBIDDEN
}
