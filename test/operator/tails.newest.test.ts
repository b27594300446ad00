/**
 * What may stand at the end of a journal: what a start, `journal verify` and `journal salvage` make of it. A write
 * that a power cut tore is never damage; what is longer than one write is never taken for one.
 */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { BLOCK_BYTES, MAX_SHORT_WRITE_BYTES } from '../../src/limits.ts'
import { admin } from '../support/admin.ts'
import { bytesOf, linesOf, openJournal, putJournal, referenceLines, writeKeys } from '../support/journal.ts'
import { freshFolder } from '../support/service.ts'

const SECRET = randomBytes(32)
const created = (id: number, length = 40): { readonly type: string, readonly data: object } =>
  ({ type: 'entry.created', data: { id, password: 'x'.repeat(length), sistema: 's', usuario: 'u' } })
const ids = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i)

/** A journal of 2.2 MiB, each line a write; its beginning; those that end with a write of many lines, or a long one. */
const MANY = bytesOf(referenceLines(SECRET, ids(1, 6_500).map(id => [created(id)])))
const SINGLE = bytesOf(linesOf(MANY).slice(0, 200))
const SHARED = bytesOf(referenceLines(SECRET,
  [...ids(1, 20).map(id => [created(id)]), ids(21, 1_000).map(id => created(id))]))
const LONG = bytesOf(referenceLines(SECRET, [...ids(1, 20).map(id => [created(id)]), [created(21, 1_600_000)]]))

/** Its last bytes, from within a line on: `from` is a sector's beginning, at least this many before the end. */
const fromEnd = (bytes: Buffer, length: number): number => Math.floor((bytes.length - length) / 512) * 512
const zeros = (bytes: Buffer, from: number, to = bytes.length): Buffer => Buffer.from(bytes).fill(0, from, to)
const noise = (bytes: Buffer, from: number): Buffer =>
  Buffer.concat([bytes.subarray(0, from), randomBytes(bytes.length - from).map(byte => byte === 10 ? 11 : byte)])
const LAST = linesOf(SINGLE).at(-1)!.length + 1

/** `torn`: a start moves it aside, and goes on; `damage`: it is refused. */
const ROWS: readonly (readonly [what: string, bytes: Buffer, verdict: 'whole' | 'torn' | 'damage'])[] = [
  ['nothing behind the last line', SINGLE, 'whole'],
  ['half of the last line', SINGLE.subarray(0, SINGLE.length - LAST / 2), 'torn'],
  ['half of a write of 980 lines', SHARED.subarray(0, SHARED.length - 150_000), 'torn'],
  ['half of a long line', LONG.subarray(0, LONG.length / 2), 'torn'],
  ['zeros for the end of the last line', zeros(SINGLE, fromEnd(SINGLE, 10)), 'torn'],
  ['zeros for a sector of a write of 980 lines', zeros(SHARED, 20 * BLOCK_BYTES, 20 * BLOCK_BYTES + 512), 'torn'],
  ['zeros for the last blocks of a write of 980 lines', zeros(SHARED, 20 * BLOCK_BYTES), 'torn'],
  ['zeros for the last blocks of a long line', zeros(LONG, 20 * BLOCK_BYTES), 'torn'],
  ['zeros for all blocks of a long line but its first', zeros(LONG, 3 * BLOCK_BYTES), 'torn'],
  ['zeros over 15 KiB of single writes', zeros(SINGLE, fromEnd(SINGLE, 15_000)), 'torn'],
  ['zeros over a part of 15 KiB of single writes',
    zeros(SINGLE, fromEnd(SINGLE, 15_000), fromEnd(SINGLE, 2_000)), 'damage'],
  ['zeros over more single writes than one write can be',
    zeros(MANY, fromEnd(MANY, MAX_SHORT_WRITE_BYTES + BLOCK_BYTES)), 'damage'],
  ['noise for half of the last line', noise(SINGLE, SINGLE.length - LAST / 2), 'damage'],
  ['noise over 15 KiB', noise(SINGLE, fromEnd(SINGLE, 15_000)), 'damage'],
  ['noise over 2 MiB', noise(MANY, fromEnd(MANY, 2 * 1024 * 1024)), 'damage'],
  ['0xff over 15 KiB, as an erased flash has it', Buffer.from(SINGLE).fill(0xff, fromEnd(SINGLE, 15_000)), 'damage'],
  ['another byte in place of the last line end', Buffer.concat([SINGLE.subarray(0, -1), Buffer.from('J')]), 'damage']
]

for (const [what, bytes, verdict] of ROWS) {
  test(`${what}: ${verdict}, for a start, verify and salvage`, async t => {
    const folder = freshFolder(t)
    writeKeys(folder, SECRET)
    const copy = join(folder, 'copy.jsonl')
    writeFileSync(copy, bytes)
    const isWhole = verdict === 'whole'
    const verified = await admin(folder, `journal verify ${copy}`)
    assert.equal(verified.code, { whole: 0, torn: 4, damage: 3 }[verdict], verified.error)
    if (verdict === 'torn') assert.match(verified.out, /^tail +\d+ bytes follow: .*Only a head that was noted proves/m)
    const salvaged = await admin(folder, `journal salvage ${copy} --to ${join(folder, 'good.jsonl')} --json`)
    assert.equal(salvaged.code, isWhole || what.includes('line end') ? 0 : 3, salvaged.error)
    const isEndKnown = isWhole || /line end|a part of|a sector/.test(what)
    assert.equal(JSON.parse(salvaged.out).isEndKnown, isEndKnown)
    putJournal(folder, bytes)
    const start = openJournal(folder)
    if (verdict === 'damage') {
      await assert.rejects(start, { code: 'journal-damaged' })
      return
    }
    const { journal, warnings } = await start
    assert.equal(warnings.length, isWhole ? 0 : 1)
    await journal.close()
  })
}
