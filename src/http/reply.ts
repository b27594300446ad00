/** A reply: a status, bytes that are ready to send, and header fields. */
import { Buffer } from 'node:buffer'
import type { LoggedRequest } from './access-log.ts'

/** An answer. The pieces of a body are sent in their order; `headers` holds names and values in turn. */
export interface Reply {
  readonly status: number
  readonly body?: Body
  readonly headers?: readonly string[]
  /** The body's type and caching; by default JSON that must not be stored. */
  readonly kind?: Kind
  /** What the access log says beyond the request: the user who has logged in, the id of a new entry. */
  readonly logged?: Partial<Pick<LoggedRequest, 'user' | 'token' | 'entry'>>
}

/** Bytes in pieces, and how many they are in all. */
interface Pieces extends Iterable<Buffer> { readonly bytes: number }

type Body = string | readonly Buffer[] | Pieces

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

/** Nothing was done, and the same may be asked again. */
export const BUSY: Reply = statusReply(503, ['Retry-After', '1'])

/**
 * The header fields of a reply and further ones, names and values in turn. A 204 has no content and no length (RFC 9110
 * §8.6).
 */
export function fieldsOf({ body, headers = [], kind = JSON_KIND }: Reply, extra: readonly string[]): string[] {
  const fields = body === undefined ? [] : ['Content-Type', kind.type, 'Content-Length', String(bodyBytes(body))]
  fields.push('Cache-Control', kind.cache, 'X-Content-Type-Options', 'nosniff')
  for (const part of headers) fields.push(part)
  for (const part of extra) fields.push(part)
  return fields
}

export function bodyBytes(body: Body): number {
  if (typeof body === 'string') return Buffer.byteLength(body)
  return 'bytes' in body ? body.bytes : body.reduce((sum, piece) => sum + piece.length, 0)
}

/** A refusal as a whole HTTP/1.1 message that ends its connection, for where there is no response object. */
export function rawRefusal(status: Refused): Buffer {
  const reply = statusReply(status, status === 405 ? ['Allow', 'GET, HEAD, POST, OPTIONS'] : [])
  const fields = fieldsOf(reply, ['Connection', 'close'])
  const lines = [`HTTP/1.1 ${status} ${TEXTS[status]}`]
  for (let i = 0; i < fields.length; i += 2) lines.push(`${fields[i]}: ${fields[i + 1]}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${String(reply.body)}`)
}
