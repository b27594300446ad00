import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RateLimit, type Verdict } from '../../src/http/rate-limit.ts'
import { MAX_RATE_LIMIT_CLIENTS } from '../../src/limits.ts'
import { randomOf, type Random } from '../support/random.ts'

/** A limit with a clock that the test moves. */
class Bench {
  nowMs: number
  readonly limit: RateLimit

  constructor(limit: number, startMs: number, maxClients?: number) {
    this.nowMs = startMs
    this.limit = new RateLimit(limit, () => this.nowMs, maxClients)
  }

  take(key = 'a'): Verdict { return this.limit.take(key) }

  /** Takes `count` times and gives how many were allowed. */
  burst(count: number, key = 'a'): number {
    let allowed = 0
    for (let i = 0; i < count; i++) if (this.take(key).allowed) allowed++
    return allowed
  }
}

// Zero is where a clock of its own starts; the others are off a second's and off a minute's start.
const STARTS_MS = [0, 1, 999, 1_000, 59_999, 60_000, 61_234.5, 1_700_000_000_123.25]

for (const startMs of STARTS_MS) {
  test(`§8.2 with the clock at ${startMs} exactly 60 pass, and the 61st does not`, () => {
    const bench = new Bench(60, startMs)
    for (let remaining = 59; remaining >= 0; remaining--) {
      assert.deepEqual(bench.take(), { allowed: true, limit: 60, remaining, retryAfterSeconds: 0 })
    }
    const { retryAfterSeconds, ...refusal } = bench.take()
    assert.deepEqual(refusal, { allowed: false, limit: 60, remaining: 0 })
    assert.ok(retryAfterSeconds >= 1 && retryAfterSeconds <= 60, String(retryAfterSeconds))
  })

  test(`§8.1 with the clock at ${startMs} all 60 are back a minute after a burst`, () => {
    const bench = new Bench(60, startMs)
    assert.equal(bench.burst(200), 60)
    bench.nowMs += 60_000
    assert.equal(bench.burst(200), 60)
  })
}

test('§8.1 the window slides: what was used early in it comes back early', () => {
  const bench = new Bench(60, 500)
  assert.equal(bench.burst(20), 20)
  bench.nowMs += 30_000
  assert.equal(bench.burst(100), 40)
  bench.nowMs += 30_000 - 1_000
  assert.equal(bench.burst(100), 0, '59 seconds after the first')
  bench.nowMs += 1_000
  assert.equal(bench.burst(100), 20, 'a minute after the first')
  bench.nowMs += 30_000
  assert.equal(bench.burst(100), 40, 'a minute after the second')
})

test('§8.1 a fixed window\'s double burst around its edge is not allowed', () => {
  const bench = new Bench(60, 59_000)
  assert.equal(bench.burst(60), 60)
  bench.nowMs = 60_000
  assert.equal(bench.burst(60), 0)
})

test('§8.2 what is refused does not count: who keeps trying is let in as soon as who waits', () => {
  const bench = new Bench(60, 250)
  bench.burst(60)
  for (let second = 1; second < 60; second++) {
    bench.nowMs = 250 + second * 1_000
    assert.equal(bench.burst(10), 0)
  }
  bench.nowMs = 250 + 60_000
  assert.equal(bench.burst(100), 60)
})

test('§8.2 clients are counted each for itself', () => {
  const bench = new Bench(3, 0)
  assert.equal(bench.burst(5, 'a'), 3)
  assert.equal(bench.burst(5, 'b'), 3)
  assert.equal(bench.take('a').allowed, false)
  assert.equal(bench.take('__proto__').remaining, 2)
})

test('§8.3 looking at what is left does not count', () => {
  const bench = new Bench(3, 0)
  for (let i = 0; i < 10; i++) assert.equal(bench.limit.peek('a').remaining, 3)
  bench.take()
  const left = { allowed: true, limit: 3, remaining: 2, retryAfterSeconds: 0 }
  for (let i = 0; i < 10; i++) assert.deepEqual(bench.limit.peek('a'), left)
  assert.equal(bench.limit.clients, 1)
  bench.nowMs += 60_000
  assert.equal(bench.limit.peek('a').remaining, 3)
})

test('§8.3 a client that looked meanwhile is counted as before', () => {
  const bench = new Bench(60, 0)
  bench.burst(30)
  bench.nowMs = 59_999
  bench.limit.peek('a')
  assert.equal(bench.burst(60), 30)
  bench.nowMs = 60_000
  bench.limit.peek('a')
  assert.equal(bench.burst(60), 30)
})

test('§8 whatever comes when, the limit answers as a list of all allowed requests would', t => {
  const random = randomOf(t)
  for (let round = 0; round < 60; round++) {
    const limit = random.pick([1, 2, 3, 7, 60])
    const bench = new Bench(limit, random.pick(STARTS_MS))
    const allowed = new Map<string, number[]>()
    for (let i = 0; i < 400; i++) {
      bench.nowMs += pause(random)
      const key = random.pick(['a', 'b', 'c'])
      const seconds = allowed.get(key) ?? []
      allowed.set(key, seconds)
      const used = usedAt(seconds, bench.nowMs)
      const context = `limit ${limit}, request ${i} at ${bench.nowMs}`
      if (random.int(5) === 0) assert.equal(bench.limit.peek(key).remaining, limit - used, context)
      const verdict = bench.take(key)
      if (used < limit) {
        seconds.push(Math.floor(bench.nowMs / 1_000))
        assert.deepEqual(verdict, { allowed: true, limit, remaining: limit - used - 1, retryAfterSeconds: 0 }, context)
      } else {
        let wait = 1
        while (usedAt(seconds, bench.nowMs + wait * 1_000) >= limit) wait++
        assert.deepEqual(verdict, { allowed: false, limit, remaining: 0, retryAfterSeconds: wait }, context)
      }
    }
  }
})

test('§8.3 Retry-After is true: after that wait a request passes, and a second earlier none does', t => {
  const random = randomOf(t)
  let refusals = 0
  for (let round = 0; round < 200; round++) {
    const limit = 1 + random.int(4)
    const steps = Array.from({ length: 30 }, () => pause(random))
    /** The same requests again, then one after a further wait. */
    const replay = (count: number, waitSeconds: number): Verdict => {
      const bench = new Bench(limit, 0)
      for (const step of steps.slice(0, count)) { bench.nowMs += step; bench.take() }
      bench.nowMs += waitSeconds * 1_000
      return bench.take()
    }
    const count = 1 + random.int(steps.length)
    const { allowed, retryAfterSeconds } = replay(count, 0)
    if (allowed) continue
    refusals++
    assert.equal(replay(count, retryAfterSeconds).allowed, true)
    if (retryAfterSeconds > 1) assert.equal(replay(count, retryAfterSeconds - 1).allowed, false)
  }
  assert.ok(refusals > 50, `${refusals} refusals say too little`)
})

test('§8 the table is bounded: 100,000 addresses leave two generations at most', () => {
  const bench = new Bench(60, 0, 1_000)
  let most = 0
  for (let i = 0; i < 100_000; i++) {
    bench.nowMs += 0.1
    bench.take(`client ${i}`)
    most = Math.max(most, bench.limit.clients)
  }
  assert.equal(most, 2_000)
})

test('§8 by itself the table holds 100,000 addresses, none of them forgotten, and no more than two generations', () => {
  const bench = new Bench(1, 0)
  const keys = Array.from({ length: 2 * MAX_RATE_LIMIT_CLIENTS }, (_, i) => `client ${i}`)
  for (const key of keys) assert.equal(bench.take(key).allowed, true)
  assert.equal(bench.limit.clients, 2 * MAX_RATE_LIMIT_CLIENTS)
  assert.equal(bench.limit.peek(keys[0]!).remaining, 0)
  bench.take('one more')
  assert.equal(bench.limit.clients, MAX_RATE_LIMIT_CLIENTS + 1)
})

test('§8 clients that are gone for two minutes are no longer held', () => {
  const bench = new Bench(60, 0)
  for (let i = 0; i < 1_000; i++) bench.take(`client ${i}`)
  bench.nowMs = 60_000
  bench.take('a')
  bench.nowMs = 120_000
  bench.take('b')
  assert.equal(bench.limit.clients, 2)
})

test('§8 a client that is seen again after its generation has aged is held once', () => {
  const bench = new Bench(60, 0)
  bench.take('a')
  bench.nowMs = 60_000
  bench.take('b')
  bench.take('a')
  assert.equal(bench.limit.clients, 2)
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

test('§8 a client that returns after exactly a generation of others is still counted', () => {
  const bench = new Bench(3, 0, 10)
  bench.burst(3)
  for (let i = 0; i < 500; i++) {
    bench.nowMs += 100
    bench.take(`client ${i}`)
    if (i % 10 === 9) assert.equal(bench.take().allowed, false, `after client ${i}`)
  }
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
