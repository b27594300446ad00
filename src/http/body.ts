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
  let chunks: Buffer[] = []
  let bytes = 0
  request
    .on('data', (chunk: Buffer) => {
      if (bytes > maxBytes) return // somebody else reads on
      bytes += chunk.length
      chunks.push(chunk)
      if (bytes <= maxBytes) return
      request.pause()
      done('too-large')
    })
    .on('end', () => {
      if (bytes > maxBytes) return
      const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
      chunks = [] // the request is kept until it is answered
      done(body)
    })
    .on('close', () => { if (bytes <= maxBytes && !request.readableEnded) done('gone') })
}
