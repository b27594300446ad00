import assert from 'node:assert/strict'
import { test } from 'node:test'
import { email, number, texts, textUpTo } from '../../src/rights/validate.ts'
import { check, optional, sentenceOf, text, type Checked, type Rule } from '../../src/rights/validate.ts'

const login = { name: text, email: text, password: text }
const note = { title: text, remark: optional(text) }

/** What a body is after the parser: an object without a prototype, its keys own ones whatever they are called. */
const bare = (entries: Readonly<Record<string, unknown>>): { [field: string]: unknown } =>
  Object.assign(Object.create(null), entries)

function valueOf<T>(checked: Checked<T>): T {
  assert.ok(checked.ok, 'should have the shape')
  return checked.value
}

function errorsOf(checked: Checked<unknown>): unknown {
  assert.ok(!checked.ok, 'should not have the shape')
  assert.ok(!('value' in checked), 'a refused object comes with no value')
  return checked.errors
}

const missing = (field: string): readonly string[] => [`The ${field} field is required.`]
const noString = (field: string): readonly string[] => [`The ${field} field must be a string.`]

const NO_STRINGS: readonly unknown[] = [
  0, 42, Infinity, true, false, [], ['a'], {}, Object.create(null), { length: 1 }, { toString: () => 'a' }
]

test('the value is typed field by field, an object of its own with only the fields of the shape', () => {
  const body: { [field: string]: unknown } = { title: 't', remark: 'r', id: 7, nested: { title: 'u' } }
  const value: { readonly title: string, readonly remark: string | undefined } = valueOf(check(note, body))
  // @ts-expect-error a field that the shape does not know is not in the type
  assert.equal(value.id, undefined)
  assert.deepEqual(value, { title: 't', remark: 'r' })
  body['title'] = 'changed'
  assert.equal(value.title, 't')
  assert.deepEqual(valueOf(check({}, { any: 1 })), {})
  const others = { id: null, Email: 'e', 'email ': 'e' }
  assert.deepEqual(errorsOf(check({ email: text }, others)), { email: missing('email') })
})

test('all failing fields are reported at once, in the order of the shape', () => {
  const errors = errorsOf(check(login, { password: 1, email: '' }))
  assert.deepEqual(errors, { name: missing('name'), email: missing('email'), password: noString('password') })
  assert.deepEqual(Object.keys(errors as object), ['name', 'email', 'password'])
})

test('text is kept as given: never trimmed, never converted', () => {
  const texts = [' ', '\t\n', ' a ', '0', 'false', 'null', '\0', 'contraseña', 'n\u0303', '🔑', '\ud83d', '\udd11']
  for (const kept of texts) assert.equal(valueOf(check({ password: text }, { password: kept })).password, kept)
})

test("a body's own field that is called like an inherited property is a field like any other", () => {
  const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', 'prototype']
  for (const name of names) {
    const body = bare({ email: 'e' })
    body[name] = { email: 'other', polluted: true }
    const value = valueOf(check({ email: text }, body))
    assert.deepEqual(Reflect.ownKeys(value), ['email'])
    assert.equal(Object.getPrototypeOf(value), Object.prototype)
    assert.equal(Reflect.get({}, 'polluted'), undefined)
  }
  const shape = { constructor: text, toString: text, valueOf: text, hasOwnProperty: text }
  const expected = Object.fromEntries(Object.keys(shape).map(field => [field, missing(field)]))
  for (const body of [{}, bare({})]) assert.deepEqual(errorsOf(check(shape, body)), expected)
  const given = { constructor: 'a', toString: 'b', valueOf: 'c', hasOwnProperty: 'd' }
  assert.deepEqual({ ...valueOf(check(shape, bare(given))) }, given)
  assert.deepEqual(Reflect.ownKeys(valueOf(check({ constructor: optional(text), toString: optional(text) }, {}))), [])
})

test('an inherited property never counts as given, nor does it do harm', () => {
  for (const remark of ['inherited', 5]) {
    const heir = Object.create({ title: 'inherited', remark }) as { [field: string]: unknown }
    assert.deepEqual(errorsOf(check(note, heir)), { title: missing('title') })
    heir['title'] = 'own'
    assert.deepEqual(valueOf(check(note, heir)), { title: 'own' })
  }
})

test('an optional field may be absent and then has no key; null and the empty string are held to the rule', () => {
  assert.deepEqual(Reflect.ownKeys(valueOf(check(note, { title: 't' }))), ['title'])
  for (const remark of [null, '']) {
    assert.deepEqual(errorsOf(check(note, { title: 't', remark })), { remark: missing('remark') })
  }
  assert.deepEqual(errorsOf(check(note, { remark: 1 })), { title: missing('title'), remark: noString('remark') })
  assert.deepEqual(valueOf(check({ a: optional(text), b: optional(text) }, {})), {})
  assert.deepEqual(errorsOf(check({ title: text }, {})), { title: missing('title') }, 'the rule itself stays required')
})

interface RuleCase {
  readonly rule: Rule<unknown>
  readonly kept: readonly unknown[]
  readonly refused: readonly unknown[]
  /** Completes the message about what is refused. */
  readonly must: string
}

const LONG = 'x'.repeat(100_000)

const RULES: { readonly [title: string]: RuleCase } = {
  'text': { rule: text, kept: ['a'], refused: NO_STRINGS, must: 'be a string' },
  'textUpTo, a string however long': { rule: textUpTo(4), kept: [], refused: NO_STRINGS, must: 'be a string' },
  'textUpTo, text of at most so many UTF-16 units': {
    rule: textUpTo(4), kept: ['a', 'abcd', '    ', 'ñand', '🔑🔑'], refused: ['abcde', '     ', '🔑🔑a', LONG],
    must: 'not be greater than 4 characters'
  },
  'email, something, an @, something, up to 254 characters (RFC 5321 §4.5.3.1)': {
    rule: email,
    kept: ['a@b', 'Ana.Núñez+x@example.org', "o'b@[127.0.0.1]", 'ñ@ñ', '🔑@例え.jp', `${'a'.repeat(242)}@example.org`],
    refused: [
      ...NO_STRINGS, 'a', '@', 'a@', '@b', 'a@@b', 'a@b@c', ' a@b', 'a@b ', 'a b@c', 'a@b c', 'a@b\n', '\na@b', 'a\t@b',
      ' ', 'a@\u00a0b', 'a\u2028@b', `${'a'.repeat(243)}@example.org`, `a@${LONG}`, '@'.repeat(100_000)
    ],
    must: 'be a valid email address'
  },
  'number, within the bounds, both included': {
    rule: number(-2, 3), kept: [-2, -1.5, -0, 0, 1e-300, 3],
    refused: [-2.001, 3.001, 4, -Infinity, Infinity, NaN, '1', '3', true, false, [], [1], {}, { a: 1 }],
    must: 'be a number between -2 and 3'
  },
  'texts, a list of strings, none of them empty': {
    rule: texts, kept: [[], ['a'], ['a', 'a', ' '], ['🔑', '\ud83d']],
    refused: [
      [''], ['a', ''], ['', 'a'], [1], ['a', null], [['a']], ['a', {}], [true], 'a', 'a,b', 0, 1, true, false,
      {}, { length: 0 }, { 0: 'a', length: 1 }, { every: 'a' }
    ],
    must: 'be a list of strings'
  }
}

for (const [title, { rule, kept, refused, must }] of Object.entries(RULES)) {
  test(`${title}: kept as given, and anything else refused; absent, null and empty it is missing`, () => {
    for (const field of kept) {
      const value = valueOf(check({ field: rule }, { field })).field
      assert.deepEqual(value, field)
      assert.equal(Object.is(value, field), !Array.isArray(field), 'a list is a copy')
    }
    for (const one of [rule, optional<unknown>(rule)]) {
      for (const field of refused) {
        assert.deepEqual(errorsOf(check({ field: one }, { field })), { field: [`The field field must ${must}.`] })
      }
      assert.deepEqual(errorsOf(check({ field: one }, { field: null })), { field: missing('field') })
      assert.deepEqual(errorsOf(check({ field: one }, { field: '' })), { field: missing('field') })
    }
    assert.deepEqual(errorsOf(check({ field: rule }, {})), { field: missing('field') })
    assert.deepEqual(Reflect.ownKeys(valueOf(check({ field: optional<unknown>(rule) }, {}))), [])
  })
}

test('all that is wrong makes one line, a space between its sentences', () => {
  assert.equal(sentenceOf({ a: ['One.', 'Two.'], b: ['Three.'] }), 'One. Two. Three.')
})
