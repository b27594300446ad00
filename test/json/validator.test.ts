import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  check, email, listOf, number, oneOf, optional, sentenceOf, text, texts, textUpTo
} from '../../src/json/validator.ts'
import type { Checked, Rule } from '../../src/json/validator.ts'

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

const wrongTypes: Readonly<Record<string, unknown>> = {
  'zero': 0,
  'a number': 42,
  'infinity': Infinity,
  'true': true,
  'false': false,
  'an empty array': [],
  'an array of one string': ['a'],
  'an empty object': {},
  'an object without a prototype': Object.create(null),
  'an object with a length': { length: 1 },
  'an object that calls itself a string': { toString: () => 'a' }
}

test('an object with every field as text has the shape', () => {
  const value = valueOf(check(login, { name: 'n', email: 'e', password: 'p' }))
  assert.deepEqual(value, { name: 'n', email: 'e', password: 'p' })
})

test('the value is typed field by field', () => {
  const value: { readonly title: string, readonly remark: string | undefined } =
    valueOf(check(note, { title: 't', remark: 'r' }))
  assert.equal(value.title.length + (value.remark?.length ?? 0), 2)
  // @ts-expect-error a field that the shape does not know is not in the type
  assert.equal(value.other, undefined)
})

test('a required field that is absent is named as required', () => {
  assert.deepEqual(errorsOf(check({ email: text }, {})), { email: ['The email field is required.'] })
})

test('a required field that is null is named as required', () => {
  assert.deepEqual(errorsOf(check({ email: text }, { email: null })), { email: ['The email field is required.'] })
})

test('a required field that is the empty string is named as required', () => {
  assert.deepEqual(errorsOf(check({ email: text }, { email: '' })), { email: ['The email field is required.'] })
})

for (const [name, wrong] of Object.entries(wrongTypes)) {
  test(`${name} is not a string, and is not called missing`, () => {
    const expected = { email: ['The email field must be a string.'] }
    assert.deepEqual(errorsOf(check({ email: text }, { email: wrong })), expected)
    assert.deepEqual(errorsOf(check({ email: optional(text) }, { email: wrong })), expected)
  })
}

test('the message names the field as the shape spells it', () => {
  const shape = { 'two words': text, año: text, camelCase: text }
  assert.deepEqual(errorsOf(check(shape, { 'two words': 1, camelCase: [] })), {
    'two words': ['The two words field must be a string.'],
    'año': ['The año field is required.'],
    'camelCase': ['The camelCase field must be a string.']
  })
})

test('all failing fields are reported at once, in the order of the shape', () => {
  const errors = errorsOf(check(login, { password: 1, email: '' }))
  assert.deepEqual(errors, { name: missing('name'), email: missing('email'), password: noString('password') })
  assert.deepEqual(Object.keys(errors as object), ['name', 'email', 'password'])
})

test('only failing fields are keyed, at any place in the shape', () => {
  const whole: Readonly<Record<string, unknown>> = { name: 'n', email: 'e', password: 'p' }
  for (const field of Object.keys(login)) {
    assert.deepEqual(errorsOf(check(login, { ...whole, [field]: null })), { [field]: missing(field) })
    assert.deepEqual(errorsOf(check(login, { ...whole, [field]: {} })), { [field]: noString(field) })
  }
})

test('every mixture of right, absent, null, empty and wrong fields names just the failing ones', () => {
  const states: readonly (readonly [unknown, ((field: string) => readonly string[]) | undefined])[] =
    [['x', undefined], [undefined, missing], [null, missing], ['', missing], [7, noString], [[], noString]]
  for (const [name, nameFault] of states) {
    for (const [email, emailFault] of states) {
      const body: { [field: string]: unknown } = {}
      if (name !== undefined) body['name'] = name
      if (email !== undefined) body['email'] = email
      const checked = check({ name: text, email: text }, body)
      const errors: { [field: string]: readonly string[] } = {}
      if (nameFault) errors['name'] = nameFault('name')
      if (emailFault) errors['email'] = emailFault('email')
      assert.deepEqual(checked, nameFault || emailFault ? { ok: false, errors } : { ok: true, value: { name, email } })
    }
  }
})

test('text is kept as given: never trimmed, never converted', () => {
  const texts = [' ', '\t\n', ' a ', '0', 'false', 'null', '\0', 'contraseña', 'n\u0303', '🔑', '\ud83d', '\udd11']
  for (const kept of texts) {
    assert.equal(valueOf(check({ password: text }, { password: kept })).password, kept)
  }
})

test('fields that the shape does not know are left out of the value', () => {
  const value = valueOf(check({ email: text }, { id: 7, email: 'e', status: 'deleted', nested: { email: 'f' } }))
  assert.deepEqual(value, { email: 'e' })
  assert.deepEqual(Reflect.ownKeys(value), ['email'])
})

test('fields that the shape does not know are not among the errors', () => {
  const errors = errorsOf(check({ email: text }, { id: null, Email: 'e', 'email ': 'e' }))
  assert.deepEqual(errors, { email: missing('email') })
})

for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', 'prototype']) {
  test(`a body's own ${name} is a field like any other unknown one: ignored`, () => {
    const body = bare({})
    body['email'] = 'e'
    body[name] = { email: 'other', polluted: true }
    const value = valueOf(check({ email: text }, body))
    assert.deepEqual(Reflect.ownKeys(value), ['email'])
    assert.equal(value.email, 'e')
    assert.equal(Object.getPrototypeOf(value), Object.prototype)
    assert.equal(Reflect.get(value, 'polluted'), undefined)
    assert.equal(Reflect.get({}, 'polluted'), undefined)
  })
}

test('a field that is called like an inherited property is missing unless the body gives it', () => {
  const shape = { constructor: text, toString: text, valueOf: text, hasOwnProperty: text }
  const expected = Object.fromEntries(Object.keys(shape).map(field => [field, missing(field)]))
  assert.deepEqual(errorsOf(check(shape, {})), expected)
  assert.deepEqual(errorsOf(check(shape, bare({}))), expected)
  const given = { constructor: 'a', toString: 'b', valueOf: 'c', hasOwnProperty: 'd' }
  assert.deepEqual({ ...valueOf(check(shape, bare(given))) }, given)
})

test('an optional field that is called like an inherited property is absent unless the body gives it', () => {
  const value = valueOf(check({ constructor: optional(text), toString: optional(text) }, {}))
  assert.deepEqual(Reflect.ownKeys(value), [])
})

test('an inherited property never counts as given', () => {
  const heir = Object.create({ title: 'inherited', remark: 'inherited' }) as { [field: string]: unknown }
  assert.deepEqual(errorsOf(check(note, heir)), { title: missing('title') })
  heir['title'] = 'own'
  assert.deepEqual(valueOf(check(note, heir)), { title: 'own' })
})

test('an inherited property of a wrong type does no harm to an optional field', () => {
  const heir = Object.create({ remark: 5 }) as { [field: string]: unknown }
  heir['title'] = 'own'
  assert.deepEqual(valueOf(check(note, heir)), { title: 'own' })
})

test('an object has the shape, or not, whether or not it has a prototype', () => {
  for (const body of [{ title: 't', remark: 'r', more: 1 }, { title: 't' }, { title: '' }, { remark: 3 }, {}]) {
    assert.deepEqual(check(note, bare(body)), check(note, body))
  }
  assert.deepEqual(valueOf(check(note, bare({ title: 't', remark: 'r' }))), { title: 't', remark: 'r' })
})

test('an optional field may be absent, and then has no key in the value', () => {
  const value = valueOf(check(note, { title: 't' }))
  assert.deepEqual(Reflect.ownKeys(value), ['title'])
})

test('an optional field that is given is in the value', () => {
  assert.deepEqual(valueOf(check(note, { title: 't', remark: 'r' })), { title: 't', remark: 'r' })
})

test('an optional field that is null is not absent: it is held to the rule', () => {
  assert.deepEqual(errorsOf(check(note, { title: 't', remark: null })), { remark: missing('remark') })
})

test('an optional field that is the empty string is not absent: it is held to the rule', () => {
  assert.deepEqual(errorsOf(check(note, { title: 't', remark: '' })), { remark: missing('remark') })
})

test('a failing optional field is reported beside a failing required one', () => {
  assert.deepEqual(errorsOf(check(note, { remark: 1 })), { title: missing('title'), remark: noString('remark') })
})

test('when all fields are optional, an empty object has the shape', () => {
  assert.deepEqual(valueOf(check({ a: optional(text), b: optional(text) }, {})), {})
})

test('making a rule optional leaves the rule itself required', () => {
  optional(text)
  assert.deepEqual(errorsOf(check({ email: text }, {})), { email: missing('email') })
})

test('a shape without fields takes any object, and its value is empty', () => {
  assert.deepEqual(valueOf(check({}, { any: 1 })), {})
})

test('a rule of another kind is asked with the field and what was given, its own message reported', () => {
  const even: Rule<number> = {
    optional: false,
    fault: (field, value) => typeof value === 'number' && value % 2 === 0 ? undefined : `${field}: ${String(value)}`
  }
  assert.equal(valueOf(check({ count: even }, { count: 4 })).count, 4)
  assert.deepEqual(errorsOf(check({ count: even }, { count: 5 })), { count: ['count: 5'] })
  assert.deepEqual(errorsOf(check({ count: even }, {})), { count: ['count: undefined'] })
  assert.deepEqual(valueOf(check({ count: optional(even) }, {})), {})
})

const others = { textUpTo: textUpTo(9), email, number: number(0, 9), texts, oneOf: oneOf(1), listOf: listOf({}) }
for (const [name, rule] of Object.entries<Rule<unknown>>(others)) {
  test(`${name}: absent, null and the empty string are missing, as with text; optional, it may be absent`, () => {
    for (const body of [{}, { field: null }, { field: '' }]) {
      assert.deepEqual(errorsOf(check({ field: rule }, body)), { field: missing('field') })
    }
    assert.deepEqual(Reflect.ownKeys(valueOf(check({ field: optional<unknown>(rule) }, {}))), [])
    assert.deepEqual(errorsOf(check({ field: optional<unknown>(rule) }, { field: null })), { field: missing('field') })
  })
}

test('textUpTo: text of at most so many UTF-16 units, kept as given', () => {
  for (const kept of ['a', 'abcd', '    ', 'ñandú'.slice(0, 4), '🔑🔑']) {
    assert.equal(valueOf(check({ name: textUpTo(4) }, { name: kept })).name, kept)
  }
  for (const long of ['abcde', '     ', '🔑🔑a', 'x'.repeat(100_000)]) {
    const expected = { name: ['The name field must not be greater than 4 characters.'] }
    assert.deepEqual(errorsOf(check({ name: textUpTo(4) }, { name: long })), expected)
  }
})

for (const [name, wrong] of Object.entries(wrongTypes)) {
  test(`textUpTo: ${name} is not a string, however long`, () => {
    assert.deepEqual(errorsOf(check({ name: textUpTo(4) }, { name: wrong })), { name: noString('name') })
  })
}

const noEmail = { email: ['The email field must be a valid email address.'] }

test('RFC 5321 §4.5.3.1: email: something, an @, something, up to 254 characters, is kept as given', () => {
  const longest = `${'a'.repeat(242)}@example.org`
  assert.equal(longest.length, 254)
  for (const kept of ['a@b', 'Ana.Núñez+x@example.org', "o'b@[127.0.0.1]", 'ñ@ñ', '🔑@例え.jp', longest]) {
    assert.equal(valueOf(check({ email }, { email: kept })).email, kept)
  }
})

test('RFC 5321 §4.5.3.1: email: anything else is not a valid address', () => {
  const wrong = ['a', '@', 'a@', '@b', 'a@@b', 'a@b@c', ' a@b', 'a@b ', 'a b@c', 'a@b c', 'a@b\n', '\na@b', 'a\t@b',
    ' ', 'a@\u00a0b', 'a\u2028@b', `${'a'.repeat(243)}@example.org`, `a@${'b'.repeat(100_000)}`, '@'.repeat(100_000)]
  for (const given of wrong) assert.deepEqual(errorsOf(check({ email }, { email: given })), noEmail, given.slice(0, 20))
})

for (const [name, wrong] of Object.entries(wrongTypes)) {
  test(`email: ${name} is not a valid address`, () => {
    assert.deepEqual(errorsOf(check({ email }, { email: wrong })), noEmail)
  })
}

test('number: a number within the bounds, both included, is kept as given', () => {
  for (const kept of [-2, -1.5, -0, 0, 1e-300, 3]) {
    assert.ok(Object.is(valueOf(check({ count: number(-2, 3) }, { count: kept })).count, kept))
  }
})

test('number: a number beyond the bounds, or what is no number, is refused', () => {
  const wrong: readonly unknown[] =
    [-2.001, 3.001, 4, -Infinity, Infinity, NaN, '1', '3', true, false, [], [1], {}, { a: 1 }]
  for (const count of wrong) {
    const expected = { count: ['The count field must be a number between -2 and 3.'] }
    assert.deepEqual(errorsOf(check({ count: number(-2, 3) }, { count })), expected)
  }
})

test('texts: a list of strings, none of them empty, is kept as given; the list itself may be empty', () => {
  for (const kept of [[], ['a'], ['a', 'a', ' '], ['🔑', '\ud83d']]) {
    assert.deepEqual(valueOf(check({ abilities: texts }, { abilities: kept })).abilities, kept)
  }
})

test('texts: a list with anything else in it, or what is no list, is refused', () => {
  const wrong: readonly unknown[] = [
    [''], ['a', ''], ['', 'a'], [1], ['a', null], [['a']], ['a', {}], [true], 'a', 'a,b', 0, 1, true, false,
    {}, { length: 0 }, { 0: 'a', length: 1 }, { every: 'a' }
  ]
  for (const abilities of wrong) {
    const expected = { abilities: ['The abilities field must be a list of strings.'] }
    assert.deepEqual(errorsOf(check({ abilities: texts }, { abilities })), expected)
  }
})

test('oneOf: one of the numbers is kept as given, anything else is refused', () => {
  for (const kept of [0, 1] as const) assert.equal(valueOf(check({ status: oneOf(0, 1) }, { status: kept })).status, kept)
  for (const status of [2, -1, 0.5, NaN, '0', true, false, [0], {}]) {
    const expected = { status: ['The status field must be 0 or 1.'] }
    assert.deepEqual(errorsOf(check({ status: oneOf(0, 1) }, { status })), expected)
  }
})

test('listOf: a list of objects that have the shape is kept as given; the list itself may be empty', () => {
  for (const items of [[], [{ title: 't' }], [{ title: 't', more: 1 }, { title: 'u' }]]) {
    assert.deepEqual(valueOf(check({ items: listOf({ title: text }) }, { items })).items, items)
  }
})

test('listOf: a list with anything else in it, or what is no list, is refused', () => {
  const wrong: readonly unknown[] = [
    [{}], [{ title: '' }], [{ title: 't' }, { title: 1 }], [null], ['t'], [[]], [undefined], 't', 0, {}, { length: 0 }
  ]
  for (const items of wrong) {
    const expected = { items: ['The items field must be a list of objects with title, remark.'] }
    assert.deepEqual(errorsOf(check({ items: listOf(note) }, { items })), expected)
  }
})

test('neither the object nor the shape is changed', () => {
  for (const body of [{ title: 't', remark: null, more: [1] }, { title: 't', more: {} }, {}]) {
    const before = structuredClone(body)
    check(note, Object.freeze(body))
    assert.deepEqual(body, before)
  }
  const shape = Object.freeze({ title: text })
  check(shape, { title: 't', more: 1 })
  assert.deepEqual(Object.keys(shape), ['title'])
})

test('the value is an object of its own', () => {
  const body: { [field: string]: unknown } = { title: 't', remark: 'r' }
  const value = valueOf(check(note, body))
  body['title'] = 'changed'
  assert.equal(value.title, 't')
})

test('all that is wrong makes one line, a space between its sentences', () => {
  assert.equal(sentenceOf({ a: ['One.', 'Two.'], b: ['Three.'] }), 'One. Two. Three.')
})
