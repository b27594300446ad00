import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check, optional, text } from '../../src/store/validate.ts'
import { listOf, oneOf } from '../../src/parts/operator/request-rules.ts'

const note = { title: text, remark: optional(text) }

const RULES = {
  'oneOf, one of the numbers': {
    rule: oneOf(0, 1), kept: [0, 1], refused: [2, -1, 0.5, NaN, '0', true, false, [0], {}], must: 'be 0 or 1'
  },
  'listOf, a list of objects that have the shape': {
    rule: listOf(note), kept: [[], [{ title: 't' }], [{ title: 't', more: 1 }, { title: 'u', remark: 'r' }]],
    refused: [
      [{}], [{ title: '' }], [{ title: 't' }, { title: 1 }], [null], ['t'], [[]], [undefined], 't', 0, {}, { length: 0 }
    ],
    must: 'be a list of objects with title, remark'
  }
}

for (const [title, { rule, kept, refused, must }] of Object.entries(RULES)) {
  test(`${title}: kept as given, and anything else refused`, () => {
    for (const field of kept) assert.deepEqual(check({ field: rule }, { field }), { ok: true, value: { field } })
    for (const field of refused) {
      assert.deepEqual(check({ field: rule }, { field }), { ok: false, errors: { field: [`The field field must ${must}.`] } })
    }
  })
}
