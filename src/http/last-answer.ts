/**
 * Ends a connection so that its last answer arrives (RFC 9112 §9.6): nothing that came behind the request is carried
 * out, and once the answer is out, what still comes is read and thrown away for a while. A connection closed at once
 * would be reset by the system, and a reset overtakes an answer.
 */
import type { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { DRAIN_TIMEOUT_MS, MAX_DRAIN_BYTES } from '../limits.ts'

/**
 * What node:http hands each head to that it has parsed; 2 has it stop there, as behind an upgrade. This is not part of
 * its documented interface: without it, further requests of the same read would be parsed, and then not carried out.
 */
interface Parsing {
  parser?: { onIncoming: (request: IncomingMessage & { upgrade?: boolean }) => number } | null
}

/** Has the answer under way be the last of its connection; its header fields are the caller's business. */
export function endAfterAnswer(socket: Socket & Parsing): void {
  if (socket.parser) socket.parser.onIncoming = skip
  socket.destroySoon = linger // node:http calls it once an answer that says `Connection: close` is out
}

function skip(request: { upgrade?: boolean }): number {
  request.upgrade = false
  return 2
}

/** Ends our side, and throws away what comes until the client ends its own, up to a bound in bytes and in time. */
function linger(this: Socket): void {
  if (this.writableEnded) return
  this.end()
  let rest = MAX_DRAIN_BYTES
  const discard = (): void => {
    this.removeAllListeners('data').on('data', (bytes: Buffer) => {
      rest -= bytes.length
      if (rest < 0) this.destroy()
    })
  }
  // node:http starts to read again where it has stopped, but only as long as it is the one who reads.
  if (this.isPaused()) this.once('resume', discard).resume()
  else discard()
  const timer = setTimeout(() => this.destroy(), DRAIN_TIMEOUT_MS)
  this.on('close', () => clearTimeout(timer))
}
