/**
 * The way of a request, from its head to its answer, in the order in which it happens. Only `readBody` reads a body,
 * and only `admit` leads there: behind every guard.
 */
import { AsyncResource } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { nowMs } from '../clock.ts'
import { Failure } from '../errors.ts'
import { clientAddress } from './address.ts'
import { readBody, type BodyRead } from './body.ts'
import type { Handle } from './connection.ts'
import { corsHeaders } from './cors.ts'
import { forwardedFor, hasTooManyFields, readHead, type Head } from './head.ts'
import { BUSY, statusReply, type Reply } from './reply.ts'
import { NO_PARAMS } from './router.ts'
import { endWith, sendContinue, sendReply } from './send.ts'
import { parseJsonObject } from './json.ts'
import { check, depthOf, type Given } from '../store/validate.ts'
import {
  MAX_BODIES_BYTES, MAX_COMMIT_WAIT_MS, MAX_DRAIN_BYTES, MAX_JSON_DEPTH_LEVELS, MAX_LOCAL_BODY_BYTES
} from '../limits.ts'
import { tokenId, type Session } from '../store/session.ts'
import {
  BAD_REQUEST, CLIENT_GONE, failureReply, FRAGMENTED, invalid, READ_BEFORE, serverError, TOO_LARGE,
  TOO_MANY_FIELDS, UNSUPPORTED
} from './answers.ts'
import { ByteBudget } from './byte-budget.ts'
import type { Context, HeadContext, PipelineOptions, RouteContext } from './context.ts'
import { COUNTED_GUARDS, refusalOf, ROUTE_GUARDS, unauthorized, UNCOUNTED_GUARDS } from './guards.ts'
import { bodyKind } from './media-type.ts'
import { attachLimitHeaders, limitHeaders, takeFromLimits } from './rate-limit.ts'
import { idOf, routerOf, type Route } from './route.ts'

/** Makes the function that answers every request. */
export function createPipeline(options: PipelineOptions): Handle {
  const bodies = new ByteBudget(MAX_BODIES_BYTES)
  return (request, response, target, peer, done) => {
    const head = readHead(request, target)
    const path = head?.path ?? target
    const found = head && options.router.find(head.method, head.path)
    const ctx: Context = {
      options, request, response, peer, done, startMs: options.nowMs(), head,
      isUnderApi: path.startsWith('/api/') || path === '/api',
      client: clientAddress(peer, forwardedFor(request, head), options.trustedProxies),
      found, route: found?.target, params: found?.target === undefined ? NO_PARAMS : found.params,
      session: undefined, verdict: undefined, bodies, heldBytes: 0, isBodyRead: false, isFinished: false
    }
    attempt(ctx, begin)
  }
}

/** Makes the function that answers the operator's requests on the lock socket, which only the folder's owner opens. */
export function createLocalPipeline(
  routes: readonly Route[], catchUp: PipelineOptions['catchUp'], warn: PipelineOptions['warn']
): Handle {
  return createPipeline({
    router: routerOf(routes), maxBodyBytes: MAX_LOCAL_BODY_BYTES, reportsFailures: true, catchUp,
    isStopping: () => false, nowMs, warn
  })
}

/** Takes a step; what it throws is answered. */
function attempt<C extends Context>(ctx: C, step: (ctx: C) => void): void {
  try { step(ctx) } catch (error) { fail(ctx, error) }
}

function begin(ctx: Context): void {
  if (ctx.head !== undefined) return guard(ctx as HeadContext)
  answer(ctx, takeFromLimits(ctx) ?? (hasTooManyFields(ctx.request) ? TOO_MANY_FIELDS : BAD_REQUEST))
}

function guard(ctx: HeadContext): void {
  // No upgrade is supported; whether node:http reads on behind the offer of one depends on its version.
  if (ctx.head.upgrade !== undefined) endWith(ctx.response)
  const uncounted = refusalOf(UNCOUNTED_GUARDS, ctx)
  if (uncounted !== undefined) {
    attachLimitHeaders(ctx)
    return answer(ctx, uncounted)
  }
  ctx.session = authenticate(ctx)
  const refusal = takeFromLimits(ctx) ?? refusalOf(COUNTED_GUARDS, ctx)
  if (refusal !== undefined) return answer(ctx, refusal)
  awaitOthers(ctx as RouteContext)
}

/** Who sent the request, in the protected configuration. It refuses nothing; `unauthorized` does. */
function authenticate({ options, head: { token } }: HeadContext): Session | undefined {
  return token === undefined ? undefined : options.authenticate?.(token)
}

/** Where others write too, waits until what they have written is known. */
function awaitOthers(ctx: RouteContext): void {
  const { catchUp } = ctx.options
  if (catchUp === undefined || allowsStaleReads(ctx)) return admit(ctx)
  catchUp().then(() => attempt(ctx, () => {
    ctx.session = authenticate(ctx)
    admit(ctx)
  }), error => fail(ctx, error, true))
}

/** Whether a request need not wait for what others have written. */
export function allowsStaleReads({ options, route }: RouteContext): boolean {
  return route.allowsStaleReads === true && (options.authenticate === undefined || route.isPublic === true)
}

function admit(ctx: RouteContext): void {
  const refusal = refusalOf(ROUTE_GUARDS, ctx)
  if (refusal !== undefined) return answer(ctx, refusal)
  if (ctx.route.shape !== undefined) return takeBody(ctx)
  if (bodyKind(ctx.head) !== 'none') ctx.request.resume() // nobody asked for it: it is thrown away
  callHandler(ctx, undefined)
}

function takeBody(ctx: RouteContext): void {
  const { head, request, response, options: { maxBodyBytes } } = ctx
  const kind = bodyKind(head)
  if (kind === 'none') return validate(ctx, {})
  if (kind === 'other') return answer(ctx, UNSUPPORTED)
  if (Number(head['content-length'] ?? 0) > maxBodyBytes) return answer(ctx, TOO_LARGE)
  if (request.readableEnded || request.readableEncoding !== null) return takeParsed(ctx)
  if (head.expect !== undefined) sendContinue(response)
  // Node's events of a body are not in the asynchronous context that an embedder has given the request.
  const scope = new AsyncResource('body')
  const take = (body: BodyRead): void => attempt(ctx, () => bodyTaken(ctx, body))
  readBody(request, maxBodyBytes, body => scope.runInAsyncScope(take, undefined, body))
}

/** A body that an embedder's middleware has read, or has as text: what it has made of it, where that came as JSON. */
function takeParsed(ctx: RouteContext): void {
  const { body } = ctx.request as { readonly body?: unknown }
  ctx.isBodyRead = ctx.request.readableEnded
  if (Array.isArray(body) || body === null) return answer(ctx, invalid({ body: ['The body is not an object.'] }))
  if (typeof body !== 'object' || ArrayBuffer.isView(body)) return answer(ctx, READ_BEFORE)
  validate(ctx, body as { readonly [field: string]: unknown })
}

function bodyTaken(ctx: RouteContext, body: BodyRead): void {
  if (body === 'too-large') return answer(ctx, TOO_LARGE)
  if (body === 'too-many-pieces') return answer(ctx, FRAGMENTED)
  if (body === 'read-before') return answer(ctx, READ_BEFORE)
  ctx.isBodyRead = true
  if (body === 'gone') {
    ctx.response.destroy()
    return finish(ctx, CLIENT_GONE)
  }
  if (typeof body === 'number') {
    endWith(ctx.response)
    return answer(ctx, statusReply(body))
  }
  const sinceMs = ctx.options.nowMs()
  ctx.bodies.take(body.length, hasWaited => {
    ctx.heldBytes = body.length
    attempt(ctx, () => bodyAdmitted(ctx, body, hasWaited ? ctx.options.nowMs() - sinceMs : 0))
  })
}

/** A body is worked on once there is room for what is made of it; not where nobody waits for that any more. */
function bodyAdmitted(ctx: RouteContext, body: Extract<BodyRead, Uint8Array>, waitedMs: number): void {
  if (waitedMs > 0 && ctx.request.socket.destroyed) return finish(ctx, CLIENT_GONE)
  if (waitedMs > MAX_COMMIT_WAIT_MS) return answer(ctx, BUSY)
  // A body can take its time: what was revoked meanwhile is refused like any other.
  if (ctx.session !== undefined) {
    ctx.session = authenticate(ctx)
    const refusal = unauthorized(ctx)
    if (refusal !== undefined) return answer(ctx, refusal)
  }
  if (body.length === 0) return validate(ctx, {})
  const parsed = parseJsonObject(body, MAX_JSON_DEPTH_LEVELS, depthOf(ctx.route.shape!))
  if (parsed.ok) return validate(ctx, parsed.value)
  answer(ctx, invalid({ body: [`The body ${parsed.fault} (line ${parsed.line}, column ${parsed.column}).`] }))
}

function validate(ctx: RouteContext, body: Given): void {
  const checked = check(ctx.route.shape!, body)
  if (!checked.ok) return answer(ctx, invalid(checked.errors))
  giveRest(ctx, checked.value)
  callHandler(ctx, checked.value)
}

/** Gives back what a body held besides the texts that were asked for: a login may wait long for its turn. */
function giveRest(ctx: RouteContext, wanted: object): void {
  const texts = Object.values(wanted).map(value => typeof value === 'string' ? value.length : Infinity)
  const kept = Math.min(ctx.heldBytes, texts.reduce((sum, length) => sum + length, 0))
  const rest = ctx.heldBytes - kept
  ctx.heldBytes = kept
  if (rest > 0) ctx.bodies.give(rest)
}

function callHandler(ctx: RouteContext, body: unknown): void {
  const { head, request: { socket }, route, params, client, session } = ctx
  const reply = route.handle({ head, params, body, client, isGone: () => !socket.readable, session })
  if (!('then' in reply)) return answer(ctx, reply) // a host may have put another Promise in the place of Node's
  reply.then(reply => attempt(ctx, () => answer(ctx, reply)), error => fail(ctx, error))
}

/** The one place where a request is answered. */
function answer(ctx: Context, reply: Reply, id?: string): void {
  const { options: { headers, corsOrigins, isStopping }, request, response, head, verdict } = ctx
  // An embedder's middleware may have answered meanwhile, as where that took long.
  if (request.socket.destroyed || response.headersSent) return finish(ctx, CLIENT_GONE, id, reply.logged)
  const extra = headers === undefined ? [] : [...headers]
  if (verdict !== undefined) extra.push(...limitHeaders(verdict))
  if (corsOrigins !== undefined && head !== undefined && ctx.isUnderApi) {
    extra.push(...corsHeaders(head.origin, corsOrigins))
  }
  const isLast = !(ctx.isBodyRead || isRestShort(head)) || isStopping()
  sendReply(response, reply, extra, isLast)
  finish(ctx, reply.status, id, reply.logged)
}

/** Whether what is left of a body is so short that node:http may read it and throw it away. */
function isRestShort(head: Head | undefined): boolean {
  return head !== undefined && head.expect === undefined && head['transfer-encoding'] === undefined &&
    (head['content-length'] === undefined || Number(head['content-length']) <= MAX_DRAIN_BYTES)
}

/** Ends a request, once: gives back what its body held, measures, logs, and lets its connection go on. */
function finish(ctx: Context, status: number, id?: string, logged?: Reply['logged']): void {
  const { options: { nowMs, observers = [], log }, route, session } = ctx
  const ms = nowMs() - ctx.startMs
  ctx.isFinished = true
  try {
    ctx.bodies.give(ctx.heldBytes)
    for (const one of observers) one.requestEnded?.(route?.operation, status, ms)
    log?.({
      request: id ?? randomUUID(), client: ctx.client, user: session?.user ?? null,
      token: session ? tokenId(session.hash) : null, method: ctx.request.method ?? '', route: route?.operation ?? null,
      entry: idOf(ctx.params) || null, status, ms: Math.round(ms * 1000) / 1000, ...logged
    })
  } finally {
    ctx.done()
  }
}

/** A step has thrown, or a handler has rejected; `isStale`: what others have written could not be asked for. */
function fail(ctx: Context, error: unknown, isStale = false): void {
  const { options: { reportsFailures, warn }, response, route } = ctx
  const id = randomUUID()
  const isAnswered = ctx.isFinished || response.headersSent
  const expected = isAnswered
    ? undefined
    : failureReply(error, { isStale, storingFailed: route?.storingFailed, reportsFailures })
  if (expected === undefined) warn(`request ${id} failed: ${describe(error)}`)
  try {
    if (!isAnswered) return answer(ctx, expected ?? serverError(id), id)
  } catch (again) {
    warn(`request ${id} could not be answered: ${describe(again)}`)
  }
  if (!response.writableEnded) response.destroy()
  if (!ctx.isFinished) finish(ctx, 500, id)
}

/** What the log says of an error: of an expected failure its sentence, else the stack. */
function describe(error: unknown): string {
  if (error instanceof Failure) return error.message
  return String(error instanceof Error ? error.stack : error)
}
