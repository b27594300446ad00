/** The commit loop, on journals that the test drives. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Failure } from '../../src/errors.ts'
import type { EncodedEvent, Event, Journal, JournalRecord } from '../../src/journal/journal.ts'
import { MAX_COMMIT_QUEUE_RECORDS } from '../../src/limits.ts'
import { CommitLoop, type Command, type JournalObserver } from '../../src/store/commit-loop.ts'
import { decisionOn } from '../support/journal.ts'

type Append = Journal['append']

interface Looped {
  readonly loop: CommitLoop<unknown[]>
  /** What was applied. */
  readonly data: unknown[]
  /** The data of each append. */
  readonly appends: unknown[][]
}

/** A loop on a journal whose appends are what the test says; the last one says it for all that follow. */
function looped(answers: readonly Append[] = [recorded], rest: Partial<Journal> = {}, observers?: readonly JournalObserver[]): Looped {
  const data: unknown[] = []
  const appends: unknown[][] = []
  const journal: Journal = {
    maxBatchRecords: 4, maxBatchBytes: 100, maxEventBytes: 1_000,
    append: events => {
      appends.push(events.map(event => event.data))
      return (answers[appends.length - 1] ?? answers.at(-1)!)(events)
    },
    health: () => ({ fault: undefined, records: data.length, head: '' }),
    close: async () => {},
    ...rest
  }
  const loop = new CommitLoop<unknown[]>(journal, {
    draft: () => [...data],
    applyTo: (draft, event) => { draft.push(event.data) },
    apply: record => {
      if (record.data === 'unfit') throw new Error('unfit')
      data.push(record.data)
    }
  }, observers)
  return { loop, data, appends }
}

async function recorded(events: readonly EncodedEvent[]): Promise<readonly JournalRecord[]> {
  return events.map(({ type, by, data }) => ({ seq: 0, time: '', type, by, data }))
}
const raced: Append = async () => 'raced'
const failing = (code: 'write-failed' | 'journal-failed'): Append => async () => { throw new Failure(code, 'test') }
const event = (data: unknown): Event => ({ type: 'test.made', by: null, data })
const recording = (data: unknown): Command<unknown, void> => decisionOn(event(data))
const codeOf = (promise: Promise<unknown>): Promise<unknown> => promise.then(() => 'done', error => error.code ?? error)
const all = (loop: CommitLoop<unknown[]>, data: readonly unknown[]): Promise<unknown[]> =>
  Promise.all(data.map(item => codeOf(loop.commit(recording(item)))))

test('commands are decided in the order of their arrival, each on a draft that shows those before it', async () => {
  const { loop, data, appends } = looped()
  const count: Command<unknown[], number> = draft => ({ outcome: draft.length, event: event(draft.length) })
  assert.deepEqual(await Promise.all([1, 2, 3].map(() => loop.commit(count))), [0, 1, 2])
  assert.deepEqual([data, appends], [[0, 1, 2], [[0, 1, 2]]])
})

test('a batch is bounded in records and in bytes, and a command without an event takes no room in it', async () => {
  const { loop, appends } = looped()
  await all(loop, [1, 2, 3, 4, 5])
  await all(loop, ['x'.repeat(98), 6])
  await Promise.all([1, undefined, 2, undefined, 3, 4, undefined].map(item =>
    loop.commit(item === undefined ? decisionOn(undefined) : recording(item))))
  assert.deepEqual(appends, [[1, 2, 3, 4], [5], ['x'.repeat(98)], [6], [1, 2, 3, 4], []])
})

test('what is thrown by a command, is no JSON, or is too large, rejects that command alone', async () => {
  const { loop, data } = looped()
  const thrown = new Error('no')
  const outcomes = Promise.all([
    codeOf(loop.commit(() => { throw thrown })), all(loop, [1, 'ñ'.repeat(500), 2]), codeOf(loop.commit(recording(3n)))
  ])
  const [first, others, noJson] = await outcomes
  assert.deepEqual([first, others, data], [thrown, ['done', 'write-failed', 'done'], [1, 2]])
  assert.ok(noJson instanceof TypeError)
})

test('commands that have raced are decided again, before those that came later', async () => {
  let later: Promise<unknown> | undefined
  const first: Append = events => { later ??= all(loop, ['later']); return raced(events) }
  const { loop, appends, data } = looped([first, raced, recorded])
  let decided = 0
  const counting = loop.commit(() => ({ outcome: undefined, event: event(++decided) }))
  await Promise.all([counting, all(loop, ['second'])])
  await later
  assert.deepEqual(appends, [[1, 'second'], [2, 'second', 'later'], [3, 'second', 'later']])
  assert.deepEqual(data, [3, 'second', 'later'])
})

test('a failed write rejects its batch; a failed journal rejects all that wait', async () => {
  const one = looped([failing('write-failed'), recorded])
  assert.deepEqual(await all(one.loop, [1, 2, 3, 4, 5]), [...Array(4).fill('write-failed'), 'done'])
  const every = looped([failing('journal-failed'), recorded])
  assert.deepEqual(await all(every.loop, [1, 2, 3, 4, 5]), Array(5).fill('journal-failed'))
  assert.deepEqual([one.data, every.data, every.appends.length], [[5], [], 1])
  const seen = looped([failing('write-failed'), recorded])
  const lost = all(seen.loop, [1, 2, 3, 4])
  assert.deepEqual(await seen.loop.commit(draft => ({ outcome: [...draft] })), [], 'what was lost is not seen')
  await lost
})

test('a command without an event waits for the write that it could have seen, and fails with it', async () => {
  for (const code of ['write-failed', 'journal-failed'] as const) {
    const { loop } = looped([failing(code)])
    const commands = [undefined, event(1), undefined].map(one => codeOf(loop.commit(decisionOn(one))))
    assert.deepEqual(await Promise.all(commands), [code, code, code])
  }
})

test('a durable record that cannot be applied ends all deciding', async () => {
  const { loop, appends } = looped()
  assert.deepEqual(await all(loop, ['unfit']), ['journal-failed'])
  assert.equal(await codeOf(loop.commit(() => assert.fail('it was decided'))), 'journal-failed')
  assert.match(loop.health().fault!, /unfit/)
  assert.equal(appends.length, 1)
})

test('work has the journal for itself, in its turn; where others write too it runs at once', async () => {
  const order: string[] = []
  const append: Append = async events => { order.push(`append ${events.length}`); return recorded(events) }
  for (const catchUp of [undefined, async () => {}]) {
    const { loop } = looped([append], { ...catchUp && { catchUp } })
    const work = async (): Promise<void> => {
      order.push('begins')
      await new Promise(resolve => setTimeout(resolve, 20))
      order.push('ends')
    }
    await Promise.all([all(loop, [1]), loop.exclusively(work), all(loop, [2, 3])])
  }
  assert.deepEqual(order.slice(0, 4), ['append 1', 'begins', 'ends', 'append 2'])
  assert.deepEqual(order.slice(4), ['begins', 'append 3', 'ends'])
})

test('a stop aborts the work that runs and the work that waits, and makes the changes that wait', async () => {
  const { loop, data } = looped()
  const forEver = (signal: AbortSignal): Promise<void> => new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason)))
  const outcomes = [codeOf(loop.exclusively(forEver)), codeOf(loop.exclusively(() => assert.fail('it ran')))]
  const change = codeOf(loop.commit(recording(1)))
  await new Promise(resolve => setTimeout(resolve, 10))
  await Promise.all([loop.close(), loop.close()])
  assert.deepEqual(data, [1], 'a close waits for what is queued')
  assert.deepEqual(await Promise.all([...outcomes, change]), ['journal-closed', 'journal-closed', 'done'])
  assert.deepEqual(await all(loop, [2]), ['journal-closed'])
})

test('the queue is bounded: one command more is rejected as queue-full', async () => {
  const { loop } = looped([recorded], { maxBatchRecords: 1_000, maxBatchBytes: 1e9 })
  const waiting = all(loop, Array(MAX_COMMIT_QUEUE_RECORDS).fill(0))
  assert.equal(loop.health().waiting, MAX_COMMIT_QUEUE_RECORDS)
  assert.equal(await codeOf(loop.commit(() => assert.fail('it was decided'))), 'queue-full')
  assert.deepEqual(new Set(await waiting), new Set(['done']))
})

test('each append is reported with how long it took and whether it succeeded, but for a lost race', async () => {
  const reported: [number, boolean][] = []
  const slow: Append = async events => { await new Promise(resolve => setTimeout(resolve, 20)); return recorded(events) }
  const { loop } = looped([slow, raced, recorded, failing('write-failed'), recorded], {},
    [{ journalWritten: (ms, isMade) => { reported.push([ms, isMade]) } }])
  for (const data of [1, 2, 3, 4]) await all(loop, [data])
  await loop.commit(() => ({ outcome: 'nothing to record' }))
  assert.deepEqual(reported.map(([, isMade]) => isMade), [true, true, false, true])
  assert.ok(reported[0]![0] >= 15, `${reported[0]![0]} ms`)
})
