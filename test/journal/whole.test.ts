/** A journal that was written again is whole, or it is damaged: such a file got its name when all of it was there. */
import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { fileStore } from '../support/stores.ts'
import {
  bytesOf, failure, journalBytes, journalPath, keyPath, linesOf, offsetOf, putJournal, referenceLines, verdictOf,
  writeKeys
} from '../support/journal.ts'
import { joined } from '../support/patterns.ts'
import { randomOf } from '../support/random.ts'
import { compact, reencrypt } from '../support/rewrite.ts'
import { freshFolder } from '../support/service.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'

for (const how of ['compacted', 're-encrypted'] as const) {
  test(`a ${how} journal that is not whole is damaged, wherever it is cut and whichever sector is lost`, async t => {
    const random = randomOf(t)
    const folder = freshFolder(t)
    const store = await fileStore(folder)
    for (let n = 0; n < 20; n++) await createEntry(store, { password: `${n}`.repeat(100), sistema: 's', usuario: 'u' },
      null)
    await store.accounts.addUser('ana@x', 'ana', ['*'], 'a long password')
    await (how === 'compacted' ? compact(store, false) : reencrypt(store))
    await store.close()
    const bytes = journalBytes(folder)
    const refused = (damaged: Buffer, what: string): void => {
      putJournal(folder, damaged)
      assert.match(verdictOf(journalPath(folder), keyPath(folder)), /^line \d+ at byte \d+$/, what)
    }
    for (let end = 1; end < bytes.length; end += 1 + random.int(how === 'compacted' ? 30
      : 100)) refused(bytes.subarray(0, end), `cut at ${end}`)
    const lines = linesOf(bytes)
    for (let line = 1; line < lines.length; line++) refused(bytesOf(lines.slice(0, line)), `${line} lines`)
    refused(bytes.subarray(0, -1), 'without its last line end')
    refused(bytes.subarray(0, -10), 'without its last bytes')
    for (let at = 0; at < bytes.length; at += 512) refused(Buffer.from(bytes).fill(0, at,
      Math.min(at + 512, bytes.length)), `sector at ${at}`)
    putJournal(folder, Buffer.from(bytes).fill('!', offsetOf(lines, 2), offsetOf(lines, 2) + 1))
    await assert.rejects(fileStore(folder), failure('journal-damaged',
      joined(/line 2 at byte \d+: it is damaged or cut off before its record journal\.whole; /,
        /restore a backup, or save [^;]*$/)))
    putJournal(folder, bytes)
    const again = await fileStore(folder)
    await createEntry(again, { password: 'later', sistema: 's', usuario: 'u' }, null)
    await again.close()
    const longer = journalBytes(folder)
    putJournal(folder, longer.subarray(0, -10))
    assert.match(verdictOf(journalPath(folder), keyPath(folder)), / torn$/, 'an append after it may be torn')
  })
}

test('a compacted journal whose first sectors are lost is damaged, however few lines it has', async t => {
  for (let count = 1; count <= 20; count++) {
    const folder = freshFolder(t)
    const store = await fileStore(folder)
    for (let n = 0; n < count; n++) await createEntry(store, { password: `${n}`, sistema: 's', usuario: 'u' }, null)
    await compact(store, false)
    await store.close()
    const bytes = journalBytes(folder)
    for (let end = 512; end < bytes.length + 512; end += 512) {
      putJournal(folder, Buffer.from(bytes).fill(0, 0, Math.min(end, bytes.length)))
      assert.equal(verdictOf(journalPath(folder), keyPath(folder)), 'line 1 at byte 0',
        `${count} entries, zeros up to ${end}`)
    }
  }
})

test('a compacted journal of the version before is read, and of its checkpoint no line may be torn', async t => {
  const folder = freshFolder(t)
  const secret = randomBytes(32)
  writeKeys(folder, secret)
  const row = { password: 'p'.repeat(600), sistema: 's', usuario: 'u', status: 1 }
  const lines = referenceLines(secret, [
    { type: 'journal.continued', data: { why: 'compacted', head: '0'.repeat(64), records: 3, time: null } },
    { type: 'entries.kept', data: { first: 1, entries: [row, null] } },
    { type: 'entries.kept', data: { first: 3, entries: [row] } }
  ].map(record => [record]))
  const bytes = bytesOf(lines)
  putJournal(folder, bytes)
  assert.match(verdictOf(journalPath(folder), keyPath(folder)), /^3 records, .* 0 torn$/)
  const second = offsetOf(lines, 2)
  for (const damaged of [bytes.subarray(0, -10), Buffer.from(bytes).fill(0, second + 512, second + 1024),
    bytes.subarray(0, 100)]) {
    putJournal(folder, damaged)
    assert.match(verdictOf(journalPath(folder), keyPath(folder)), /^line \d at byte \d+$/)
  }
  putJournal(folder, bytes.subarray(0, offsetOf(lines, 3)))
  assert.match(verdictOf(journalPath(folder), keyPath(folder)), /^2 records/,
    'whole lines that are gone were not noted')
})

test('the record that says a journal is whole is right about how many come before it, and stands once', t => {
  const folder = freshFolder(t)
  const secret = randomBytes(32)
  writeKeys(folder, secret)
  const [rewritten, noted] = [{ type: 'journal.rewritten', data: {} }, { type: 'test.noted', data: 1 }]
  const whole = (records: number): { type: string, data: object } => ({ type: 'journal.whole', data: { records } })
  for (const [records, fault] of [
    [[rewritten, noted, whole(2)], undefined], [[rewritten, noted, whole(1)], 3], [[rewritten, noted, whole(3)], 3],
    [[noted, whole(1)], 2],
    [[rewritten, noted, whole(2), noted, whole(4)], 5]
  ] as const) {
    const lines = referenceLines(secret, records.map(record => [record]))
    putJournal(folder, bytesOf(lines))
    const verdict = verdictOf(journalPath(folder), keyPath(folder))
    assert.match(verdict, fault === undefined ? /^3 records/
      : new RegExp(`^line ${fault} at byte ${offsetOf(lines, fault)}$`), JSON.stringify(records))
  }
})

test('that a journal was written again is said by its first record alone', t => {
  const folder = freshFolder(t)
  const secret = randomBytes(32)
  writeKeys(folder, secret)
  const lines = referenceLines(secret, [
    { type: 'test.noted', data: 1 }, { type: 'journal.rewritten', data: {} },
    { type: 'journal.whole', data: { records: 2 } }
  ].map(record => [record]))
  putJournal(folder, bytesOf(lines))
  assert.equal(verdictOf(journalPath(folder), keyPath(folder)), `line 2 at byte ${offsetOf(lines, 2)}`)
})
