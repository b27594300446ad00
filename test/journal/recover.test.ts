/** What a start makes of a journal's file that a crash, a device or somebody else has changed. */
import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import {
  chmodSync, copyFileSync, linkSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Failure } from '../../src/errors.ts'
import { disk, piecesOf, type Files } from '../../src/journal/files.ts'
import type { JournalRecord, Event } from '../../src/journal/journal.ts'
import { readKeyFile } from '../../src/journal/keys.ts'
import { readJournal } from '../../src/journal/recover.ts'
import { tornFault } from '../../src/journal/torn.ts'
import { EVENTS } from '../../src/slices.ts'
import {
  BLOCK_BYTES, MAX_COMMIT_BYTES, MAX_LINE_BYTES, MAX_SHORT_WRITE_BYTES, MAX_WRITE_BYTES, READ_CHUNK_BYTES
} from '../../src/limits.ts'
import {
  assertRecovered, assertRefused, bytesOf, commitTogether, event, failure, journalBytes, journalPath, keyPath, keysOf,
  linesOf,
  long, makeJournal, offsetOf, openJournal, putJournal, rechain, recordsOf, startAndStop, tornFiles,
  verdictOf, verify, withHash
} from '../support/journal.ts'
import { FaultyFiles, whicheverCallFails } from '../support/faulty-files.ts'
import { randomOf } from '../support/random.ts'
import { freshFolder } from '../support/service.ts'

const events = (from: number, to: number): Event[] => Array.from({ length: to - from + 1 }, (_, i) => event(from + i))

/** A journal, and what a start makes of other bytes under its keys. */
class Origin {
  readonly folder: string
  readonly bytes: Buffer
  readonly lines: readonly string[]
  readonly records: readonly JournalRecord[]
  readonly #t: TestContext

  constructor(t: TestContext, folder: string) {
    this.#t = t
    this.folder = folder
    this.bytes = journalBytes(folder)
    this.lines = linesOf(this.bytes)
    this.records = recordsOf(verify(this.bytes, keysOf(folder)))
  }

  at(line: number): number { return offsetOf(this.lines, line) }

  copy(bytes: Buffer): string {
    const folder = freshFolder(this.#t)
    copyFileSync(keyPath(this.folder), keyPath(folder))
    putJournal(folder, bytes)
    return folder
  }

  /** That many lines are found, and what follows is torn. */
  recovers(bytes: Buffer, lines: number, what: string): Promise<void> {
    return assertRecovered(this.copy(bytes), this.records.slice(0, lines), bytes.subarray(this.at(lines + 1)), what)
  }

  refuses(bytes: Buffer, line: number, why = ''): Promise<void> {
    return assertRefused(this.copy(bytes), 'journal-damaged', `line ${line} at byte ${this.at(line)}: ${why}`)
  }
}

async function made(t: TestContext, ...writes: readonly (readonly Event[])[]): Promise<Origin> {
  const folder = freshFolder(t)
  await makeJournal(folder, writes)
  return new Origin(t, folder)
}

const FIRST = '{"seq":1,"time":"2026-01-31T12:00:00.000Z","type":'

/** What may stand behind whole lines, and whether a crash can have left it there, or as the whole file. */
const TAILS: readonly (readonly [what: string, tail: Buffer | string, behind: boolean, alone: boolean])[] = [
  ['a NUL', Buffer.alloc(1), true, false],
  ['a page of NUL', Buffer.alloc(4096), true, false],
  ['more than a chunk of NUL', Buffer.alloc(READ_CHUNK_BYTES + 4097), true, false],
  ['as much NUL as a write has bytes', Buffer.alloc(MAX_WRITE_BYTES), true, false],
  ['one NUL more', Buffer.alloc(MAX_WRITE_BYTES + 1), false, false],
  ['the beginning of a brace', '{', true, false],
  ['the beginning of a line', '{"seq":', true, false],
  ['the beginning of a first line that shows its type', `${FIRST}"test.noted",`, false, true],
  ['the beginning of a first line that was made whole', `${FIRST}"journal.rewritten",`, false, false],
  ['the beginning of a line of a checkpoint', `${FIRST}"entries.kept",`.replace('1', '4'), false, false],
  ['the beginning of another line', '{"seq":5,', false, false],
  ['the beginning of a line with a byte that no line has',
    `${FIRST}"test.noted","by":[`.replace('1', '4'), false, false],
  ['NUL and line ends', '\0\n\0\0\n', false, false],
  ['a line end', '\n', false, false],
  ['garbage without an end', 'garbage', false, false],
  ['garbage with an end', 'garbage\n', false, false],
  ['bytes that are no text', Buffer.from([0xff, 0xfe, 0x0a, 0x80, 0xc0]), false, false],
  ['a line end of Windows', '\r\n', false, false],
  ['more than a chunk of garbage lines', 'garbage\n'.repeat(READ_CHUNK_BYTES / 4), false, false]
]

for (const [what, tail, behind, alone] of TAILS) {
  const verdict = (isTorn: boolean): string => isTorn ? 'torn' : 'damage'
  test(`${what} behind whole lines is ${verdict(behind)}, and alone ${verdict(alone)}`, async t => {
    const origin = await made(t, events(1, 3))
    for (const [before, lines, isTorn] of [[origin.bytes, 3, behind], [Buffer.alloc(0), 0, alone]] as const) {
      const bytes = Buffer.concat([before, Buffer.from(tail)])
      await (isTorn ? origin.recovers(bytes, lines, what) : origin.refuses(bytes, lines + 1))
    }
  })
}

test('a lost block never takes a line of an older write with it', async t => {
  const origin = await made(t, ...Array.from({ length: 40 }, (_, i) => [long(i + 1, 100 + i % 7 * 30)]))
  const { bytes } = origin
  for (let block = 0; block < bytes.length; block += BLOCK_BYTES) {
    const damaged = Buffer.from(bytes).fill(0, block, Math.min(block + BLOCK_BYTES, bytes.length))
    const line = linesOf(bytes.subarray(0, block)).length + 1
    assert.ok(line < origin.lines.length)
    await origin.refuses(damaged, line)
  }
})

test('a long write whose new blocks never came, or that was being cut back, is torn', async t => {
  const origin = await made(t, events(1, 3), [long(4, 20_000), long(5, 20_000)])
  const whole = origin.at(4)
  const block = Math.ceil(whole / BLOCK_BYTES) * BLOCK_BYTES
  const unwritten = Buffer.from(origin.bytes).fill(0, block)
  const cutBack = Buffer.from(origin.bytes).fill(0, whole, block).fill(0, block + BLOCK_BYTES, block + 3 * BLOCK_BYTES)
  await origin.recovers(unwritten, 3, 'unwritten')
  await origin.recovers(cutBack, 3, 'being cut back')
})

const NO_SEAL = 'its seal does not open'
const renewed = (lines: readonly string[]): string => bytesOf(rechain(lines)).toString('latin1')

for (const [what, change, n, why] of [
  ['a damaged line with a torn tail behind it', ([a, , c, d]) => `${a}\nx\n${c}\n${d}\n{"seq":5,`, 2,
    'it is not a line of a journal'],
  ['carriage returns, which are not one torn tail,', lines => lines.map(line => `${line}\r\n`).join(''), 1,
    'it is not a line of a journal'],
  ['a changed hash', ([a, b]) => `${a!.replace(/.{4}"\}$/, '0000"}')}\n${b}\n`, 1,
    'its hash does not follow from the line before it'],
  ['a line that is missing', ([a, , c]) => `${a}\n${c}\n`, 2, 'its seq is 3'],
  ['an old line at its end', lines => [...lines, lines[0]].map(line => `${line}\n`).join(''), 5, 'its seq is 1'],
  // Who has no key can number the lines and compute the chain again.
  ['its first line cut out', lines => renewed(lines.slice(1)), 1, NO_SEAL],
  ['a line cut out', ([a, , c, d]) => renewed([a!, c!, d!]), 2, NO_SEAL],
  ['two lines exchanged', ([a, b, c, d]) => renewed([a!, c!, b!, d!]), 2, NO_SEAL],
  ['a line twice', ([a, b, c, d]) => renewed([a!, b!, b!, c!, d!]), 3, NO_SEAL],
  ['an old line at its end and a new chain', lines => renewed([...lines, lines[0]!]), 5, NO_SEAL],
  ['another time in a line', ([a, b, c, d]) => renewed([a!, b!, c!.replace('2026', '2025'), d!]), 3, NO_SEAL],
  ['another user in a line', ([a, b, c, d]) => renewed([a!, b!, c!.replace('null', '9'), d!]), 3, NO_SEAL]
] as readonly (readonly [string, (lines: readonly string[]) => string, number, string])[]) {
  test(`a journal with ${what} is refused by line, byte and reason; nothing is changed, leftovers neither`, async t => {
    const origin = await made(t, events(1, 2), events(3, 4))
    putJournal(origin.folder, change(origin.lines))
    writeFileSync(`${journalPath(origin.folder)}.7.part`, origin.bytes)
    await assertRefused(origin.folder, 'journal-damaged', `line ${n} at byte ${origin.at(n)}: ${why}`)
  })
}

test('a record that does not fit the state is refused with its line and what is wrong', async t => {
  const origin = await made(t, events(1, 4))
  const apply = (record: JournalRecord): void => { if (record.seq === 3) throw new Error('there is no such thing') }
  const says = `line 3 at byte ${origin.at(3)}: there is no such thing`
  await assertRefused(origin.folder, 'journal-damaged', says, { apply })
})

test('zeros in the last write are cut off with what follows; in an older write they are refused', async t => {
  const origin = await made(t, events(1, 1), [long(2, 300), long(3, 300), long(4, 300), long(5, 300)])
  const older = origin.bytes
  const both = await makeJournal(origin.folder, [events(6, 8)])
  const first = origin.at(2)
  const sectors = Array.from({ length: Math.ceil(older.length / 512) }, (_, i) => i * 512)
  for (const from of [first, ...sectors.filter(at => at > first)]) {
    for (const count of [1, 2, 100]) {
      const to = Math.min((Math.floor(from / 512) + count) * 512, older.length)
      const zeroed = Buffer.from(both).fill(0, from, to)
      const whole = linesOf(older.subarray(0, from)).length
      await origin.recovers(zeroed.subarray(0, older.length), whole, `zeros from ${from} to ${to} of ${older.length}`)
      await origin.refuses(zeroed, whole + 1)
    }
  }
})

test('a lost sector that ends where a line or its end begins is found before that', async t => {
  const write = (pad: number): Promise<Origin> =>
    made(t, events(1, 1), [{ ...long(2, 600), type: `test.${'x'.repeat(pad)}` }, event(3)])
  for (const before of [0, 1]) {
    const origin = await write(1 + 512 - ((await write(1)).at(3) - before) % 512)
    const end = origin.at(3) - before
    assert.equal(end % 512, 0)
    await origin.recovers(Buffer.from(origin.bytes).fill(0, end - 512, end), 1,
      'zeros up to line 3, or to the end of 2')
  }
})

test('zeros that are no lost sector are damage, and are refused', async t => {
  const origin = await made(t, events(1, 1), [long(2, 300), long(3, 300), long(4, 300)])
  const second = origin.at(2)
  for (const [from, length] of [[second + 40, 1], [second, 1], [512, 511], [513, 511], [700, 12]] as const) {
    await origin.refuses(Buffer.from(origin.bytes).fill(0, from, from + length), 2)
  }
  // As far from the beginning of their own line as that is from the beginning of the write.
  const damaged = Buffer.from(origin.bytes).fill(0, second + 100, 512)
  damaged[second + 49] = 0x0a
  await origin.refuses(damaged, 2)
})

test('a write after a lost line end is not taken for torn with what precedes it', async t => {
  const origin = await made(t, events(1, 1), events(2, 3))
  const end = origin.bytes.length
  const both = await makeJournal(origin.folder, [events(4, 6)])
  const why = 'it is not a line of a journal, nor the rest of a torn write: another write follows it'
  for (const zeros of [1, 2, 100]) await origin.refuses(Buffer.from(both).fill(0, end - zeros, end), 3, why)
})

test('a block of zeros behind one that is full is damage', async t => {
  const write = (pad: number): Promise<Origin> => made(t, [{ ...event(1), type: `test.${'x'.repeat(pad)}` }])
  const origin = await write(1 + BLOCK_BYTES - (await write(1)).bytes.length)
  assert.equal(origin.bytes.length, BLOCK_BYTES)
  const bytes = Buffer.concat([origin.bytes, Buffer.alloc(BLOCK_BYTES)])
  await origin.refuses(bytes, 2,
    'it is not a line of a journal, nor the rest of a torn write: a block of the file is lost')
})

test('several gaps of zeros in one write, also with its end missing, are cut off from the first', async t => {
  const origin = await made(t, events(1, 1), Array.from({ length: 6 }, (_, i) => long(2 + i, 200)))
  const torn = Buffer.from(origin.bytes)
  for (const sector of [1, 3]) torn.fill(0, sector * 512, sector * 512 + 512)
  for (const cut of [0, 1, 100]) await origin.recovers(torn.subarray(0, torn.length - cut), 1, `${cut} missing`)
})

test('lines may lie anywhere on the borders of what is read at a time', async t => {
  const { folder, bytes, records, lines } = await made(t, events(1, 3), [long(4, 900)])
  for (const step of [1, 2, 3, 7, 64, 250, 251, bytes.length - 1, bytes.length]) {
    const readAt: Files['readAt'] = (descriptor, into, at) => disk.readAt(descriptor, into.subarray(0, step), at)
    const opened = await startAndStop(folder, { files: { ...disk, readAt } })
    assert.deepEqual(opened.records, records, `${step} bytes at a time`)
    assert.equal(opened.journal.status().head, JSON.parse(lines.at(-1)!).hash)
  }
})

test('a file of several chunks, and with a line longer than one, is read, and damage found', async t => {
  const forty = Array.from({ length: 40 }, (_, i) => long(i + 1, 30_000 + i))
  const origin = await made(t, forty, [long(41, READ_CHUNK_BYTES)], events(42, 44))
  const { bytes } = origin
  assert.ok(bytes.length > 2 * READ_CHUNK_BYTES)
  await origin.recovers(bytes, 44, 'whole')
  const cut = bytes.subarray(0, READ_CHUNK_BYTES + 5)
  await origin.recovers(cut, linesOf(cut).length, 'cut behind the first chunk')
  for (const n of [35, 36, 41, 42]) {
    const flipped = Buffer.from(bytes)
    flipped[origin.at(n) + 200] = 0x21
    await origin.refuses(flipped, n)
  }
})

test('a start writes the last write again, which may not be on the device, and nothing before it', async t => {
  const origin = await made(t, events(1, 2), events(3, 4))
  const again: number[] = []
  const writeAt: Files['writeAt'] = (descriptor, bytes, offset) => {
    for (let at = 0; at < bytes.length; at++) again.push(offset + at)
    return disk.writeAt(descriptor, bytes, offset)
  }
  await startAndStop(origin.folder, { files: { ...disk, writeAt } })
  assert.deepEqual([again[0], again.length], [origin.at(3), origin.bytes.length - origin.at(3)])
})

test('progress is reported again and again, and 1 once, at the end', async t => {
  const { folder, bytes: nine, lines } = await made(t, Array(9).fill({ type: 'test.event', by: null, data: 0 }))
  const line = nine.length / 9
  const keys = readKeyFile(disk, keyPath(folder))!
  const sharesOf = (bytes: number, endBytes = Infinity): number[] => {
    const readAt: Files['readAt'] = (descriptor, chunk, at) => disk.readAt(descriptor, chunk.subarray(0, line), at)
    const files: Files = { ...disk, readAt, stat: path => ({ ...disk.stat(path)!, size: bytes }) }
    const shares: number[] = []
    const onProgress = (share: number): void => { shares.push(share) }
    readJournal(files, journalPath(folder), keys, () => {}, { onProgress, endBytes })
    return shares
  }
  const bytes = 100 * line
  assert.deepEqual(sharesOf(bytes), [...lines.map((_, i) => (i + 1) * line / bytes), 1])
  assert.deepEqual(sharesOf(nine.length, 4 * line), [0.25, 0.5, 0.75, 1])
  putJournal(folder, `x\n${nine.toString('latin1')}`)
  const told: number[] = []
  const onProgress = (share: number): void => { told.push(share) }
  const read = (): unknown => readJournal(disk, journalPath(folder), keys, () => {}, { onProgress })
  assert.throws(read, { code: 'journal-damaged' })
  assert.deepEqual(told, [1])
})

test('what follows the byte where reading is to stop is not torn, and the last write before it is known', async t => {
  const origin = await made(t, events(1, 1), events(2, 4))
  const keys = readKeyFile(disk, keyPath(origin.folder))!
  for (const tornBytes of [0, 5]) {
    const endBytes = origin.at(4) + tornBytes
    const { head: _, time: __, keyNames: ___, ...found } =
      readJournal(disk, journalPath(origin.folder), keys, () => {}, { endBytes })
    assert.deepEqual(found, { records: 3, goodBytes: origin.at(4), tornBytes, lastWriteBytes: origin.at(2) })
  }
})

test('a part of a file is read in pieces at any alignment', t => {
  const path = join(freshFolder(t), 'from')
  const bytes = randomBytes(2 * READ_CHUNK_BYTES + 100)
  writeFileSync(path, bytes)
  for (const [end, last] of [[2 * READ_CHUNK_BYTES + 5, 2 * READ_CHUNK_BYTES + 5], [Infinity, bytes.length]] as const) {
    const { files } = new FaultyFiles()
    const file = files.openToRead(path)
    const pieces = Array.from(piecesOf(files, file, 2, end), piece => Buffer.from(piece))
    files.close(file)
    assert.ok(Buffer.concat(pieces).equals(bytes.subarray(2, last)))
    assert.deepEqual(pieces.map(({ length }) => length),
      [READ_CHUNK_BYTES, READ_CHUNK_BYTES, last - 2 - 2 * READ_CHUNK_BYTES])
  }
})

for (const forGood of [false, true]) {
  const times = forGood ? 'for good from then on' : 'once'
  test(`whichever file call fails ${times} while a torn tail is repaired, the next start recovers`, async t => {
    const origin = await made(t, events(1, 3))
    const torn = Buffer.from('{"seq":4,"time"')
    const calls = await whicheverCallFails({ code: 'EIO', forGood }, async (faulty, begin) => {
      const folder = origin.copy(Buffer.concat([origin.bytes, torn]))
      for (const path of [journalPath(folder), keyPath(folder)]) chmodSync(path, 0o644)
      begin()
      const error = await startAndStop(folder, { files: faulty.files }).catch((error: Error) => error)
      if (error instanceof Error && !(error instanceof Failure)) assert.match(error.message, /close fails/)
      const tail = journalBytes(folder).subarray(origin.bytes.length)
      if (!tail.equals(torn)) assert.ok(readFileSync(tornFiles(folder)[0]!).equals(torn))
      await assertRecovered(folder, origin.records, tail, 'at the next start')
    })
    assert.ok(calls >= 10, `${calls} calls`)
  })
}

test('where another process has taken the lock meanwhile, a torn tail stays', async t => {
  const origin = await made(t, events(1, 2))
  const folder = origin.copy(Buffer.concat([origin.bytes, Buffer.from('{"seq"')]))
  const before = journalBytes(folder)
  const lock = { isHeld: () => false, socket: 'held.sock' }
  await assert.rejects(openJournal(folder, { lock }), { code: 'folder-held', message: /held\.sock was removed/ })
  assert.deepEqual(journalBytes(folder), before)
})

test('on a full or broken disk a torn tail stays where it is, and the start is refused', async t => {
  const origin = await made(t, events(1, 2))
  const folder = origin.copy(Buffer.concat([origin.bytes, Buffer.from('{"seq"')]))
  for (const of of ['createToAppend', 'appendSync'] as const) {
    for (const [code, says] of [['ENOSPC',
      /ends in 6 bytes that are no record.*could not be moved to .*torn-.*: ENOSPC; make room, and start again$/],
        ['EIO', /could not be moved.*EIO$/]] as const) {
      const failing = new FaultyFiles()
      failing.fail({ of, code })
      await assertRefused(folder, 'folder-unusable', says, { files: failing.files })
      assert.equal(failing.open.size, 0)
    }
  }
})

test('where nothing can be synced a torn tail is cut off too, and its file\'s name is said to be unsure', async t => {
  const origin = await made(t, events(1, 2))
  const torn = '{"seq":3,"time"'
  const folder = origin.copy(Buffer.concat([origin.bytes, Buffer.from(torn)]))
  const refused = new FaultyFiles()
  for (const of of ['sync', 'syncOpen'] as const) refused.fail({ of, code: 'ERR_ACCESS_DENIED', forGood: true })
  const { records, warnings } = await startAndStop(folder, { files: refused.files })
  assert.deepEqual(records, origin.records)
  assert.match(warnings.join(),
    /they were moved to .*torn-.*; a crash of the machine .* could undo the name of that file$/)
  assert.deepEqual([journalBytes(folder), readFileSync(tornFiles(folder)[0]!, 'latin1')], [origin.bytes, torn])
  assert.ok(refused.count('writeAt') >= 2, 'its last block is written again')
})

for (const [what, spoil, says] of [
  ['a link', (path: string) => { renameSync(path, `${path}.real`); symlinkSync(`${path}.real`, path) },
    /is a link; put the file itself there/],
  ['a link to nothing', (path: string) => { renameSync(path, `${path}.real`); symlinkSync('nowhere', path) },
    /is a link/],
  ['a hard link', (path: string) => linkSync(path, `${path}.other`), /is a hard link, and its other name/],
  ['a folder', (path: string) => { renameSync(path, `${path}.real`); mkdirSync(path) }, /is no regular file/]
] as const) {
  test(`a journal that is ${what} is refused`, async t => {
    const origin = await made(t, events(1, 2))
    spoil(journalPath(origin.folder))
    const before = readdirSync(origin.folder)
    await assert.rejects(openJournal(origin.folder), error => failure('folder-unusable', says)(error))
    assert.deepEqual(readdirSync(origin.folder), before)
  })
}

test('a start on a full disk with nothing to repair serves reads, and changes as soon as there is room', async t => {
  const origin = await made(t, events(1, 2))
  const full = new FaultyFiles()
  for (const of of ['createToAppend', 'appendSync', 'append', 'link'] as const) full.fail({ of, code: 'ENOSPC',
    forGood: true })
  const { journal, records } = await openJournal(origin.folder, { files: full.files })
  assert.equal(records.length, 2)
  await assert.rejects(commitTogether(journal, [event(3)]), { code: 'write-failed' })
  full.heal()
  await commitTogether(journal, [event(3)])
  await journal.close()
})

test('where what is overwritten needs room and there is none, a start serves reads alone', async t => {
  const origin = await made(t, events(1, 2))
  const full = new FaultyFiles()
  full.fail({ of: 'writeAt', code: 'ENOSPC', forGood: true })
  const { journal, records, warnings } = await openJournal(origin.folder, { files: full.files })
  assert.equal(records.length, 2)
  assert.match(warnings.join(),
    /takes no more writes until a restart: its last write could not be made durable: ENOSPC/)
  await assert.rejects(commitTogether(journal, [event(3)]), { code: 'journal-failed' })
  await journal.close()
})

test('what a newer version wrote is not called damaged: a type or field that is refused, a form of a line', async t => {
  const origin = await made(t, events(1, 3))
  const place = `line 3 at byte ${origin.at(3)}: `
  const apply = (record: JournalRecord): void => { if (record.seq === 3) throw new Failure('journal-newer',
    'no such type') }
  await assertRefused(origin.folder, 'journal-newer', `${place}no such type; nothing is damaged`, { apply })
  const [first, second, third] = origin.lines as readonly [string, string, string]
  const { hash } = JSON.parse(second) as { hash: string }
  for (const [more, isNewer] of [[`${third.slice(0, third.indexOf(',"hash":'))},"more":1`, true],
    ['{"seq":3,"v":2', true], ['{"v":3', false]] as const) {
    const folder = origin.copy(bytesOf([first, second, withHash(more, hash).text]))
    await assertRefused(folder, isNewer ? 'journal-newer' : 'journal-damaged', place)
  }
})

// What takes longest comes last.

const LIST_NAMES = ['entries', 'users', 'tokens', 'knowers', 'pages']
/** Types whose data is a list of rows, and a row that is known. */
const LISTS: { readonly [type: string]: readonly [list: string, row: object | null] } = {
  'entries.imported': ['entries', { password: 'p', status: 1 }], 'fields.imported': ['entries', { notas: 'n' }],
  'entries.kept': ['entries', null],
  'fields.kept': ['entries', { changed: '' }], 'users.kept': ['users', { email: '' }],
  'tokens.kept': ['tokens', { isOfLogin: true }]
}

test('a field that a later version may have added is refused in the data of every type, and in its rows', () => {
  const newer = { code: 'journal-newer' }
  const takes = (type: string, data: object): boolean => {
    try { EVENTS.assertKnown(type, data) } catch { return false }
    return true
  }
  assert.ok(EVENTS.names.length > 30)
  for (const type of EVENTS.names) {
    // A number in the one; what an earlier build kept, and nobody reads, in the other.
    const hasRows = !/^(entries\.disclosed|knowledge\.(knowers|changes|pages|former))$/.test(type)
    const lists = LIST_NAMES.filter(list => hasRows && takes(type, { [list]: [] }))
    assert.throws(() => EVENTS.assertKnown(type, { [lists[0] ?? 'id']: [], later: 1 }), newer, type)
    for (const list of lists) {
      assert.throws(() => EVENTS.assertKnown(type, { [list]: [{ later: 1 }] }), newer, `${type}: ${list}`)
    }
  }
  for (const [type, [list, row]] of Object.entries(LISTS)) {
    EVENTS.assertKnown(type, { [list]: [row] })
    assert.throws(() => EVENTS.assertKnown(type, { [list]: [row, { later: 1 }] }), newer, type)
  }
})

test('a journal cut at every byte of its last lines opens with what was whole', async t => {
  const origin = await made(t, events(1, 2), events(3, 3), events(4, 6))
  const { folder, bytes } = origin
  for (let end = origin.at(5); end <= bytes.length; end++) {
    const cut = bytes.subarray(0, end)
    const whole = linesOf(cut).length
    putJournal(folder, cut)
    const found = verdictOf(journalPath(folder), keyPath(folder))
    assert.match(found, new RegExp(`^${whole} records, .* ${end - origin.at(whole + 1)} torn$`), `cut at ${end}`)
    // A whole start for some of them: it costs more.
    if (end % 16 === 0) await origin.recovers(cut, whole, `cut at ${end} of ${bytes.length}`)
  }
})

/** The first bytes of a line's seal, as base64: its data is longer than 1 MiB, or not. */
const [LONG, SHORT] = ['4AAA', 'gAAA']
const line = (type: string, sealed = ''): string => `{"seq":4,"time":"2026-01-31T12:00:00.000Z","type":"${type}"` +
  (sealed === '' ? '' : `,"by":null,"key":"0123abcd","sealed":"${sealed}`)

for (const [what, begins, most] of [
  ['one of a user', line('user.added'), MAX_SHORT_WRITE_BYTES],
  ['one of an entry that is short', line('entry.created', SHORT), MAX_SHORT_WRITE_BYTES],
  ['one of an entry that is long', line('entry.created', LONG), MAX_WRITE_BYTES],
  ['one of an import whose seal has not arrived', line('entries.imported'), MAX_WRITE_BYTES],
  ['one that shows no type', '{"seq":4,"ti', MAX_WRITE_BYTES]
] as const) {
  test(`a tail is at most as long as its first line says, ${what}`, () => {
    const offset = 10 * BLOCK_BYTES - begins.length
    for (const filler of begins.endsWith('AAA') ? ['\0', 'x'] : ['\0']) {
      assert.equal(tornFault(begins.padEnd(most, filler), offset, 4), undefined)
      assert.equal(tornFault(begins.padEnd(most + 1, filler), offset, 4),
        'what follows is longer than its write can be')
    }
  })
}

const created = (id: number, password: string): Event =>
  ({ type: 'entry.created', by: null, data: { id, password, sistema: 's', usuario: 'u' } })

test('an event that a start could not tell from damage, if it were torn, is refused', async t => {
  const { journal } = await openJournal(freshFolder(t))
  const text = 'x'.repeat(MAX_COMMIT_BYTES * 1.5)
  const commit = (...all: readonly Event[]): Promise<unknown> => journal.commit(() =>
    [all.map(one => ({ ...one, json: JSON.stringify(one.data) })), undefined])
  const other = { type: 'test.long', by: null, data: text }
  for (const all of [[other], [created(1, text), created(2, text)]])
    await assert.rejects(commit(...all), { code: 'write-failed', message: /which is too long$/ })
  await commit(created(1, text))
  assert.equal(journal.data.length, 1)
  await journal.close()
})

test('a change of more than a write is one of its own, and its line says so', async t => {
  const folder = freshFolder(t)
  const { journal } = await openJournal(folder)
  const [short, fitting, long] = [0, MAX_COMMIT_BYTES * 0.6, MAX_COMMIT_BYTES]
  await Promise.all([short, long, short, short, long, short, fitting, fitting].map(length =>
    journal.commit(({ size }) => {
      const one = created(size + 1, 'x'.repeat(length))
      return [[{ ...one, json: JSON.stringify(one.data) }], undefined]
    })))
  await journal.close()
  const bits = verify(journalBytes(folder), keysOf(folder)).slice(1)
    .map(({ nonce }) => Number(`0x${nonce.slice(0, 2)}`) >> 6)
  assert.deepEqual(bits, [2, 3, 2, 0, 3, 2, 0, 2], 'where writes begin, and which line is long')
})

test('what follows more bytes than a line can have is still examined', async t => {
  const { folder, bytes } = await made(t, events(1, 1))
  putJournal(folder, Buffer.concat([Buffer.alloc(MAX_LINE_BYTES + READ_CHUNK_BYTES), bytes]))
  await assertRefused(folder, 'journal-damaged', 'line 1 at byte 0: ')
})

test('a flipped bit anywhere is refused with line and byte, also in the last line end', async t => {
  const random = randomOf(t)
  const origin = await made(t, events(1, 1), events(2, 4))
  const { bytes } = origin
  const folder = origin.copy(bytes)
  for (let at = 0; at < bytes.length; at++) {
    // Two lines whose line end is gone are one malformed line: whether that may be cut is asked by a test of its own.
    if (bytes[at] === 0x0a && at + 1 < bytes.length) continue
    const whole = linesOf(bytes.subarray(0, at)).length
    for (const bit of at + 1 < bytes.length ? [random.int(8)] : [0, 1, 2, 3, 4, 5, 6, 7]) {
      const flipped = Buffer.from(bytes)
      flipped[at] = flipped[at]! ^ (1 << bit)
      putJournal(folder, flipped)
      assert.equal(verdictOf(journalPath(folder), keyPath(folder)), `line ${whole + 1} at byte ${origin.at(whole + 1)}`,
        `byte ${at}: ${flipped[at]}`)
      if (random.int(24) > 0) continue // a whole start for some of them: it costs more
      await origin.refuses(flipped, whole + 1)
    }
  }
})

test('of several faults near each other the first one is named, and every record before it is handed on', async t => {
  const folder = freshFolder(t)
  await makeJournal(folder, [events(1, 6)])
  const lines = linesOf(journalBytes(folder))
  const change = (n: number, from: RegExp, to: string): void => { lines[n - 1] = lines[n - 1]!.replace(from, to) }
  const keys = readKeyFile(disk, keyPath(folder))!
  const read = (): readonly [string, number] => {
    const got: JournalRecord[] = []
    putJournal(folder, lines)
    try {
      readJournal(disk, journalPath(folder), keys, record => { got.push(record) })
    } catch (error) {
      return [(error as Failure).message.replace(/^.*?, line/, 'line').replace(/; restore a backup.*/, ''), got.length]
    }
    return ['', got.length]
  }
  change(6, /"seq"/, '"Seq"')
  assert.match(read()[0], /^line 6 at byte \d+: it is not a line/)
  change(5, /.{66}$/, `${'0'.repeat(64)}"}`)
  assert.deepEqual(read(), [`line 5 at byte ${offsetOf(lines, 5)}: its hash does not follow from the line before it`,
    4])
  change(3, /"sealed":"....................../, '"sealed":"AAAAAAAAAAAAAAAAAAAAAA')
  lines.splice(0, 4, ...rechain(lines.slice(0, 4)))
  assert.deepEqual(read(), [`line 3 at byte ${offsetOf(lines, 3)}: its seal does not open`, 2])
})

test('a restore killed after it named the journal leaves a second name, which the next start removes', async t => {
  const folder = freshFolder(t)
  await makeJournal(folder, [events(1, 3)])
  linkSync(journalPath(folder), `${journalPath(folder)}.1.part`)
  const { journal, records } = await openJournal(folder)
  assert.equal(records.length, 3)
  await commitTogether(journal, events(4, 4))
  await journal.close()
  assert.deepEqual(readdirSync(folder).sort(), ['journal.jsonl', 'journal.key'])
})

test('where all blocks at the end are zeros, a single one is lost; more may be a length that came first', () => {
  const begins = line('entry.created', LONG)
  for (const [bytes, fault] of [
    [BLOCK_BYTES, 'a block of the file is lost'], [BLOCK_BYTES + 512, undefined], [2 * BLOCK_BYTES, undefined]
  ] as const) {
    const tail = begins.padEnd(begins.length + bytes, '\0')
    assert.equal(tornFault(tail, 10 * BLOCK_BYTES - begins.length, 4), fault, `${bytes}`)
  }
})
