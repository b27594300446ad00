/**
 * What a request costs, counted and not timed, so that it holds on a busy machine as well: system calls. A
 * cost that has fallen is a reason to lower its bound.
 */
import assert from 'node:assert/strict'
import type { Buffer } from 'node:buffer'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { straceMissing, trace } from '../support/outside.ts'
import { connectRaw, type RawClient } from '../support/raw.ts'
import { atEnd, freshFolder } from '../support/service.ts'
import { BODY_BYTES, makeJournal } from '../bench/journal.ts'
import { ANY_CORES, serveProgram, type Served } from '../bench/servers.ts'
import { creates, gets, requestBytes } from '../bench/works.ts'

/** What was measured on Node 20, x86-64, and what it may be at most. */
const COSTS = {
  'socket reads a GET': [1, 1],
  'socket writes a GET': [1, 1],
  // A second one where nothing had come yet when the first one looked.
  'polls a GET': [1.1, 2.1],
  'other calls in 100 GETs': [0, 0],
  'socket reads a create': [1, 1],
  'socket writes a create': [1, 1],
  // Under strace those that come together are taken in slowly, and may need more than one.
  'journal writes for 64 creates that come together': [1.4, 4],
  'looks at the file a journal write': [2, 2],
  'other calls in 640 creates': [0, 0]
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
