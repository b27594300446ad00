/**
 * The load of the soak test: connections that each ask again as soon as they are answered, nine reads to a write, and a
 * memory of everything that was acknowledged, which outlives the service.
 */
import assert from 'node:assert/strict'
import { send, type Answered } from '../support/service.ts'

/** The latencies of a kind of request since the last slice, in milliseconds. */
export interface Latencies {
  readonly count: number
  readonly p50: number
  readonly p99: number
}

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
let connections: Promise<unknown> = Promise.resolve()

/** Asks; undefined where the service has gone before the answer. */
function ask(url: string, method: string, path: string, body?: object): Promise<Answered | undefined> {
  return send(url, method, path, body).catch(() => undefined)
}

/** Reads every entry and holds it against what is known; what was unsure is known from then on. */
async function audit(url: string): Promise<void> {
  numbers.length = 0
  const found = new Set<number>()
  for (let id = 1; ; id++) {
    const answer = await send(url, 'GET', `/api/getPassword/${id}`)
    if (answer.status === 404) break
    const entry = answer.json.passwords as Entry
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
  const { json } = await send(url, 'GET', '/api/listPassword')
  assert.equal(json.length, [...known.values()].filter(({ status }) => status === 1).length)
}

/** Creates entries until there are enough, which the service has to keep from then on. */
async function fill(url: string): Promise<void> {
  await Promise.all(Array.from({ length: CONNECTIONS }, async () => {
    while (known.size + unsure.size < ENTRIES) assert.ok(await create(url), 'the service has gone')
  }))
}

async function work(url: string, connection: number): Promise<void> {
  const own = numbers.map((_, id) => id).filter(id => id > 0 && id % CONNECTIONS === connection)
  const total = numbers.length - 1
  while (!isEnding) {
    const startMs = performance.now()
    const isWrite = Math.random() < WRITES
    const isAnswered = isWrite
      ? await write(url, own, connection)
      : await read(url, 1 + Math.floor(Math.random() * total))
    if (!isAnswered) break
    ;(isWrite ? writeMs : readMs).push(performance.now() - startMs)
  }
}

async function read(url: string, id: number): Promise<boolean> {
  const answer = await ask(url, 'GET', `/api/getPassword/${id}`)
  if (answer === undefined) return false
  assert.equal(answer.status, 200)
  assert.equal(answer.json.passwords.password, String(numbers[id]))
  return true
}

async function write(url: string, own: readonly number[], connection: number): Promise<boolean> {
  // A few more creates, so that restarts meet them under way as well.
  if (known.size + unsure.size < ENTRIES + 1_000 && Math.random() < 0.02) return create(url)
  const id = own[Math.floor(Math.random() * own.length)]!
  const one = known.get(numbers[id]!)!
  const isDelete = Math.random() < 0.02 && one.status === 1
  const usuario = isDelete ? one.usuario : `user ${connection} ${++serial}`
  one.maybe = { usuario, status: isDelete ? 0 : one.status }
  const answer = isDelete ? await ask(url, 'POST', `/api/deletePassword/${id}`)
    : await ask(url, 'POST', `/api/updatePassword/${id}`, { usuario })
  if (answer === undefined) return false
  assert.equal(answer.status, 200, answer.text)
  Object.assign(one, one.maybe, { maybe: undefined })
  acknowledged++
  return true
}

async function create(url: string): Promise<boolean> {
  const number = ++serial
  const one = { usuario: `user ${number}`, status: 1, maybe: undefined }
  unsure.set(number, one)
  const answer = await ask(url, 'POST', '/api/createPassword', {
    password: String(number), sistema: 's'.repeat(number % 100 + 1), usuario: one.usuario
  })
  if (answer === undefined) return false
  assert.equal(answer.status, 200, answer.text)
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

/** Begins on a service, after a look at all it has; gives how many entries there are, and changes were acknowledged. */
export async function begin(url: string): Promise<{ readonly entries: number, readonly acknowledged: number }> {
  isEnding = false
  if (known.size === 0) await fill(url)
  await audit(url)
  slice()
  connections = Promise.all(Array.from({ length: CONNECTIONS }, (_, i) => work(url, i)))
  connections.catch(() => {}) // whoever waits for the end gets it
  return { entries: numbers.length - 1, acknowledged }
}

/** What was measured since the last slice. */
export function slice(): { readonly reads: Latencies, readonly writes: Latencies } {
  const measured = { reads: latencies(readMs), writes: latencies(writeMs) }
  readMs = []
  writeMs = []
  return measured
}

/** Ends the load; rejects if an answer was wrong. */
export async function end(): Promise<void> {
  isEnding = true
  await connections
}
