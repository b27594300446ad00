/** Lists of callers with groups: which are kept, so that callers who poll in turn pay for changes alone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keptByGroups } from '../../src/entries/paged-list.ts'
import { MAX_KEPT_LIST_BYTES, MAX_KEPT_LISTS } from '../../src/limits.ts'

/** The groups whose list is made again, asked in this order. */
function madeFor(asked: readonly (readonly string[])[], bytes: number): readonly string[] {
  const made: string[] = []
  const listOf = keptByGroups(groups => {
    made.push(groups.join())
    return { heldBytes: bytes }
  })
  for (const groups of asked) listOf(groups)
  return made
}

const ROUND = Array.from({ length: MAX_KEPT_LISTS }, (_, n) => [`g${n}`])
const KEYS = ROUND.map(String)

test('the lists used last are kept, by the names in any order, as many as the bounds of number and bytes allow', () => {
  const rows: readonly (readonly [string, readonly (readonly string[])[], number, readonly string[]])[] = [
    ['as many as are kept, in turn', [...ROUND, ...ROUND, ...ROUND], 1, KEYS],
    ['one more', [...ROUND, ['x'], ['g1'], ['g0']], 1, [...KEYS, 'x', 'g0']],
    ['what is used stays', [...ROUND, ['g0'], ['x'], ['g0'], ['g1']], 1, [...KEYS, 'x', 'g1']],
    ['the same names', [['a', 'b'], ['b', 'a'], ['a', 'b', 'c'], []], 1, ['a,b', 'a,b,c', '']],
    ['half of the bytes', [['a'], ['b'], ['a'], ['b'], ['c'], ['a']], MAX_KEPT_LIST_BYTES / 2, ['a', 'b', 'c', 'a']],
    ['larger than all bytes', [['a'], ['a'], ['b'], ['b'], ['a']], MAX_KEPT_LIST_BYTES + 1, ['a', 'b', 'a']]
  ]
  for (const [what, asked, bytes, made] of rows) assert.deepEqual(madeFor(asked, bytes), made, what)
})
