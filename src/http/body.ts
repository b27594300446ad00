/** Reading a request's body, bounded. */
import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'

/** A whole body; or that it exceeds its bound, with the rest unread; or that its client is gone. */
export type BodyRead = Buffer | 'too-large' | 'gone'

/** Reads a body of at most `maxBytes` and hands it on, once. Throws if somebody else has read it. */
export function readBody(
  request: IncomingMessage, maxBytes: number, done: (body: BodyRead) => void
): void {
  if (request.readableEnded) throw new Error('somebody else has read the body')
  const chunks: Buffer[] = []
  let bytes = 0
  let isDone = false
  const settle = (body: BodyRead): void => {
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
