/** The commit loop, on journals that the test drives. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Failure } from '../../src/errors.ts'
import type { EncodedEvent, Event, Journal } from '../../src/journal/journal.ts'
import { MAX_COMMIT_QUEUE_RECORDS, MAX_COMMIT_WAIT_MS } from '../../src/limits.ts'
import { CommitLoop, type Command, type JournalObserver } from '../../src/store/commit-loop.ts'
import { decisionOn } from '../support/journal.ts'

type Answer = (events: readonly EncodedEvent[], decide: () => readonly EncodedEvent[]) => Promise<readonly EncodedEvent[]>

/** A loop on a journal whose appends are what the test says; the last one says it for all that follow. */
function looped(
  answers: readonly Answer[] = [recorded], rest: Partial<Journal> = {}, observers?: readonly JournalObserver[]
) {
  const data: unknown[] = []
  const appends: unknown[][] = []
  let asked = 0
  const journal: Journal = {
    maxRecords: 4, maxBytes: 100, maxEventBytes: 1_000,
    append: async decide => {
      const answer = answers[asked++] ?? answers.at(-1)!
      const decided = (): readonly EncodedEvent[] => {
        const events = decide()
        appends.push(events.map(event => event.data))
        return events
      }
      for (const event of await answer(decided(), decided)) data.push(event.data)
    },
    status: () => ({ fault: undefined, records: data.length, head: '' }),
    close: async () => {},
    ...rest
  }
  const loop = new CommitLoop<unknown[]>(journal, {
    overlay: () => [...data],
    reduce: (overlay, event) => { overlay.push(event.data) }
  }, observers)
  return { loop, data, appends }
}

async function recorded(events: readonly EncodedEvent[]): Promise<readonly EncodedEvent[]> { return events }
const failing = (code: 'write-failed' | 'journal-failed'): Answer => async () => { throw new Failure(code, 'test') }
const event = (data: unknown): Event => ({ type: 'test.made', by: null, data })
const recording = (data: unknown): Command<unknown, void> => decisionOn(event(data))
const codeOf = (promise: Promise<unknown>): Promise<unknown> => promise.then(() => 'done', error => error.code ?? error)
const all = (loop: CommitLoop<unknown[]>, data: readonly unknown[]): Promise<unknown[]> =>
  Promise.all(data.map(item => codeOf(loop.commit(recording(item)))))

test('commands are decided in the order of their arrival, each on a draft that shows those before it', async () => {
  const { loop, data, appends } = looped()
  const count: Command<unknown[], number> = overlay => ({ outcome: after => after.length, event: event(overlay.length) })
  assert.deepEqual(await Promise.all([1, 2, 3].map(() => loop.commit(count))), [1, 2, 3])
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

test('a change that is too large is not seen by those behind it in the same batch', async () => {
  const { loop, data } = looped()
  const seen: Command<unknown[], void> = overlay => ({ outcome: () => {}, event: event(overlay.length) })
  const [, large] = await Promise.all([
    loop.commit(recording('first')), codeOf(loop.commit(recording('ñ'.repeat(500)))), loop.commit(seen)
  ])
  assert.deepEqual([large, data], ['write-failed', ['first', 1]])
})

test('a journal that others write too has commands decided again, before those that came later', async () => {
  let later: Promise<unknown> | undefined
  const twice: Answer = async (_events, decide) => {
    later = all(loop, ['later'])
    decide()
    return decide()
  }
  const { loop, appends, data } = looped([twice, recorded])
  let decided = 0
  const counting = loop.commit(() => {
    const event = { type: 'test.made', by: null, data: ++decided }
    return { outcome: () => event.data, event }
  })
  const outcomes = await Promise.all([counting, all(loop, ['second'])])
  await later
  assert.deepEqual(outcomes, [3, ['done']], 'the last decision counts')
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
  assert.deepEqual(await seen.loop.commit(overlay => ({ outcome: () => [...overlay] })), [], 'what was lost is not seen')
  await lost
})

test('what is thrown because of an event of the same write is said once that is durable, and not where the write fails', async () => {
  const refusing: Command<unknown[], void> = overlay => { throw new Failure('entry-changed', `${overlay.length}`) }
  const asked = (answer: Answer): Promise<unknown[]> => {
    const { loop } = looped([answer])
    return Promise.all([codeOf(loop.commit(recording(1))), codeOf(loop.commit(refusing))])
  }
  assert.deepEqual(await asked(recorded), ['done', 'entry-changed'])
  for (const code of ['write-failed', 'journal-failed'] as const) assert.deepEqual(await asked(failing(code)), [code, code])
})

test('a command without an event waits for the write that it could have seen, and fails with it', async () => {
  for (const code of ['write-failed', 'journal-failed'] as const) {
    const { loop } = looped([failing(code)])
    const commands = [undefined, event(1), undefined].map(one => codeOf(loop.commit(decisionOn(one))))
    assert.deepEqual(await Promise.all(commands), [code, code, code])
  }
})

test('a journal that fails before it has anything decided rejects all that wait', async () => {
  for (const error of [new Failure('write-failed', 'test'), new Failure('journal-failed', 'test'), new Error('unforeseen')]) {
    const { loop } = looped([recorded], { append: async () => { throw error } })
    const outcomes = await all(loop, [1, 2, 3, 4, 5])
    assert.deepEqual(outcomes, Array(5).fill((error as Failure).code ?? error))
  }
})

test('a command that waits too long is withdrawn, and never carried out', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const realNow = performance.now.bind(performance)
  let ahead = 0
  t.mock.method(performance, 'now', () => realNow() + ahead)
  let release = (): void => {}
  const held: Answer = async events => { await new Promise<void>(resolve => { release = resolve }); return events }
  const { loop, data } = looped([held, recorded])
  const first = all(loop, [1])
  while (loop.status().waiting > 0) await new Promise(resolve => setImmediate(resolve))
  const late = all(loop, [2, 3])
  ahead += MAX_COMMIT_WAIT_MS / 2
  const later = all(loop, [4])
  ahead += MAX_COMMIT_WAIT_MS / 2
  const inTime = all(loop, [5])
  t.mock.timers.tick(MAX_COMMIT_WAIT_MS)
  assert.deepEqual(await late, ['journal-busy', 'journal-busy'])
  assert.equal(loop.status().waiting, 2)
  ahead += MAX_COMMIT_WAIT_MS / 2
  t.mock.timers.tick(MAX_COMMIT_WAIT_MS / 2)
  assert.deepEqual([await later, loop.status().waiting], [['journal-busy'], 1])
  release()
  assert.deepEqual([await first, await inTime, data], [['done'], ['done'], [1, 5]])
})

test('a close makes the changes that wait, and nothing after it, and leaves no timer', async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
  const before = timers()
  const { loop, data } = looped()
  const change = all(loop, [1])
  await Promise.all([loop.close(), loop.close()])
  assert.equal(timers(), before)
  assert.deepEqual([data, await change, await all(loop, [2])], [[1], ['done'], ['journal-closed']])
})

test('the queue is bounded: one command more is rejected as queue-full', async () => {
  const { loop } = looped([recorded], { maxRecords: 1_000, maxBytes: 1e9 })
  const waiting = all(loop, Array(MAX_COMMIT_QUEUE_RECORDS).fill(0))
  assert.equal(loop.status().waiting, MAX_COMMIT_QUEUE_RECORDS)
  assert.equal(await codeOf(loop.commit(() => assert.fail('it was decided'))), 'queue-full')
  assert.deepEqual(new Set(await waiting), new Set(['done']))
})

test('each append is reported with how long it took and whether it succeeded, once however often it was decided', async () => {
  const reported: [number, boolean][] = []
  const slow: Answer = async events => { await new Promise(resolve => setTimeout(resolve, 20)); return events }
  const again: Answer = async (_events, decide) => decide()
  const { loop } = looped([slow, again, failing('write-failed'), recorded], {},
    [{ journalWritten: (ms, isMade) => { reported.push([ms, isMade]) } }])
  for (const data of [1, 2, 3, 4]) await all(loop, [data])
  await loop.commit(() => ({ outcome: () => 'nothing to record' }))
  assert.deepEqual(reported.map(([, isMade]) => isMade), [true, true, false, true])
  assert.ok(reported[0]![0] >= 15, `${reported[0]![0]} ms`)
})
