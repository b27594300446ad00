/** The queue of commands, on journals that the test drives. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Failure } from '../../src/errors.ts'
import type { EncodedEvent, Journal } from '../../src/journal/journal.ts'
import { MAX_COMMIT_QUEUE_BYTES, MAX_COMMIT_QUEUE_RECORDS, MAX_COMMIT_WAIT_MS } from '../../src/limits.ts'
import { event } from '../../src/store/events.ts'
import { CommandQueue, type Queued } from '../../src/store/queue.ts'
import { emptyState } from '../../src/slices.ts'
import { Store, type Command, type JournalObserver } from '../../src/store/store.ts'

type Answer = (events: readonly EncodedEvent[], decide: () => readonly EncodedEvent[]) =>
  Promise<readonly EncodedEvent[]>

/** The passwords of events, which tell them apart. */
const told = (events: readonly EncodedEvent[]): unknown[] =>
  events.map(({ data }) => (data as { password?: string }).password)

/** A store on a journal whose appends are what the test says; the last one says it for all that follow. */
function queued(
  answers: readonly Answer[] = [recorded], rest: Partial<Journal> = {}, observer: JournalObserver = {}
) {
  const data: unknown[] = []
  const appends: unknown[][] = []
  const state = emptyState()
  let asked = 0
  const journal: Journal = {
    maxRecords: 4, maxBytes: 300, maxEventBytes: 1_000, tagKey: '',
    append: async decide => {
      const answer = answers[asked++] ?? answers.at(-1)!
      const decided = (): readonly EncodedEvent[] => {
        const events = decide()
        appends.push(told(events))
        return events
      }
      for (const event of await answer(decided(), decided)) {
        data.push(...told([event]))
        state.apply({ seq: data.length, time: '2026-01-31T12:00:00.000Z', ...event })
      }
    },
    status: () => ({ fault: undefined, records: data.length, head: '' }),
    close: async () => {},
    ...rest
  }
  const store = new Store(journal, state)
  store.observe(observer)
  return { store, data, appends }
}

async function recorded(events: readonly EncodedEvent[]): Promise<readonly EncodedEvent[]> { return events }
const failing = (code: 'write-failed' | 'journal-failed'): Answer => async () => { throw new Failure(code, 'test') }
const codeOf = (promise: Promise<unknown>): Promise<unknown> => promise.then(() => 'done', error => error.code ?? error)
/** Creates an entry with this password, and says how many there were before; undefined: nothing to record. */
const recording = (password: string | undefined): Command<number> => ({ size }) => password === undefined ? [[], size]
  : [[event('entry.created', null, { id: size + 1, password, sistema: 's', usuario: 'u' })], size]
const all = (store: Store, passwords: readonly string[]): Promise<unknown[]> =>
  Promise.all(passwords.map(password => codeOf(store.commit(recording(password)))))

test('commands are decided in the order of their arrival, each on a draft that shows those before it', async () => {
  const { store, data, appends } = queued()
  assert.deepEqual(await Promise.all(['a', 'b', 'c'].map(one => store.commit(recording(one)))), [0, 1, 2])
  assert.deepEqual([data, appends], [['a', 'b', 'c'], [['a', 'b', 'c']]])
})

test('a write is bounded in records and in bytes, and a command without an event takes no room in it', async () => {
  const { store, appends } = queued()
  await all(store, ['1', '2', '3', '4', '5'])
  await all(store, ['x'.repeat(298), '6'])
  await Promise.all(['1', undefined, '2', undefined, '3', '4', undefined].map(one => store.commit(recording(one))))
  assert.deepEqual(appends, [['1', '2', '3', '4'], ['5'], ['x'.repeat(298)], ['6'], ['1', '2', '3', '4'], []])
})

test('a command with several events has them in one write, or none of them if the write fails', async () => {
  const { store, data, appends } = queued([failing('write-failed'), recorded])
  const two: Command<string> = draft => {
    const [first] = recording('first')(draft)
    const data = { id: draft.size + 2, password: 'second', sistema: 's', usuario: 'u' }
    return [[...first, event('entry.created', null, data)], 'both']
  }
  assert.deepEqual([await codeOf(store.commit(two)), data], ['write-failed', []])
  assert.deepEqual(await Promise.all([store.commit(two), store.commit(recording('after'))]), ['both', 2])
  assert.deepEqual(appends.at(-1), ['first', 'second', 'after'])
})

test('a command about users stands alone in its write, and finds the state as those before have left it', async () => {
  const { store, appends } = queued()
  const seen = store.commitAlone(() => [[], store.state.entries.size])
  const [, , found] = await Promise.all([
    store.commit(recording('1')), store.commit(recording('2')), store.commitAlone(() => [[], store.state.entries.size]),
    store.commit(recording('3'))
  ])
  assert.deepEqual([await seen, found, appends], [0, 2, [[], ['1', '2'], [], ['3']]])
})

test('what is thrown by a command, is no JSON, or is too large, rejects that command alone', async () => {
  const { store, data } = queued()
  const thrown = new Error('no')
  const [first, others, noJson] = await Promise.all([
    codeOf(store.commit(() => { throw thrown })), all(store, ['1', 'ñ'.repeat(500), '2']),
    codeOf(store.commit(recording(3n as unknown as string)))
  ])
  assert.deepEqual([first, others, data], [thrown, ['done', 'write-failed', 'done'], ['1', '2']])
  assert.ok(noJson instanceof TypeError)
})

test('a change that is too large is not seen by those behind it in the same write', async () => {
  const { store, data } = queued()
  const [, large, seen] = await Promise.all([
    store.commit(recording('first')), codeOf(store.commit(recording('ñ'.repeat(500)))), store.commit(recording('last'))
  ])
  assert.deepEqual([large, seen, data], ['write-failed', 1, ['first', 'last']])
})

test('a journal that others write too has commands decided again, before those that came later', async () => {
  let later: Promise<unknown> | undefined
  const twice: Answer = async (_events, decide) => {
    later = all(store, ['later'])
    decide()
    return decide()
  }
  const { store, appends, data } = queued([twice, recorded])
  let decided = 0
  const counting = store.commit(draft => [recording(`${++decided}`)(draft)[0], decided] as const)
  const outcomes = await Promise.all([counting, all(store, ['second'])])
  await later
  assert.deepEqual(outcomes, [3, ['done']], 'the last decision counts')
  assert.deepEqual(appends, [['1', 'second'], ['2', 'second', 'later'], ['3', 'second', 'later']])
  assert.deepEqual(data, ['3', 'second', 'later'])
})

test('a failed write rejects its batch; a failed journal rejects all that wait', async () => {
  const five = ['1', '2', '3', '4', '5']
  const one = queued([failing('write-failed'), recorded])
  assert.deepEqual(await all(one.store, five), [...Array(4).fill('write-failed'), 'done'])
  const every = queued([failing('journal-failed'), recorded])
  assert.deepEqual(await all(every.store, five), Array(5).fill('journal-failed'))
  assert.deepEqual([one.data, every.data, every.appends.length], [['5'], [], 1])
  const seen = queued([failing('write-failed'), recorded])
  const lost = all(seen.store, ['1', '2', '3', '4'])
  assert.equal(await seen.store.commit(recording(undefined)), 0, 'what was lost is not seen')
  await lost
})

test('what an event of the same write throws is said once that is durable, not if the write fails', async () => {
  const refusing: Command<void> = ({ size }) => { throw new Failure('entry-changed', `${size}`) }
  const asked = (answer: Answer): Promise<unknown[]> => {
    const { store } = queued([answer])
    return Promise.all([codeOf(store.commit(recording('1'))), codeOf(store.commit(refusing))])
  }
  assert.deepEqual(await asked(recorded), ['done', 'entry-changed'])
  for (const code of ['write-failed', 'journal-failed'] as const) assert.deepEqual(await asked(failing(code)),
    [code, code])
})

test('a command without an event waits for the write that it could have seen, and fails with it', async () => {
  for (const code of ['write-failed', 'journal-failed'] as const) {
    const { store } = queued([failing(code)])
    const commands = [undefined, '1', undefined].map(one => codeOf(store.commit(recording(one))))
    assert.deepEqual(await Promise.all(commands), [code, code, code])
  }
})

test('a journal that fails before it has anything decided rejects all that wait', async () => {
  for (const error of [new Failure('write-failed', 'test'), new Failure('journal-failed', 'test'),
    new Error('unforeseen')]) {
    const { store } = queued([recorded], { append: async () => { throw error } })
    assert.deepEqual(await all(store, ['1', '2', '3', '4', '5']), Array(5).fill((error as Failure).code ?? error))
  }
})

test('a command that waits too long is withdrawn, and never carried out', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const realNow = performance.now.bind(performance)
  let ahead = 0
  t.mock.method(performance, 'now', () => realNow() + ahead)
  let release = (): void => {}
  const held: Answer = async events => { await new Promise<void>(resolve => { release = resolve }); return events }
  const { store, data } = queued([held, recorded])
  const first = all(store, ['1'])
  while (store.status().waiting > 0) await new Promise(resolve => setImmediate(resolve))
  const late = all(store, ['2', '3'])
  ahead += MAX_COMMIT_WAIT_MS / 2
  const later = all(store, ['4'])
  ahead += MAX_COMMIT_WAIT_MS / 2
  const inTime = all(store, ['5'])
  t.mock.timers.tick(MAX_COMMIT_WAIT_MS)
  assert.deepEqual(await late, ['journal-busy', 'journal-busy'])
  assert.equal(store.status().waiting, 2)
  ahead += MAX_COMMIT_WAIT_MS / 2
  t.mock.timers.tick(MAX_COMMIT_WAIT_MS / 2)
  assert.deepEqual([await later, store.status().waiting], [['journal-busy'], 1])
  release()
  assert.deepEqual([await first, await inTime, data], [['done'], ['done'], ['1', '5']])
})

test('a close makes the changes that wait, and nothing after it, and leaves no timer', async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
  const before = timers()
  const { store, data } = queued()
  const change = all(store, ['1'])
  await Promise.all([store.close(), store.close()])
  assert.equal(timers(), before)
  assert.deepEqual([data, await change, await all(store, ['2'])], [['1'], ['done'], ['journal-closed']])
})

test('the queue is bounded: one command more is rejected as queue-full', async () => {
  const { store } = queued([recorded], { maxRecords: 1_000, maxBytes: 1e9 })
  const waiting = all(store, Array(MAX_COMMIT_QUEUE_RECORDS).fill(''))
  assert.equal(store.status().waiting, MAX_COMMIT_QUEUE_RECORDS)
  assert.equal(await codeOf(store.commit(() => assert.fail('it was decided'))), 'queue-full')
  assert.deepEqual(new Set(await waiting), new Set(['done']))
})

test('the queue is bounded in bytes as well, unless one command alone holds more', async () => {
  const { store } = queued()
  const asks = (bytes: number): Promise<unknown> => codeOf(store.commit(recording('1'), null, bytes))
  const half = MAX_COMMIT_QUEUE_BYTES / 2
  assert.deepEqual(await Promise.all([asks(half), asks(half), asks(1)]), ['done', 'done', 'queue-full'])
  assert.deepEqual(await Promise.all([asks(3 * half), asks(0)]), ['done', 'queue-full'])
  assert.deepEqual(await Promise.all([asks(half), asks(half)]), ['done', 'done'])
})

test('each append is reported with its time and whether it succeeded, once however often it was decided', async () => {
  const reported: [number, boolean][] = []
  const slow: Answer = async events => { await new Promise(resolve => setTimeout(resolve, 20)); return events }
  const again: Answer = async (_events, decide) => decide()
  const { store } = queued([slow, again, failing('write-failed'), recorded], {},
    { journalWritten: (ms, isMade) => { reported.push([ms, isMade]) } })
  for (const one of ['1', '2', '3', '4']) await all(store, [one])
  await store.commit(() => [[], 'nothing to record'])
  assert.deepEqual(reported.map(([, isMade]) => isMade), [true, true, false, true])
  assert.ok(reported[0]![0] >= 15, `${reported[0]![0]} ms`)
})

test('commands that are put back hold their bytes again', () => {
  const queue = new CommandQueue()
  const half = MAX_COMMIT_QUEUE_BYTES / 2
  for (let n = 0; n < 2; n++) queue.add({ bytes: half, sinceMs: performance.now() } as Queued)
  for (let n = 0; n < 3; n++) queue.putBack(queue.take(1))
  assert.throws(() => { queue.assertRoom(1) }, { code: 'queue-full' })
  queue.take(1)
  queue.assertRoom(half)
  queue.rest()
})

test('a command that comes while the journal asks for others’ records is not answered on those of before', async () => {
  const order: string[] = []
  let late: Promise<unknown> = Promise.resolve()
  const { store } = queued([async (events, decide) => {
    late = store.commit(() => [[], 'late']).then(() => order.push('late'))
    const again = decide()
    order.push('asked')
    return again.length === 0 ? events : again
  }, async events => { order.push('asked again'); return events }])
  await store.commit(() => [[], 'first']).then(() => order.push('first'))
  await late
  assert.deepEqual(order, ['asked', 'first', 'asked again', 'late'])
})
