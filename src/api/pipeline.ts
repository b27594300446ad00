/** The way of a request, from its head to its answer. No step reads the body before those above it had their say. */
import { randomUUID } from 'node:crypto'
import { Failure } from '../errors.ts'
import { clientAddress, clientKey, type AddressSet } from '../http/address.ts'
import { readBody } from '../http/body.ts'
import { hasBody, readHead, type Head } from '../http/head.ts'
import type { Answer, IncomingMessage, ServerResponse } from '../http/listener.ts'
import { isHostAllowed, isOriginAllowed } from '../http/origin.ts'
import type { RateLimit, Verdict } from '../http/rate-limit.ts'
import { jsonReply, sendReply, sendReplyUnread, statusReply, type Reply } from '../http/reply.ts'
import type { Found, Router } from '../http/router.ts'
import { parseJsonObject } from '../json/parse.ts'
import { check, type FieldErrors } from '../json/shape.ts'
import { MAX_JSON_DEPTH_LEVELS } from '../limits.ts'
import type { Route } from './route.ts'

/** What the way leads through. */
export interface PipelineOptions {
  readonly router: Router<Route>
  /** The limit for everything under `/api`; undefined: none. */
  readonly rateLimit: RateLimit | undefined
  readonly trustedProxies: AddressSet | undefined
  /** Names besides IP literals and `localhost` that a `Host` may have; undefined: any. */
  readonly allowedHosts: ReadonlySet<string> | undefined
  readonly maxBodyBytes: number
  /** Whether the service is about to stop: then each answer ends its connection. */
  readonly isStopping: () => boolean
  /** Takes what the operator should know and the client should not. */
  readonly warn: (line: string) => void
}

const BAD_REQUEST = statusReply(400)
const NOT_FOUND = statusReply(404)
const TOO_LARGE = statusReply(413)
const UNSUPPORTED = statusReply(415)
const BUSY = statusReply(503, ['Retry-After', '1'])
const TOO_MANY = jsonReply(429, { message: 'Too Many Requests' })
const FOREIGN_HOST = forbidden('This host is not allowed. The setting ALLOWED_HOSTS can allow it.')
const FOREIGN_ORIGIN = forbidden('Requests of this origin are not allowed.')

/** Makes the function that answers every request. */
export function createPipeline(options: PipelineOptions): Answer {
  return (request, response) => {
    const exchange = new Exchange(options, request, response)
    try {
      return exchange.answer()
    } catch (error) {
      exchange.fail(error)
    }
  }
}

class Exchange {
  readonly #options: PipelineOptions
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  #head: Head | undefined
  #verdict: Verdict | undefined
  #route: Route | undefined
  #isBodyRead = false

  constructor(options: PipelineOptions, request: IncomingMessage, response: ServerResponse) {
    this.#options = options
    this.#request = request
    this.#response = response
  }

  answer(): void | Promise<void> {
    const { router, rateLimit, trustedProxies } = this.#options
    const head = this.#head = readHead(this.#request)
    if (head === undefined) return this.#send(BAD_REQUEST)

    const client = clientKey(clientAddress(this.#request.socket.remoteAddress ?? '', head.forwardedFor, trustedProxies))
    const isLimited = rateLimit !== undefined && isUnderApi(head.path)
    const foreign = this.#foreign(head)
    if (foreign !== undefined) {
      // Not counted: a page must not use up what the person before the browser has left.
      if (isLimited) this.#verdict = rateLimit.peek(client)
      return this.#send(foreign)
    }

    if (isLimited) {
      this.#verdict = rateLimit.take(client)
      if (!this.#verdict.allowed) return this.#send(TOO_MANY)
    }

    const found = router.find(head.method, head.path)
    if (found === undefined) return this.#send(NOT_FOUND)
    if (found.target === undefined) return this.#send(otherMethod(head.method, found.allow))
    const route = this.#route = found.target

    const early = route.early?.(found.params)
    if (early !== undefined) return this.#send(early)
    return route.shape === undefined ? this.#handle(found, undefined) : this.#readBody(found, head)
  }

  /** What refuses a request that a web page may have sent. */
  #foreign({ host, origin }: Head): Reply | undefined {
    const { allowedHosts } = this.#options
    if (allowedHosts === undefined) return undefined
    if (!isHostAllowed(host!, allowedHosts)) return FOREIGN_HOST
    if (origin !== undefined && !isOriginAllowed(origin, 'http', host!, new Set())) return FOREIGN_ORIGIN
    return undefined
  }

  async #readBody(found: FoundRoute, head: Head): Promise<void> {
    if (!hasBody(head)) return this.#validate(found, {})
    if (!isJson(head)) return this.#send(UNSUPPORTED)
    const { maxBodyBytes } = this.#options
    if (Number(head.contentLength ?? 0) > maxBodyBytes) return this.#send(TOO_LARGE)
    if (head.expect !== undefined) this.#response.writeContinue()
    const bytes = await readBody(this.#request, maxBodyBytes)
    if (bytes === undefined) return this.#send(TOO_LARGE)
    this.#isBodyRead = true
    if (bytes.length === 0) return this.#validate(found, {})
    const parsed = parseJsonObject(bytes, MAX_JSON_DEPTH_LEVELS)
    if (parsed.ok) return this.#validate(found, parsed.value)
    this.#send(invalid({ body: [`The body ${parsed.fault} (line ${parsed.line}, column ${parsed.column}).`] }))
  }

  #validate(found: FoundRoute, body: { readonly [field: string]: unknown }): void | Promise<void> {
    const checked = check(found.target.shape!, body)
    return checked.ok ? this.#handle(found, checked.value) : this.#send(invalid(checked.errors))
  }

  #handle({ target, params }: FoundRoute, body: unknown): void | Promise<void> {
    const reply = target.handle({ params, body, by: null })
    if (!(reply instanceof Promise)) return this.#send(reply)
    return reply.then(reply => this.#send(reply), error => this.fail(error))
  }

  /** Answers what went wrong on the way: an expected failure by its code, anything else by a bare 500. */
  fail(error: unknown): void {
    if (error instanceof Failure) {
      if (error.code === 'queue-full') return this.#send(BUSY)
      const message = this.#route?.storingFailed
      if (message !== undefined) return this.#send(jsonReply(500, { message, status: 500 }))
    }
    const id = randomUUID()
    this.#options.warn(`request ${id} failed: ${error instanceof Error ? error.stack : String(error)}`)
    if (this.#response.headersSent) this.#response.destroy()
    else this.#send(statusReply(500, ['X-Request-Id', id]))
  }

  #send(reply: Reply): void {
    const extra = this.#verdict === undefined ? [] : limitHeaders(this.#verdict)
    const close = this.#options.isStopping()
    if (this.#isBodyRead) sendReply(this.#response, reply, extra, close)
    else sendReplyUnread(this.#request, this.#response, this.#head, reply, extra, close)
  }
}

type FoundRoute = Extract<Found<Route>, { readonly params: unknown }>

function isUnderApi(path: string): boolean { return path.startsWith('/api/') || path === '/api' }

/** OPTIONS tells the methods of a path; another one that the path does not have is refused. */
function otherMethod(method: string, allow: readonly string[]): Reply {
  const headers = ['Allow', allow.join(', ')]
  return method === 'OPTIONS' ? { status: 204, headers } : statusReply(405, headers)
}

function isJson({ contentType, contentEncoding }: Head): boolean {
  return contentType !== undefined && /^application\/json[ \t]*(;|$)/i.test(contentType) &&
    (contentEncoding === undefined || contentEncoding.toLowerCase() === 'identity')
}

function invalid(errors: FieldErrors): Reply {
  return jsonReply(400, { message: 'Invalid data', errors, status: 400 })
}

function forbidden(message: string): Reply { return jsonReply(403, { message, status: 403 }) }

function limitHeaders({ limit, remaining, allowed, retryAfterSeconds }: Verdict): string[] {
  const headers = ['X-RateLimit-Limit', String(limit), 'X-RateLimit-Remaining', String(remaining)]
  if (!allowed) headers.push('Retry-After', String(retryAfterSeconds))
  return headers
}
