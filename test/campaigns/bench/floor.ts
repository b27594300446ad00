/**
 * The measure: `node:http` and nothing else. It answers each method with the very bytes that the program answered
 * with, reads bodies to their end, and looks at nothing. Its argument is the file of those answers. With a second one,
 * a path where there is no file, it does the least that makes a change durable before it answers: bodies that come
 * together are parsed, sealed and chained as the program does it, and share one durable write.
 */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { disk } from '../../../src/journal/files.ts'
import { chainOf, created } from './journal.ts'

/** The answers by method: header names and values in turn, and the body in base64. */
export interface Floor {
  /** How long a connection is kept, which `node:http` says in each answer. */
  readonly keepAliveMs: number
  readonly answers: { readonly [method: string]: { readonly headers: readonly string[], readonly body: string } }
}

function shortestWay(path: string): (body: Buffer, done: () => void) => void {
  const file = disk.createToAppend(path)
  const seal = chainOf(randomBytes(32))
  let waiting: { readonly body: Buffer, readonly done: () => void }[] = []
  let isWriting = false
  const write = (): void => {
    const taken = waiting
    waiting = []
    const lines = seal(taken.map(({ body }) => created(JSON.parse(body.toString()))))
    disk.append(file, Buffer.from(lines, 'latin1'), error => {
      if (error !== null) throw error
      for (const { done } of taken) done()
      isWriting = waiting.length > 0
      if (isWriting) setImmediate(write)
    })
  }
  return (body, done) => {
    waiting.push({ body, done })
    if (!isWriting) setImmediate(write)
    isWriting = true
  }
}

const [answersFile = '', journal] = process.argv.slice(2)
const { keepAliveMs, answers } = JSON.parse(readFileSync(answersFile, 'utf8')) as Floor
const keep = journal === undefined ? undefined : shortestWay(journal)
const ready = new Map(Object.entries(answers).map(([method, { headers, body }]) =>
  [method, { headers: [...headers], body: Buffer.from(body, 'base64') }]))

function answer(method: string, response: ServerResponse): void {
  const { headers, body } = ready.get(method)!
  response.writeHead(200, headers).end(body)
}

const server = createServer((request, response) => {
  if (request.method === 'GET') { answer('GET', response); return }
  const chunks: Buffer[] = []
  if (keep === undefined) request.resume().on('end', () => answer('POST', response))
  else {
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('end', () => keep(Buffer.concat(chunks), () => answer('POST', response)))
  }
})
server.keepAliveTimeout = keepAliveMs
server.listen(0, '127.0.0.1', () => {
  console.log(`address http://127.0.0.1:${(server.address() as AddressInfo).port}\nready`)
})
