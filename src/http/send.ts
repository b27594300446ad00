/** Sends a reply: over TCP, over TLS, and behind the middleware of somebody else's server. */
import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import { SEND_BYTES } from '../limits.ts'
import { endAfterAnswer } from './last-answer.ts'
import { fieldsOf, isOnePiece, type Reply } from './reply.ts'

/**
 * Sends 100 Continue (RFC 9110 §10.1.1), unless `node:http` has: it does so by itself on a server that does not listen
 * for `checkContinue`, and only this field shows it.
 */
export function sendContinue(response: ServerResponse & { readonly _sent100?: boolean }): void {
  if (response._sent100 !== true) response.writeContinue()
}

/** Sends a reply with further header fields; `isLast` ends the connection with it. */
export function sendReply(response: ServerResponse, reply: Reply, extra: readonly string[], isLast: boolean): void {
  // To HTTP/1.0, node:http ends the connection behind an answer without a length, whatever was agreed.
  if (isLast || (reply.body === undefined && response.req.httpVersionMinor === 0)) endWith(response)
  response.writeHead(reply.status, fieldsOf(reply, extra))
  const { body } = reply
  if (body === undefined || (isOnePiece(body) && body.length <= SEND_BYTES)) response.end(body)
  else if (typeof body === 'string') sendPieces(response, [Buffer.from(body)])
  else sendPieces(response, Buffer.isBuffer(body) ? [body] : body)
}

/** Makes an answer that has not begun the last of its connection. */
export function endWith(response: ServerResponse): void {
  response.shouldKeepAlive = false
  endAfterAnswer(response.req.socket)
}

/**
 * Writes pieces, and further ones when those before were taken: a slow reader holds `SEND_BYTES` of them, also where
 * TLS or a compressor makes a copy of each. `drain` is what every middleware passes on.
 */
function sendPieces(response: ServerResponse, pieces: readonly Buffer[]): void {
  let index = 0
  let offset = 0
  const send = (): void => {
    let given = 0
    while (index < pieces.length) {
      const whole = pieces[index]!
      const piece = whole.length <= SEND_BYTES ? whole : whole.subarray(offset, offset + SEND_BYTES)
      offset += piece.length
      if (offset >= whole.length) { index++; offset = 0 }
      given += piece.length
      if (!response.write(piece) && given >= SEND_BYTES) return
    }
    response.off('drain', send)
    response.end()
  }
  response.on('drain', send)
  send()
}
