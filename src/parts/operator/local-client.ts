/** A request over a Unix socket, for the operator's program. */
import { Buffer } from 'node:buffer'
import { request } from 'node:http'
import { shortestPath } from '../../http/local-socket.ts'

/** An answer with its JSON body, undefined where there is none. */
export interface LocalAnswer {
  readonly status: number
  readonly body: unknown
}

/** Sends a request with a JSON body; rejects with the system's error when no process answers. */
export function requestLocal(socketPath: string, method: string, path: string, body?: unknown): Promise<LocalAnswer> {
  return new Promise((resolve, reject) => {
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
    const headers = {
      Host: 'localhost', Connection: 'close',
      ...(bytes === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': bytes.length })
    }
    const outgoing = request({ socketPath: shortestPath(socketPath), method, path, headers }, response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: response.statusCode ?? 0, body: text === '' ? undefined : JSON.parse(text) })
      })
    })
    outgoing.on('error', reject)
    outgoing.end(bytes)
  })
}
