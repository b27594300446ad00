/** What is answered: a status, bytes that are ready to be sent, and header fields; and how that goes out. */
import { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { DRAIN_TIMEOUT_MS, MAX_DRAIN_BYTES } from '../limits.ts'
import type { Head } from './head.ts'

/** An answer. A body of several buffers is sent in their order; `headers` holds names and values in turn. */
export interface Reply {
  readonly status: number
  readonly body?: Body
  readonly headers?: readonly string[]
  /** What the body is, and how long it may be kept; JSON that nobody may keep, unless told. */
  readonly kind?: Kind
}

type Body = string | Buffer | readonly Buffer[]

/** What a body is (`Content-Type`) and who may keep it (`Cache-Control`). */
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
  413: 'Payload Too Large',
  415: 'Unsupported Media Type',
  417: 'Expectation Failed',
  431: 'Request Header Fields Too Large',
  500: 'Server Error',
  503: 'Service Unavailable'
} as const

/** A reply whose body is the JSON of a value. */
export function jsonReply(status: number, value: unknown, headers: readonly string[] = []): Reply {
  return { status, body: JSON.stringify(value), headers }
}

/** A reply of a message and its status, the form of most answers (contract §7). */
export function said(status: number, message: string, headers: readonly string[] = []): Reply {
  return jsonReply(status, { message, status }, headers)
}

/** The reply of a bare status: `{"message": <HTTP's text>, "status": <code>}`. */
export function statusReply(status: keyof typeof TEXTS, headers: readonly string[] = []): Reply {
  return said(status, TEXTS[status], headers)
}

/** The header fields of a reply, names and values in turn. A 204 has no content and no length (RFC 9110 §8.6). */
function fields({ body, headers = [], kind = JSON_KIND }: Reply, extra: readonly string[]): string[] {
  const content = body === undefined ? [] : ['Content-Type', kind.type, 'Content-Length', String(bodyBytes(body))]
  content.push('Cache-Control', kind.cache, 'X-Content-Type-Options', 'nosniff', ...headers, ...extra)
  return content
}

function bodyBytes(body: Body): number {
  return isOnePiece(body) ? Buffer.byteLength(body) : body.reduce((sum, part) => sum + part.length, 0)
}

function isOnePiece(body: Body): body is string | Buffer { return typeof body === 'string' || Buffer.isBuffer(body) }

/**
 * Says that the body is wanted (RFC 9110 §10.1.1), unless `node:http` has: it does by itself on a server that does not
 * listen for `checkContinue`, and tells by this name alone.
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
  // To node:http a connection whose answer has ended is idle: a stop would cut what is not sent by then.
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
  const isRestShort = head !== undefined && head.expect === undefined && head.transferEncoding === undefined &&
    Number(head.contentLength ?? 0) <= MAX_DRAIN_BYTES
  if (isRestShort) { sendReply(response, reply, extra, close); return }
  response.shouldKeepAlive = false
  response.writeHead(reply.status, fields(reply, extra))
  for (const part of pieces(reply.body)) response.write(part)
  let rest = MAX_DRAIN_BYTES
  const end = (): void => { clearTimeout(timer); response.end() }
  const timer = setTimeout(end, DRAIN_TIMEOUT_MS)
  request.on('data', (chunk: Buffer) => { if ((rest -= chunk.length) < 0) end() }).on('end', end).on('close', end)
  request.resume()
}

/** A reply as the bytes of a whole HTTP/1.1 message that ends its connection, for where no response object is. */
export function rawReply(reply: Reply): Buffer {
  const lines = [`HTTP/1.1 ${reply.status} ${TEXTS[reply.status as keyof typeof TEXTS]}`]
  const all = fields(reply, ['Connection', 'close'])
  for (let i = 0; i < all.length; i += 2) lines.push(`${all[i]}: ${all[i + 1]}`)
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), ...pieces(reply.body)])
}

function pieces(body: Body = []): readonly Buffer[] {
  return typeof body === 'string' ? [Buffer.from(body)] : Buffer.isBuffer(body) ? [body] : body
}
