/** Reading a request's body, bounded. */
import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'

/**
 * Reads a body whole and hands it on, once: or 'too-large' when it exceeds `maxBytes`, with the rest unread, or 'gone'
 * when its client is.
 */
export function readBody(
  request: IncomingMessage, maxBytes: number, done: (body: Buffer | 'too-large' | 'gone') => void
): void {
  const chunks: Buffer[] = []
  let bytes = 0
  let isDone = false
  const settle = (body: Buffer | 'too-large' | 'gone'): void => {
    if (isDone) return
    isDone = true
    done(body)
  }
  const onData = (chunk: Buffer): void => {
    bytes += chunk.length
    chunks.push(chunk)
    if (bytes <= maxBytes) return
    request.off('data', onData).pause()
    settle('too-large')
  }
  request.on('data', onData)
    .on('end', () => settle(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    .on('close', () => settle('gone'))
}
