/** Nonces. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { nonces } from '../../src/journal/batch.ts'

test('256 nonces come from each call for randomness: they are the random bytes, each once', () => {
  const asked: number[] = []
  const given: Buffer[] = []
  let count = 0
  const nonce = nonces(bytes => {
    asked.push(bytes)
    const made = Buffer.alloc(bytes)
    for (let at = 0; at + 4 <= bytes; at += 4) made.writeUInt32BE(count++, at)
    given.push(made)
    return made
  })
  const got = Array.from({ length: 1_000 }, () => nonce().toString('hex'))
  assert.equal(got.join(''), Buffer.concat(given).toString('hex').slice(0, 1_000 * 24))
  assert.deepEqual(asked, [0, ...Array(4).fill(256 * 12)])
})
