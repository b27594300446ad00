/** Reading a request's body, bounded. */
import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'

/** Reads a body whole; 'too-large' once it exceeds `maxBytes`, with the rest unread; 'gone' when its client is. */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | 'too-large' | 'gone'> {
  return new Promise(resolve => {
    const chunks: Buffer[] = []
    let bytes = 0
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length
      chunks.push(chunk)
      if (bytes <= maxBytes) return
      request.off('data', onData).off('end', onEnd).pause()
      resolve('too-large')
    }
    const onEnd = (): void => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    request.on('data', onData).on('end', onEnd).on('close', () => resolve('gone'))
  })
}
