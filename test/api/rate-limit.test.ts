import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RateLimit, takeBoth, type Verdict } from '../../src/http/rate-limit.ts'
import { MAX_RATE_LIMIT_CLIENTS } from '../../src/limits.ts'
import { heldMiB } from '../support/heap.ts'
import { randomOf, type Random } from '../support/random.ts'

/** A limit with a clock that the test moves. */
class Bench {
  nowMs: number
  readonly limit: RateLimit

  constructor(limit: number, startMs: number, maxClients?: number) {
    this.nowMs = startMs
    this.limit = new RateLimit(limit, maxClients, () => this.nowMs)
  }

  take(key = 'a'): Verdict { return this.limit.take(key) }

  burst(count: number, key = 'a'): number {
    let allowed = 0
    for (let i = 0; i < count; i++) if (this.take(key).allowed) allowed++
    return allowed
  }
}

// Zero is where a clock of its own starts; the others are off a second's and off a minute's start.
const STARTS_MS = [0, 1, 999, 1_000, 59_999, 60_000, 61_234.5, 1_700_000_000_123.25]

test('§8.1, §8.2 exactly 60 pass, wherever the clock stands, and a minute later as many again', () => {
  for (const startMs of STARTS_MS) {
    const bench = new Bench(60, startMs)
    for (let remaining = 59; remaining >= 0; remaining--) {
      assert.deepEqual(bench.take(), { allowed: true, limit: 60, remaining, retryAfterSeconds: 0 })
    }
    const { retryAfterSeconds, ...refusal } = bench.take()
    assert.deepEqual(refusal, { allowed: false, limit: 60, remaining: 0 })
    assert.ok(retryAfterSeconds >= 1 && retryAfterSeconds <= 60, String(retryAfterSeconds))
    assert.equal(bench.burst(200), 0)
    bench.nowMs += 60_000
    assert.equal(bench.burst(200), 60)
  }
})

test('§8, §8.1, §8.2, §8.3 whatever comes when, the limit answers as a list of all allowed requests would', t => {
  const random = randomOf(t)
  for (let round = 0; round < 60; round++) {
    const limit = random.pick([1, 2, 3, 7, 60])
    const bench = new Bench(limit, random.pick(STARTS_MS))
    const allowed = new Map<string, number[]>()
    for (let i = 0; i < 400; i++) {
      bench.nowMs += pause(random)
      const key = random.pick(['a', 'b', '__proto__'])
      const seconds = allowed.get(key) ?? []
      allowed.set(key, seconds)
      const used = usedAt(seconds, bench.nowMs)
      const context = `limit ${limit}, request ${i} at ${bench.nowMs}`
      let wait = 0
      if (used >= limit) while (usedAt(seconds, bench.nowMs + wait * 1_000) >= limit) wait++
      const left = { allowed: used < limit, limit, remaining: limit - used, retryAfterSeconds: wait }
      if (random.int(5) === 0) assert.deepEqual(bench.limit.peek(key), left, context)
      assert.deepEqual(bench.take(key), { ...left, remaining: Math.max(0, limit - used - 1) }, context)
      if (used < limit) seconds.push(Math.floor(bench.nowMs / 1_000))
    }
  }
})

test('§8 by itself the table holds 30,000 addresses, none of them forgotten, and no more than two generations', () => {
  const bench = new Bench(1, 0)
  const keys = Array.from({ length: 2 * MAX_RATE_LIMIT_CLIENTS }, (_, i) => `client ${i}`)
  for (const key of keys) assert.equal(bench.take(key).allowed, true)
  assert.equal(bench.limit.clients, 2 * MAX_RATE_LIMIT_CLIENTS)
  assert.equal(bench.limit.peek(keys[0]!).remaining, 0)
  bench.take('one more')
  assert.equal(bench.limit.clients, MAX_RATE_LIMIT_CLIENTS + 1)
})

test('§8 three full tables, as many as there are, fit into a heap of 64 MiB beside all else', () => {
  const before = heldMiB()
  const limits = [1, 2, 3].map(() => new Bench(60, 0).limit)
  for (let i = 0; i < 2 * MAX_RATE_LIMIT_CLIENTS; i++) {
    for (const limit of limits) limit.take(`2001:db8:${(i >> 12).toString(16)}:${(i & 4095).toString(16)}::/64`)
  }
  const added = heldMiB() - before
  assert.equal(limits[0]!.clients, 2 * MAX_RATE_LIMIT_CLIENTS)
  assert.ok(added < 60, `${added} MiB`)
})

test('§8 clients that are gone for two minutes are no longer held', () => {
  const bench = new Bench(60, 0)
  for (let i = 0; i < 1_000; i++) bench.take(`client ${i}`)
  bench.nowMs = 60_000
  bench.take('a')
  bench.take('client 7')
  assert.equal(bench.limit.clients, 1_001, 'who is seen again is held once')
  bench.nowMs = 120_000
  bench.take('b')
  assert.equal(bench.limit.clients, 3)
})

test('§8 a client is not forgotten within a minute, unless more than a generation of others came in between', t => {
  const random = randomOf(t)
  const maxClients = 8
  let returns = 0
  for (let round = 0; round < 2_000; round++) {
    const bench = new Bench(2, random.int(200_000), maxClients)
    const earlier = random.int(40)
    for (let i = 0; i < earlier; i++) { bench.nowMs += random.int(9_000); bench.take(`before ${random.int(20)}`) }
    assert.equal(bench.burst(3), 2)
    const usedAtSecond = Math.floor(bench.nowMs / 1_000)
    const others = random.int(maxClients + 1)
    for (let i = 0; i < others; i++) { bench.nowMs += random.int(8_000); bench.take(`other ${i}`) }
    if (Math.floor(bench.nowMs / 1_000) - usedAtSecond >= 60) continue
    returns++
    assert.equal(bench.limit.peek('a').remaining, 0, `round ${round}: seen before its return`)
    assert.equal(bench.take().allowed, false, `round ${round}: it returned after ${others} others`)
  }
  assert.ok(returns > 1_000, `${returns} returns say too little`)
})

test('a limit of a million costs no more memory a client than a limit of one', () => {
  const bench = new Bench(1_000_000, 0)
  const before = process.memoryUsage().arrayBuffers
  assert.equal(bench.burst(200_000), 200_000)
  assert.ok(process.memoryUsage().arrayBuffers - before < 100_000)
  assert.equal(bench.limit.peek('a').remaining, 800_000)
})

/** A time between two requests: mostly short, sometimes to the window's edge and over it. */
function pause(random: Random): number {
  return random.pick([
    0, 0, 0, 1, 0.5, 300, 999, 1_000, 1_001, random.int(5_000), 29_999, 59_000, 59_999, 60_000, 61_000
  ])
}

function usedAt(seconds: readonly number[], nowMs: number): number {
  return seconds.filter(second => second > Math.floor(nowMs / 1_000) - 60).length
}

test('a request counts in both limits, or in neither if one of them is used up; refusals tell the longer wait', () => {
  let ownMs = 30_000
  const [general, own] = [new RateLimit(2, 10, () => 0), new RateLimit(3, 10, () => ownMs)]
  const take = (key: string): Verdict => takeBoth(general, key, own, 'address')!
  assert.deepEqual(['a', 'a', 'a', 'a'].map(key => take(key).allowed), [true, true, false, false])
  assert.equal(own.peek('address').remaining, 1, 'what the general limit refused')
  assert.equal(take('b').allowed, true)
  const { allowed, remaining, retryAfterSeconds } = take('b')
  assert.deepEqual([allowed, remaining, retryAfterSeconds], [false, 1, 60])
  assert.equal(general.peek('b').remaining, 1, 'what the own limit refused')
  ownMs = 60_000
  assert.deepEqual(['a', 'b'].map(key => take(key).retryAfterSeconds), [60, 30])
})
