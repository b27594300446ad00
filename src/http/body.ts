/** A request's body: read, parsed, validated, and bounded. */
import { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  MAX_BODIES_BYTES,
  MAX_DRAIN_BYTES,
  MAX_JSON_DEPTH_LEVELS,
  MAX_SMALL_PIECES,
  SMALL_PIECE_BYTES
} from '../limits.ts'
import { check, type Given, type Shape } from '../rights/validate.ts'
import type { Head } from './head.ts'
import { parseJsonObject } from './json.ts'
import { ListenerRequest } from './connection.ts'
import {
  BUSY,
  CLIENT_GONE,
  FRAGMENTED,
  invalidReply,
  READ_BEFORE,
  statusReply,
  TOO_LARGE,
  UNSUPPORTED,
  type Reply
} from './reply.ts'

/** A missing body is an empty object. Throws replies. */
export async function bodyOf(
  request: IncomingMessage,
  response: ServerResponse,
  head: Head,
  shape: Shape,
  maxBytes: number
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
  // In a host's server, node:http or the host has said so already.
  if (head.expect !== undefined && request instanceof ListenerRequest) {
    request.isContinued = true
    response.writeContinue()
  }
  const body = await readBody(request, maxBytes)
  if (body.length === 0) return validated(shape, {})
  const parsed = parseJsonObject(body, MAX_JSON_DEPTH_LEVELS, 1) // no route takes values that nest
  if (parsed.ok) return validated(shape, parsed.value)
  const place = parsed.byte === undefined ? '' : ` (at byte ${parsed.byte})`
  throw invalidReply({ body: [`The body ${parsed.fault}${place}.`] })
}

function validated(shape: Shape, given: Given): unknown {
  const checked = check(shape, given)
  if (!checked.ok) throw invalidReply(checked.errors)
  return checked.value
}

export function discard(request: IncomingMessage): void {
  if (request instanceof ListenerRequest) request.isDiscarded = true
  request.resume()
}

/** The oldest first. */
const readings = new Set<BodyReading>()
let heldBytes = 0

/** Rejects with a reply. */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (request.destroyed) reject(CLIENT_GONE)
    else new BodyReading(request, maxBytes, resolve, reject).begin()
  })
}

class BodyReading {
  readonly #request: IncomingMessage
  readonly #socket: Socket
  readonly #maxBytes: number
  readonly #resolve: (body: Buffer) => void
  readonly #reject: (refusal: Reply) => void
  /** Grows by doubling; the first `#bytes` are filled. */
  #held = Buffer.alloc(0)
  #bytes = 0
  #pieces = 0

  constructor(
    request: IncomingMessage,
    maxBytes: number,
    resolve: (body: Buffer) => void,
    reject: (refusal: Reply) => void
  ) {
    this.#request = request
    this.#socket = request.socket
    this.#maxBytes = maxBytes
    this.#resolve = resolve
    this.#reject = reject
  }

  begin(): void {
    readings.add(this)
    if (this.#request instanceof ListenerRequest) this.#request.onBroken = this.#onBroken
    // A host may have paused it.
    this.#request
      .on('data', this.#onPiece)
      .on('end', this.#onWhole)
      .on('close', this.#onGone)
      .resume()
    // If a host has answered the request, only the socket says that the client is gone.
    this.#socket.on('close', this.#onGone).on('end', this.#onCut)
  }

  readonly #onPiece = (piece: Buffer | string): void => {
    // middleware has set an encoding
    if (typeof piece === 'string') return this.refuse(READ_BEFORE)
    const bytes = this.#bytes + piece.length
    if (bytes > this.#maxBytes) return this.refuse(TOO_LARGE)
    if (++this.#pieces > MAX_SMALL_PIECES && bytes < this.#pieces * SMALL_PIECE_BYTES)
      return this.refuse(FRAGMENTED)
    this.#add(piece)
    makeRoom()
  }

  #add(piece: Buffer): void {
    const bytes = this.#bytes + piece.length
    if (this.#bytes === 0) {
      this.#hold(piece)
    } else {
      if (bytes > this.#held.length) {
        const larger = Buffer.allocUnsafeSlow(Math.min(2 * bytes, this.#maxBytes))
        this.#held.copy(larger, 0, 0, this.#bytes)
        this.#hold(larger)
      }
      piece.copy(this.#held, this.#bytes)
    }
    this.#bytes = bytes
  }

  #hold(held: Buffer): void {
    heldBytes += held.length - this.#held.length
    this.#held = held
  }

  readonly #onWhole = (): void => {
    if (!readings.has(this)) return
    const body = this.#held.subarray(0, this.#bytes)
    const { 'content-length': promised } = this.#request.headers
    this.#end()
    if (promised === undefined || body.length === Number(promised)) this.#resolve(body)
    else this.#reject(READ_BEFORE) // middleware has read a part
  }

  readonly #onGone = (): void => this.refuse(CLIENT_GONE)
  /** Behind an offer to upgrade, node:http takes a cut-off body for a whole one. */
  readonly #onCut = (): void => {
    if (!this.#request.complete) this.refuse(CLIENT_GONE)
  }
  readonly #onBroken: ListenerRequest['onBroken'] = why =>
    this.refuse(why === 'gone' ? CLIENT_GONE : { ...statusReply(why), isLast: true })

  refuse(refusal: Reply): void {
    if (!readings.has(this)) return
    this.#end()
    discard(this.#request)
    this.#reject(refusal)
  }

  #end(): void {
    if (this.#request instanceof ListenerRequest) this.#request.onBroken = undefined
    this.#request.off('data', this.#onPiece).off('end', this.#onWhole).off('close', this.#onGone)
    this.#socket.off('close', this.#onGone).off('end', this.#onCut)
    readings.delete(this)
    this.#hold(Buffer.alloc(0))
  }
}

/** Refuses the oldest bodies until the rest fits: an honest client sends its body at once. */
function makeRoom(): void {
  for (const oldest of readings) {
    if (heldBytes <= MAX_BODIES_BYTES) return
    oldest.refuse({ ...BUSY, isLast: true })
  }
}

function isBegun(request: IncomingMessage): boolean {
  return (
    request.readableDidRead ||
    request.readableEncoding !== null ||
    request.listenerCount('readable') > 0
  )
}

/** Throws replies. `{}` may be all that Express 4 leaves of a body that it could not parse. */
function parsedByHost(
  request: IncomingMessage & { readonly body?: unknown },
  { 'content-length': length }: Head
): { readonly [field: string]: unknown } {
  const { body } = request
  if (Array.isArray(body) || body === null)
    throw invalidReply({ body: ['The body is not an object.'] })
  if (typeof body !== 'object' || ArrayBuffer.isView(body)) throw READ_BEFORE
  if (Object.keys(body).length === 0 && length !== '2') throw READ_BEFORE
  return body as { readonly [field: string]: unknown }
}

/** RFC 9112 §6.3; `json` is plain and in UTF-8. */
export function bodyKind(head: Head): 'none' | 'json' | 'other' {
  if (head['transfer-encoding'] === undefined && Number(head['content-length'] ?? 0) === 0)
    return 'none'
  return isPlainJson(head) ? 'json' : 'other'
}

function isPlainJson({ 'content-type': type = '', 'content-encoding': coding }: Head): boolean {
  if (coding !== undefined && coding.toLowerCase() !== 'identity') return false
  const [plain, ...parameters] = type
    .toLowerCase()
    .split(';')
    .map(part => part.trim())
  const charsets = parameters.filter(one => one.startsWith('charset'))
  return (
    plain === 'application/json' &&
    charsets.length < 2 &&
    charsets.every(one => /^charset=("?)utf-?8\1$/.test(one))
  )
}

/** Whether node:http may read the rest and throw it away. */
export function isRestShort(head: Head | undefined): boolean {
  return (
    head !== undefined &&
    head.expect === undefined &&
    head['transfer-encoding'] === undefined &&
    (head['content-length'] === undefined || Number(head['content-length']) <= MAX_DRAIN_BYTES)
  )
}
