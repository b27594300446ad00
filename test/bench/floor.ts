/**
 * The measure: `node:http` and nothing else. It answers each method with the very bytes that the program answered
 * with, reads bodies to their end, and looks at nothing. Its argument is the file of those answers. With a second one,
 * a path where nothing stands, it writes each body there by the shortest way before it answers.
 */
import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { shortestWay } from './shortest.ts'

/** An answer: header names and values in turn, and the body in base64. */
export interface FixedAnswer {
  readonly headers: readonly string[]
  readonly body: string
}

/** The answers by method, and how long a connection is kept, which `node:http` tells with each answer. */
export interface Floor {
  readonly keepAliveMs: number
  readonly answers: { readonly [method: string]: FixedAnswer }
}

const [answersFile, journal] = process.argv.slice(2)
const { keepAliveMs, answers } = JSON.parse(readFileSync(answersFile!, 'utf8')) as Floor
const keep = journal === undefined ? undefined : shortestWay(journal)
const ready = new Map(Object.entries(answers).map(([method, { headers, body }]) =>
  [method, { headers: [...headers], body: Buffer.from(body, 'base64') }]))

function answer(method: string, response: ServerResponse): void {
  const { headers, body } = ready.get(method)!
  response.writeHead(200, headers)
  response.end(body)
}

const server = createServer((request, response) => {
  if (request.method === 'GET') { answer('GET', response); return }
  if (keep === undefined) {
    request.on('end', () => answer('POST', response))
    request.resume()
    return
  }
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
    .on('end', () => keep(Buffer.concat(chunks), () => answer('POST', response)))
})
server.keepAliveTimeout = keepAliveMs
server.listen(0, '127.0.0.1', () => {
  console.log(`address http://127.0.0.1:${(server.address() as AddressInfo).port}\nready`)
})
