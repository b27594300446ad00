/**
 * A client of bytes: what it is given goes out as it is, and what comes back is taken apart by RFC 9112 alone. So a
 * test can send what no well-behaved client would, and sees each answer in its place on the connection.
 *
 * It is strict: an answer that does not frame itself by one Content-Length, or has a field twice, is an error.
 */
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Scope } from './service.ts'

export interface RawAnswer {
  readonly status: number
  readonly line: string
  /** The fields by their names in lower case; each was sent once. */
  readonly headers: { readonly [name: string]: string | undefined }
  readonly body: Buffer
  /** The body as text, none of a coded one; throws where it is not UTF-8. */
  readonly text: string
  /** The body as JSON; undefined where there is none, or it is something else. */
  readonly json: any
}

export interface RawOptions {
  /** The address that the client has, among those of the loopback network: `127.0.0.2`. */
  readonly localAddress?: string
  /** Goes on sending after the other side has ended, as a client does that has not looked yet. */
  readonly allowHalfOpen?: boolean
}

const WAIT_MS = 15_000
const CRLF = '\r\n'

/** The bytes of a request of HTTP/1.1 to 127.0.0.1; a body gets its Content-Length and, unless given, its JSON type. */
export function message(
  method: string, target: string, body?: string | Buffer, fields: readonly string[] = []
): Buffer {
  const head = [`${method} ${target} HTTP/1.1`]
  const has = (name: string): boolean => fields.some(field => field.toLowerCase().startsWith(`${name}:`))
  if (!has('host')) head.push('Host: 127.0.0.1')
  if (body !== undefined && !has('content-type')) head.push('Content-Type: application/json')
  if (body !== undefined) head.push(`Content-Length: ${Buffer.byteLength(body)}`)
  return Buffer.concat([Buffer.from([...head, ...fields, '', ''].join(CRLF), 'latin1'), Buffer.from(body ?? '')])
}

/** The same for a body in chunks, and no more than them: without the last, empty one unless it is given. */
export function chunked(method: string, target: string, chunks: readonly (string | Buffer)[]): Buffer {
  const head = message(method, target, undefined, ['Content-Type: application/json', 'Transfer-Encoding: chunked'])
  return Buffer.concat([head, ...chunks.map(chunk)])
}

/** A chunk's bytes; the empty one is the last. */
export function chunk(bytes: string | Buffer): Buffer {
  const length = Buffer.byteLength(bytes).toString(16)
  return Buffer.concat([Buffer.from(length + CRLF), Buffer.from(bytes), Buffer.from(CRLF)])
}

export class RawClient {
  readonly #socket: Socket
  readonly #below: Socket
  #received: Buffer = Buffer.alloc(0)
  #ended = false
  #reset = false
  #wake: () => void = () => {}

  /** `below`: over TLS, the connection that carries it. */
  constructor(socket: Socket, below: Socket = socket) {
    this.#socket = socket
    this.#below = below
    socket.on('data', bytes => { this.#received = Buffer.concat([this.#received, bytes]); this.#wake() })
    socket.on('end', () => { this.#ended = true; this.#wake() })
    socket.on('error', () => { this.#reset = true })
    socket.on('close', () => { this.#ended = true; this.#wake() })
  }

  /** Whether the other side cut the connection instead of ending it. */
  get wasReset(): boolean { return this.#reset }

  /** Sends bytes; resolves once the system took them, also where the other side takes no more. */
  send(...bytes: readonly (string | Buffer)[]): Promise<void> {
    return new Promise(resolve => {
      if (!this.#socket.writable) { resolve(); return }
      this.#socket.write(Buffer.concat(bytes.map(part => Buffer.from(part))), () => resolve())
    })
  }

  finish(): void { this.#socket.end() }

  /** Reads the next answer; `isToHead`: to a HEAD, so that no body follows. Rejects when the connection ends first. */
  async answer(isToHead = false): Promise<RawAnswer> {
    for (;;) {
      const parsed = parseAnswer(this.#received, isToHead)
      if (parsed !== undefined) {
        this.#received = this.#received.subarray(parsed.bytes)
        return parsed.answer
      }
      if (this.#ended) throw new Error(`the connection ended after ${this.#shown()}`)
      await this.#more()
    }
  }

  async answers(count: number): Promise<RawAnswer[]> {
    const answers: RawAnswer[] = []
    while (answers.length < count) answers.push(await this.answer())
    return answers
  }

  /** Reads every answer until the other side ends the connection, and nothing but answers. */
  async untilEnd(): Promise<RawAnswer[]> {
    while (!this.#ended) await this.#more()
    const answers: RawAnswer[] = []
    while (this.#received.length > 0) answers.push(await this.answer())
    return answers
  }

  destroy(): void { this.#below.destroy() }

  reset(): void { this.#below.resetAndDestroy() }

  #shown(): string { return JSON.stringify(this.#received.toString('latin1')) }

  #more(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`nothing came for ${WAIT_MS} ms after ${this.#shown()}`))
      }, WAIT_MS)
      this.#wake = () => { clearTimeout(timer); resolve() }
    })
  }
}

/** Connects to a service's port; the connection ends with the test. */
export async function connectRaw(t: Scope, url: string, options: RawOptions = {}): Promise<RawClient> {
  const { hostname, port, protocol } = new URL(url)
  const place = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port), ...options }
  const isSecure = protocol === 'https:'
  const below = connect(place)
  const socket = isSecure ? connectTls({ socket: below, rejectUnauthorized: false }) : below
  t.after(() => { below.destroy() })
  const client = new RawClient(socket, below)
  await once(socket, isSecure ? 'secureConnect' : 'connect')
  return client
}

/** Sends bytes on a connection of their own and gives the answers until the service ends it. */
export async function exchange(
  t: Scope, url: string, ...bytes: readonly (string | Buffer)[]
): Promise<RawAnswer[]> {
  const client = await connectRaw(t, url)
  await client.send(...bytes)
  return client.untilEnd()
}

/** Sends a request on a connection of its own, reads its answer, and leaves. */
export async function ask(
  t: Scope, url: string, request: string | Buffer, options: RawOptions = {}
): Promise<RawAnswer> {
  const client = await connectRaw(t, url, options)
  await client.send(request)
  const answer = await client.answer(request.toString('latin1').startsWith('HEAD '))
  client.destroy()
  return answer
}

/** The first answer in the bytes and its length; undefined where it is not whole yet. */
export function parseAnswer(bytes: Buffer, isToHead: boolean): { answer: RawAnswer, bytes: number } | undefined {
  const headEnd = bytes.indexOf(CRLF + CRLF)
  if (headEnd < 0) return undefined
  const [line = '', ...fields] = bytes.toString('latin1', 0, headEnd).split(CRLF)
  const found = /^HTTP\/1\.1 ([1-5][0-9]{2}) [\x20-\x7e]*$/.exec(line)
  if (found === null) throw new Error(`not the first line of an answer: ${JSON.stringify(line)}`)
  const status = Number(found[1])
  const headers: { [name: string]: string } = Object.create(null)
  for (const field of fields) {
    const [, name, value] = /^([A-Za-z0-9-]+): ([\x20-\x7e]*)$/.exec(field) ?? []
    if (name === undefined || value === undefined) throw new Error(`not a field: ${JSON.stringify(field)}`)
    const known = headers[name.toLowerCase()]
    // a list (RFC 9110 §12.5.5)
    if (known !== undefined && name !== 'Vary') throw new Error(`the field ${name} came twice`)
    headers[name.toLowerCase()] = known === undefined ? value : `${known}, ${value}`
  }
  const length = headers['content-length']
  const hasNone = status < 200 || status === 204 || status === 304
  const isFramed = hasNone ? length === undefined : length !== undefined || isToHead
  if (!isFramed || 'transfer-encoding' in headers || !/^[0-9]+$/.test(length ?? '0')) {
    throw new Error(`${line} is framed by ${JSON.stringify(headers)}`)
  }
  const start = headEnd + 2 * CRLF.length
  const end = start + (isToHead ? 0 : Number(length ?? 0))
  if (bytes.length < end) return undefined
  const body = Buffer.from(bytes.subarray(start, end))
  const isText = headers['content-encoding'] === undefined
  const text = isText ? new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body) : ''
  const isJson = text !== '' && headers['content-type']?.startsWith('application/json') === true
  return { answer: { status, line, headers, body, text, json: isJson ? JSON.parse(text) : undefined }, bytes: end }
}
