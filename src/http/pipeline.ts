/** A request's way from head to answer: see `carryOut`. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Failure } from '../errors.ts'
import type { Observer } from '../log.ts'
import { mayCall, type Session } from '../rights/rights.ts'
import { bodyKind, bodyOf, discard, isRestShort } from './body.ts'
import { clientAddress, clientKey, peerOf, type Peer } from './client.ts'
import { forwardedFor, hasTooManyFields, readHead, tokenIn, type Head } from './head.ts'
import {
  answerPreflight,
  assertHttps,
  assertOwnPage,
  isHttps,
  sharedWith,
  type Guarded,
  type GuardOptions
} from './guards.ts'
import { endBehindAnswer, ListenerRequest } from './connection.ts'
import { proxyWarnings } from './proxy-warnings.ts'
import { limitHeaders, takeBoth, type RateLimit, type Verdict } from './rate-limit.ts'
import * as replies from './reply.ts'
import { failureReply, HSTS, statusReply, type Reply } from './reply.ts'
import type { Call, MatchedRoute, Route, Router } from './router.ts'
import { respond } from './sending.ts'

/** An undefined option skips its step. */
export interface PipelineOptions extends GuardOptions {
  readonly router: Router
  readonly rateLimit?: RateLimit | undefined
  /** Whether requests with a token are counted by its user. */
  readonly limitsByUser?: boolean
  /** Undefined in the open configuration. */
  readonly authenticate?: ((token: string, client: string) => Session | undefined) | undefined
  /** See `Journal.catchUp`. */
  readonly catchUp?: ((mustBeNewest?: boolean) => Promise<void>) | undefined
  readonly recorder?: Recorder | undefined
  readonly maxBodyBytes: number
  /** Names and values in turn. */
  readonly headers?: readonly string[]
  readonly observers?: readonly Observer[]
  readonly warn: (line: string) => void
}

/** Sees to it that nobody is sent a password before it is recorded (`Reply.tells`). */
export interface Recorder {
  /** Whether the reply tells nothing new. */
  isRecorded(call: Call<unknown>, reply: Reply): boolean
  /** The answer, made again in the turn in which it is recorded. */
  recorded(call: Call<unknown>, reply: Reply): Promise<Reply>
}

/** `target`: below an embedder's prefix. */
export interface Pipeline {
  (request: IncomingMessage, response: ServerResponse, target?: string): void
  readonly isStopping: () => boolean
  /**
   * From now on, each answer ends its connection. Resolves once no request is under way, or after
   * `timeoutMs`.
   */
  stop(timeoutMs: number): Promise<void>
}

interface RequestContext extends Guarded {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly socket: IncomingMessage['socket']
  readonly startMs: number
  readonly head: Head | undefined
  readonly client: string
  session: Session | undefined
  verdict: Verdict | undefined
  id: string | undefined
}

interface PipelineState {
  isStopping: boolean
  underWay: number
  onIdle: () => void
  readonly warnOfProxy: ReturnType<typeof proxyWarnings>
}

/**
 * Each step throws the reply that refuses the request. No body is read before that is needed.
 * Without a wait, the answer is sent before the next request is looked at. Invariant: behind a wait
 * the token is looked up again, since it may have been revoked, narrowed, or issued. Not behind a
 * change, which was judged in its turn. Never rejects.
 */
async function carryOut(
  options: PipelineOptions,
  context: RequestContext,
  state: PipelineState
): Promise<void> {
  const { request, response, head, client } = context
  let reply: Reply
  try {
    if (head === undefined) {
      count(options, context)
      throw hasTooManyFields(request) ? replies.TOO_MANY_FIELDS : replies.BAD_REQUEST
    }
    // no upgrade is supported, and some Nodes would read on
    if (head.upgrade !== undefined) endBehindAnswer(response)
    assertHttps(options, context, head, state.warnOfProxy)
    assertOwnPage(options, context, head)
    answerPreflight(options, context, head)

    context.session = sessionOf(options, context, head)
    count(options, context)
    const { route, id, version } = matchedRoute(context, head)
    if (options.catchUp !== undefined && needsOthers(options, route)) {
      await catchUp(options.catchUp, options, context, head, route)
      context.session = sessionOf(options, context, head)
    }
    assertMay(options, context, route)
    const refusal = route.before?.(id, context.session)
    if (refusal !== undefined) throw refusal

    let body: unknown
    if (route.shape !== undefined) {
      body = await bodyOf(request, response, head, route.shape, options.maxBodyBytes)
      context.session = sessionOf(options, context, head)
      assertMay(options, context, route)
    } else if (bodyKind(head) !== 'none') discard(request)

    const call = { route, head, id, version, body, client, request, session: context.session }
    const handled = route.handle(call)
    const hasWaited = 'then' in handled
    reply = hasWaited ? await handled : handled
    if (hasWaited && route.method === 'GET' && route.isPublic !== true) {
      context.session = sessionOf(options, context, head)
      assertMay(options, context, route)
      // The answer was made for a token that saw something else.
      if (context.session?.token !== call.session?.token) throw replies.BUSY
    }

    // A change records by itself what it tells. A HEAD tells nothing.
    const { recorder } = options
    if (recorder !== undefined && reply.tells !== undefined && head.method === 'GET') {
      if (!recorder.isRecorded(call, reply))
        reply = await recorder.recorded(call, reply).catch(throwUnrecorded)
    }
  } catch (thrown) {
    reply = refusalOf(options, context, thrown)
  }
  answer(options, context, reply, state)
  if (--state.underWay === 0) state.onIdle()
}

export function pipelineOf(options: PipelineOptions): Pipeline {
  const state: PipelineState = {
    isStopping: false,
    underWay: 0,
    onIdle: () => {},
    warnOfProxy: proxyWarnings(options.warn)
  }
  const pipeline = (
    request: IncomingMessage,
    response: ServerResponse,
    target: string = request.url ?? ''
  ): void => {
    const peer = peerOf(request.socket)
    if (peer === undefined) return // its client is gone
    state.underWay++
    void carryOut(options, contextOf(options, peer, request, response, target), state)
  }
  const stop = (timeoutMs: number): Promise<void> =>
    new Promise(resolve => {
      state.isStopping = true
      const timer = setTimeout(resolve, timeoutMs)
      state.onIdle = () => {
        clearTimeout(timer)
        resolve()
      }
      if (state.underWay === 0) state.onIdle()
    })
  return Object.assign(pipeline, { isStopping: () => state.isStopping, stop })
}

function contextOf(
  { router, trustedProxies }: PipelineOptions,
  peer: Peer,
  request: IncomingMessage,
  response: ServerResponse,
  target: string
): RequestContext {
  const head = readHead(request, target)
  const path = head?.path ?? target
  return {
    request,
    response,
    socket: request.socket,
    startMs: performance.now(),
    head,
    peer,
    isUnderApi: path.startsWith('/api/') || path === '/api',
    client: clientAddress(peer, forwardedFor(request, head), trustedProxies),
    match: head && router.find(head.method, path),
    session: undefined,
    verdict: undefined,
    id: undefined
  }
}

function throwUnrecorded(error: unknown): never {
  throw error instanceof Failure ? (failureReply(error, undefined) ?? replies.UNRECORDED) : error
}

function refusalOf(options: PipelineOptions, context: RequestContext, thrown: unknown): Reply {
  if (replies.isReply(thrown)) return thrown
  context.id = randomUUID()
  const expected = failureReply(thrown, context.match?.route?.storingFailed)
  if (expected !== undefined) return expected
  options.warn(`request ${context.id} failed: ${describe(thrown)}`)
  return statusReply(500, ['X-Request-Id', context.id])
}

function answer(
  options: PipelineOptions,
  context: RequestContext,
  reply: Reply,
  state: PipelineState
): void {
  let status = 500
  try {
    status = send(options, context, reply, state)
  } catch (error) {
    context.id = randomUUID()
    options.warn(`request ${context.id} could not be answered: ${describe(error)}`)
    if (!context.response.writableEnded) context.response.destroy()
  }
  const {
    id,
    request: { method = '' },
    match,
    client,
    session,
    startMs
  } = context
  const { route, id: entry } = match?.route === undefined ? { route: undefined, id: 0 } : match
  const ms = performance.now() - startMs
  const ended = { id, method, route, entry, client, session, logged: reply.logged, status, ms }
  for (const one of options.observers ?? []) one.requestEnded?.(ended)
}

/** Gives the status for the log. */
function send(
  options: PipelineOptions,
  context: RequestContext,
  reply: Reply,
  state: PipelineState
): number {
  const { request, response, head, socket } = context
  if (socket.destroyed || request.socket === null || reply === replies.CLIENT_GONE) {
    response.destroy()
    return replies.CLIENT_GONE.status
  }
  const isLast =
    reply.isLast === true ||
    state.isStopping ||
    !(request.complete || isRestShort(head)) ||
    isExpecting(request, head)
  // Over TLS, many chunks may be read before an answer is out.
  if (isLast && request instanceof ListenerRequest) request.isDiscarded = true
  respond(response, reply, commonHeaders(options, context, reply), isLast)
  return reply.status
}

/** Whether a client that expects `100 Continue` is answered without it. */
function isExpecting(request: IncomingMessage, head: Head | undefined): boolean {
  const { expect } = head ?? request.headers
  return (
    expect?.toLowerCase() === '100-continue' &&
    request instanceof ListenerRequest &&
    request.isContinued !== true
  )
}

function commonHeaders(
  options: PipelineOptions,
  context: RequestContext,
  { status }: Reply
): string[] {
  const { headers = [] } = options
  const fields = [...headers]
  const isByProxy =
    options.asksForHttps === true && headers.length === 0 && context.head !== undefined
  if (isByProxy && isHttps(options, context, context.head!)) fields.push(...HSTS)
  const left = context.verdict ?? limitOf(options, context)?.peek(addressKey(context))
  if (left !== undefined) {
    // A request that was not counted is not refused, though nothing may be left.
    const shown = context.verdict ?? { ...left, allowed: true }
    fields.push(
      ...limitHeaders(status === replies.TOO_MANY.status ? { ...shown, remaining: 0 } : shown)
    )
  }
  const origins = sharedWith(options, context)
  if (origins !== undefined && context.head !== undefined) {
    fields.push(...replies.corsFields(context.head.origin, origins))
  }
  return fields
}

function describe(error: unknown): string {
  return error instanceof Failure
    ? error.message
    : String((error instanceof Error && error.stack) || error)
}

/** An invalid token matters only to a route that needs one. */
function sessionOf(
  { authenticate }: PipelineOptions,
  context: RequestContext,
  head: Head
): Session | undefined {
  const token = authenticate && tokenIn(head)
  return token === undefined ? undefined : authenticate?.(token, addressKey(context))
}

const limitOf = (
  { rateLimit }: PipelineOptions,
  { isUnderApi }: RequestContext
): RateLimit | undefined => (isUnderApi ? rateLimit : undefined)

function addressKey({ client, peer }: RequestContext): string {
  return client === peer.address ? peer.key : clientKey(client)
}

/** Contract §8, §8.4. */
function count(options: PipelineOptions, context: RequestContext): void {
  const general = limitOf(options, context)
  const route = context.match?.route
  const own = route?.limit
  if (general === undefined && own === undefined) return
  const address = addressKey(context)
  const key =
    options.limitsByUser === true &&
    context.session !== undefined &&
    route?.isCountedByAddress !== true
      ? `user ${context.session.user}`
      : address
  context.verdict = takeBoth(general, key, own, address)
  if (context.verdict?.allowed === false) throw replies.TOO_MANY
}

function matchedRoute({ match }: RequestContext, { expect, path, method }: Head): MatchedRoute {
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') throw replies.UNEXPECTED
  if (path === '*') throw replies.OPTIONS_OF_SERVER // the whole server (RFC 9110 §9.3.7)
  if (match === undefined) throw replies.NOT_FOUND
  if (match.route === undefined) throw replies.otherMethod(method, match.allow)
  return match
}

/**
 * What others wrote decides about tokens and ids. A change that needs neither is decided in its
 * turn alone.
 */
function needsOthers(
  { authenticate }: PipelineOptions,
  { method, isPublic, before }: Route
): boolean {
  return method === 'GET' ? isPublic !== true : authenticate !== undefined || before !== undefined
}

/** Even with stale reads, an unknown token is asked for: another instance may have issued it. */
async function catchUp(
  readOthers: NonNullable<PipelineOptions['catchUp']>,
  { authenticate }: PipelineOptions,
  { session }: RequestContext,
  head: Head,
  { storingFailed }: Route
): Promise<void> {
  const isUnknownToken =
    authenticate !== undefined && session === undefined && tokenIn(head) !== undefined
  try {
    await readOthers(isUnknownToken)
  } catch (error) {
    throw error instanceof Failure ? (failureReply(error, storingFailed) ?? replies.BUSY) : error
  }
}

/** Refuses invalid tokens and missing abilities (contract §5.1, §5.2, §5.6). */
function assertMay(
  { authenticate }: PipelineOptions,
  { session }: RequestContext,
  route: Route
): void {
  if (authenticate === undefined || route.isPublic === true) return
  if (session === undefined) throw replies.UNAUTHENTICATED
  if (!mayCall(session.abilities, route.abilities)) throw replies.FORBIDDEN
}
