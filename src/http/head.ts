/**
 * The head of a request: the target and the few header fields that this program reads, each at most once unless it is a
 * list. Anything that two parsers could understand differently (RFC 9112 §3.2, §6.1; RFC 9110 §5.3) is refused here,
 * before anything else reads the request.
 */
import type { IncomingMessage } from 'node:http'
import { MAX_HEADER_FIELDS } from '../limits.ts'

const FIELDS = [
  'host', 'origin', 'authorization', 'content-type', 'content-encoding', 'content-length', 'transfer-encoding',
  'expect', 'upgrade', 'x-forwarded-for', 'x-forwarded-proto', 'access-control-request-method', 'sec-fetch-site',
  'accept-encoding', 'if-match', 'if-none-match', 'x-operator'
] as const
type Field = typeof FIELDS[number]

/** Lists, which may come more than once (RFC 9110 §5.3). They are joined, so that the nearest proxy comes last. */
const LISTS: ReadonlySet<Field> = new Set<Field>([
  'x-forwarded-for', 'accept-encoding', 'if-match', 'if-none-match', 'upgrade'
])

/** A request's head; header values as they were sent, undefined where absent. */
export type Head = { [F in Field]?: string } & {
  readonly method: string
  /** The target up to the query, not decoded. */
  readonly path: string
  /** The token of `authorization`. */
  token?: string | undefined
}

const KNOWN: ReadonlySet<string> = new Set(FIELDS)
const LONGEST_FIELD = Math.max(...FIELDS.map(name => name.length))

/** Whether a head has more fields than are taken; node:http may have dropped some of them. */
export function hasTooManyFields({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.length > 2 * MAX_HEADER_FIELDS
}

/** What proxies say of the client, also of a malformed request; nothing where theirs may be lost in too many fields. */
export function forwardedFor(request: IncomingMessage, head: Head | undefined): string | undefined {
  if (head !== undefined) return head['x-forwarded-for']
  return hasTooManyFields(request) ? undefined : request.headers['x-forwarded-for']?.toString()
}

/** Reads the head of a request for a target; undefined when it is malformed, or has too many fields, or one twice. */
export function readHead(request: IncomingMessage, target: string): Head | undefined {
  if (hasTooManyFields(request)) return undefined
  const { method = '', httpVersion } = request
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return undefined // node:http takes 0.9 and 2.0 as well
  // Only the origin form, and the asterisk of OPTIONS: the absolute form would name a second host. Node 20.12 lets
  // bytes beyond ASCII pass.
  if (!/^\/[!-~]*$/.test(target) && !(target === '*' && method === 'OPTIONS')) return undefined
  const query = target.indexOf('?')
  const head: Head = { method, path: query < 0 ? target : target.slice(0, query) }
  const raw = request.rawHeaders
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!
    if (name.length > LONGEST_FIELD) continue
    const field = name.toLowerCase() as Field
    if (!KNOWN.has(field)) continue
    const value = raw[i + 1]!
    if (head[field] === undefined) head[field] = value
    else if (LISTS.has(field)) head[field] += `, ${value}`
    else return undefined
  }
  // HTTP/1.1 asks for a Host (RFC 9112 §3.2); an HTTP/1.0 request without one may be forged.
  if (head.host === undefined) return undefined
  const coding = head['transfer-encoding']
  if (coding !== undefined) {
    if (coding.toLowerCase() !== 'chunked' || head['content-length'] !== undefined) return undefined
    if (httpVersion === '1.0') return undefined
  }
  if (httpVersion === '1.0') delete head.expect // RFC 9110 §10.1.1: HTTP/1.0 has no expectations
  if (head.authorization !== undefined) head.token = bearerToken(head.authorization)
  return head
}

/** The token of an `Authorization: Bearer` field (RFC 6750 §2.1), the scheme in any case; undefined for any other. */
function bearerToken(authorization: string): string | undefined {
  return /^bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(authorization)?.[1]
}
