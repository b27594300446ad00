import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Failure } from '../../src/errors.ts'
import type { Decided } from '../../src/journal/journal.ts'
import { CommitQueue } from '../../src/journal/queue.ts'
import { MAX_COMMIT_QUEUE_RECORDS } from '../../src/limits.ts'

const made = (data: unknown): Decided<unknown> => ({ outcome: data, fact: { type: 'test.made', by: null, data } })

test('decisions decide in the order of their arrival, and not before they are taken', async () => {
  const queue = new CommitQueue()
  const order: number[] = []
  const settled = [1, 2, 3].map(n => queue.add(() => { order.push(n); return made(n) }))
  assert.deepEqual(order, [])
  const accepted: unknown[] = []
  const taken = queue.take(({ data }) => { accepted.push(data); return true })
  assert.deepEqual([order, accepted, taken.length, queue.length], [[1, 2, 3], [1, 2, 3], 3, 0])
  for (const { resolve, outcome } of taken) resolve(outcome)
  assert.deepEqual(await Promise.all(settled), [1, 2, 3])
})

test('what the one who takes has no room for stays in its place, undecided', () => {
  const queue = new CommitQueue()
  const order: number[] = []
  for (const n of [1, 2, 3, 4, 5]) void queue.add(() => { order.push(n); return made(n) })
  assert.equal(queue.take(({ data }) => data !== 2).length, 2)
  assert.deepEqual([order, queue.length], [[1, 2], 3])
  assert.equal(queue.take(() => false).length, 1)
  assert.equal(queue.take(() => true).length, 2)
  assert.deepEqual([order, queue.length], [[1, 2, 3, 4, 5], 0])
})

test('a decision without a fact is part of the write, but takes no room in it', () => {
  const queue = new CommitQueue()
  const silent = { outcome: undefined }
  for (const given of [silent, made(1), silent, made(2), silent]) void queue.add(() => given)
  const accepted: unknown[] = []
  const taken = queue.take(({ data }) => { accepted.push(data); return data !== 2 })
  assert.deepEqual([accepted, taken.length, queue.length], [[1, 2], 4, 1])
})

test('a decision that throws is rejected with what it threw and is no part of the write', async () => {
  const queue = new CommitQueue()
  const thrown = new Error('no')
  const first = queue.add(() => made(1))
  const rejected = assert.rejects(queue.add(() => { throw thrown }), error => error === thrown)
  const last = queue.add(() => made(2))
  const taken = queue.take(() => true)
  assert.equal(taken.length, 2)
  for (const { resolve, outcome } of taken) resolve(outcome)
  assert.deepEqual(await Promise.all([first, rejected, last]), [1, undefined, 2])
})

test('a decision that arrives while another one decides comes behind all that wait', () => {
  const queue = new CommitQueue()
  const order: string[] = []
  const add = (name: string, then: () => void = () => {}): void => {
    void queue.add(() => { order.push(name); then(); return made(name) })
  }
  add('a', () => add('c'))
  add('b')
  while (queue.length > 0) queue.take(() => true)
  assert.deepEqual(order, ['a', 'b', 'c'])
})

test('what is put back decides before all that wait, and anew', () => {
  const queue = new CommitQueue()
  const order: string[] = []
  for (const name of ['a', 'b', 'c']) void queue.add(() => { order.push(name); return made(name) })
  queue.putBack(queue.take(({ data }) => data !== 'b'))
  assert.equal(queue.take(() => true).length, 3)
  assert.deepEqual(order, ['a', 'b', 'a', 'b', 'c'])
})

test('a queue is bounded: one more is rejected as queue-full, until some were taken', async () => {
  const queue = new CommitQueue()
  for (let i = 0; i < MAX_COMMIT_QUEUE_RECORDS; i++) void queue.add(() => made(i))
  await assert.rejects(queue.add(() => assert.fail('it decided')), { code: 'queue-full' })
  assert.equal(queue.length, MAX_COMMIT_QUEUE_RECORDS)
  let room = 10
  queue.take(() => --room > 0)
  assert.equal(queue.length, MAX_COMMIT_QUEUE_RECORDS - 10)
  void queue.add(() => made(0))
  assert.equal(queue.length, MAX_COMMIT_QUEUE_RECORDS - 9)
})

test('rejecting all that wait lets none of them decide and leaves the queue usable', async () => {
  const queue = new CommitQueue()
  const failure = new Failure('journal-latched', 'test')
  const decide = (): never => assert.fail('it decided')
  const rejected = [1, 2].map(() => assert.rejects(queue.add(decide), error => error === failure))
  queue.rejectAll(failure)
  await Promise.all(rejected)
  assert.equal(queue.length, 0)
  assert.equal(queue.take(() => true).length, 0)
  void queue.add(() => made(1))
  assert.equal(queue.take(() => true).length, 1)
})
