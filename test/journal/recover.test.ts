/** What a start makes of a journal's file that a crash, a device or somebody else has changed; and the rewrite. */
import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { copyFileSync, existsSync, readFileSync, readdirSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Failure } from '../../src/errors.ts'
import { disk, type Files } from '../../src/disk/files.ts'
import type { JournalRecord, Event } from '../../src/journal/journal.ts'
import { readKeyFile } from '../../src/journal/keys.ts'
import { openLine, parseLine } from '../../src/journal/line.ts'
import { copyBytes, makeWhole } from '../../src/disk/whole-file.ts'
import { readJournal } from '../../src/journal/recover.ts'
import { BLOCK_BYTES, MAX_LINE_BYTES, MAX_WRITE_BYTES, READ_CHUNK_BYTES } from '../../src/limits.ts'
import {
  assertRefused, bytesOf, commitTogether, event, journalBytes, journalPath, keyPath, keysOf, linesOf,
  offsetOf, openJournal, recordsOf, snapshot, verify, withoutContinued, writeJournal
} from '../support/journal-file.ts'
import { decisionOn, NO_HASH, referenceLine, writeKeys } from '../support/journal.ts'
import { FaultyFiles } from '../support/faulty-files.ts'
import { seeded, seedFromEnv } from '../support/random.ts'
import { freshFolder } from '../support/service.ts'

const events = (from: number, to: number): Event[] => Array.from({ length: to - from + 1 }, (_, i) => event(from + i))
const long = (n: number, bytes: number): Event => ({ type: 'test.long', by: null, data: { n, text: 'x'.repeat(bytes) } })
const tornOf = (folder: string): string[] => readdirSync(folder).filter(name => name.includes('.torn-'))

/** A folder with the keys of another one and the given journal. */
function folderOf(t: TestContext, keysFrom: string, bytes: Buffer): string {
  const folder = freshFolder(t)
  copyFileSync(keyPath(keysFrom), keyPath(folder))
  writeFileSync(journalPath(folder), bytes, { mode: 0o600 })
  return folder
}

/** Opens, finds `records` and a tail of `torn`, appends, opens again, and verifies all of it by the README's text. */
async function assertRecovered(
  folder: string, records: readonly JournalRecord[], torn: Buffer, what: string
): Promise<void> {
  const known = new Set(tornOf(folder))
  const first = await openJournal(folder)
  assert.deepEqual(withoutContinued(first.records), withoutContinued(records), what)
  const made = tornOf(folder).filter(name => !known.has(name))
  assert.equal(made.length, torn.length > 0 ? 1 : 0, what)
  if (made.length > 0) {
    const path = join(folder, made[0]!)
    assert.ok(readFileSync(path).equals(torn), `${what}: the tail is kept as it was`)
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.match(made[0]!, /^journal\.jsonl\.torn-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.equal(first.warnings.length, 1, what)
    for (const said of [`${torn.length} bytes`, path]) assert.ok(first.warnings[0]!.includes(said), first.warnings[0])
  } else {
    assert.deepEqual(first.warnings, [], what)
  }
  await commitTogether(first.journal, [event(901), event(902)])
  await first.journal.close()
  const second = await openJournal(folder)
  await second.journal.close()
  assert.deepEqual(second.warnings, [], what)
  assert.deepEqual(second.records, first.records, what)
  assert.deepEqual(recordsOf(verify(journalBytes(folder), keysOf(folder))), first.records, what)
}

/** What may stand behind whole lines, and whether a crash can have left it there, or as the whole file. */
const TAILS: readonly (readonly [what: string, tail: Buffer, behind: boolean, alone: boolean])[] = [
  ['a NUL', Buffer.alloc(1), true, false],
  ['a page of NUL', Buffer.alloc(4096), true, false],
  ['more than a chunk of NUL', Buffer.alloc(READ_CHUNK_BYTES + 4097), true, false],
  ['the beginning of a brace', Buffer.from('{'), true, true],
  ['the beginning of a line', Buffer.from('{"seq":'), true, true],
  ['the beginning of another line', Buffer.from('{"seq":5,'), false, false],
  ['NUL and line ends', Buffer.from('\0\n\0\0\n'), false, false],
  ['a line end', Buffer.from('\n'), false, false],
  ['garbage without an end', Buffer.from('garbage'), false, false],
  ['garbage with an end', Buffer.from('garbage\n'), false, false],
  ['bytes that are no text', Buffer.from([0xff, 0xfe, 0x0a, 0x80, 0xc0]), false, false],
  ['a line end of Windows', Buffer.from('\r\n'), false, false],
  ['more than a chunk of garbage lines', Buffer.from('garbage\n'.repeat(READ_CHUNK_BYTES / 4)), false, false]
]

for (const [what, tail, behind, alone] of TAILS) {
  const verdict = (isTorn: boolean): string => isTorn ? 'torn' : 'damage'
  test(`recovery: ${what} behind whole lines is ${verdict(behind)}, and alone ${verdict(alone)}`, async t => {
    const origin = freshFolder(t)
    const bytes = await writeJournal(origin, [events(1, 3)])
    const records = recordsOf(verify(bytes, keysOf(origin)))
    for (const [before, isTorn] of [[bytes, behind], [Buffer.alloc(0), alone]] as const) {
      const folder = folderOf(t, origin, Buffer.concat([before, tail]))
      const found = before.length === 0 ? [] : records
      if (isTorn) await assertRecovered(folder, found, tail, what)
      else await assertRefused(folder, 'journal-damaged', `line ${found.length + 1} at byte ${before.length}: `)
    }
  })
}

test('recovery: a lost block never takes a line of an older write with it', async t => {
  const origin = freshFolder(t)
  const bytes = await writeJournal(origin, Array.from({ length: 40 }, (_, i) => [long(i + 1, 100 + i % 7 * 30)]))
  const lines = linesOf(bytes)
  const last = offsetOf(lines, lines.length)
  for (let block = 0; block < bytes.length; block += BLOCK_BYTES) {
    const damaged = Buffer.from(bytes).fill(0, block, Math.min(block + BLOCK_BYTES, bytes.length))
    const line = linesOf(bytes.subarray(0, block)).length + 1
    assert.ok(offsetOf(lines, line) < last)
    await assertRefused(folderOf(t, origin, damaged), 'journal-damaged', `line ${line} at byte ${offsetOf(lines, line)}: `)
  }
})

test('recovery: a long write whose new blocks never came, or that was being cut back, is torn', async t => {
  const origin = freshFolder(t)
  const bytes = await writeJournal(origin, [events(1, 3), [long(4, 20_000), long(5, 20_000)]])
  const lines = linesOf(bytes)
  const whole = bytes.subarray(0, offsetOf(lines, 4))
  const block = Math.ceil(whole.length / BLOCK_BYTES) * BLOCK_BYTES
  const unwritten = Buffer.from(bytes).fill(0, block)
  const cutBack = Buffer.from(bytes).fill(0, whole.length, block).fill(0, block + BLOCK_BYTES, block + 3 * BLOCK_BYTES)
  const records = recordsOf(verify(whole, keysOf(origin)))
  for (const [what, left] of Object.entries({ unwritten, cutBack })) {
    await assertRecovered(folderOf(t, origin, left), records, left.subarray(whole.length), what)
  }
})

test('recovery: an empty file is an empty journal', async t => {
  const origin = freshFolder(t)
  await writeJournal(origin, [])
  assert.equal(journalBytes(origin).length, 0)
  await assertRecovered(origin, [], Buffer.alloc(0), 'empty')
})

const DAMAGES: readonly (readonly [string, (line: string) => string])[] = [
  ['garbage', () => 'garbage'],
  ['nothing', () => ''],
  ['a part of it', line => line.slice(0, 40)],
  ['a space in it', line => line.replace(',', ', ')],
  ['two garbage lines', () => 'x\ny'],
  ['its JSON in another order', line => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(line)).reverse()))]
]

for (const [what, damage] of DAMAGES) {
  test(`recovery: ${what} in the place of a line before a valid one is refused with line and byte`, async t => {
    const folder = freshFolder(t)
    const lines = linesOf(await writeJournal(folder, [events(1, 2), events(3, 5)]))
    for (let n = 1; n < lines.length; n++) {
      writeFileSync(journalPath(folder), bytesOf(lines.map((line, i) => i === n - 1 ? damage(line) : line)))
      await assertRefused(folder, 'journal-damaged', `line ${n} at byte ${offsetOf(lines, n)}: `)
    }
  })
}

test('recovery: damage is refused with nothing changed, also where a torn tail follows it', async t => {
  const folder = freshFolder(t)
  const lines = linesOf(await writeJournal(folder, [events(1, 2), events(3, 4)]))
  writeFileSync(journalPath(folder), `${lines[0]}\nx\n${lines[2]}\n${lines[3]}\n{"seq":5,`)
  await assertRefused(folder, 'journal-damaged', `line 2 at byte ${offsetOf(lines, 2)}: it is not a line of a journal`)
})

test('recovery: a journal in another form, with carriage returns, is damage and not one torn tail', async t => {
  const folder = freshFolder(t)
  const lines = linesOf(await writeJournal(folder, [events(1, 2)]))
  writeFileSync(journalPath(folder), lines.map(line => `${line}\r\n`).join(''))
  await assertRefused(folder, 'journal-damaged', 'line 1 at byte 0: it is not a line of a journal')
})

test('recovery: a chain that does not hold is called so', async t => {
  const folder = freshFolder(t)
  const lines = linesOf(await writeJournal(folder, [events(1, 2)]))
  writeFileSync(journalPath(folder), bytesOf([lines[0]!.replace(/.{4}"\}$/, '0000"}'), lines[1]!]))
  await assertRefused(folder, 'journal-damaged', 'line 1 at byte 0: its hash does not follow from the line before it')
})

test('recovery: damage is refused with nothing changed, what a rewrite left stays too', async t => {
  const folder = freshFolder(t)
  const lines = linesOf(await writeJournal(folder, [events(1, 3)]))
  writeFileSync(journalPath(folder), `${lines[0]}\nx\n${lines[2]}\n`)
  writeFileSync(`${journalPath(folder)}.rewrite`, bytesOf(lines))
  await assertRefused(folder, 'journal-damaged', `line 2 at byte ${offsetOf(lines, 2)}: `)
})

test('recovery: a wrong seq is refused with line and byte, at the end too', async t => {
  const folder = freshFolder(t)
  const lines = linesOf(await writeJournal(folder, [events(1, 3)]))
  writeFileSync(journalPath(folder), bytesOf([lines[0]!, lines[2]!]))
  await assertRefused(folder, 'journal-damaged', `line 2 at byte ${offsetOf(lines, 2)}: its seq is 3`)
  writeFileSync(journalPath(folder), bytesOf([...lines, lines[0]!]))
  await assertRefused(folder, 'journal-damaged', `line 4 at byte ${bytesOf(lines).length}: its seq is 1`)
})

test('recovery: a record that does not fit the state is refused with its line and what is wrong', async t => {
  const folder = freshFolder(t)
  const lines = linesOf(await writeJournal(folder, [events(1, 4)]))
  const apply = (record: JournalRecord): void => { if (record.seq === 3) throw new Error('there is no such thing') }
  await assertRefused(folder, 'journal-damaged', `line 3 at byte ${offsetOf(lines, 3)}: there is no such thing`, { apply })
})

test('recovery: zeros in the last write are cut off with what follows; in an older write they are refused', async t => {
  const origin = freshFolder(t)
  const older = await writeJournal(origin, [events(1, 1), [long(2, 300), long(3, 300), long(4, 300), long(5, 300)]])
  const both = await writeJournal(origin, [events(6, 8)])
  const records = recordsOf(verify(older, keysOf(origin)))
  const lines = linesOf(older)
  const first = offsetOf(lines, 2)
  const sectors = Array.from({ length: Math.ceil(older.length / 512) }, (_, i) => i * 512)
  for (const from of [first, ...sectors.filter(at => at > first)]) {
    for (const count of [1, 2, 100]) {
      const to = Math.min((Math.floor(from / 512) + count) * 512, older.length)
      const what = `zeros from ${from} to ${to} of ${older.length}`
      const zeroed = Buffer.from(both).fill(0, from, to)
      const whole = linesOf(older.subarray(0, from)).length
      const start = offsetOf(lines, whole + 1)
      const crashed = folderOf(t, origin, zeroed.subarray(0, older.length))
      await assertRecovered(crashed, records.slice(0, whole), zeroed.subarray(start, older.length), what)
      await assertRefused(folderOf(t, origin, zeroed), 'journal-damaged', `line ${whole + 1} at byte ${start}: `)
    }
  }
})

test('recovery: a lost sector that ends where a line begins is found before that line', async t => {
  const write = async (folder: string, pad: number): Promise<Buffer> => {
    const padded: Event = { ...long(2, 600), type: `test.${'x'.repeat(pad)}` }
    return writeJournal(folder, [events(1, 1), [padded, event(3)]])
  }
  const missing = 512 - offsetOf(linesOf(await write(freshFolder(t), 1)), 3) % 512
  const folder = freshFolder(t)
  const bytes = await write(folder, 1 + missing)
  const records = recordsOf(verify(bytes, keysOf(folder)))
  const [start, end] = [2, 3].map(line => offsetOf(linesOf(bytes), line)) as [number, number]
  assert.equal(end % 512, 0)
  writeFileSync(journalPath(folder), bytes.fill(0, end - 512, end))
  await assertRecovered(folder, records.slice(0, 1), bytes.subarray(start), 'zeros up to line 3')
})

test('recovery: zeros that are no lost sector are damage, and are refused', async t => {
  const origin = freshFolder(t)
  const bytes = await writeJournal(origin, [events(1, 1), [long(2, 300), long(3, 300), long(4, 300)]])
  const second = offsetOf(linesOf(bytes), 2)
  for (const [from, length] of [[second + 40, 1], [second, 1], [512, 511], [513, 511], [700, 12]] as const) {
    const damaged = Buffer.from(bytes).fill(0, from, from + length)
    await assertRefused(folderOf(t, origin, damaged), 'journal-damaged', `line 2 at byte ${second}: `)
  }
  // As far from the beginning of their own line as that is from the beginning of the write.
  const damaged = Buffer.from(bytes).fill(0, second + 100, 512)
  damaged[second + 49] = 0x0a
  await assertRefused(folderOf(t, origin, damaged), 'journal-damaged', `line 2 at byte ${second}: `)
})

test('recovery: a write after a lost line end is not taken for torn with what precedes it', async t => {
  const origin = freshFolder(t)
  const older = await writeJournal(origin, [events(1, 1), events(2, 3)])
  const both = await writeJournal(origin, [events(4, 6)])
  const where = `line 3 at byte ${offsetOf(linesOf(older), 3)}: `
  for (const zeros of [1, 2, 100]) {
    const damaged = Buffer.from(both).fill(0, older.length - zeros, older.length)
    await assertRefused(folderOf(t, origin, damaged), 'journal-damaged', where)
  }
})

test('recovery: several gaps of zeros in one write, also with its end missing, are cut off from the first', async t => {
  const origin = freshFolder(t)
  const bytes = await writeJournal(origin, [events(1, 1), Array.from({ length: 6 }, (_, i) => long(2 + i, 200))])
  const records = recordsOf(verify(bytes, keysOf(origin)))
  const lines = linesOf(bytes)
  const torn = Buffer.from(bytes)
  for (const sector of [1, 3]) torn.fill(0, sector * 512, sector * 512 + 512)
  for (const cut of [0, 1, 100]) {
    const left = torn.subarray(0, torn.length - cut)
    const start = offsetOf(lines, 2)
    await assertRecovered(folderOf(t, origin, left), records.slice(0, 1), left.subarray(start), `${cut} missing`)
  }
})

test('recovery: lines may lie anywhere on the borders of what is read at a time', async t => {
  const folder = freshFolder(t)
  const bytes = await writeJournal(folder, [events(1, 3), [long(4, 900)]])
  const records = recordsOf(verify(bytes, keysOf(folder)))
  for (const step of [1, 2, 3, 7, 64, 250, 251, bytes.length - 1, bytes.length]) {
    const readAt: Files['readAt'] = (descriptor, into, at) => disk.readAt(descriptor, into.subarray(0, step), at)
    const opened = await openJournal(folder, { files: { ...disk, readAt } })
    await opened.journal.close()
    assert.deepEqual(opened.records, records, `${step} bytes at a time`)
    assert.equal(opened.journal.health().head, JSON.parse(linesOf(bytes).at(-1)!).hash)
  }
})

test('recovery: a file of several chunks, and with a line longer than one, is read, and damage found', async t => {
  const origin = freshFolder(t)
  const forty = Array.from({ length: 40 }, (_, i) => long(i + 1, 30_000 + i))
  const writes = [forty, [long(41, READ_CHUNK_BYTES)], events(42, 44)]
  const bytes = await writeJournal(origin, writes)
  assert.ok(bytes.length > 2 * READ_CHUNK_BYTES)
  const records = recordsOf(verify(bytes, keysOf(origin)))
  const lines = linesOf(bytes)
  const tail = bytes.subarray(0, READ_CHUNK_BYTES + 5)
  await assertRecovered(folderOf(t, origin, bytes), records, Buffer.alloc(0), 'whole')
  const whole = linesOf(tail).length
  const torn = tail.subarray(offsetOf(lines, whole + 1))
  await assertRecovered(folderOf(t, origin, tail), records.slice(0, whole), torn, 'cut behind the first chunk')
  for (const n of [35, 36, 41, 42]) {
    const flipped = Buffer.from(bytes)
    flipped[offsetOf(lines, n) + 200] = 0x21
    await assertRefused(folderOf(t, origin, flipped), 'journal-damaged', `line ${n} at byte ${offsetOf(lines, n)}: `)
  }
})

test('recovery: progress is reported after each hundredth, and 1 at the end', async t => {
  const folder = freshFolder(t)
  const same: Event = { type: 'test.event', by: null, data: 0 }
  const nine = await writeJournal(folder, [new Array<Event>(9).fill(same)])
  const line = nine.length / 9
  const keys = readKeyFile(disk, keyPath(folder))!
  const sharesOf = (bytes: number, endBytes = Infinity): number[] => {
    const readAt: Files['readAt'] = (descriptor, chunk, at) => disk.readAt(descriptor, chunk.subarray(0, line), at)
    const files: Files = { ...disk, readAt, stat: path => ({ ...disk.stat(path)!, bytes }) }
    const shares: number[] = []
    const onProgress = (share: number): void => { shares.push(share) }
    readJournal(files, journalPath(folder), keys, () => {}, { onProgress, endBytes })
    return shares
  }
  assert.deepEqual(sharesOf(100 * line), [0.02, 0.04, 0.06, 0.08, 1])
  const bytes = 100 * line - 50
  assert.deepEqual(sharesOf(bytes), [...linesOf(nine).map((_, i) => (i + 1) * line / bytes), 1])
  assert.deepEqual(sharesOf(nine.length, 4 * line), [0.25, 0.5, 0.75, 1, 1])
  writeFileSync(journalPath(folder), `x\n${nine.toString('latin1')}`)
  const told: number[] = []
  const read = (): unknown =>
    readJournal(disk, journalPath(folder), keys, () => {}, { onProgress: share => { told.push(share) } })
  assert.throws(read, { code: 'journal-damaged' })
  assert.deepEqual(told, [1])
})

test('recovery: what follows the byte where reading is to stop is not torn', async t => {
  const folder = freshFolder(t)
  const end = offsetOf(linesOf(await writeJournal(folder, [events(1, 3)])), 3)
  const keys = readKeyFile(disk, keyPath(folder))!
  const found = readJournal(disk, journalPath(folder), keys, () => {}, { endBytes: end })
  assert.deepEqual([found.records, found.goodBytes, found.tornBytes], [2, end, 0])
})

test('a part of a file is copied at any alignment, and each piece is reported', async t => {
  const folder = freshFolder(t)
  const [from, to] = [join(folder, 'from'), join(folder, 'to')]
  const bytes = randomBytes(2 * READ_CHUNK_BYTES + 100)
  writeFileSync(from, bytes)
  const some = 2 * READ_CHUNK_BYTES + 5
  for (const [endBytes, last] of [[some, some], [Infinity, bytes.length]] as const) {
    const reached: number[] = []
    const faulty = new FaultyFiles()
    await makeWhole(faulty.files, to, file =>
      copyBytes(faulty.files, from, file, 2, endBytes, at => { reached.push(at) }))
    assert.equal(faulty.open.size, 0)
    assert.ok(readFileSync(to).equals(bytes.subarray(2, last)))
    assert.deepEqual(reached, [READ_CHUNK_BYTES + 2, 2 * READ_CHUNK_BYTES + 2, last])
    assert.equal(statSync(to).mode & 0o777, 0o600)
    unlinkSync(to)
  }
})

test('recovery: a crash at any call of a recovery leaves what the next one recovers', async t => {
  const origin = freshFolder(t)
  const bytes = await writeJournal(origin, [events(1, 3)])
  const records = recordsOf(verify(bytes, keysOf(origin)))
  const torn = Buffer.from('{"seq":4,"time"')
  let calls = Infinity
  for (let dies = 1; dies <= calls; dies++) {
    const folder = folderOf(t, origin, Buffer.concat([bytes, torn]))
    const dying = new FaultyFiles()
    dying.fail({ at: dies, code: 'ENOSPC', forGood: true })
    try {
      const { journal } = await openJournal(folder, { files: dying.files })
      calls = Math.min(calls, dying.count())
      await journal.close()
    } catch {} // as at a crash
    const tail = journalBytes(folder).subarray(bytes.length)
    if (!tail.equals(torn)) assert.ok(readFileSync(join(folder, tornOf(folder)[0]!)).equals(torn))
    await assertRecovered(folder, records, tail, `call ${dies}, ${dying.calls[dies - 1]}`)
  }
  assert.ok(calls >= 10, `${calls} calls`)
})

test('recovery: on a full disk a torn tail stays where it is; reads go on, and changes are refused', async t => {
  const folder = freshFolder(t)
  const bytes = await writeJournal(folder, [events(1, 2)])
  writeFileSync(journalPath(folder), Buffer.concat([bytes, Buffer.from('{"seq"')]))
  for (const name of ['createToAppend', 'appendSync'] as const) {
    const before = snapshot(folder)
    const fails = (): never => { throw Object.assign(new Error('full'), { code: 'ENOSPC' }) }
    const { journal, records, warnings } = await openJournal(folder, { files: { ...disk, [name]: fails } })
    assert.equal(records.length, 2)
    assert.match(warnings.join(), /takes no writes until a restart: .* could not be moved to .*: ENOSPC/)
    await assert.rejects(commitTogether(journal, [event(3)]), { code: 'journal-failed' })
    await journal.close()
    assert.deepEqual(snapshot(folder), before)
    await assertRefused(folder, 'folder-unusable', 'EIO', { files: { ...disk, [name]: broken } })
  }
})

/** Large enough that a rewrite lets others have their turn. */
const MANY = Array.from({ length: 30 }, (_, i) => long(i + 1, 30_000))

const broken = (): never => { throw Object.assign(new Error('broken'), { code: 'EIO' }) }

test('rewrite: the same records afterwards, every line under the newest key and the first of a write', async t => {
  const folder = freshFolder(t)
  let pieces = 0
  const appendSync: Files['appendSync'] = (descriptor, bytes) => { pieces++; return disk.appendSync(descriptor, bytes) }
  const opened = await openJournal(folder, { files: { ...disk, appendSync } })
  await commitTogether(opened.journal, MANY)
  const { key: middle } = await opened.journal.rotateKey()
  await commitTogether(opened.journal, events(31, 33))
  const { key: newest, seals } = await opened.journal.rotateKey()
  assert.equal(seals, true)
  const before = verify(journalBytes(folder), keysOf(folder))
  const shares: number[] = []
  pieces = 0
  let turns = 0
  const turn = (): void => { turns++; turning = setImmediate(turn) }
  let turning = setImmediate(turn)
  const { unneeded, head: newHead } = await opened.journal.reencrypt(share => { shares.push(share) })
  clearImmediate(turning)
  const after = verify(journalBytes(folder), keysOf(folder).slice(-1))
  assert.deepEqual(withoutContinued(recordsOf(after)), recordsOf(before))
  const { hash, time } = before.at(-1)!
  assert.deepEqual([after[0]!.type, after[0]!.data],
    ['journal.continued', { why: 're-encrypted', head: hash, records: 33, time }])
  assert.deepEqual(unneeded, [before[0]!.key, middle])
  assert.equal(newHead, opened.journal.health().head)
  assert.ok(after.every(line => line.key === newest && Number.parseInt(line.nonce.slice(0, 2), 16) >= 0x80))
  assert.equal(new Set([...before, ...after].map(line => line.nonce)).size, before.length + after.length)
  assert.ok(pieces > 4 && shares.length > 8, `${pieces} writes, ${shares.length} shares`)
  assert.deepEqual(shares, shares.toSorted((a, b) => a - b))
  assert.ok(shares.includes(0.5) && shares.at(-1) === 1, shares.join(' '))
  assert.ok(turns >= shares.length, `the event loop turned ${turns} times`)
  const { records, head, fault } = opened.journal.health()
  assert.deepEqual([records, head, fault], [34, after.at(-1)!.hash, undefined])
  assert.equal(opened.journal.location().bytes, journalBytes(folder).length)
  assert.equal(statSync(journalPath(folder)).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(folder).sort(), ['journal.jsonl', 'journal.key'])
  await commitTogether(opened.journal, [event(34)])
  await opened.journal.close()
  writeFileSync(keyPath(folder), `${keysOf(folder).at(-1)}\n`)
  await assertRecovered(folder, opened.records, Buffer.alloc(0), 'with the newest key alone')
})

test('rewrite: an empty journal, and one that was rewritten before', async t => {
  const folder = freshFolder(t)
  const faulty = new FaultyFiles()
  const { journal, records } = await openJournal(folder, { files: faulty.files })
  const { unneeded, head } = await journal.reencrypt()
  assert.deepEqual([unneeded, head], [[], '0'.repeat(64)])
  assert.equal(journalBytes(folder).length, 0)
  await commitTogether(journal, events(1, 2))
  for (let i = 0; i < 2; i++) await journal.reencrypt()
  await journal.close()
  assert.equal(faulty.open.size, 0)
  await assertRecovered(folder, records, Buffer.alloc(0), 'rewritten twice')
})

for (const isWriting of [true, false]) {
  const when = isWriting ? 'while a write is under way' : 'by itself'
  test(`rewrite: changes that come meanwhile wait for one that began ${when}, and are not lost`, async t => {
    const folder = freshFolder(t)
    const order: string[] = []
    const files: Files = {
      ...disk,
      append: (...args) => { order.push('append'); disk.append(...args) },
      rename: (from, to) => { order.push('rename'); disk.rename(from, to) },
      sync: path => { order.push('sync'); disk.sync(path) }
    }
    const { journal, records } = await openJournal(folder, { files })
    await commitTogether(journal, MANY)
    order.length = 0
    const waiting: Promise<void>[] = isWriting ? [journal.commit(decisionOn(event(31)))] : []
    const rewritten = journal.reencrypt(() => {
      if (waiting.length < 5) waiting.push(journal.commit(decisionOn(event(31 + waiting.length))))
    })
    await rewritten
    const asked = waiting.length
    assert.ok(asked >= 3, `${asked}`)
    await Promise.all(waiting)
    assert.deepEqual(order, [...isWriting ? ['append'] : [], 'sync', 'rename', 'sync', 'append'])
    assert.equal(records.length, 30 + asked)
    await journal.close()
    await assertRecovered(folder, records, Buffer.alloc(0), 'afterwards')
  })
}

test('rewrite: a journal whose data was written with white space gets shorter, and takes what follows', async t => {
  const folder = freshFolder(t)
  const secret = randomBytes(32)
  writeKeys(folder, secret)
  const { text } = referenceLine({
    seq: 1, time: '2026-01-31T12:00:00.000Z', type: 'test.event', by: null, secret, nonce: randomBytes(12),
    json: `{ "n": 1 }${' '.repeat(1000)}`, previousHash: NO_HASH
  })
  writeFileSync(journalPath(folder), `${text}\n`)
  const { journal, records } = await openJournal(folder)
  await journal.reencrypt()
  assert.ok(journalBytes(folder).length < text.length)
  await commitTogether(journal, [event(2)])
  await journal.close()
  await assertRecovered(folder, records, Buffer.alloc(0), 'afterwards')
})

test('rewrite: neither it nor a rotation of keys begins once the journal is closed', async t => {
  const folder = freshFolder(t)
  const { journal } = await openJournal(folder)
  await commitTogether(journal, [event(1)])
  await journal.close()
  const before = snapshot(folder)
  await assert.rejects(journal.reencrypt(), { code: 'journal-closed' })
  await assert.rejects(journal.rotateKey(), { code: 'journal-closed' })
  assert.deepEqual(snapshot(folder), before)
})

test('rewrite: a failure at any call leaves the old file and no leftover, or, after the swap, fails', async t => {
  const origin = freshFolder(t)
  const bytes = await writeJournal(origin, [events(1, 3)])
  let calls = Infinity
  for (let n = 1; n <= calls; n++) {
    const folder = folderOf(t, origin, bytes)
    const failing = new FaultyFiles()
    const { journal, records } = await openJournal(folder, { files: failing.files })
    const before = snapshot(folder)
    const [inode, skipped] = [statSync(journalPath(folder)).ino, failing.count()]
    failing.fail({ at: n, code: 'ENOSPC' })
    let failed = true
    try { await journal.reencrypt(); failed = false } catch {} // which error it is depends on the call
    const what = `call ${n}, ${failing.calls[skipped + n - 1]}`
    if (!failed) calls = Math.min(calls, failing.count() - skipped)
    failing.heal()
    assert.equal(existsSync(`${journalPath(folder)}.rewrite`), false, what)
    if (statSync(journalPath(folder)).ino === inode) {
      assert.ok(failed, what)
      assert.deepEqual(snapshot(folder), before, what)
    }
    const commits = await Promise.allSettled([journal.commit(decisionOn(event(4)))])
    const isStuck = commits[0]!.status === 'rejected'
    const isSwapped = statSync(journalPath(folder)).ino !== inode
    if (isStuck) assert.ok(isSwapped || failing.calls[skipped + n - 1] === 'stat', what)
    assert.equal(journal.health().fault !== undefined, isStuck, what)
    await new Promise<void>(resolve => resolve(journal.close())).catch(() => {}) // has a test of its own
    assert.equal(records.length, isStuck ? 3 : 4, what)
    await assertRecovered(folder, records, Buffer.alloc(0), what)
  }
  assert.ok(calls >= 12, `${calls} calls`)
})

test('rewrite: when the old file cannot be closed after the swap, no descriptor is closed twice', async t => {
  const folder = freshFolder(t)
  await writeJournal(folder, [events(1, 2)])
  const closed: number[] = []
  let swapped = false
  const files: Files = {
    ...disk,
    rename: (from, to) => { disk.rename(from, to); swapped = true },
    openToAppend: path => { const opened = disk.openToAppend(path); closed.length = 0; return opened },
    close: descriptor => {
      closed.push(descriptor)
      disk.close(descriptor) // Linux lets go of a descriptor also where close gives an error
      if (!swapped) return
      swapped = false
      throw Object.assign(new Error('close'), { code: 'EIO' })
    }
  }
  const { journal } = await openJournal(folder, { files })
  await assert.rejects(journal.reencrypt(), { code: 'journal-failed' })
  await journal.close()
  assert.equal(new Set(closed).size, closed.length)
})

test('rewrite: a crash at any call leaves all records, and what is left over goes at the next start', async t => {
  const origin = freshFolder(t)
  const bytes = await writeJournal(origin, [events(1, 3)])
  let calls = Infinity
  for (let n = 1; n <= calls; n++) {
    const folder = folderOf(t, origin, bytes)
    const dying = new FaultyFiles()
    const { journal, records } = await openJournal(folder, { files: dying.files })
    const skipped = dying.count()
    dying.fail({ at: n, code: 'ENOSPC', forGood: true })
    try { await journal.reencrypt(); calls = Math.min(calls, dying.count() - skipped) } catch {} // as at a crash
    await journal.close().catch(() => {})
    await assertRecovered(folder, records, Buffer.alloc(0), `call ${n}, ${dying.calls[skipped + n - 1]}`)
    assert.equal(existsSync(`${journalPath(folder)}.rewrite`), false)
  }
})

test('rewrite: what a crash left beside the journal is removed by the next start', async t => {
  const folder = freshFolder(t)
  const bytes = await writeJournal(folder, [events(1, 2)])
  for (const left of ['', 'part of a line', bytes.toString('latin1')]) {
    writeFileSync(`${journalPath(folder)}.rewrite`, left)
    const { journal, records } = await openJournal(folder)
    await journal.close()
    assert.equal(records.length, 2)
    assert.deepEqual(readdirSync(folder).sort(), ['journal.jsonl', 'journal.key'])
  }
})

test('rewrite: where the folder cannot be synced it refuses before it does anything', async t => {
  const folder = freshFolder(t)
  await writeJournal(folder, [events(1, 2)])
  const called: string[] = []
  const sync = (): never => { throw Object.assign(new Error('refused'), { code: 'ERR_ACCESS_DENIED' }) }
  const createToAppend: Files['createToAppend'] = path => { called.push(path); return disk.createToAppend(path) }
  const { journal } = await openJournal(folder, { files: { ...disk, sync, createToAppend } })
  const before = snapshot(folder)
  await assert.rejects(journal.reencrypt(), { code: 'ERR_ACCESS_DENIED' })
  assert.deepEqual([called, snapshot(folder)], [[], before])
  await commitTogether(journal, [event(3)])
  await journal.close()
  assert.equal(verify(journalBytes(folder), keysOf(folder)).length, 3)
})

for (const n of [1, 2, 3]) {
  test(`rewrite: line ${n} of 3, damaged since the start, ends it, and the file stays as it is`, async t => {
    for (const byte of [0, 30, 200]) {
      const folder = freshFolder(t)
      const lines = linesOf(await writeJournal(folder, [events(1, 3)]))
      const { journal } = await openJournal(folder)
      const damaged = journalBytes(folder)
      damaged[offsetOf(lines, n) + byte] = 0x21
      writeFileSync(journalPath(folder), damaged)
      const before = snapshot(folder)
      const result = await journal.reencrypt().then(() => 'rewritten', () => 'refused')
      await journal.close()
      assert.equal(result, 'refused', `byte ${byte}`)
      assert.deepEqual(snapshot(folder), before)
    }
  })
}

test('rewrite: a device that loses what it says it wrote ends it, and the file stays as it is', async t => {
  const folder = freshFolder(t)
  await writeJournal(folder, [events(1, 3)])
  const before = snapshot(folder)
  const { journal } = await openJournal(folder, { files: { ...disk, appendSync: (_, bytes) => bytes.length } })
  await assert.rejects(journal.reencrypt(), /what was written does not read back the same/)
  await journal.close()
  assert.deepEqual(snapshot(folder), before)
})

test('rewrite: a file that was replaced is not rewritten', async t => {
  const folder = freshFolder(t)
  const bytes = await writeJournal(folder, [events(1, 2)])
  const { journal } = await openJournal(folder)
  disk.rename(journalPath(folder), `${journalPath(folder)}.old`)
  writeFileSync(journalPath(folder), bytes)
  const before = snapshot(folder)
  await assert.rejects(journal.reencrypt(), { code: 'journal-failed' })
  await journal.close()
  assert.deepEqual(snapshot(folder), before)
})

test('recovery: a seal opens with the key of its line alone', async t => {
  const folder = freshFolder(t)
  const { journal } = await openJournal(folder)
  await commitTogether(journal, [event(1)])
  const { key: name } = await journal.rotateKey()
  await journal.close()
  const line = parseLine(linesOf(journalBytes(folder))[0]!)!
  const keys = readKeyFile(disk, keyPath(folder))!
  assert.deepEqual(openLine(line, '0'.repeat(64), keys.find(line.key)!), { n: 1 })
  assert.throws(() => openLine(line, '0'.repeat(64), keys.find(name)!))
})

// What takes longest comes last.

test('recovery: a journal cut at every byte of its last lines opens with what was whole', async t => {
  const origin = freshFolder(t)
  const bytes = await writeJournal(origin, [events(1, 2), events(3, 3), events(4, 6)])
  const records = recordsOf(verify(bytes, keysOf(origin)))
  const lines = linesOf(bytes)
  const folder = folderOf(t, origin, bytes)
  for (let end = offsetOf(lines, 5); end <= bytes.length; end++) {
    writeFileSync(journalPath(folder), bytes.subarray(0, end))
    const whole = linesOf(bytes.subarray(0, end)).length
    const torn = bytes.subarray(offsetOf(lines, whole + 1), end)
    await assertRecovered(folder, records.slice(0, whole), torn, `cut at ${end} of ${bytes.length}`)
  }
})

test('recovery: what begins as a line does, and is longer than any, is moved away, but not what is longer than a write', async t => {
  const origin = freshFolder(t)
  await writeJournal(origin, [])
  const begins = '{"seq":1,"time":"'
  const tail = Buffer.from(begins.padEnd(MAX_WRITE_BYTES, 'x'))
  await assertRecovered(folderOf(t, origin, tail), [], tail, 'alone')
  const longer = Buffer.from(begins.padEnd(MAX_WRITE_BYTES + 1, 'x'))
  await assertRefused(folderOf(t, origin, longer), 'journal-damaged', 'longer than a write')
})

test('recovery: what follows more bytes than a line can have is still examined', async t => {
  const folder = freshFolder(t)
  const bytes = await writeJournal(folder, [events(1, 1)])
  writeFileSync(journalPath(folder), Buffer.concat([Buffer.alloc(MAX_LINE_BYTES + READ_CHUNK_BYTES), bytes]))
  await assertRefused(folder, 'journal-damaged', 'line 1 at byte 0: ')
})

test('recovery: a flipped bit anywhere is refused with line and byte, and that of the last line end costs the last line', async t => {
  const seed = seedFromEnv()
  t.diagnostic(`SEED=${seed}`)
  const random = seeded(seed)
  const origin = freshFolder(t)
  const bytes = await writeJournal(origin, [events(1, 1), events(2, 4)])
  const records = recordsOf(verify(bytes, keysOf(origin)))
  const folder = folderOf(t, origin, bytes)
  const keys = readKeyFile(disk, keyPath(folder))!
  for (let at = 0; at < bytes.length; at++) {
    const flipped = Buffer.from(bytes)
    const bit = random.int(8)
    flipped[at] = flipped[at]! ^ (1 << bit)
    const what = `bit ${bit} of byte ${at}`
    const whole = linesOf(bytes.subarray(0, at)).length
    const start = offsetOf(linesOf(bytes), whole + 1)
    // Two lines whose line end is gone are one malformed line: whether that may be cut is asked by a test of its own.
    const isJoined = bytes[at] === 0x0a && at + 1 < bytes.length
    const mayCut = at === bytes.length - 1
    const where = `line ${whole + 1} at byte ${start}: `
    writeFileSync(journalPath(folder), flipped)
    const got: JournalRecord[] = []
    let failure: unknown
    try {
      const found = readJournal(disk, journalPath(folder), keys, record => { got.push(record) })
      assert.deepEqual([found.goodBytes, found.tornBytes], [start, bytes.length - start], what)
    } catch (error) {
      failure = error
    }
    assert.deepEqual(got, records.slice(0, whole), what)
    if (!isJoined) assert.equal(failure === undefined, mayCut, `${what}: ${failure}`)
    if (failure !== undefined) {
      assert.ok(failure instanceof Failure && failure.message.includes(where), `${what}: ${failure}`)
    }
    if (isJoined || random.int(12) > 0) continue // a whole start for some of them: it costs more
    if (mayCut) await assertRecovered(folder, records.slice(0, whole), flipped.subarray(start), what)
    else await assertRefused(folder, 'journal-damaged', where)
  }
})
