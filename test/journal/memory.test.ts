import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openMemoryJournal, type JournalRecord } from '../../src/journal/journal.ts'
import { FIRST_HASH } from '../../src/journal/line.ts'

test('records get consecutive numbers and the time, and the head never moves', async () => {
  const applied: JournalRecord[] = []
  const journal = openMemoryJournal(() => 0, record => { applied.push(record) })
  const events = [1, 2, 3].map(data => ({ type: 'test.made', by: 7, data, json: String(data) }))
  const time = '1970-01-01T00:00:00.000Z'
  await journal.append(() => events)
  await journal.append(() => [])
  assert.deepEqual(applied, events.map(({ type, by, data }) => ({ seq: data, time, type, by, data })))
  assert.deepEqual(journal.status(), { fault: undefined, records: 3, head: FIRST_HASH })
})
