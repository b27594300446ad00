/** The way of a request, from its head to its answer. No step reads the body before those above it had their say. */
import { randomUUID } from 'node:crypto'
import { Failure } from '../errors.ts'
import type { LoggedRequest } from '../http/access-log.ts'
import { clientAddress, clientKey, isTrusted, type AddressSet } from '../http/address.ts'
import { readBody, type BodyRead } from '../http/body.ts'
import { corsHeaders, isPreflight, PREFLIGHT } from '../http/cors.ts'
import { bearerToken, hasBody, isJson, readHead, type Head } from '../http/head.ts'
import type { Answer, IncomingMessage, ServerResponse } from '../http/listener.ts'
import { isFromOtherSite, isHostAllowed, isOriginAllowed } from '../http/origin.ts'
import { limitHeaders, type RateLimit, type Verdict } from '../http/rate-limit.ts'
import { said, sendContinue, sendReply, sendReplyUnread, type Reply } from '../http/reply.ts'
import type { Found, Router } from '../http/router.ts'
import { parseJsonObject } from '../json/parse.ts'
import { check } from '../json/shape.ts'
import { MAX_JSON_DEPTH_LEVELS } from '../limits.ts'
import { isAble, tokenId, type Session } from '../store/accounts.ts'
import {
  BAD_REQUEST, BUSY, FOREIGN_HOST, FOREIGN_ORIGIN, HTTPS_ONLY, invalid, NOT_FOUND, otherMethod, SERVER_OPTIONS,
  serverError, TOO_LARGE, TOO_MANY, UNABLE, UNAUTHENTICATED, UNEXPECTED, UNSUPPORTED
} from './answers.ts'
import { idOf } from './entries.ts'
import { HEALTH_PATHS } from './health.ts'
import type { Route } from './route.ts'

/** What the way leads through. What is undefined is not on it. */
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
  /** See `Journal.current`. */
  readonly current?: (() => Promise<void>) | undefined
  readonly maxBodyBytes: number
  /** Header fields of every answer, names and values in turn. */
  readonly headers?: readonly string[]
  /** Whether an answer tells what failed: for the operator, who has every right to know. */
  readonly tellsFailures?: boolean
  /** Whether the service is about to stop: then each answer ends its connection. */
  readonly isStopping: () => boolean
  /** A clock that never goes back, milliseconds. */
  readonly nowMs: () => number
  /** Takes the operation (undefined where none had its turn), the status, and the milliseconds since the head came. */
  readonly count?: (operation: string | undefined, status: number, ms: number) => void
  readonly log?: ((request: LoggedRequest) => void) | undefined
  /** Takes what the operator should know and the client should not. */
  readonly warn: (line: string) => void
}

/** What the access log says where a client left before it could be answered (nginx's number for it). */
const CLIENT_GONE = 499

const NONE: ReadonlySet<string> = new Set()

/** Makes the function that answers every request. */
export function createPipeline(options: PipelineOptions): Answer {
  return (request, response, done, target) => {
    new Exchange(options, request, response, done).start(target)
  }
}

class Exchange {
  readonly #options: PipelineOptions
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #done: () => void
  readonly #startMs: number
  #head: Head | undefined
  #client = ''
  #session: Session | undefined
  #verdict: Verdict | undefined
  #found: FoundRoute | undefined
  #isBodyRead = false

  constructor(options: PipelineOptions, request: IncomingMessage, response: ServerResponse, done: () => void) {
    this.#options = options
    this.#request = request
    this.#response = response
    this.#done = done
    this.#startMs = options.nowMs()
  }

  start(target: string): void { this.#run(() => this.#answer(target)) }

  /** Takes a step; what it throws is answered. */
  #run(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.#fail(error)
    }
  }

  /** The way to a route. */
  #answer(target: string): void {
    const { router, rateLimit, limitsByUser, current } = this.#options
    const head = this.#head = readHead(this.#request, target)
    const peer = this.#request.socket.remoteAddress ?? ''
    this.#client = clientAddress(peer, head?.forwardedFor, this.#options.trustedProxies)
    const limit = isUnderApi(head?.path ?? target) ? rateLimit : undefined
    if (head === undefined) return this.#send(this.#tooMany(limit) ?? BAD_REQUEST)

    // What is refused here does not count: a page must not use up what the person before the browser has left.
    const early = this.#refusal(head) ?? this.#preflight(head)
    if (early !== undefined) {
      this.#verdict = limit?.peek(clientKey(this.#client))
      return this.#send(early)
    }

    this.#session = this.#authenticate(head)
    const refused = this.#tooMany(limit, limitsByUser) ?? unexpected(head)
    if (refused !== undefined) return this.#send(refused)
    const found = router.find(head.method, head.path)
    if (found === undefined) return this.#send(NOT_FOUND)
    if (found.target === undefined) return this.#send(otherMethod(head.method, found.allow))
    this.#found = found
    if (current === undefined || this.#needsNothingNew(found.target)) return this.#admit(found, head)
    current().then(() => this.#run(() => {
      this.#session = this.#authenticate(head)
      this.#admit(found, head)
    }), error => this.#fail(error, true))
  }

  /** The way from the route to the body. */
  #admit(found: FoundRoute, head: Head): void {
    const { shape, rateLimit, beforeBody } = found.target
    const answered = this.#unable(found.target) ?? this.#tooMany(rateLimit) ?? beforeBody?.(found.params)
    if (answered !== undefined) return this.#send(answered)
    if (shape === undefined) return this.#handle(found, undefined)
    if (!hasBody(head)) return this.#validate(found, {})
    if (!isJson(head)) return this.#send(UNSUPPORTED)
    const { maxBodyBytes } = this.#options
    if (Number(head.contentLength ?? 0) > maxBodyBytes) return this.#send(TOO_LARGE)
    if (head.expect !== undefined) sendContinue(this.#response)
    readBody(this.#request, maxBodyBytes, body => this.#run(() => this.#takeBody(found, head, body)))
  }

  /** The way from the body to the answer. */
  #takeBody(found: FoundRoute, head: Head, bytes: BodyRead): void {
    if (bytes === 'gone') return this.#end(CLIENT_GONE)
    if (bytes === 'too-large') return this.#send(TOO_LARGE)
    this.#isBodyRead = true
    // A body can take its time: what was revoked meanwhile is refused like any other.
    if (this.#session !== undefined && this.#authenticate(head) === undefined) return this.#send(UNAUTHENTICATED)
    if (bytes.length === 0) return this.#validate(found, {})
    const parsed = parseJsonObject(bytes, MAX_JSON_DEPTH_LEVELS)
    if (parsed.ok) return this.#validate(found, parsed.value)
    this.#send(invalid({ body: [`The body ${parsed.fault} (line ${parsed.line}, column ${parsed.column}).`] }))
  }

  #validate(found: FoundRoute, body: { readonly [field: string]: unknown }): void {
    const checked = check(found.target.shape!, body)
    return checked.ok ? this.#handle(found, checked.value) : this.#send(invalid(checked.errors))
  }

  #handle({ target, params }: FoundRoute, body: unknown): void {
    const reply = target.handle({ head: this.#head!, params, body, client: this.#client, session: this.#session })
    if (!(reply instanceof Promise)) return this.#send(reply)
    reply.then(reply => this.#run(() => this.#send(reply)), error => this.#fail(error))
  }

  /** Refuses what did not come by HTTPS where it must, and, in the open configuration, what a web page may send. */
  #refusal({ host, origin, forwardedProto, fetchSite, path }: Head): Reply | undefined {
    const { asksForHttps, guardedHosts, corsOrigins = NONE, trustedProxies } = this.#options
    const { socket } = this.#request
    const isHttps = 'encrypted' in socket ||
      (forwardedProto?.toLowerCase() === 'https' && isTrusted(socket.remoteAddress ?? '', trustedProxies))
    if (asksForHttps === true && !isHttps && !HEALTH_PATHS.has(path)) return HTTPS_ONLY
    if (guardedHosts === undefined) return undefined
    if (!isHostAllowed(host!, guardedHosts)) return FOREIGN_HOST
    if (origin === undefined) return isUnderApi(path) && isFromOtherSite(fetchSite) ? FOREIGN_ORIGIN : undefined
    return isOriginAllowed(origin, isHttps ? 'https' : 'http', host!, corsOrigins) ? undefined : FOREIGN_ORIGIN
  }

  #preflight(head: Head): Reply | undefined {
    if (!isUnderApi(head.path) || !isPreflight(head)) return undefined
    return this.#options.corsOrigins?.has(head.origin!) === true ? PREFLIGHT : SERVER_OPTIONS
  }

  #authenticate(head: Head): Session | undefined {
    const token = bearerToken(head)
    return token === undefined ? undefined : this.#options.authenticate?.(token)
  }

  /** Whether a route answers the same whatever others have written meanwhile. */
  #needsNothingNew({ mayBeStale, isPublic }: Route): boolean {
    return mayBeStale === true && (this.#options.authenticate === undefined || isPublic === true)
  }

  /** Refuses who has no token, or not the ability, where the route asks for it. */
  #unable({ isPublic, ability }: Route): Reply | undefined {
    if (this.#options.authenticate === undefined || isPublic === true) return undefined
    if (this.#session === undefined) return UNAUTHENTICATED
    return ability === undefined || isAble(this.#session.abilities, ability) ? undefined : UNABLE
  }

  /** Counts the request, and refuses it if it is one too many. */
  #tooMany(limit: RateLimit | undefined, byUser: boolean = false): Reply | undefined {
    if (limit === undefined) return undefined
    const key = byUser && this.#session !== undefined ? `user ${this.#session.user}` : clientKey(this.#client)
    const verdict = limit.take(key)
    if (this.#verdict === undefined || !verdict.allowed) this.#verdict = verdict
    return verdict.allowed ? undefined : TOO_MANY
  }

  /** Answers an expected failure by its code, or (`isOld`) that the state may be old; anything else by a bare 500. */
  #fail(error: unknown, isOld = false): void {
    if (error instanceof Failure) {
      if (error.code === 'queue-full' || error.code === 'hashes-busy') return this.#send(BUSY)
      const message = this.#found?.target.storingFailed
      if (message !== undefined) return this.#send(said(500, message))
      // The operator's program repeats what was answered 503, and this change may have been made.
      const isBusy = isOld || error.code === 'journal-unreachable'
      if (isBusy && this.#options.tellsFailures !== true) return this.#send(BUSY)
    }
    if (this.#options.tellsFailures === true) return this.#send(said(500, (error as Error).message))
    const id = randomUUID()
    this.#options.warn(`request ${id} failed: ${error instanceof Error ? error.stack : String(error)}`)
    if (!this.#response.headersSent) return this.#send(serverError(id), id)
    this.#response.destroy()
    this.#done()
  }

  #send(reply: Reply, id?: string): void {
    const { headers = [], corsOrigins } = this.#options
    const extra = [...headers]
    if (this.#verdict !== undefined) extra.push(...limitHeaders(this.#verdict))
    if (corsOrigins !== undefined && this.#head !== undefined && isUnderApi(this.#head.path)) {
      extra.push(...corsHeaders(this.#head.origin, corsOrigins))
    }
    const close = this.#options.isStopping()
    if (this.#isBodyRead) sendReply(this.#response, reply, extra, close)
    else sendReplyUnread(this.#request, this.#response, this.#head, reply, extra, close)
    this.#end(reply.status, id)
  }

  /** Nothing more follows: counts what was answered, or that nobody was left to answer. */
  #end(status: number, id?: string): void {
    const { nowMs, count, log } = this.#options
    const ms = nowMs() - this.#startMs
    count?.(this.#found?.target.operation, status, ms)
    log?.({
      request: id ?? randomUUID(), client: this.#client,
      user: this.#session?.user ?? null, token: this.#session === undefined ? null : tokenId(this.#session.hash),
      method: this.#request.method ?? '', route: this.#found?.target.operation ?? null,
      entry: this.#found === undefined ? null : idOf(this.#found.params) || null,
      status, ms: Math.round(ms * 1000) / 1000
    })
    this.#done()
  }
}

type FoundRoute = Extract<Found<Route>, { readonly params: unknown }>

function isUnderApi(path: string): boolean { return path.startsWith('/api/') || path === '/api' }

/** Refuses an expectation that nobody can meet, and answers what asks about the whole server (RFC 9110 §9.3.7). */
function unexpected({ expect, path }: Head): Reply | undefined {
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') return UNEXPECTED
  return path === '*' ? SERVER_OPTIONS : undefined
}
