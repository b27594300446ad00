/**
 * The load of the soak test, in a process of its own: keep-alive connections that each ask again as soon as they are
 * answered, nine reads to a write, and a memory of everything that was acknowledged, which outlives the service.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** What the soak test asks for, each answered by a message of the same kind, or by an `error`. */
export type Order =
  | { readonly kind: 'begin', readonly url: string }
  | { readonly kind: 'slice' }
  | { readonly kind: 'end' }

/** The latencies of a kind of request since the last slice, in milliseconds. */
export interface Latencies {
  readonly count: number
  readonly p50: number
  readonly p99: number
}

/** What the load says. */
export type Report =
  | { readonly kind: 'ready' }
  | { readonly kind: 'begin', readonly entries: number, readonly acknowledged: number }
  | { readonly kind: 'slice', readonly reads: Latencies, readonly writes: Latencies }
  | { readonly kind: 'end' }
  | { readonly kind: 'error', readonly message: string }

const CONNECTIONS = 32
/** So many entries are made first; later writes change them, so that memory has no reason to grow. */
const ENTRIES = 5_000
const WRITES = 0.1

interface Entry {
  readonly id: number
  readonly password: string
  readonly sistema: string
  readonly usuario: string
  readonly status: number
}

/** What is known of an entry: what it must be, and what it may be, as the last change of it was never answered. */
interface Known {
  usuario: string
  status: number
  maybe: { readonly usuario: string, readonly status: number } | undefined
}

/** By the number that its `password` carries. A create that was never answered is in `unsure` alone. */
const known = new Map<number, Known>()
const unsure = new Map<number, Known>()
/** The numbers by id; an entry belongs to one connection, which alone changes it. */
const numbers: number[] = []
let serial = 0
let acknowledged = 0
let readMs: number[] = []
let writeMs: number[] = []
let isEnding = false
let connections: Promise<void>[] = []

function fail(error: unknown): void {
  tell({ kind: 'error', message: error instanceof Error ? error.stack ?? error.message : String(error) })
}

function tell(report: Report): void { process.send?.(report) }

interface Answer {
  readonly status: number
  readonly body: string
}

/** A connection that asks for one thing at a time. */
class Client {
  readonly #socket: Socket
  #received = ''
  #answered: ((answer: Answer | undefined) => void) | undefined

  constructor(socket: Socket) {
    this.#socket = socket.setEncoding('latin1')
    socket.on('error', () => {})
    socket.on('close', () => this.#answered?.(undefined))
    socket.on('data', text => { this.#received += String(text); this.#look() })
  }

  /** Asks; undefined where the connection ended before the answer. */
  ask(method: string, path: string, body?: object): Promise<Answer | undefined> {
    if (!this.#socket.writable) return Promise.resolve(undefined)
    const text = body === undefined ? '' : JSON.stringify(body)
    const type = body === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n`
    return new Promise(resolve => {
      this.#answered = resolve
      this.#socket.write(`${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${type}\r\n${text}`)
    })
  }

  destroy(): void { this.#socket.destroy() }

  #look(): void {
    const headEnd = this.#received.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const length = Number(/content-length: (\d+)/i.exec(this.#received.slice(0, headEnd))?.[1])
    if (this.#received.length < headEnd + 4 + length) return
    const body = Buffer.from(this.#received.slice(headEnd + 4, headEnd + 4 + length), 'latin1').toString()
    const status = Number(this.#received.slice(9, 12))
    this.#received = this.#received.slice(headEnd + 4 + length)
    this.#answered?.({ status, body })
  }
}

async function open(url: string): Promise<Client> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  await once(socket, 'connect')
  return new Client(socket)
}

/** Reads every entry and holds it against what is known; what was unsure is known from then on. */
async function audit(url: string): Promise<void> {
  const client = await open(url)
  numbers.length = 0
  const found = new Set<number>()
  for (let id = 1; ; id++) {
    const answer = await client.ask('GET', `/api/getPassword/${id}`)
    if (answer?.status === 404) break
    const entry = JSON.parse(answer?.body ?? 'null').passwords as Entry
    assert.equal(entry.id, id)
    const number = Number(entry.password)
    const one = known.get(number) ?? unsure.get(number)
    assert.ok(one !== undefined && !found.has(number), `nobody has asked for entry ${id}, ${entry.password}`)
    found.add(number)
    const { usuario, status } = entry
    const isIt = (what: typeof one.maybe): boolean => what?.usuario === usuario && what.status === status
    assert.ok(isIt(one) || isIt(one.maybe), `entry ${id}: ${JSON.stringify(entry)}, known: ${JSON.stringify(one)}`)
    known.set(number, { usuario, status, maybe: undefined })
    numbers[id] = number
  }
  for (const number of known.keys()) assert.ok(found.has(number), `acknowledged, but lost: ${number}`)
  unsure.clear()
  // The list is the same, seen from the other side.
  const list = await client.ask('GET', '/api/listPassword')
  const active = [...known.values()].filter(({ status }) => status === 1).length
  if (list?.status === 200) assert.equal(JSON.parse(list.body).length, active)
  else assert.equal(active, 0)
  client.destroy()
}

/** Creates entries until there are enough, which the service has to keep from then on. */
async function fill(url: string): Promise<void> {
  await Promise.all(Array.from({ length: CONNECTIONS }, async () => {
    const client = await open(url)
    while (known.size + unsure.size < ENTRIES) assert.ok(await create(client), 'the service has gone')
    client.destroy()
  }))
}

async function work(url: string, connection: number): Promise<void> {
  const client = await open(url)
  const own = numbers.map((_, id) => id).filter(id => id > 0 && id % CONNECTIONS === connection)
  const total = numbers.length - 1
  while (!isEnding) {
    const startMs = performance.now()
    const isWrite = Math.random() < WRITES
    const isAnswered = isWrite
      ? await write(client, own, connection)
      : await read(client, 1 + Math.floor(Math.random() * total))
    if (!isAnswered) break
    ;(isWrite ? writeMs : readMs).push(performance.now() - startMs)
  }
  client.destroy()
}

async function read(client: Client, id: number): Promise<boolean> {
  const answer = await client.ask('GET', `/api/getPassword/${id}`)
  if (answer === undefined) return false
  assert.equal(answer.status, 200)
  assert.equal(JSON.parse(answer.body).passwords.password, String(numbers[id]))
  return true
}

async function write(client: Client, own: readonly number[], connection: number): Promise<boolean> {
  // A few more creates, so that restarts meet them under way as well.
  if (known.size + unsure.size < ENTRIES + 1_000 && Math.random() < 0.02) return create(client)
  const id = own[Math.floor(Math.random() * own.length)]!
  const one = known.get(numbers[id]!)!
  const isDelete = Math.random() < 0.02 && one.status === 1
  const usuario = isDelete ? one.usuario : `user ${connection} ${++serial}`
  one.maybe = { usuario, status: isDelete ? 0 : one.status }
  const answer = isDelete ? await client.ask('POST', `/api/deletePassword/${id}`)
    : await client.ask('POST', `/api/updatePassword/${id}`, { usuario })
  if (answer === undefined) return false
  assert.equal(answer.status, 200, answer.body)
  Object.assign(one, one.maybe, { maybe: undefined })
  acknowledged++
  return true
}

async function create(client: Client): Promise<boolean> {
  const number = ++serial
  const one = { usuario: `user ${number}`, status: 1, maybe: undefined }
  unsure.set(number, one)
  const answer = await client.ask('POST', '/api/createPassword', {
    password: String(number), sistema: 's'.repeat(number % 100 + 1), usuario: one.usuario
  })
  if (answer === undefined) return false
  assert.equal(answer.status, 200, answer.body)
  unsure.delete(number)
  known.set(number, one)
  acknowledged++
  return true
}

function latencies(ms: readonly number[]): Latencies {
  const sorted = Float64Array.from(ms).sort()
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0
  return { count: sorted.length, p50: at(0.5), p99: at(0.99) }
}

async function obey(order: Order): Promise<void> {
  if (order.kind === 'begin') {
    isEnding = false
    if (known.size === 0) await fill(order.url)
    await audit(order.url)
    tell({ kind: 'begin', entries: numbers.length - 1, acknowledged })
    readMs = []
    writeMs = []
    connections = Array.from({ length: CONNECTIONS }, (_, i) => work(order.url, i).catch(fail))
  } else if (order.kind === 'slice') {
    tell({ kind: 'slice', reads: latencies(readMs), writes: latencies(writeMs) })
    readMs = []
    writeMs = []
  } else {
    isEnding = true
    await Promise.all(connections)
    tell({ kind: 'end' })
  }
}

process.on('message', order => void obey(order as Order).catch(fail))
process.on('disconnect', () => process.exit())
tell({ kind: 'ready' })
