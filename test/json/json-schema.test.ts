/** The tests' own validator of JSON Schema finds what is wrong, and knows when it does not know a word. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultOf, type Schema } from '../support/json-schema.ts'

const CASES: readonly (readonly [schema: Schema, fine: readonly unknown[], wrong: readonly unknown[]])[] = [
  [{ type: 'integer' }, [0, -1, 1.0], ['1', 1.5, null, [], {}]],
  [{ type: 'object' }, [{}], [[], null, 'a']],
  [{ type: 'string', minLength: 2, maxLength: 2 }, ['ab', '😀😀'], ['a', 'abc', '😀', 2]],
  [{ const: 'a' }, ['a'], ['b', null]],
  [{ enum: [0, 1] }, [0, 1], [2, '0']],
  [{ anyOf: [{ type: 'string' }, { const: 1 }] }, ['a', 1], [2, {}]],
  [{ minimum: 1, maximum: 2 }, [1, 2, 'a'], [0, 3]],
  [{ pattern: '^a+$' }, ['a', 'aa', 1], ['', 'b', 'ab']],
  [{ minItems: 1, items: { type: 'integer' } }, [[1], 'a'], [[], ['a'], [1, 'a']]],
  [{ required: ['a'] }, [{ a: 1 }, { a: undefined }, []], [{}, { b: 1 }]],
  [{ minProperties: 1 }, [{ a: 1 }], [{}]],
  [{ propertyNames: { enum: ['a'] } }, [{}, { a: 1 }], [{ b: 1 }]],
  [{ properties: { a: { const: 1 } } }, [{}, { a: 1 }, { b: 2 }], [{ a: 2 }]],
  [{ properties: { a: {} }, additionalProperties: false }, [{}, { a: 1 }], [{ b: 1 }, { toString: 1 }]],
  [{ additionalProperties: { type: 'string' } }, [{}, { a: 'b' }], [{ a: 1 }]]
]

test('a schema takes what it should, and nothing else', () => {
  for (const [schema, fine, wrong] of CASES) {
    const faults = (values: readonly unknown[]): boolean[] => values.map(value => faultOf(schema, value) !== undefined)
    assert.deepEqual(faults(fine), fine.map(() => false), JSON.stringify(schema))
    assert.deepEqual(faults(wrong), wrong.map(() => true), JSON.stringify(schema))
  }
})

test('a word that the validator does not know is an error', () => {
  assert.throws(() => faultOf({ nullable: true }, null), /nullable is not known/)
})
