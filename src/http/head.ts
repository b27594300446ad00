/**
 * A request's head. Fields that two parsers could understand differently (RFC 9112 §3.2, §6.1; RFC
 * 9110 §5.3) are refused before any other code reads them.
 */
import type { IncomingMessage } from 'node:http'
import { KEPT_HEADER_FIELDS, MAX_HEADER_FIELDS } from '../limits.ts'
import { ListenerRequest } from './connection.ts'

const HEAD_FIELDS = [
  'host',
  'origin',
  'authorization',
  'content-type',
  'content-encoding',
  'content-length',
  'transfer-encoding',
  'expect',
  'upgrade',
  'x-forwarded-for',
  'x-forwarded-proto',
  'access-control-request-method',
  'sec-fetch-site',
  'accept-encoding',
  'if-match',
  'if-none-match',
  'x-operator',
  'forwarded',
  'via',
  'x-forwarded-host',
  'x-real-ip'
] as const
type Field = (typeof HEAD_FIELDS)[number]

/** `name`: in lower case. */
export function isReadField(name: string): boolean {
  return KNOWN.has(name)
}

/** Fields that may repeat (RFC 9110 §5.3): they are joined, the nearest proxy's last. */
const LISTS: ReadonlySet<string> = new Set<Field>([
  'x-forwarded-for',
  'accept-encoding',
  'if-match',
  'if-none-match',
  'upgrade',
  'forwarded',
  'via',
  'x-forwarded-host',
  'x-real-ip'
])
const KNOWN: ReadonlySet<string> = new Set(HEAD_FIELDS)
const LONGEST = Math.max(...HEAD_FIELDS.map(name => name.length))

export type Head = { [F in Field]?: string } & {
  readonly method: string
  /** Up to the query, not decoded. */
  readonly path: string
}

/** A host's server may have dropped some. */
export function hasTooManyFields({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.length > 2 * MAX_HEADER_FIELDS
}

/** Undefined if node:http, or a host's server, may have dropped it. */
export function forwardedFor(request: IncomingMessage, head: Head | undefined): string | undefined {
  if (head !== undefined) return head['x-forwarded-for']
  const kept = request instanceof ListenerRequest ? KEPT_HEADER_FIELDS - 1 : MAX_HEADER_FIELDS
  if (request.rawHeaders.length > 2 * kept) return undefined
  return request.headers['x-forwarded-for']?.toString()
}

/** Undefined if malformed, with too many fields, or with a repeated field. */
export function readHead(request: IncomingMessage, target: string): Head | undefined {
  if (hasTooManyFields(request)) return undefined
  const { method = '', httpVersion, rawHeaders } = request
  // node:http takes 0.9 and 2.0 as well
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return undefined
  // The absolute form would name a second host. Node 20.12 lets bytes beyond ASCII pass.
  if (!/^\/[!-~]*$/.test(target) && !(target === '*' && method === 'OPTIONS')) return undefined
  const query = target.indexOf('?')
  const head: Head = { method, path: query < 0 ? target : target.slice(0, query) }
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.length > LONGEST) continue
    const field = rawHeaders[i]!.toLowerCase() as Field
    if (!KNOWN.has(field)) continue
    if (head[field] === undefined) head[field] = rawHeaders[i + 1]!
    else if (LISTS.has(field)) head[field] += `, ${rawHeaders[i + 1]!}`
    else return undefined
  }
  if (head.host === undefined) return undefined // RFC 9112 §3.2; without it, HTTP/1.0 may be forged
  const coding = head['transfer-encoding']
  if (coding !== undefined) {
    if (coding.toLowerCase() !== 'chunked' || head['content-length'] !== undefined) return undefined
    if (httpVersion === '1.0') return undefined
  }
  if (httpVersion === '1.0') delete head.expect // RFC 9110 §10.1.1
  return head
}

/** RFC 6750 §2.1; the scheme in any case. */
export function tokenIn({ authorization }: Head): string | undefined {
  return authorization === undefined
    ? undefined
    : /^bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(authorization)?.[1]
}
