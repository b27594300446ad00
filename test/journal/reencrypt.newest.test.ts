/** The re-encryption of a journal in a file: the same records under the newest key, whatever happens meanwhile. */
import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { copyFileSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { disk, type Files } from '../../src/journal/files.ts'
import {
  assertRecovered, commitTogether, event, journalBytes, journalPath, keyPath, keysOf, linesOf, long, makeJournal,
  offsetOf, openJournal, putJournal, recordsOf, snapshot, startAndStop, verify, withoutContinued
} from '../support/journal.ts'
import { FaultyFiles } from '../support/faulty-files.ts'
import { freshFolder } from '../support/service.ts'

const NAMES = ['journal.jsonl', 'journal.key']
const NOTHING = Buffer.alloc(0)
const THREE = [event(1), event(2), event(3)]
/** Large enough for several pieces. */
const MANY = Array.from({ length: 30 }, (_, i) => long(i + 1, 30_000))

/** Makes folders with the same journal of three records. */
async function copies(t: TestContext): Promise<() => string> {
  const origin = freshFolder(t)
  await makeJournal(origin, [THREE])
  return () => {
    const folder = freshFolder(t)
    for (const name of NAMES) copyFileSync(`${origin}/${name}`, `${folder}/${name}`)
    return folder
  }
}

test('the same records afterwards, every line under the newest key and the first of a write', async t => {
  const folder = freshFolder(t)
  const counted = new FaultyFiles()
  const opened = await openJournal(folder, { files: counted.files })
  await commitTogether(opened.journal, MANY)
  const { key: middle } = await opened.journal.rotateKey()
  await commitTogether(opened.journal, THREE)
  const { key: newest, seals } = await opened.journal.rotateKey()
  assert.equal(seals, true)
  const before = verify(journalBytes(folder), keysOf(folder))
  const shares: number[] = []
  const piecesBefore = counted.count('appendSync')
  const { unneeded, head: newHead } = await opened.journal.reencrypt(share => { shares.push(share) })
  const after = verify(journalBytes(folder), keysOf(folder).slice(-1))
  assert.deepEqual(withoutContinued(recordsOf(after)), withoutContinued(recordsOf(before)))
  const { hash, time } = before.at(-1)!
  assert.deepEqual([after[0]!.type, after[0]!.data],
    ['journal.rewritten', { why: 're-encrypted', head: hash, records: 34, time }])
  assert.deepEqual(unneeded, [before[0]!.key, middle])
  assert.ok(after.every(line => line.key === newest && Number.parseInt(line.nonce.slice(0, 2), 16) >= 0x80))
  assert.equal(new Set([...before, ...after].map(line => line.nonce)).size, before.length + after.length)
  const pieces = counted.count('appendSync') - piecesBefore
  assert.ok(pieces > 4 && shares.length > 8, `${pieces} writes, ${shares.length} shares`)
  assert.deepEqual(shares, shares.toSorted((a, b) => a - b))
  assert.ok(shares.includes(0.5) && shares.at(-1) === 1, shares.join(' '))
  const { records, head, fault } = opened.journal.status()
  assert.deepEqual([after.at(-1)!.type, after.at(-1)!.data], ['journal.whole', { records: 35 }])
  assert.deepEqual([records, head, newHead, fault], [36, after.at(-1)!.hash, head, undefined])
  assert.equal(opened.journal.location().bytes, journalBytes(folder).length)
  assert.equal(statSync(journalPath(folder)).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(folder).sort(), NAMES)
  await commitTogether(opened.journal, [event(34)])
  await opened.journal.close()
  writeFileSync(keyPath(folder), `${keysOf(folder).at(-1)}\n`)
  await assertRecovered(folder, opened.records, NOTHING, 'with the newest key alone')
})

test('a journal that has just begun is re-encrypted like any other, and one that was before is once more', async t => {
  const folder = freshFolder(t)
  const faulty = new FaultyFiles()
  const { journal, records } = await openJournal(folder, { files: faulty.files })
  const { unneeded, before } = await journal.reencrypt()
  assert.deepEqual([unneeded, before.records], [[], 1])
  assert.deepEqual(verify(journalBytes(folder), keysOf(folder)).map(({ type }) => type),
    ['journal.rewritten', 'journal.begun', 'journal.whole'])
  await commitTogether(journal, THREE)
  await journal.reencrypt()
  const [continued] = verify(journalBytes(folder), keysOf(folder))
  await journal.reencrypt()
  renameSync(journalPath(folder), `${journalPath(folder)}.away`)
  assert.match(journal.status().fault!, /was removed/)
  renameSync(`${journalPath(folder)}.away`, journalPath(folder))
  await journal.close()
  const [{ data } = assert.fail('it is empty')] = verify(journalBytes(folder), keysOf(folder))
  assert.equal((data as { time: string }).time, continued!.time, 'it says when its newest record was made')
  assert.equal(faulty.open.size, 0)
  await assertRecovered(folder, records, NOTHING, 're-encrypted twice')
})

test('what a crash left beside the journal is removed by the next start', async t => {
  const folder = (await copies(t))()
  for (const left of ['', 'part of a line', journalBytes(folder)]) {
    writeFileSync(`${journalPath(folder)}.17.part`, left)
    assert.equal((await startAndStop(folder)).records.length, 3)
    assert.deepEqual(readdirSync(folder).sort(), NAMES)
  }
})

test('where the folder cannot be synced a re-encryption is refused before it does anything', async t => {
  const folder = (await copies(t))()
  const faulty = new FaultyFiles()
  faulty.fail({ of: 'sync', code: 'ERR_ACCESS_DENIED', forGood: true })
  const { journal } = await openJournal(folder, { files: faulty.files })
  const before = snapshot(folder)
  await assert.rejects(journal.reencrypt(), { code: 'ERR_ACCESS_DENIED' })
  assert.deepEqual([faulty.count('createToAppend'), snapshot(folder)], [0, before])
  await commitTogether(journal, [event(4)])
  await journal.close()
  assert.equal(verify(journalBytes(folder), keysOf(folder)).length, 4)
})

const damaged = (line: number, byte: number) => (folder: string): void => {
  const bytes = journalBytes(folder)
  bytes[offsetOf(linesOf(bytes), line) + byte] = 0x21
  putJournal(folder, bytes)
}
const replaced = (folder: string): void => {
  const bytes = journalBytes(folder)
  renameSync(journalPath(folder), `${journalPath(folder)}.old`)
  putJournal(folder, bytes)
}

for (const [what, act, error, files] of [
  ...[1, 2, 3].flatMap(line => [0, 30, 200].map(byte =>
    [`byte ${byte} of line ${line}, damaged since the start,`, damaged(line, byte), /./] as const)),
  ['a device that loses what it says it wrote', () => {}, /what was written does not read back the same/,
    { appendSync: (_: number, bytes: Buffer) => bytes.length }],
  ['a file that was replaced', replaced, { code: 'journal-failed' }]
] as readonly (readonly [string, (folder: string) => void, RegExp | object, Partial<Files>?])[]) {
  test(`${what} ends a re-encryption, and the file stays as it is`, async t => {
    const folder = (await copies(t))()
    const { journal } = await openJournal(folder, { files: { ...disk, ...files } })
    act(folder)
    const before = snapshot(folder)
    await assert.rejects(journal.reencrypt(), error)
    await journal.close()
    assert.deepEqual(snapshot(folder), before)
  })
}

test('a re-encryption names no key that still seals, at any place in the key file', async t => {
  const folder = freshFolder(t)
  const [a, b] = ['ab'.repeat(32), 'cd'.repeat(32)]
  writeFileSync(keyPath(folder), `${a}\n${b}\n${a}\n`, { mode: 0o600 })
  const { journal } = await openJournal(folder, { mayCreate: true })
  await journal.record(1)
  const { unneeded } = await journal.reencrypt()
  await journal.close()
  assert.equal(unneeded.length, 1)
  assert.notEqual(unneeded[0], JSON.parse(linesOf(journalBytes(folder))[0]!).key)
})
