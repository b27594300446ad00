/** Reading a request's body, bounded in bytes and in pieces. */
import { Buffer } from 'node:buffer'
import { IncomingMessage } from 'node:http'
import { MAX_SMALL_PIECES, SMALL_PIECE_BYTES } from '../limits.ts'
import type { Refused } from './reply.ts'

/** The event of a request whose body breaks off, with the reason. */
export const BROKEN = 'broken'
/** It comes in too many small pieces; it is no HTTP, or too slow, and answered by this status; its client is gone. */
type Broken = 'too-many-pieces' | Refused | 'gone'

/** A whole body; that it exceeds its bound; that a host has read of it, or reads it as text; why it broke off. */
export type BodyRead = Buffer | 'too-large' | 'read-before' | Broken

/** Counts a body's pieces: each costs an object and a call, however few bytes it holds. */
class Pieces {
  #pieces = 0
  bytes = 0

  /** Whether there are too many small ones, this one included. */
  areTooMany(piece: Buffer): boolean {
    this.bytes += piece.length
    return ++this.#pieces > MAX_SMALL_PIECES && this.bytes < this.#pieces * SMALL_PIECE_BYTES
  }
}

/** A request whose body is cut off where it comes in too many small pieces, also while nothing reads it. */
export class BoundedRequest extends IncomingMessage {
  readonly #pieces = new Pieces()
  isCut = false

  override push(piece: Buffer | null): boolean {
    if (piece === null || (!this.isCut && !this.#pieces.areTooMany(piece))) return super.push(piece)
    if (!this.isCut) {
      this.isCut = true
      this.emit(BROKEN, 'too-many-pieces')
    }
    return true
  }
}

/** Reads a body of at most `maxBytes`, of which what was read before was put back, and hands it on, once. */
export function readBody(request: IncomingMessage, maxBytes: number, done: (body: BodyRead) => void): void {
  if (request.destroyed) return done('gone')
  if (request instanceof BoundedRequest && request.isCut) return done('too-many-pieces')
  // A host that destroys it, as by a pipeline that fails, takes its socket away.
  const { socket, readableDidRead: isBegun, headers: { 'content-length': promised } } = request
  const pieces = new Pieces()
  let body = Buffer.alloc(0)
  let isOver = false
  const end = (result: BodyRead): void => {
    if (isOver) return
    isOver = true
    request.off('data', take).off(BROKEN, end).off('close', gone)
    socket.off('close', gone).off('end', cut)
    body = Buffer.alloc(0) // the request is kept until it is answered
    done(result)
  }
  const gone = (): void => end('gone')
  const cut = (): void => { if (!request.complete) gone() } // node:http lets it pass behind an offer to upgrade
  const take = (piece: Buffer | string): void => {
    if (typeof piece === 'string') return end('read-before')
    const at = pieces.bytes
    const areTooMany = pieces.areTooMany(piece)
    if (areTooMany || pieces.bytes > maxBytes) {
      request.resume() // what is left of it is thrown away
      return end(areTooMany ? 'too-many-pieces' : 'too-large')
    }
    if (at === 0) body = piece
    else {
      if (pieces.bytes > body.length) body = grown(body, at, Math.min(2 * pieces.bytes, maxBytes))
      piece.copy(body, at)
    }
  }
  const whole = (): void => {
    const { bytes } = pieces
    const isPart = promised === undefined ? isBegun && bytes === 0 : bytes !== Number(promised)
    end(isPart ? 'read-before' : body.subarray(0, bytes))
  }
  request.on('data', take).on('end', whole).on(BROKEN, end).on('close', gone).resume() // middleware may have paused it
  // The request says nothing of that where middleware has answered it meanwhile.
  socket.on('close', gone).on('end', cut)
  if (request.listenerCount('readable') === 0) return
  // Beside who listens for that, `resume` does nothing; whatever anybody reads is told as `data`.
  const read = (): void => { while (request.read() !== null); }
  request.on('readable', read)
  read()
}

function grown(old: Buffer, bytes: number, size: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(size)
  old.copy(larger, 0, 0, bytes)
  return larger
}
