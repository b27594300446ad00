import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLinearizable, type Operation } from '../support/linearizable.ts'

const operation = (kind: 'write' | 'read', value: string, startMs: number, endMs: number): Operation =>
  ({ kind, value, startMs, endMs })

const HISTORIES: readonly (readonly [what: string, isFine: boolean, history: readonly Operation[]])[] = [
  ['nothing', true, []],
  ['a read of what was written', true, [operation('write', 'a', 0, 1), operation('read', 'a', 2, 3)]],
  ['a read of what was there before the write', false, [operation('write', 'a', 0, 1), operation('read', '', 2, 3)]],
  ['a read during a write, either way', true, [operation('write', 'a', 0, 9), operation('read', '', 1, 2)]],
  ['a read that goes back behind another', false, [
    operation('write', 'a', 0, 9), operation('read', 'a', 1, 2), operation('read', '', 3, 4)
  ]],
  ['a write of unknown outcome that is seen late', true, [
    operation('write', 'a', 0, Infinity), operation('write', 'b', 1, 2), operation('read', 'b', 3, 4),
    operation('read', 'a', 5, 6)
  ]],
  ['a write of unknown outcome that is seen and is gone again', false, [
    operation('write', 'a', 0, Infinity), operation('read', 'a', 1, 2), operation('read', '', 3, 4)
  ]],
  ['a read of what nobody wrote', false, [operation('read', 'x', 0, 1)]],
  ['two writes at once, seen in two orders', false, [
    operation('write', 'a', 0, 9), operation('write', 'b', 0, 9), operation('read', 'a', 10, 11),
    operation('read', 'b', 12, 13)
  ]]
]

for (const [what, isFine, history] of HISTORIES) {
  test(`${what}: ${isFine ? 'linearizable' : 'not linearizable'}`, () => {
    assert.equal(isLinearizable('', history), isFine)
  })
}
