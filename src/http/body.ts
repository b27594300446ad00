/** Reading a request's body, bounded. */
import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Head } from './head.ts'
import type { Refused } from './reply.ts'

/** The event of a request whose body breaks off, with the status that answers it, or `gone`. */
export const BROKEN = 'broken'

/** A whole body; that it exceeds its bound, with the rest unread; the status of one that broke off; a client gone. */
export type BodyRead = Buffer | 'too-large' | Refused | 'gone'

/** Reads a body of at most `maxBytes` and hands it on, once. Throws if it was read already. */
export function readBody(
  request: IncomingMessage, maxBytes: number, done: (body: BodyRead) => void
): void {
  if (request.readableEnded) throw new Error('the body was read already')
  let chunks: Buffer[] | undefined = []
  let bytes = 0
  const end = (body: BodyRead): void => {
    if (chunks === undefined) return
    chunks = undefined // the request is kept until it is answered
    request.off('close', gone)
    done(body)
  }
  const gone = (): void => end('gone')
  request
    .on('data', (chunk: Buffer) => {
      if (chunks === undefined) return // another reader continues
      bytes += chunk.length
      chunks.push(chunk)
      if (bytes <= maxBytes) return
      request.pause()
      end('too-large')
    })
    .on('end', () => end(chunks?.length === 1 ? chunks[0]! : Buffer.concat(chunks ?? [])))
    .on(BROKEN, (why: Refused | 'gone') => end(why))
    .on('close', gone)
}

/** What body follows a head (RFC 9112 §6.3): none, JSON in UTF-8 without a content coding, or another. */
export function bodyKind(head: Head): 'none' | 'json' | 'other' {
  if (head['transfer-encoding'] === undefined && Number(head['content-length'] ?? 0) === 0) return 'none'
  return isJson(head) ? 'json' : 'other'
}

function isJson({ 'content-type': type, 'content-encoding': coding }: Head): boolean {
  return type !== undefined && /^application\/json[ \t]*(;|$)/i.test(type) &&
    !/charset *= *(?!"?utf-8"? *(;|$))/i.test(type) &&
    (coding === undefined || coding.toLowerCase() === 'identity')
}
