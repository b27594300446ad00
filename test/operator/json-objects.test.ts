import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { readObjects } from '../../src/parts/operator/json-objects.ts'

/** The line and the value of each object in a text, or what is wrong with it. */
function found(text: string): readonly (readonly [line: number, json: string])[] | string {
  try {
    return [...readObjects(Buffer.from(text))].map(({ line, object }) => [line, JSON.stringify(Object.fromEntries(object))])
  } catch (error) {
    return (error as Error).message
  }
}

const CASES: readonly (readonly [text: string, found: ReturnType<typeof found>])[] = [
  ['', []], ['{}', [[1, '{}']]], ['{}\n{}\n', [[1, '{}'], [2, '{}']]], ['\n\n{}\n{}', [[3, '{}'], [4, '{}']]],
  [' \t \r\n{}\r\n ', [[2, '{}']]],
  ['{}\n!\n{}', 'line 2, column 1: it is not JSON'],
  ['{}\n\0\0\0', 'line 2, column 1: it is not JSON'],
  ['[]', []], [' [ ] \n', []],
  ['[{"a":[1,"]}\\"",{}]},\n {"b":2}\n]', [[1, '{"a":[1,"]}\\"",{}]}'], [2, '{"b":2}']]],
  ['[{}', 'line 1, column 4: a comma or the end of the list is missing'],
  ['[{},', 'line 1, column 5: it is empty'],
  ['[{}\n,]', 'line 2, column 2: it is empty'],
  ['[{} {}]', 'line 1, column 5: a comma or the end of the list is missing'],
  ['[{}]\nx', 'line 2, column 1: there is something after the list'],
  ['[{"a":1,"a":2}]', 'line 1, column 9: it has the same key twice'],
  ['[1]', 'line 1, column 2: it is not an object'],
  ['[\n"x', 'line 2, column 3: it ends in a string']
]

for (const [text, expected] of CASES) {
  test(`JSON objects in ${JSON.stringify(text)}`, () => {
    const seen = found(text)
    if (typeof expected !== 'string') assert.deepEqual(seen, expected)
    else assert.equal(String(seen).split(':')[0], expected.split(':')[0], String(seen))
  })
}
