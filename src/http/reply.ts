/** A reply: a status, bytes that are ready to send, and header fields; and how it is sent. */
import { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { DRAIN_TIMEOUT_MS, MAX_DRAIN_BYTES } from '../limits.ts'
import { BROKEN } from './body.ts'
import type { LoggedRequest } from './access-log.ts'
import type { Head } from './head.ts'

/** An answer. A body of several buffers is sent in their order; `headers` holds names and values in turn. */
export interface Reply {
  readonly status: number
  readonly body?: Body
  readonly headers?: readonly string[]
  /** The body's type and caching; by default JSON that must not be stored. */
  readonly kind?: Kind
  /** What the access log says beyond the request: the user who has logged in, the id of a new entry. */
  readonly logged?: Partial<Pick<LoggedRequest, 'user' | 'token' | 'entry'>>
}

type Body = string | Buffer | readonly Buffer[]

export interface Kind {
  readonly type: string
  readonly cache: string
}

const JSON_KIND: Kind = { type: 'application/json; charset=utf-8', cache: 'no-store' }

/** The texts of the answers that are HTTP's own and not the contract's. */
const TEXTS = {
  400: 'Bad Request',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  412: 'Precondition Failed',
  413: 'Payload Too Large',
  417: 'Expectation Failed',
  431: 'Request Header Fields Too Large',
  500: 'Server Error',
  503: 'Service Unavailable'
} as const

/** Requests that node:http refuses by itself, or has no answer to. */
export type Refused = 400 | 405 | 408 | 413 | 431

/** A reply whose body is the JSON of a value. */
export function jsonReply(status: number, value: unknown, headers: readonly string[] = []): Reply {
  return { status, body: JSON.stringify(value), headers }
}

/** A reply of a message and its status, the form of most answers (contract §1, §7). */
export function messageReply(status: number, message: string, headers: readonly string[] = []): Reply {
  return jsonReply(status, { message, status }, headers)
}

/** The reply of a bare status: `{"message": <HTTP's text>, "status": <code>}`. */
export function statusReply(status: keyof typeof TEXTS, headers: readonly string[] = []): Reply {
  return messageReply(status, TEXTS[status], headers)
}

/** The header fields of a reply, names and values in turn. A 204 has no content and no length (RFC 9110 §8.6). */
function fields({ body, headers = [], kind = JSON_KIND }: Reply, extra: readonly string[]): string[] {
  const content = body === undefined ? [] : ['Content-Type', kind.type, 'Content-Length', String(bodyBytes(body))]
  return [...content, 'Cache-Control', kind.cache, 'X-Content-Type-Options', 'nosniff', ...headers, ...extra]
}

function bodyBytes(body: Body): number {
  return isOnePiece(body) ? Buffer.byteLength(body) : body.reduce((sum, part) => sum + part.length, 0)
}

function isOnePiece(body: Body): body is string | Buffer { return typeof body === 'string' || Buffer.isBuffer(body) }

/**
 * Sends 100 Continue (RFC 9110 §10.1.1), unless `node:http` has: it does so by itself on a server that does not listen
 * for `checkContinue`, and only this field shows it.
 */
export function sendContinue(response: ServerResponse & { readonly _sent100?: boolean }): void {
  if (response._sent100 !== true) response.writeContinue()
}

/** Sends a reply to a request whose body, if it has one, was read to its end; `close` ends the connection with it. */
export function sendReply(response: ServerResponse, reply: Reply, extra: readonly string[], close: boolean): void {
  if (close) response.shouldKeepAlive = false
  response.writeHead(reply.status, fields(reply, extra))
  const { body } = reply
  if (body === undefined || isOnePiece(body)) { response.end(body); return }
  for (const part of body.slice(0, -1)) response.write(part)
  // node:http takes a connection whose answer has ended for idle: a stop would cut what is not sent yet.
  response.write(body.at(-1)!, () => response.end())
}

/**
 * Sends a reply to a request whose body was not read. A short rest is read and thrown away by `node:http`. Otherwise
 * the connection is closed, but not at once: a client that still sends would meet a reset and might never see the
 * answer (RFC 9112 §9.6). So the answer goes out whole, some more is read, and then the connection is ended.
 */
export function sendReplyUnread(
  request: IncomingMessage, response: ServerResponse, head: Head | undefined, reply: Reply, extra: readonly string[],
  close: boolean
): void {
  const isRestShort = head !== undefined && head.expect === undefined && head['transfer-encoding'] === undefined &&
    Number(head['content-length'] ?? 0) <= MAX_DRAIN_BYTES
  if (isRestShort) { sendReply(response, reply, extra, close); return }
  response.shouldKeepAlive = false
  response.writeHead(reply.status, fields(reply, extra))
  for (const part of pieces(reply.body)) response.write(part)
  let rest = MAX_DRAIN_BYTES
  const end = (): void => { clearTimeout(timer); response.end() }
  const timer = setTimeout(end, DRAIN_TIMEOUT_MS)
  request.on('data', (chunk: Buffer) => { if ((rest -= chunk.length) < 0) end() })
  for (const event of ['end', 'close', BROKEN]) request.on(event, end)
  request.resume()
}

/** A reply as the bytes of a whole HTTP/1.1 message that ends its connection, for where there is no response object. */
export function rawReply(reply: Reply): Buffer {
  const lines = [`HTTP/1.1 ${reply.status} ${TEXTS[reply.status as keyof typeof TEXTS]}`]
  const all = fields(reply, ['Connection', 'close'])
  for (let i = 0; i < all.length; i += 2) lines.push(`${all[i]}: ${all[i + 1]}`)
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), ...pieces(reply.body)])
}

function pieces(body: Body = []): readonly Buffer[] {
  return typeof body === 'string' ? [Buffer.from(body)] : Buffer.isBuffer(body) ? [body] : body
}
