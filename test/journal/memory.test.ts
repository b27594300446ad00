import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalRecord, Fact, Journal } from '../../src/journal/journal.ts'
import { FIRST_HASH } from '../../src/journal/line.ts'
import { openMemoryJournal } from '../../src/journal/memory.ts'
import { memoryStore } from '../support/compose.ts'
import { decisionOn } from '../support/journal.ts'

const fact = (data: unknown): Fact => ({ type: 'test.made', by: 7, data })

function openMemory(): { journal: Journal, records: JournalRecord[], begins: () => number } {
  const records: JournalRecord[] = []
  let begins = 0
  const fold = { begin: () => { begins++ }, apply: (record: JournalRecord) => { records.push(record) } }
  return { journal: openMemoryJournal(fold, () => 0), records, begins: () => begins }
}

test('records get consecutive numbers and the time, in the order of the commits', async () => {
  const { journal, records } = openMemory()
  await Promise.all([1, 2, 3].map(n => journal.commit(decisionOn(fact(n)))))
  assert.deepEqual(records, [1, 2, 3].map(n => (
    { type: 'test.made', by: 7, data: n, seq: n, time: '1970-01-01T00:00:00.000Z' })))
  assert.deepEqual(journal.health(), { fault: undefined, records: 3, waiting: 0, head: FIRST_HASH })
})

test('a decision without a record resolves and records nothing', async () => {
  const { journal, records } = openMemory()
  await journal.commit(decisionOn(undefined))
  assert.deepEqual([records.length, journal.health().records], [0, 0])
})

test('a decision that throws is rejected alone, and the next one decides on a fresh draft', async () => {
  const { journal, records, begins } = openMemory()
  const thrown = new Error('no')
  await assert.rejects(journal.commit(() => { throw thrown }), error => error === thrown)
  await journal.commit(decisionOn(fact(1)))
  assert.deepEqual([records.map(({ seq }) => seq), begins()], [[1], 2])
})

test('a record that does not fit the state is rejected and does not count', async () => {
  let fits = false
  const fold = { begin: () => {}, apply: () => { if (!fits) throw new Error('unfit') } }
  const journal = openMemoryJournal(fold, () => 0)
  await assert.rejects(journal.commit(decisionOn(fact(1))), /unfit/)
  assert.equal(journal.health().records, 0)
  fits = true
  await journal.commit(decisionOn(fact(1)))
  assert.equal(journal.health().records, 1)
})

test('a commit after close rejects without deciding; closing twice is fine', async () => {
  const { journal } = openMemory()
  await journal.close()
  await journal.close()
  const closed = { code: 'journal-closed', message: /in memory/ }
  await assert.rejects(journal.commit(() => assert.fail('it decided')), closed)
})

test('a store in memory decides one change after the other', async () => {
  const store = memoryStore()
  const fields = { password: 'p', sistema: 's', usuario: 'u' }
  const [created, updated, deleted, again, unknown] = await Promise.all([
    store.createEntry(fields, null), store.updateEntry(1, { password: 'q' }, null), store.deleteEntry(1, null),
    store.deleteEntry(1, null), store.deleteEntry(2, null)
  ])
  assert.deepEqual([created.id, updated?.password, deleted, again, unknown], [1, 'q', true, true, false])
  assert.equal(store.journal.health().records, 3)
  store.check()
  await store.close()
})
