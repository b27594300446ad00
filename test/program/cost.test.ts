/**
 * What a request costs, counted and not timed, so that it holds on a busy machine as well: system calls, bytes
 * allocated, pages of the list. A cost that has fallen is a reason to lower its bound.
 */
import assert from 'node:assert/strict'
import type { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { PAGE_ENTRIES } from '../../src/limits.ts'
import { EntryTable } from '../../src/store/entry-pages.ts'
import { straceMissing, trace } from '../support/outside.ts'
import { connectRaw, type RawClient } from '../support/raw.ts'
import { atEnd, freshFolder } from '../support/service.ts'
import { BODY_BYTES, fieldsOf, makeJournal } from '../bench/journal.ts'
import { ANY_CORES, serveProgram, type Served } from '../bench/servers.ts'
import { creates, gets, requestBytes } from '../bench/works.ts'

/** What was measured on Node 20, x86-64, and what it may be at most. */
const COSTS = {
  'socket reads a GET': [1, 1],
  'socket writes a GET': [1, 1],
  // A second one where nothing had come yet when the first one looked.
  'polls a GET': [1.1, 2.1],
  'other calls in 100 GETs': [0, 0],
  'heap bytes a GET': [10_000, 13_500],
  'socket reads a create': [1, 1],
  'socket writes a create': [1, 1],
  // Under strace those that come together are taken in slowly, and may need more than one.
  'journal writes for 64 creates that come together': [1.4, 4],
  'looks at the file a journal write': [2, 2],
  'other calls in 640 creates': [0, 0],
  'heap bytes a create': [17_800, 26_500],
  'heap bytes an idle connection keeps': [3_200, 5_000],
  'bytes made anew for a list of 10,000 after a change': [9_088, 9_100]
} satisfies { readonly [name: string]: readonly [measured: number, atMost: number] }

function hold(name: keyof typeof COSTS, cost: number): void {
  const [, atMost] = COSTS[name]
  assert.ok(cost <= atMost, `${name}: ${cost}, at most ${atMost}`)
}

const ENTRIES = 1_000
const WAVES = 10
const TOGETHER = 64

const noStrace = straceMissing()

async function startProgram(t: TestContext, nodeFlags: readonly string[] = []): Promise<Served> {
  const folder = join(freshFolder(t), 'data')
  makeJournal(folder, ENTRIES, BODY_BYTES)
  const program = await serveProgram(folder, ANY_CORES, nodeFlags)
  atEnd(t, () => program.stop())
  return program
}

function connectTo(t: TestContext, { port }: Served): Promise<RawClient> {
  return connectRaw(t, `http://127.0.0.1:${port}`)
}

async function ask(client: RawClient, request: Buffer): Promise<void> {
  await client.send(request)
  assert.equal((await client.answer()).status, 200)
}

const GETS = gets(ENTRIES, 1).requests.map(requestBytes)
const CREATES = creates(ENTRIES, TOGETHER).requests.map(requestBytes)

async function getSome(client: RawClient, count: number): Promise<void> {
  for (let i = 0; i < count; i++) await ask(client, GETS[i % GETS.length]!)
}

/** Waves of creates, each sent at once. */
async function createSome(clients: readonly RawClient[], waves: number): Promise<void> {
  for (let wave = 0; wave < waves; wave++) {
    await Promise.all(clients.map((client, i) => ask(client, CREATES[i]!)))
  }
}

/** What a system call is about, in the order in which it is looked for; what threads wake each other by is no cost. */
const ABOUT = [
  ['poll', /^epoll_p?wait\d?\(/],
  ['wake', /^\w+\(\d+<(?:anon_inode:)?\[?(?:eventfd|eventpoll)|^\w+\(\d+<pipe:/],
  ['memory', /^(?:mmap|munmap|mprotect|madvise)\(/],
  ['read', /^(?:read|readv|recvfrom|recvmsg)\(\d+<(?:socket|TCP)/],
  ['write', /^(?:write|writev|sendto|sendmsg)\(\d+<(?:socket|TCP)/],
  ['journal write', /^p?writev?(?:64)?\(\d+<[^>]*\/journal\.jsonl>/],
  ['journal look', /^(?:statx|fstat|newfstatat|stat)\(.*\/journal\.jsonl/]
] as const

type About = typeof ABOUT[number][0] | 'other'

/** Counts a program's calls on descriptors and files while something is done, by what they are about. */
async function countCalls(t: TestContext, { child }: Served, act: () => Promise<void>): Promise<(of: About) => number> {
  const traced = await trace(t, child.pid!, '-y', '-e', 'trace=%desc,%file,%network')
  await act()
  await traced.end()
  const calls = traced.calls().map(line => line.replace(/^\d+ +/, ''))
  const about = calls.map((call): About => ABOUT.find(([, pattern]) => pattern.test(call))?.[0] ?? 'other')
  return of => about.filter(one => one === of).length
}

test('a GET on a kept connection costs one read, one write, and nothing else', { skip: noStrace }, async t => {
  const program = await startProgram(t)
  const client = await connectTo(t, program)
  await getSome(client, 200)
  const calls = await countCalls(t, program, () => getSome(client, 100))
  hold('socket reads a GET', calls('read') / 100)
  hold('socket writes a GET', calls('write') / 100)
  hold('polls a GET', calls('poll') / 100)
  hold('other calls in 100 GETs', calls('other') + calls('journal write') + calls('journal look'))
  assert.equal(calls('read'), 100, 'strace has seen all of them')
})

test('creates that come together share a write to the journal', { skip: noStrace }, async t => {
  const program = await startProgram(t)
  const clients = await Promise.all(Array.from({ length: TOGETHER }, () => connectTo(t, program)))
  await createSome(clients, 2)
  const calls = await countCalls(t, program, () => createSome(clients, WAVES))
  const count = WAVES * TOGETHER
  hold('socket reads a create', calls('read') / count)
  hold('socket writes a create', calls('write') / count)
  hold('journal writes for 64 creates that come together', calls('journal write') / WAVES)
  hold('looks at the file a journal write', calls('journal look') / calls('journal write'))
  hold('other calls in 640 creates', calls('other'))
  assert.ok(calls('journal write') >= WAVES, 'strace has seen all of them')
})

type HeapBytes = (what: 'collect' | 'look') => Promise<number>

/** A program that tells how much of its heap is used, after a collection or at once. */
async function startWatched(t: TestContext): Promise<{ readonly program: Served, readonly heapBytes: HeapBytes }> {
  // No collection of what is young may come between two looks at the heap.
  const flags = ['--min-semi-space-size=64', '--max-semi-space-size=64', '--expose-gc']
  const listen = 'process.on("message", () => process.send(process.memoryUsage().heapUsed))'
  const collect = 'process.on("message", what => { if (what === "collect") gc() });'
  const program = await startProgram(t, [...flags, '--import', `data:text/javascript,${collect}${listen}`])
  const heapBytes: HeapBytes = async what => {
    program.child.send(what)
    return Number((await once(program.child, 'message'))[0])
  }
  return { program, heapBytes }
}

test('a connection that waits for its next request keeps nothing of those before', async t => {
  const { program, heapBytes } = await startWatched(t)
  const connect = (): Promise<RawClient[]> => Promise.all(Array.from({ length: TOGETHER }, () => connectTo(t, program)))
  await createSome(await connect(), WAVES)
  const before = await heapBytes('collect')
  await createSome(await connect(), 2)
  hold('heap bytes an idle connection keeps', (await heapBytes('collect') - before) / TOGETHER)
})

test('a request allocates no more than it did', async t => {
  const { program, heapBytes } = await startWatched(t)
  const measure = async (act: (count: number) => Promise<void>, count: number): Promise<number> => {
    await act(3 * count) // until the compiler has seen it all
    const before = await heapBytes('collect')
    await act(count)
    const bytes = (await heapBytes('look') - before) / count
    assert.ok(bytes > 100, 'nothing was collected meanwhile')
    return bytes
  }
  const clients = await Promise.all(Array.from({ length: TOGETHER }, () => connectTo(t, program)))
  hold('heap bytes a GET', await measure(count => getSome(clients[0]!, count), 1_000))
  hold('heap bytes a create', await measure(count => createSome(clients, count / TOGETHER), 10 * TOGETHER))
})

test('a list after a change costs the page that has changed', () => {
  const table = new EntryTable()
  for (let id = 1; id <= 10_000; id++) table.set(id, { id, ...fieldsOf(id, BODY_BYTES), status: 1 })
  // A piece is the same bytes where it is the same place in memory.
  const place = (piece: Buffer, places: Map<ArrayBufferLike, Set<string>>): boolean => {
    const known = places.get(piece.buffer) ?? new Set()
    places.set(piece.buffer, known)
    const isNew = !known.has(`${piece.byteOffset} ${piece.length}`)
    known.add(`${piece.byteOffset} ${piece.length}`)
    return isNew
  }
  const places = new Map<ArrayBufferLike, Set<string>>()
  const madeAnew = (): number => table.list()!.filter(piece => place(piece, places))
    .reduce((sum, piece) => sum + piece.length, 0)
  assert.ok(madeAnew() > 1_000_000)
  assert.equal(madeAnew(), 0)
  table.set(5_000, { id: 5_000, ...fieldsOf(1, BODY_BYTES), status: 1 })
  const bytes = madeAnew()
  assert.ok(bytes > PAGE_ENTRIES)
  hold('bytes made anew for a list of 10,000 after a change', bytes)
})
