/** Nonces. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { nonces } from '../../src/journal/batch.ts'

test('256 nonces come from each call for randomness, each once', () => {
  const asked: number[] = []
  const nonce = nonces(bytes => { asked.push(bytes); return randomBytes(bytes) })
  assert.equal(new Set(Array.from({ length: 1_000 }, () => nonce().toString('hex'))).size, 1_000)
  assert.deepEqual(asked, [0, ...Array(4).fill(256 * 12)])
})
