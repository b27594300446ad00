/** How an export is written. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { textsOf } from '../../src/parts/operator/transfer/export-formats.ts'

const entryOf = (id: number) => ({ id, password: 'p', sistema: 's', usuario: 'u', status: 1 as const })

test('an export is written in short pieces, also of entries that are too large for one text together', () => {
  const entries = Array.from({ length: 1_000 }, (_, i) => entryOf(i + 1))
  const long = ' '.repeat(2 ** 20)
  let bytes = 0
  for (const text of textsOf(entries, { row: () => long })) {
    assert.ok(text.length < 2 * long.length)
    bytes += text.length
  }
  assert.equal(bytes, entries.length * long.length)
  const writer = { head: () => '[', row: ({ id }: { readonly id: number }) => String(id), between: ',', tail: ']' }
  assert.equal([...textsOf(entries.slice(0, 3), writer)].join(''), '[1,2,3]')
  assert.equal([...textsOf([], writer)].join(''), '[]')
})
