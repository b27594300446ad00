/** What goes into one write, at its bounds. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { Batch, nonces } from '../../src/journal/batch.ts'
import type { Fact } from '../../src/journal/journal.ts'
import { keyring } from '../../src/journal/keys.ts'
import { FIRST_HASH } from '../../src/journal/line.ts'
import { MAX_COMMIT_BYTES, MAX_COMMIT_RECORDS } from '../../src/limits.ts'

const keys = keyring([randomBytes(32)])
const newBatch = (): Batch => new Batch(0, FIRST_HASH, '2026-01-31T12:00:00.000Z')
const fact = (bytes: number): Fact => ({ type: `test.${'x'.repeat(bytes)}`, by: null, data: 0 })
const add = (batch: Batch, bytes: number): boolean => batch.add(fact(bytes), keys.newest, randomBytes(12))

test('a write has room for another record until its lines have all the bytes that it may', () => {
  const least = newBatch()
  add(least, 0)
  assert.equal(least.length, least.lines[0]!.length)
  const most = MAX_COMMIT_BYTES - least.length
  assert.equal(add(newBatch(), most - 1), true)
  assert.equal(add(newBatch(), most), false)
  const two = newBatch()
  assert.equal(add(two, 0), true)
  assert.equal(add(two, most - least.length), false)
  assert.equal(two.takeBytes().length, MAX_COMMIT_BYTES + 2, 'with their line ends')
})

test('a write has room for another record until it has all that it may', () => {
  const batch = newBatch()
  for (let n = 1; n < MAX_COMMIT_RECORDS; n++) assert.equal(add(batch, 0), true, String(n))
  assert.equal(add(batch, 0), false)
})

test('256 nonces come from each call for randomness, and none comes twice', () => {
  const asked: number[] = []
  const nonce = nonces(bytes => { asked.push(bytes); return randomBytes(bytes) })
  const seen = new Set(Array.from({ length: 256 }, () => nonce().toString('hex')))
  assert.equal(seen.size, 256)
  assert.deepEqual(asked, [0, 256 * 12])
  assert.equal(nonce().length, 12)
  assert.deepEqual(asked, [0, 256 * 12, 256 * 12])
})
