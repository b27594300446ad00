/**
 * The way of a request, from its head to its answer, in the order in which it happens. Only `readJson` reads a body,
 * and only `admit` leads there: behind every guard.
 */
import { randomUUID } from 'node:crypto'
import { clientAddress } from '../http/address.ts'
import { bodyKind, readBody } from '../http/body.ts'
import { corsHeaders } from '../http/cors.ts'
import { readHead } from '../http/head.ts'
import type { Answer } from '../http/listener.ts'
import { limitHeaders } from '../http/rate-limit.ts'
import { sendContinue, sendReply, sendReplyUnread, statusReply, type Reply } from '../http/reply.ts'
import { parseJsonObject } from '../json/parse.ts'
import { check } from '../json/validator.ts'
import { MAX_JSON_DEPTH_LEVELS } from '../limits.ts'
import { tokenId } from '../store/session.ts'
import { BAD_REQUEST, CLIENT_GONE, failureReply, invalid, serverError, TOO_LARGE, UNSUPPORTED } from './answers.ts'
import { idOf } from './entry-routes.ts'
import type { Exchange, PipelineOptions, RoutedExchange } from './exchange.ts'
import {
  allowsStaleReads, authenticate, foreignPage, isUnderApi, preflight, tooMany, unauthorized, uncounted, unexpected,
  unrouted, withoutHttps
} from './guards.ts'

/** Makes the function that answers every request. */
export function createPipeline(options: PipelineOptions): Answer {
  return (request, response, done, target, peer) => {
    const x: Exchange = {
      options, request, response, peer, target, done, startMs: options.nowMs(), head: undefined, client: peer.address,
      route: undefined, params: {}, session: undefined, verdict: undefined, isBodyRead: false, isRecorded: false
    }
    attempt(x, () => begin(x))
  }
}

/** Takes a step; what it throws is answered. */
function attempt(x: Exchange, step: () => void): void {
  try { step() } catch (error) { fail(x, error) }
}

function begin(x: Exchange): void {
  const { trustedProxies, router } = x.options
  const head = x.head = readHead(x.request, x.target)
  x.client = clientAddress(x.peer.address, head?.['x-forwarded-for'], trustedProxies)
  if (head === undefined) return answer(x, tooMany(x) ?? BAD_REQUEST)
  // No upgrade is supported, but node:http does not read what follows the offer of one.
  if (head.upgrade !== undefined) x.response.shouldKeepAlive = false
  const found = router.find(head.method, head.path)
  if (found?.target !== undefined) { x.route = found.target; x.params = found.params }

  const uncountedAnswer = withoutHttps(x, head) ?? foreignPage(x, head) ?? preflight(x, head)
  if (uncountedAnswer !== undefined) { uncounted(x); return answer(x, uncountedAnswer) }
  x.session = authenticate(x, head)
  const refused = tooMany(x) ?? unexpected(head) ?? unrouted(found, head)
  if (refused !== undefined) return answer(x, refused)
  catchUp(x as RoutedExchange)
}

/** Where others write too, waits until what they have written is known. */
function catchUp(x: RoutedExchange): void {
  const { readBarrier } = x.options
  if (readBarrier === undefined || allowsStaleReads(x)) return admit(x)
  readBarrier().then(() => attempt(x, () => {
    x.session = authenticate(x, x.head)
    admit(x)
  }), error => fail(x, error, true))
}

function admit(x: RoutedExchange): void {
  const refused = unauthorized(x) ?? x.route.beforeBody?.(x.params)
  if (refused !== undefined) return answer(x, refused)
  if (x.route.shape === undefined) handle(x, undefined)
  else readJson(x)
}

function readJson(x: RoutedExchange): void {
  const { head, request, response, options: { maxBodyBytes } } = x
  const kind = bodyKind(head)
  if (kind === 'none') return validate(x, {})
  if (kind === 'other') return answer(x, UNSUPPORTED)
  if (Number(head['content-length'] ?? 0) > maxBodyBytes) return answer(x, TOO_LARGE)
  if (head.expect !== undefined) sendContinue(response)
  readBody(request, maxBodyBytes, body => attempt(x, () => {
    if (body === 'too-large') return answer(x, TOO_LARGE)
    x.isBodyRead = true
    if (body === 'gone') { response.destroy(); return record(x, CLIENT_GONE) }
    if (typeof body === 'number') { response.shouldKeepAlive = false; return answer(x, statusReply(body)) }
    // A body can take its time: what was revoked meanwhile is refused like any other.
    const refused = x.session && unauthorized({ ...x, session: authenticate(x, head) })
    if (refused !== undefined) return answer(x, refused)
    if (body.length === 0) return validate(x, {})
    const parsed = parseJsonObject(body, MAX_JSON_DEPTH_LEVELS)
    if (parsed.ok) return validate(x, parsed.value)
    answer(x, invalid({ body: [`The body ${parsed.fault} (line ${parsed.line}, column ${parsed.column}).`] }))
  }))
}

function validate(x: RoutedExchange, body: { readonly [field: string]: unknown }): void {
  const checked = check(x.route.shape!, body)
  if (checked.ok) handle(x, checked.value)
  else answer(x, invalid(checked.errors))
}

function handle(x: RoutedExchange, body: unknown): void {
  const { head, request: { socket }, route, params, client, session } = x
  const reply = route.handle({ head, params, body, client, isGone: () => !socket.readable, session })
  if (!(reply instanceof Promise)) return answer(x, reply)
  reply.then(reply => attempt(x, () => answer(x, reply)), error => fail(x, error))
}

/** The one place where a request is answered. */
function answer(x: Exchange, reply: Reply, id?: string): void {
  const { options: { headers = [], corsOrigins, isStopping }, request, response, head, verdict } = x
  if (request.socket.destroyed) return record(x, CLIENT_GONE, id, reply.logged)
  const extra = [...headers]
  if (verdict !== undefined) extra.push(...limitHeaders(verdict))
  if (corsOrigins !== undefined && head !== undefined && isUnderApi(x)) {
    extra.push(...corsHeaders(head.origin, corsOrigins))
  }
  if (x.isBodyRead) sendReply(response, reply, extra, isStopping())
  else sendReplyUnread(request, response, head, reply, extra, isStopping())
  record(x, reply.status, id, reply.logged)
}

/** The one place where a request is measured and logged, once it is answered or its client is gone. */
function record(x: Exchange, status: number, id?: string, logged?: Reply['logged']): void {
  const { options: { nowMs, observers = [], log }, route, session } = x
  const ms = nowMs() - x.startMs
  x.isRecorded = true
  for (const one of observers) one.requestEnded?.(route?.operation, status, ms)
  log?.({
    request: id ?? randomUUID(), client: x.client, user: session?.user ?? null,
    token: session ? tokenId(session.hash) : null, method: x.request.method ?? '', route: route?.operation ?? null,
    entry: idOf(x.params) || null, status, ms: Math.round(ms * 1000) / 1000, ...logged
  })
  x.done()
}

/** A step has thrown, or a handler has rejected; `isStale`: what others have written could not be asked for. */
function fail(x: Exchange, error: unknown, isStale = false): void {
  const { options: { reportsFailures, warn }, response, route } = x
  const expected = failureReply(error, { isStale, storingFailed: route?.storingFailed, reportsFailures })
  if (expected !== undefined && !response.headersSent) return answer(x, expected)
  const id = randomUUID()
  warn(`request ${id} failed: ${error instanceof Error ? error.stack : String(error)}`)
  if (!response.headersSent) return answer(x, serverError(id), id)
  response.destroy()
  if (x.isRecorded) x.done()
  else record(x, 500, id)
}
