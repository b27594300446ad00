import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { readJsonLines } from '../../src/json/lines.ts'

/** What is found in a text: its line, and whether it is an object. */
function found(text: string): readonly (readonly [line: number, ok: boolean])[] {
  return [...readJsonLines(Buffer.from(text), 4)].map(({ line, parsed }) => [line, parsed.ok])
}

test('each line that is not empty is an object or a fault, and knows its number', () => {
  assert.deepEqual(found(''), [])
  assert.deepEqual(found('{}'), [[1, true]])
  assert.deepEqual(found('{}\n{}\n'), [[1, true], [2, true]])
  assert.deepEqual(found('\n\n{}\n{}'), [[3, true], [4, true]])
  assert.deepEqual(found('{}\n!\n{}'), [[1, true], [2, false], [3, true]])
})

test('a line of white space alone is none', () => {
  assert.deepEqual(found(' \t \r\n{}\r\n '), [[2, true]])
})
