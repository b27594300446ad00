/** What a request costs, counted and not timed, so that it holds on a busy machine as well: system calls. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { straceMissing, trace } from '../support/system.ts'
import { startProgram } from '../support/program.ts'
import { connectRaw, message, type RawClient } from '../support/raw.ts'

const GET = message('GET', '/api/getPassword/1')
const CREATE = message('POST', '/api/createPassword', '{"password":"p","sistema":"s","usuario":"u"}')
const NO_STRACE = straceMissing()
/** What Node itself opens, reads and closes once in a while; a request of a hundred would show as a hundred. */
const OF_NODE = 9

/** What a system call is about, in the order in which it is looked for; what threads wake each other by is no cost. */
const ABOUT = [
  ['poll', /^epoll_p?wait\d?\(/],
  ['wake', /^\w+\(\d+<(?:anon_inode:)?\[?(?:eventfd|eventpoll)|^\w+\(\d+<pipe:/],
  ['memory', /^(?:mmap|munmap|mprotect|madvise)\(/],
  ['read', /^(?:read|readv|recvfrom|recvmsg)\(\d+<(?:socket|TCP)/],
  ['write', /^(?:write|writev|sendto|sendmsg)\(\d+<(?:socket|TCP)/],
  ['journal write', /^p?writev?(?:64)?\(\d+<[^>]*\/journal\.jsonl>/],
  ['journal look', /^(?:statx|fstat|newfstatat|stat)\(.*\/journal\.jsonl/],
  // Before and after each write, and once a second.
  ['lock look', /^(?:statx|fstat|newfstatat|stat)\(.*\/held-[^/]*\.sock/],
  // Where it was changed within the last second, it is read again.
  ['key look', /^(?:statx|fstat|newfstatat|stat|openat|open|read|close)\(.*\/journal\.key/]
] as const

type About = typeof ABOUT[number][0] | 'other'

async function ask(client: RawClient, request: Buffer): Promise<void> {
  await client.send(request)
  assert.equal((await client.answer()).status, 200)
}

/** Has clients send a request at once, in waves, and counts the program's calls meanwhile by what they are about. */
async function countCalls(t: TestContext, request: Buffer, together: number, waves: number): Promise<(of: About) =>
  number> {
  const program = await startProgram(t)
  const clients = await Promise.all(Array.from({ length: together }, () => connectRaw(t, program.url)))
  const sendAll = async (): Promise<void> => {
    for (let wave = 0; wave < waves; wave++) await Promise.all(clients.map(client => ask(client, request)))
  }
  await ask(clients[0]!, CREATE)
  await sendAll()
  const traced = await trace(t, program.pid, '-y', '-e', 'trace=%desc,%file,%network')
  await sendAll()
  await traced.end()
  const calls = traced.calls().map(line => line.replace(/^\d+ +/, ''))
  const about = calls.map((call): About => ABOUT.find(([, pattern]) => pattern.test(call))?.[0] ?? 'other')
  return of => about.filter(one => one === of).length
}

test('a GET on a kept connection costs one read, one write, and nothing else', { skip: NO_STRACE }, async t => {
  const calls = await countCalls(t, GET, 1, 100)
  assert.deepEqual([calls('read'), calls('write')], [100, 100])
  assert.ok(calls('poll') <= 210,
    `${calls('poll')} polls: a second one where nothing had come yet when the first one looked`)
  assert.deepEqual([calls('journal write'), calls('journal look')], [0, 0])
  assert.ok(calls('other') <= OF_NODE, `${calls('other')} others`)
})

test('creates that come together share a write to the journal', { skip: NO_STRACE }, async t => {
  const [together, waves] = [64, 10]
  const beganMs = performance.now()
  const calls = await countCalls(t, CREATE, together, waves)
  assert.ok(calls('read') <= together * waves && calls('write') <= together * waves)
  const writes = calls('journal write')
  // Under strace those that come together are taken in slowly, and may need more than one.
  assert.ok(writes >= waves && writes <= 4 * waves, `${writes} writes`)
  assert.ok(calls('journal look') <= 2 * writes, `${calls('journal look')} looks at the file`)
  const seconds = Math.ceil((performance.now() - beganMs) / 1000)
  assert.ok(calls('lock look') <= 2 * writes + seconds, `${calls('lock look')} looks at the lock's socket`)
  assert.ok(calls('other') <= OF_NODE, `${calls('other')} others`)
})
