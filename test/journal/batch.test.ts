/** Nonces. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { nonces } from '../../src/journal/batch.ts'

test('256 nonces come from each call for randomness, and none comes twice', () => {
  const asked: number[] = []
  const nonce = nonces(bytes => { asked.push(bytes); return randomBytes(bytes) })
  const seen = new Set(Array.from({ length: 256 }, () => nonce().toString('hex')))
  assert.equal(seen.size, 256)
  assert.deepEqual(asked, [0, 256 * 12])
  assert.equal(nonce().length, 12)
  assert.deepEqual(asked, [0, 256 * 12, 256 * 12])
})
