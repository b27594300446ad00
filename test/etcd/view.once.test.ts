/** What keeps an instance's view of the journal from being older than it says. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Failure } from '../../src/errors.ts'
import { appender } from '../../src/parts/etcd/appender.ts'
import { catchUpOf } from '../../src/parts/etcd/etcd-journal.ts'
import { Follower } from '../../src/parts/etcd/follower.ts'
import { markerOf } from '../../src/parts/etcd/marker.ts'
import { Replica } from '../../src/parts/etcd/replica.ts'
import { singleFlight } from '../../src/parts/etcd/single-flight.ts'

/** All that needs no time is done. */
async function turn(): Promise<void> {
  for (let n = 0; n < 5; n++) await new Promise(resolve => setImmediate(resolve))
}

test('callers share a request that is sent after they call, and never a request that was sent before', async () => {
  const answers: ((error?: Error) => void)[] = []
  const ends: number[] = []
  const ask = singleFlight(endMs => new Promise<number>((resolve, reject) => {
    const n = answers.length
    ends.push(endMs)
    answers.push(error => { if (error === undefined) resolve(n); else reject(error) })
  }), 10_000)
  const together = [ask(), ask()]
  await turn()
  assert.equal(answers.length, 1)
  const later = [ask(), ask()]
  const latestEnd = performance.now() + 10_000
  await turn()
  assert.equal(answers.length, 1, 'one request at a time')
  answers[0]!()
  assert.deepEqual(await Promise.all(together), [0, 0])
  await turn()
  assert.ok(ends[1]! <= latestEnd, 'the bound counts from the call, and not from when the request is sent')
  answers[1]!()
  assert.deepEqual(await Promise.all(later), [1, 1])
  const failing = ask()
  await turn()
  const behind = assert.rejects(ask(), /as the test asked/, 'whoever waits for a request that fails fails with it')
  answers[2]!(new Error('as the test asked'))
  await assert.rejects(failing, /as the test asked/)
  await behind
  await turn()
  assert.equal(answers.length, 3)
  const next = ask()
  await turn()
  answers[3]!()
  assert.equal(await next, 3)
})

for (const [what, ask, code] of [
  ['are read', () => Promise.resolve('3'), 'journal-refused'],
  ['cannot be read', () => Promise.reject(new Failure('journal-unreachable', 'words')), 'journal-unreachable']
] as const) {
  test(`a refusal may answer a repetition: it is final if the newest records, which lack it, ${what}`, async () => {
    const replica = new Replica(() => {}, { find: () => undefined } as never, '/pes')
    const refuse = (): Promise<never> => Promise.reject(new Failure('journal-refused', 'as the test asked'))
    const log = { marker: markerOf('0123abcd begun', '2'), append: refuse }
    const turns = { wait: async () => false }
    const follower = { log, replica, ask, turns, writeFault: () => undefined, wrote: () => {} }
    const append = appender(follower as never, () => ['a line'])
    await assert.rejects(append(() => [{}] as never), { code })
  })
}

test('with stale reads an outage asks nobody to wait but an unknown token, which others may have issued', async () => {
  const outage = new Failure('journal-unreachable', 'words')
  const ask = (): Promise<string> => Promise.reject(outage)
  for (const [staleReads, mustBeNewest, rejects] of [
    [false, false, true], [false, true, true], [true, false, false], [true, true, true]
  ] as const) {
    const asked = catchUpOf({ outage, ask }, staleReads)(mustBeNewest)
    assert.equal(await asked.then(() => false, () => true), rejects, `${staleReads} ${mustBeNewest}`)
  }
})

test('a record behind a gap is skipped, and is no damage', () => {
  const applied: unknown[] = []
  const replica = new Replica(record => { applied.push(record) }, { find: () => undefined } as never, '/pes')
  replica.take([{ seq: 2, text: 'the second' }] as never)
  assert.deepEqual([replica.newest.seq, replica.broken, applied], [0, undefined, []])
})

for (const [before, answer, after] of [
  ['journal-behind', undefined, 'journal-behind'], ['journal-behind', 'journal-unreachable', 'journal-behind'],
  ['journal-unreachable', undefined, undefined], [undefined, 'journal-unreachable', 'journal-unreachable']
] as const) {
  test(`an append is answered by ${answer ?? 'success'}: what was ${before ?? 'well'} is ${after ?? 'well'}`, () => {
    const follower = new Follower({ marker: markerOf('0123abcd begun', '2') } as never, {} as never,
      { fault: () => undefined } as never, () => {}, Date.now)
    const failure = (code: typeof before | typeof answer): Failure | undefined => code && new Failure(code, 'words')
    follower.outage = failure(before)
    follower.wrote(failure(answer))
    assert.equal(follower.outage?.code, after)
  })
}
