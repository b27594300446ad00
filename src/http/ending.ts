/** How a connection ends behind its last answer, so that the client gets that answer. */
import type { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { DRAIN_TIMEOUT_MS, MAX_DRAIN_BYTES } from '../limits.ts'
import { endsConnection, replaceLastStep, stopParser } from './node-http.ts'
import { fieldsOf, HTTP_TEXTS, OPTIONS_OF_SERVER, statusReply, type Refused } from './reply.ts'

/** Ends the connection behind an answer that has not begun. */
export function endBehindAnswer(response: ServerResponse): void {
  endsConnection(response)
  endConnection(response.req.socket)
}

/**
 * Ends a connection behind the answer under way (RFC 9112 §9.6): later requests are not carried
 * out.
 */
export function endConnection(socket: Socket): void {
  stopParser(socket)
  replaceLastStep(socket, () => linger(socket))
}

/**
 * Ends the writing side, and discards for a while what the client still sends: a close would reset
 * the connection.
 */
function linger(socket: Socket): void {
  if (socket.writableEnded) return
  socket.end()
  let restBytes = MAX_DRAIN_BYTES
  const discard = (): void => {
    socket.removeAllListeners('data').on('data', (bytes: Buffer) => {
      restBytes -= bytes.length
      if (restBytes < 0) socket.destroy()
    })
  }
  // node:http resumes reading only as long as it has the socket.
  if (socket.isPaused()) socket.once('resume', discard).resume()
  else discard()
  const timer = setTimeout(() => socket.destroy(), DRAIN_TIMEOUT_MS)
  socket.on('close', () => clearTimeout(timer))
}

/** Answers what is no request, and ends its connection. */
export function refuseConnection(
  socket: Socket,
  status: Refused,
  headers: readonly string[] = []
): void {
  const reply = statusReply(status, status === 405 ? OPTIONS_OF_SERVER.headers : [])
  const fields = fieldsOf(reply, [...headers, 'Connection', 'close'])
  const lines = [`HTTP/1.1 ${status} ${HTTP_TEXTS[status]}`]
  for (let i = 0; i < fields.length; i += 2) lines.push(`${fields[i]}: ${fields[i + 1]}`)
  socket.write(`${lines.join('\r\n')}\r\n\r\n${String(reply.body)}`)
  endConnection(socket)
  socket.destroySoon()
}
