/** A request's body: read, parsed, validated, and bounded. */
import { Buffer } from 'node:buffer'
import { IncomingMessage, type ServerResponse } from 'node:http'
import {
  MAX_BODIES_BYTES, MAX_DRAIN_BYTES, MAX_JSON_DEPTH_LEVELS, MAX_SMALL_PIECES, SMALL_PIECE_BYTES
} from '../limits.ts'
import { check, type Given, type Shape } from '../store/validate.ts'
import type { Head } from './head.ts'
import { parseJsonObject } from './json.ts'
import {
  BUSY, CLIENT_GONE, FRAGMENTED, invalid, READ_BEFORE, statusReply, TOO_LARGE, UNSUPPORTED, type Refused,
  type Reply
} from './reply.ts'
import { sendContinue } from './send.ts'

/** The event of a body that breaks off. */
export const BROKEN = 'broken'

/** A missing body is an empty object. Throws replies. */
export async function bodyOf(
  request: IncomingMessage, response: ServerResponse, head: Head, shape: Shape, maxBytes: number
): Promise<unknown> {
  const kind = bodyKind(head)
  if (kind === 'none') return validated(shape, {})
  if (kind === 'other') throw UNSUPPORTED
  if (Number(head['content-length'] ?? 0) > maxBytes) throw TOO_LARGE
  if (request.readableEnded) {
    const value = validated(shape, parsedByHost(request, head))
    if (Buffer.byteLength(JSON.stringify(value)) > maxBytes) throw TOO_LARGE
    return value
  }
  if (isBegun(request)) throw READ_BEFORE
  if (head.expect !== undefined) sendContinue(response)
  const body = await readBody(request, maxBytes)
  if (body.length === 0) return validated(shape, {})
  const parsed = parseJsonObject(body, MAX_JSON_DEPTH_LEVELS, 1) // no route takes values that nest
  if (parsed.ok) return validated(shape, parsed.value)
  throw invalid({ body: [`The body ${parsed.fault} (line ${parsed.line}, column ${parsed.column}).`] })
}

function validated(shape: Shape, given: Given): unknown {
  const checked = check(shape, given)
  if (!checked.ok) throw invalid(checked.errors)
  return checked.value
}

/** It can drop a body before its stream: 64 KiB may be 10,000 chunks, each of which costs. */
export class ListenerRequest extends IncomingMessage {
  isDiscarded = false

  override push(piece: Buffer | null): boolean {
    return this.isDiscarded && piece !== null ? true : super.push(piece)
  }
}

export function discard(request: IncomingMessage): void {
  if (request instanceof ListenerRequest) request.isDiscarded = true
  request.resume()
}

/** The refusals of bodies being read, the oldest first, and their bytes in all. */
const reading = new Set<(refusal: Reply) => void>()
let readingBytes = 0

/** Rejects with a reply. */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (request.destroyed) return reject(CLIENT_GONE)
    const { socket, headers: { 'content-length': promised } } = request
    let body = Buffer.alloc(0)
    let bytes = 0
    let pieces = 0
    const leave = (): void => {
      request.off('data', take).off('end', whole).off(BROKEN, broken).off('close', gone)
      socket.off('close', gone).off('end', cut)
      reading.delete(refuse)
      readingBytes -= body.length
      body = Buffer.alloc(0)
    }
    const refuse = (refusal: Reply): void => {
      if (!reading.has(refuse)) return
      leave()
      discard(request)
      reject(refusal)
    }
    const gone = (): void => refuse(CLIENT_GONE)
    const cut = (): void => { if (!request.complete) gone() } // node:http accepts a cut behind an offer to upgrade
    const broken = (why: Refused | 'gone'): void => {
      refuse(why === 'gone' ? CLIENT_GONE : { ...statusReply(why), isLast: true })
    }
    const take = (piece: Buffer | string): void => {
      if (typeof piece === 'string') return refuse(READ_BEFORE) // middleware has set an encoding meanwhile
      const at = bytes
      bytes += piece.length
      if (bytes > maxBytes) return refuse(TOO_LARGE)
      if (++pieces > MAX_SMALL_PIECES && bytes < pieces * SMALL_PIECE_BYTES) return refuse(FRAGMENTED)
      if (bytes > body.length) {
        const larger = at === 0 ? piece : Buffer.allocUnsafeSlow(Math.min(2 * bytes, maxBytes))
        body.copy(larger, 0, 0, at)
        readingBytes += larger.length - body.length
        body = larger
      }
      if (at > 0) piece.copy(body, at)
      // The slowest body gives way: an honest client sends its body at once.
      for (const [oldest] of [reading]) if (readingBytes > MAX_BODIES_BYTES) oldest?.({ ...BUSY, isLast: true })
    }
    const whole = (): void => {
      if (!reading.has(refuse)) return
      const read = body.subarray(0, bytes)
      leave()
      if (promised === undefined || bytes === Number(promised)) resolve(read)
      else reject(READ_BEFORE) // middleware has read a part
    }
    reading.add(refuse)
    request.on('data', take).on('end', whole).on(BROKEN, broken).on('close', gone).resume() // a host may have paused it
    socket.on('close', gone).on('end', cut) // the request is silent if a host has answered it
  })
}

function isBegun(request: IncomingMessage): boolean {
  return request.readableDidRead || request.readableEncoding !== null || request.listenerCount('readable') > 0
}

/** Throws replies. Express 4 leaves `{}` if parsing failed. */
function parsedByHost(
  request: IncomingMessage & { readonly body?: unknown }, { 'content-length': length }: Head
): { readonly [field: string]: unknown } {
  const { body } = request
  if (Array.isArray(body) || body === null) throw invalid({ body: ['The body is not an object.'] })
  if (typeof body !== 'object' || ArrayBuffer.isView(body)) throw READ_BEFORE
  if (Object.keys(body).length === 0 && length !== '2') throw READ_BEFORE
  return body as { readonly [field: string]: unknown }
}

/** RFC 9112 §6.3; `json` is plain and in UTF-8. */
export function bodyKind(head: Head): 'none' | 'json' | 'other' {
  if (head['transfer-encoding'] === undefined && Number(head['content-length'] ?? 0) === 0) return 'none'
  return isPlainJson(head) ? 'json' : 'other'
}

function isPlainJson({ 'content-type': type = '', 'content-encoding': coding }: Head): boolean {
  if (coding !== undefined && coding.toLowerCase() !== 'identity') return false
  const [plain, ...parameters] = type.toLowerCase().split(';').map(part => part.trim())
  const charsets = parameters.filter(one => one.startsWith('charset'))
  return plain === 'application/json' && charsets.length < 2 &&
    charsets.every(one => /^charset=("?)utf-?8\1$/.test(one))
}

/** node:http may read a short rest and throw it away. */
export function isRestShort(head: Head | undefined): boolean {
  return head !== undefined && head.expect === undefined && head['transfer-encoding'] === undefined &&
    (head['content-length'] === undefined || Number(head['content-length']) <= MAX_DRAIN_BYTES)
}
