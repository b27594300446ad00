/**
 * The parser against its standard: written documents, then generated ones, against oracles that share nothing with it:
 * `JSON.parse` for what is accepted and its value, a table of RFC 3629 for the bytes. A test that failed with a seed
 * fails again with `SEED=n`.
 */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import { test } from 'node:test'
import { parseJson, parseJsonObject } from '../../src/http/json.ts'
import type { Json, JsonObject, Parsed } from '../../src/http/json.ts'
import { countFromEnv, mutate } from '../support/mutations.ts'
import { randomOf, type Random } from '../support/random.ts'
import { DOCUMENTS, maxDepth, type Kind } from './vectors.ts'

const COUNT = countFromEnv(1_500)

const parse = (source: string, depth = maxDepth): Parsed<Json> => parseJson(Buffer.from(source), depth)

function valueOf<T>(parsed: Parsed<T>): T {
  assert.ok(parsed.ok, `should be accepted, but got ${JSON.stringify(parsed)}`)
  return parsed.value
}

function faultOf(parsed: Parsed<unknown>): string {
  assert.ok(!parsed.ok, 'should be refused')
  return parsed.fault
}

/** A value with plain objects, which have no prototype, in the place of maps. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (!(value instanceof Map)) return value
  return Object.setPrototypeOf(Object.fromEntries(Array.from(value, ([key, one]) => [key, plain(one)])), null)
}

/**
 * Where our value differs from another, or undefined. Stricter than `deepEqual`: our objects have no prototype, keys
 * stand in the same order, minus zero is not zero.
 */
function difference(ours: unknown, other: unknown, path = '$'): string | undefined {
  if (typeof other !== 'object' || other === null) return Object.is(ours, other) ? undefined : path
  if (typeof ours !== 'object' || ours === null || Array.isArray(ours) !== Array.isArray(other)) return path
  if (Object.getPrototypeOf(ours) !== (Array.isArray(ours) ? Array.prototype : null)) return `${path}, its prototype`
  const keys = Reflect.ownKeys(other)
  const ourKeys = Reflect.ownKeys(ours)
  if (ourKeys.length !== keys.length || keys.some((key, at) => ourKeys[at] !== key)) return `${path}, its keys`
  for (const key of keys) {
    const found = difference(Reflect.get(ours, key), Reflect.get(other, key), `${path}[${JSON.stringify(key)}]`)
    if (found !== undefined) return found
  }
  return undefined
}

const assertSame = (ours: unknown, other: unknown): void => assert.equal(difference(plain(ours), other), undefined)

/**
 * V8 as of Node 24.21 and 26.10 takes a key of one escaped character for a backslash, where an object that it parsed
 * before had a backslash for its key in this place.
 */
const IS_WRONG_OF_KEYS = [String.raw`{"b":1,"\\":2}`, String.raw`{"b":1,"\u0041":2}`]
  .map(text => Object.keys(JSON.parse(text) as object)[1])[1] !== 'A'
const MARK = '\u{f0000}'

/** The text with such keys written in another way: unescaped where they can be, and else with a mark. */
function rewritten(source: string): string {
  return source.replace(/"(?:[^"\\]|\\[^])*"(?=([ \t\n\r]*:)?)/g, (text, colon) => {
    if (colon === undefined || !/^"\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])"$/.test(text)) return text
    const key: string = JSON.parse(text)
    return /[\x20-\ud7ff\ue000-\uffff]/.test(key) && !/["\\]/.test(key) ? `"${key}"` : `${text.slice(0, -1)}${MARK}"`
  })
}

function withoutMarks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMarks)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key.replace(MARK, ''), withoutMarks(one)]))
}

/** What `JSON.parse` makes of a text: the value in an array, or undefined. */
function theirs(source: string): readonly [unknown] | undefined {
  try {
    return [IS_WRONG_OF_KEYS ? withoutMarks(JSON.parse(rewritten(source))) : JSON.parse(source)]
  } catch {
    return undefined
  }
}

/** RFC 3629 §4: the range of the first byte, of the second, and the length; every further byte is 80 to BF. */
const SEQUENCES = [
  [0x00, 0x7f, 0x00, 0xff, 1], [0xc2, 0xdf, 0x80, 0xbf, 2],
  [0xe0, 0xe0, 0xa0, 0xbf, 3], [0xe1, 0xec, 0x80, 0xbf, 3], [0xed, 0xed, 0x80, 0x9f, 3], [0xee, 0xef, 0x80, 0xbf, 3],
  [0xf0, 0xf0, 0x90, 0xbf, 4], [0xf1, 0xf3, 0x80, 0xbf, 4], [0xf4, 0xf4, 0x80, 0x8f, 4]
] as const

/** How many bytes the UTF-8 sequence at `at` has, or 0 if none stands there. */
function sequenceAt(bytes: Buffer, at: number): number {
  const within = (index: number, from: number, to: number): boolean => {
    const byte = bytes[index]
    return byte !== undefined && byte >= from && byte <= to
  }
  for (const [from, to, secondFrom, secondTo, length] of SEQUENCES) {
    if (!within(at, from, to)) continue
    if (length > 1 && !within(at + 1, secondFrom, secondTo)) return 0
    for (let k = 2; k < length; k++) if (!within(at + k, 0x80, 0xbf)) return 0
    return length
  }
  return 0
}

/** The first byte that begins no UTF-8 sequence; the length, if there is none. */
function firstIllFormed(bytes: Buffer): number {
  let at = 0
  for (let length = 0; (length = sequenceAt(bytes, at)) > 0; at += length) {}
  return at
}

/** How many members the objects of a JSON text have: outside strings, each has the one colon. */
function memberCount(source: string): number {
  return source.replace(/"(?:[^"\\]|\\.)*"/gs, '').split(':').length - 1
}

/** How many keys the objects in a value have, all in all: fewer than members, if a key was given twice. */
function keyCount(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const values: unknown[] = Object.values(value)
  return values.reduce<number>((sum, inner) => sum + keyCount(inner), Array.isArray(value) ? 0 : values.length)
}

const INVALID = 'is not valid UTF-8'
const TWICE = 'has a key twice in one object'
const TOO_DEEP = `nests deeper than ${maxDepth} levels`

const VALUE = 'where a value should be'
const AFTER = 'after the end of the value'
const NEXT_ITEM = 'in an array, where a comma or its end should be'
const KEY = 'in an object, where a key should be'
const COLON = 'in an object, where a colon should be'
const NEXT_MEMBER = 'in an object, where a comma or its end should be'

const stray = (place: string): string => `has an unexpected character ${place}`
const ends = (place: string): string => `ends ${place}`

/** All that a fault may say of the syntax: a closed set, so that nothing of a body can be in it. */
const SYNTAX: ReadonlySet<string> = new Set([
  VALUE, AFTER, NEXT_ITEM, KEY, COLON, NEXT_MEMBER, 'in a number', 'in a string', 'in an escape',
  'in the word true', 'in the word false', 'in the word null'
].flatMap(place => [stray(place), ends(place)]))

/** Holds what we make of a body against RFC 3629 and `JSON.parse`: what kind of body it is, and what is amiss. */
function judge(bytes: Buffer, depth: number): { readonly kind: Kind, readonly amiss: string | undefined } {
  const ours = parseJson(bytes, depth)
  const at = firstIllFormed(bytes)
  if (at < bytes.length) {
    const right = !ours.ok && ours.fault === INVALID
    return { kind: 'invalid', amiss: right ? undefined : `should be refused as UTF-8 at ${at}` }
  }
  const source = bytes.toString()
  const isDeep = source.split(/[[{]/).length - 1 > depth
  const isTooDeep = isDeep && !ours.ok && ours.fault === `nests deeper than ${depth} levels`
  if (isTooDeep) return { kind: 'syntax', amiss: undefined }
  const other = theirs(source)
  const twice = !ours.ok && ours.fault === TWICE
  if (!other) {
    const right = twice || (!ours.ok && SYNTAX.has(ours.fault))
    return { kind: 'syntax', amiss: right ? undefined : 'should be refused for its syntax' }
  }
  if (memberCount(source) > keyCount(other[0])) {
    return { kind: 'twice', amiss: twice ? undefined : 'should be refused for a key given twice' }
  }
  if (!ours.ok) return { kind: 'accepted', amiss: 'should be accepted' }
  const value = plain(ours.value)
  const differs = difference(value, other[0])
  if (differs !== undefined) return { kind: 'accepted', amiss: `differs from JSON.parse at ${differs}` }
  const right = JSON.stringify(value) === JSON.stringify(other[0])
  return { kind: 'accepted', amiss: right ? undefined : 'should write back as with JSON.parse' }
}

function assertAsTheirs(bytes: Buffer, depth = maxDepth): Kind {
  const { kind, amiss } = judge(bytes, depth)
  if (amiss !== undefined) {
    assert.fail(`${amiss}, but is ${JSON.stringify(parseJson(bytes, depth))}: ${bytes.toString('hex')}`)
  }
  return kind
}

const WHITE = [' ', '\t', '\n', '\r', '\r\n', '  ', '\n    ']
/** Documents that others can be made of. */
const VALUES = Object.entries(DOCUMENTS.accepted).filter(([section]) => section !== '§9')
  .flatMap(([, list]) => list.map(String)).filter(text => text.length < 300)
const KEYS = VALUES.filter(text => text.startsWith('"'))

function someNumber(random: Random): string {
  const digits = (most: number): string => Array.from({ length: 1 + random.int(most) }, () => random.int(10)).join('')
  const integer = random.int(3) === 0 ? '0' : `${1 + random.int(9)}${random.int(2) > 0 ? digits(25) : ''}`
  const fraction = random.int(2) > 0 ? `.${digits(25)}` : ''
  const exponent = random.int(2) > 0 ? random.pick(['e', 'E']) + random.pick(['', '+', '-']) + digits(3) : ''
  const double = random.bytes(8).readDoubleLE()
  return random.pick([
    String(random.int(1000) - 500), String(Number.isFinite(double) ? double : '-0'),
    String(Number.MAX_SAFE_INTEGER + random.int(5000)), random.pick(['', '-']) + integer + fraction + exponent
  ])
}

function someValue(random: Random, levels: number): string {
  const white = (): string => random.int(4) > 0 ? '' : random.pick(WHITE)
  const list = (open: string, close: string, item: () => string): string => open + white() +
    Array.from({ length: random.int(5) }, item).join(`${white()},${white()}`) + white() + close
  switch (levels === 0 ? 0 : random.int(4)) {
    case 0: return random.pick(VALUES)
    case 1: return someNumber(random)
    case 2: return list('[', ']', () => someValue(random, levels - 1))
    default: return list('{', '}', () => `${random.pick(KEYS)}${white()}:${white()}${someValue(random, levels - 1)}`)
  }
}

/** A JSON text, at times with a key twice. */
const someDocument = (random: Random): string => someValue(random, 1 + random.int(5))

const bytesOf = (document: string | Buffer): Buffer => Buffer.isBuffer(document) ? document : Buffer.from(document)

const documents = (): Buffer[] =>
  Object.values(DOCUMENTS).flatMap(sections => Object.values(sections).flat().map(bytesOf))

const TITLES: { readonly [kind in keyof typeof DOCUMENTS]: string } = {
  accepted: 'accepted, with the value of JSON.parse', twice: 'refused for a key given twice',
  syntax: 'refused for the syntax, as by JSON.parse'
}

for (const [kind, sections] of Object.entries(DOCUMENTS)) {
  for (const [section, list] of Object.entries(sections)) {
    test(`RFC 8259 ${section}: documents that are ${TITLES[kind as keyof typeof DOCUMENTS]}`, () => {
      for (const bytes of list.map(bytesOf)) assert.equal(assertAsTheirs(bytes), kind, bytes.toString().slice(0, 60))
    })
  }
}

test('RFC 8259 §2: in every place of a document, each of the 256 bytes is taken or refused as by JSON.parse', () => {
  const places = [
    '@', '@1', '1@', '-@', '0@', '1.@', '1.5@', '1e@', '1e+@', '1e1@', '[@', '[@]', '[1@', '[1@]', '[1,@]', '[1,@2]',
    '{@', '{@}', '{@"a":1}', '{"a"@', '{"a"@1}', '{"a"@:1}', '{"a":@', '{"a":@}', '{"a":@1}', '{"a":1@', '{"a":1@}',
    '{"a":1,@}', '{"a":1,@"b":2}', '"@', '"@"', '"a@b"', '"\\@"', '"\\@', '"\\u@041"', '"\\u0@41"', '"\\u004@"',
    '"é@é"', 't@ue', 'tru@', 'true@', 'f@lse', 'n@ll', 'null@', '[true@]', '"a"@', '[]@', '{}@', '[[]@[]]', '{"@":1}'
  ]
  const reached = new Set<Kind>()
  for (const place of places) {
    const [before = '', after = ''] = place.split('@')
    for (let byte = 0; byte < 256; byte++) {
      reached.add(assertAsTheirs(Buffer.concat([Buffer.from(before), Buffer.of(byte), Buffer.from(after)])))
    }
  }
  assert.deepEqual([...reached].sort(), ['accepted', 'invalid', 'syntax'])
})

test('RFC 8259 §2: every document cut short is taken or refused as by JSON.parse, at every byte', () => {
  const longest = 200
  for (const bytes of documents()) {
    for (let length = 0; length < Math.min(bytes.length, longest); length++) {
      assertAsTheirs(bytes.subarray(0, length), longest)
    }
  }
})

test('RFC 8259 §7: each of the 65,536 code units may be escaped, in either case of digits', () => {
  for (let unit = 0; unit < 0x10000; unit++) {
    const digits = unit.toString(16).padStart(4, '0')
    const expected = String.fromCharCode(unit)
    assert.ok(Object.is(valueOf(parse(`"\\u${digits}"`)), expected), digits)
    assert.ok(Object.is(valueOf(parse(`"\\u${digits.toUpperCase()}"`)), expected), digits.toUpperCase())
  }
})

test('RFC 8259 §8.1: each sequence of two bytes is taken or refused as RFC 3629 has it', () => {
  for (let first = 0; first < 256; first++) {
    for (let second = 0; second < 256; second++) assertAsTheirs(Buffer.of(0x22, first, second, 0x22))
  }
})

test('RFC 8259 §8.1: longer sequences at the edges of RFC 3629 are taken or refused as it has them', () => {
  const edges = [0x22, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbd, 0xbf, 0xc0, 0xef, 0xff]
  for (let first = 0x80; first < 256; first++) {
    for (const second of edges) {
      for (const third of edges) {
        assertAsTheirs(Buffer.of(0x22, first, second, third, 0x22))
        for (const fourth of [0x7f, 0x80, 0xbf, 0xc0]) {
          assertAsTheirs(Buffer.of(0x22, first, second, third, fourth, 0x22))
        }
      }
    }
  }
})

type Place = readonly [body: string, byte: number]

const FAULTS: readonly (readonly [fault: string, places: readonly Place[]])[] = [
  [ends(VALUE), [
    ['', 0], [' ', 1], ['\n', 1], ['\n\n', 2], ['\r\n\r\n  ', 6], ['\r', 1], ['[', 1],
    ['[1,', 3], ['{"a":', 5]
  ]],
  [stray(VALUE), [
    ['x', 0], ['\nx', 1], ['\tx', 1], ['é', 0], ['\0', 0], ['\ufeff{}', 0],
    ['[1,\n 2,\n x]', 9], ['[1,\r\n 2,\r\n x]', 11], ['[1,\r 2,\r x]', 9], ['[1,\n\n\n\n]', 7],
    ['["é",\n"🔑🔑", x]', 19], ['["é",\r\n"🔑🔑", x]', 20], ['+1', 0], ['.5', 0], ['[1,]', 3],
    ['[,', 1], ['{"a":}', 5], [`${'\n'.repeat(5000)}${' '.repeat(700)}x`, 5700]
  ]],
  [stray(AFTER), [
    ['{}\ufeff', 2], ['true1', 4], ['01', 1], ['-01', 2], ['0x1', 1], ['1 2', 2],
    ['{}\n\n}', 4], ['{} 🔑', 3], ['"é"é', 4]
  ]],
  [stray(NEXT_ITEM), [
    ['["e" x]', 5], ['["é" x]', 6], ['["漢" x]', 7], ['["🔑" x]', 8], ['["e\u0301" x]', 7],
    ['["👩\u200d🚀" x]', 15], ['["\\ud83d" x]', 10], ['[1 🔑]', 3], ['[01]', 2], ['[1 2]', 3],
    ['[1}', 2]
  ]],
  [TWICE, [
    ['{"a":1, "a":2}', 8], ['{"ñ":1,\n"ñ":2}', 9], ['{"é🔑":1,"\\u00e9\\ud83d\\udd11":2}', 12],
    ['{"a":{"b":1,"c":2,"b":3}}', 18], ['{\n  "a": 1,\n  "b": 2,\n  "a": 3\n}', 24], ['{"a":1,"a"', 7],
    ['{"a":1,"a":2,x', 7]
  ]],
  [ends('in a string'), [['{"a":1,"a', 9], ['"ab', 3], ['"🔑', 5], [`"${'🔑'.repeat(5000)}`, 20001]]],
  [stray('in a string'), [['"ab\n"', 3], ['"é\n"', 3], ['"🔑\t"', 5], ['["a",\r\n"\r\n"]', 8]]],
  [ends('in an escape'), [['"\\', 2], ['"\\u', 3], ['"\\u12', 5]]],
  [stray('in an escape'), [
    ['"\\x"', 2], ['"\\é"', 2], ['"é\\🔑"', 4], ['"\\u12"', 5], ['"\\u00zz"', 5],
    ['"\\ud83d\\u🔑"', 9]
  ]],
  [ends('in the word true'), [['t', 1], ['tru', 3]]],
  [stray('in the word true'), [['trux', 3]]],
  [stray('in the word false'), [['fAlse', 1]]],
  [ends('in the word false'), [['fals', 4]]],
  [stray('in the word null'), [['[nul]', 4]]],
  [ends('in the word null'), [['n', 1]]],
  [ends('in a number'), [['-', 1], ['1.', 2], ['1e', 2], ['1e+', 3]]],
  [stray('in a number'), [['-x', 1], ['- 1', 1], ['1.x', 2], ['[-1.25E-]', 8]]],
  [ends(NEXT_ITEM), [['[1', 2], ['[1 ', 3], ['[1\n', 3]]],
  [ends(KEY), [['{', 1], ['{"a":1,', 7]]],
  [stray(KEY), [['{1', 1], ['{"a":1,}', 7], ['{"a":1,\n\n  x}', 11]]],
  [ends(COLON), [['{"a"', 4]]],
  [stray(COLON), [['{"a" 1', 5]]],
  [ends(NEXT_MEMBER), [['{"a":1', 6]]],
  [stray(NEXT_MEMBER), [['{"a":1]', 6]]],
  [TOO_DEEP, [
    ['['.repeat(maxDepth + 1), maxDepth], ['[\n'.repeat(maxDepth + 1), 2 * maxDepth],
    [`{"🔑":${'['.repeat(maxDepth)}`, maxDepth + 7]
  ]]
]

test('a fault is reported with its exact byte, counted from 0', () => {
  for (const [fault, places] of FAULTS) {
    for (const [body, byte] of places) {
      assert.deepEqual(parse(body), { ok: false, fault, byte }, JSON.stringify(body.slice(0, 60)))
    }
  }
  const faults = FAULTS.map(([fault]) => fault)
  assert.deepEqual([...SYNTAX].filter(fault => !faults.includes(fault)), [ends(AFTER)], 'the table has every other one')
})

test('RFC 8259 §4: where an object is required, an object is taken, and another value refused at its place', () => {
  for (const body of ['{}', ' {"a":[1,{"b":null}]}\n', '{"__proto__":{"a":1}}', '{"constructor":""}', '{"length":0}']) {
    const value: JsonObject = valueOf(parseJsonObject(Buffer.from(body), maxDepth))
    assertSame(value, JSON.parse(body))
  }
  const others: readonly Place[] = [
    ...['null', 'true', 'false', '0', '-1.5e3', '""', '"{}"', '[]', '[{"a":1}]'].map(body => [body, 0] as const),
    [' 1 ', 1], ['\n\n null', 3], ['\r\n\t"ñ\u2028"\n', 3], ['\r[\n{}\n]', 1]
  ]
  for (const [body, byte] of others) {
    const expected = { ok: false, fault: 'is not an object', byte }
    assert.deepEqual(parseJsonObject(Buffer.from(body), maxDepth), expected, body)
  }
})

test('where an object is required, every other fault is reported as it is elsewhere', () => {
  for (const bytes of [...documents(), ...FAULTS.flatMap(([, places]) => places.map(([body]) => Buffer.from(body)))]) {
    const parsed = parseJson(bytes, maxDepth)
    if (!parsed.ok) assert.deepEqual(parseJsonObject(bytes, maxDepth), parsed)
  }
  assertSame(valueOf(parseJsonObject(Buffer.from('{"a":{}}'), 2)), { a: {} })
  assert.equal(faultOf(parseJsonObject(Buffer.from('{"a":{}}'), 1)), 'nests deeper than 1 levels')
})

function tally(count: number, next: () => Buffer): Record<Kind, number> {
  const kinds: Record<Kind, number> = { accepted: 0, twice: 0, syntax: 0, invalid: 0 }
  for (let k = 0; k < count; k++) kinds[assertAsTheirs(next())]++
  return kinds
}

test('the way around a wrong JSON.parse changes no value: keys of one escaped character', () => {
  const escapes = ['\\u0000', '\\u0041', '\\u0031', '\\n', '\\\\', '\\"', '\\/', '\\udd11', '\\u00e9', '\\u007f',
    '\\uffff']
  for (const key of escapes) {
    const text = `{"b" :[{"${key}":{"c":"${key}"}}], "${key}"\n: "${key}:", "10": 1}`
    const [name, other] = [JSON.parse(`"${key}"`) as string, JSON.parse(`"${key}:"`) as string]
    const right = { b: [{ [name]: { c: name } }], [name]: other, 10: 1 }
    assert.equal(JSON.stringify(withoutMarks(JSON.parse(rewritten(text)))), JSON.stringify(right))
    assert.equal(JSON.stringify(plain(valueOf(parseJson(Buffer.from(text), maxDepth)))), JSON.stringify(right))
  }
})

test('RFC 8259 §2 to §7: generated documents are parsed as by JSON.parse', t => {
  const random = randomOf(t)
  const kinds = tally(COUNT, () => Buffer.from(someDocument(random)))
  t.diagnostic(JSON.stringify(kinds))
  assert.equal(kinds.syntax + kinds.invalid, 0)
  assert.ok(kinds.accepted > COUNT / 2 && kinds.twice > 0)
})

test('RFC 8259 §2 to §8: mutated documents are taken or refused as by JSON.parse', t => {
  const random = randomOf(t)
  const kinds = tally(2 * COUNT, () =>
    mutate(Buffer.from(someDocument(random)), random, [Buffer.from(someDocument(random))]))
  t.diagnostic(JSON.stringify(kinds))
  assert.ok(Math.min(kinds.accepted, kinds.syntax, kinds.invalid) > COUNT / 20 && kinds.twice > 0)
})

/** A value without what nests deeper than so many levels. */
function pruned(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  const inner = levels === 0 ? [] : Object.entries(value).map(([key, one]) => [key, pruned(one, levels - 1)] as const)
  return Array.isArray(value) ? inner.map(([, one]) => one) : Object.fromEntries(inner)
}

test('what nests deeper than is wanted comes out empty, and is taken or refused for the same', t => {
  const random = randomOf(t)
  const generated = Array.from({ length: COUNT }, () => mutate(Buffer.from(someDocument(random)), random, documents()))
  for (const bytes of [...documents(), ...generated]) {
    const whole = parseJson(bytes, maxDepth)
    for (const levels of [0, 1, 2]) {
      const parsed = parseJson(bytes, maxDepth, levels)
      if (!whole.ok) assert.deepEqual(parsed, whole)
      else assertSame(valueOf(parsed), pruned(plain(whole.value), levels))
    }
  }
})

test('a body has at most 100,000 values that nest, if its route takes none', () => {
  const body = (count: number): Buffer => Buffer.from(`{"a":[${Array(count).fill('1').join()}],"b":1}`)
  assert.ok(parseJsonObject(body(100_000), maxDepth, 1).ok)
  assert.equal(faultOf(parseJsonObject(body(100_001), maxDepth, 1)), 'has more than 100000 values that nest')
  assert.ok(parseJsonObject(body(100_001), maxDepth).ok)
})

test('an object has at most 10,000 keys, wherever it stands', () => {
  const object = (count: number): string => `{${Array.from({ length: count }, (_, k) => `"${k}":0`).join()}}`
  const fault = 'has more than 10000 keys in one object'
  for (const levels of [1, maxDepth]) {
    assert.ok(parseJson(Buffer.from(`[${object(10_000)},{"a":${object(10_000)}}]`), maxDepth, levels).ok)
    const byte = object(10_000).length
    assert.deepEqual(parseJson(Buffer.from(object(10_001)), maxDepth, levels), { ok: false, fault, byte })
    assert.equal(faultOf(parseJson(Buffer.from(`[{"a":${object(10_001)}}]`), maxDepth, levels)), fault)
  }
})

const repeatTo = (length: number, unit: string): string => unit.repeat(Math.ceil(length / unit.length))
const membersTo = (length: number, member: (k: number) => string): string =>
  Array.from({ length: Math.ceil(length / Buffer.byteLength(`${member(1000)},`)) }, (_, k) => member(k)).join()

/** Bodies of about so many bytes, each costly for a parser that goes back, copies or counts anew; which are JSON. */
const HOSTILE: readonly (readonly [name: string, ok: boolean, body: (length: number) => string | Buffer])[] = [
  ['many keys', true, length => `{${membersTo(length, k => `"key number ${k}":0`)}}`],
  ['many keys that are sparse array indices', true, length => `{${membersTo(length, k => `"${k * 9973}":"text"`)}}`],
  ['a key twice after many others', false, length => `{"a":0,${membersTo(length, k => `"key number ${k}":0`)},"a":0}`],
  ['one long key', true, length => `{"${repeatTo(length, 'k')}":0}`],
  ['arrays to the bound, again and again', true,
    length => `[${membersTo(length, () => '['.repeat(maxDepth - 1) + ']'.repeat(maxDepth - 1))}]`],
  ['objects to the bound, again and again', true,
    length => `[${membersTo(length, () => '{"a":'.repeat(maxDepth - 1) + '0' + '}'.repeat(maxDepth - 1))}]`],
  ['many values of every kind', true, length => `[${membersTo(length, k => `[],{},"",true,null,${k / 7}`)}]`],
  ['arrays that open and never close', false, length => repeatTo(length, '[')],
  ['a long string of four-byte characters', true, length => `"${'🔑'.repeat(length / 4)}"`],
  ['many one-letter escapes', true, length => `"${repeatTo(length, '\\n')}"`],
  ['long white space before', true, length => `${repeatTo(length, ' \n\t\r')}0`],
  ['an unterminated string', false, length => `"${repeatTo(length, 'a')}`],
  ['an unterminated array', false, length => `[${repeatTo(length, '0,')}`],
  ['a long integer', true, length => repeatTo(length, '9')],
  ['a fault after many lines', false, length => `[${repeatTo(length, '0,\n')}x`],
  ['a fault at the end of a long line outside ASCII', false, length => `["${'é'.repeat(length / 2)}" x`],
  ['a byte that is not UTF-8 after many lines', false,
    length => Buffer.concat([Buffer.from('"é",\n'.repeat(length / 6)), Buffer.of(0xff)])]
]

// Time is a poor witness on a busy machine. So a long body is held against as many short ones as make up its length,
// both disturbed alike; the least of several runs counts; and only a quadratic cost, 16 times theirs, is told from it.
const SHORT_BYTES = 8 * 1024, SHORTS = 16, ALLOWED_RATIO = 8, ALLOWED_MS = 5, RUNS = 12, PATIENCE_MS = 3000

function millisFor(bytes: Buffer, times: number, ok: boolean): number {
  const start = performance.now()
  for (let k = 0; k < times; k++) assert.equal(parseJson(bytes, maxDepth).ok, ok)
  return performance.now() - start
}

for (const [name, ok, body] of HOSTILE) {
  test(`RFC 8259 §9: the work is linear in the length: ${name}`, t => {
    const [short, long] = [SHORT_BYTES, SHORT_BYTES * SHORTS].map(length => {
      const source = body(length)
      const bytes = typeof source === 'string' ? Buffer.from(source) : source
      assert.ok(bytes.length > length * 0.7 && bytes.length < length * 1.3, `has ${bytes.length} for ${length} bytes`)
      return bytes
    }) as [Buffer, Buffer]
    const begun = performance.now()
    let ofShorts = Infinity, ofLong = Infinity
    for (let run = 1, last = false; !last; run++) {
      ofShorts = Math.min(ofShorts, millisFor(short, SHORTS, ok))
      ofLong = Math.min(ofLong, millisFor(long, 1, ok))
      last = run === RUNS || performance.now() - begun > PATIENCE_MS
      if ((run > 3 || last) && ofLong < ofShorts * ALLOWED_RATIO + ALLOWED_MS) return
    }
    t.diagnostic(`${SHORTS} short bodies ${ofShorts} ms, a long one ${ofLong} ms`)
    assert.fail(`a long body took ${ofLong / ofShorts} times as long as short ones of the same length together`)
  })
}
