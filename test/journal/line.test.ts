/** A line's form, what its hash and seal cover, and what somebody without the key cannot do to it. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { disk, type Files } from '../../src/journal/files.ts'
import { keyring } from '../../src/journal/keys.ts'
import {
  isChained, isLong, nonces, openLine, parseLine, sealLine, startsWrite, type Line
} from '../../src/journal/line.ts'
import { MAX_COMMIT_BYTES, MAX_COMMIT_RECORDS } from '../../src/limits.ts'
import {
  commitTogether, event, journalBytes, keyName, keysOf, linesOf, NO_HASH, openJournal, referenceLine,
  verify, withHash, type LineParts
} from '../support/journal.ts'
import { randomOf, type Random } from '../support/random.ts'
import { freshFolder } from '../support/service.ts'
import { fileStore } from '../support/stores.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'

const secret = Buffer.from('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 'hex')
const key = keyring([secret]).newest
const nonce = Buffer.from('8f0e0d0c0b0a090807060504', 'hex')
const parts: LineParts = {
  seq: 1, time: '2026-01-31T12:00:00.000Z', type: 'entry.created', by: null, secret, nonce,
  json: '{"id":1,"password":"contraseña"}', previousHash: NO_HASH
}

function format(given: LineParts): ReturnType<typeof sealLine> {
  const { seq, time, type, by, json, previousHash } = given
  const record = { seq, time, type, by, json: JSON.stringify(JSON.parse(json)) }
  const startsWrite = (given.nonce[0]! & 0x80) !== 0
  return sealLine(record, previousHash, keyring([given.secret]).newest, Buffer.from(given.nonce), startsWrite)
}

/** The line of some data, and of the first of a write unless it is said otherwise. */
function lineOf(data: unknown, nonceGiven: Buffer = nonce, isFirst = true): string {
  const record = { seq: 1, time: parts.time, type: 'a.b', by: null, json: JSON.stringify(data) }
  return sealLine(record, NO_HASH, key, Buffer.from(nonceGiven), isFirst)[0]
}

function parsed(text: string): Line {
  const line = parseLine(text)
  assert.ok(line !== undefined, text)
  return line
}

const { text: good, hash: goodHash } = referenceLine(parts)

test('a line is, byte for byte, what the documented format makes it', () => {
  assert.equal(format(parts)[0],
    '{"seq":1,"time":"2026-01-31T12:00:00.000Z","type":"entry.created","by":null,"key":"630dcd29"' +
    ',"sealed":"jw4NDAsKCQgHBgUEhX6WmY0mPW9dfwEa2DcaKSq901jHsvbeDi8Wvy1CzfpE4UTpPWmZ4tJELPlbLS9k2Q=="' +
    ',"hash":"7c787febe8602c6486912fcd3747d0b8c723b4c41bb271407bc373e316b9fc9f"}')
})

test('lines are those of a second implementation, for any seq, time, type, user, key and data, and give it back', t => {
  const random = randomOf(t)
  let previousHash = NO_HASH
  for (let i = 0; i < 500; i++) {
    const data = anyData(random, 3)
    const given: LineParts = {
      seq: random.pick([1, 9, 10, 1 + random.int(2 ** 31), Number.MAX_SAFE_INTEGER]),
      time: new Date(random.int(2 ** 42)).toISOString(),
      type: random.pick(['entry.created', 'entry.deleted', 'a.b', 'tokens.revoked']),
      by: random.pick([null, 1, 42, Number.MAX_SAFE_INTEGER]),
      secret: random.bytes(32), nonce: random.bytes(12), json: JSON.stringify(data), previousHash
    }
    given.nonce[0]! &= ~0x40 // the line is short
    const [text, hash] = format(given)
    assert.deepEqual({ text, hash }, referenceLine(given))
    assert.match(text, /^[\x21-\x7e]+$/, 'a line is printable ASCII')
    assert.deepEqual(openLine(parsed(text), previousHash, keyring([given.secret]).newest), data)
    previousHash = hash
  }
})

test('the nonce is used as given but for two bits: the line is the first of its write, its data is over 1 MiB', () => {
  const most = MAX_COMMIT_BYTES - 2 // without quotes
  for (const first of [0x00, 0x7f, 0x80, 0xff]) {
    for (const [isFirst, data] of [[true, 1], [false, 1], [true, 'x'.repeat(most)], [true, 'x'.repeat(most + 1)],
      [true, 'ñ'.repeat(most / 2)], [true, 'ñ'.repeat(most / 2 + 1)]] as const) {
      const given = Buffer.from(nonce)
      given[0] = first
      const line = parsed(lineOf(data, given, isFirst))
      const long = Buffer.byteLength(String(data)) > most
      assert.deepEqual([startsWrite(line), isLong(line)], [isFirst, long])
      given[0] = first & 0x3f | (isFirst ? 0x80 : 0) | (long ? 0x40 : 0)
      assert.deepEqual(line.sealed.subarray(0, 12), given)
      assert.equal(openLine(line, NO_HASH, key), data)
    }
  }
})

test('a line is taken apart into what it was made of', () => {
  const line = parsed(good)
  assert.deepEqual({ ...line, sealed: line.sealed.subarray(0, 12) }, {
    seq: 1, time: parts.time, type: 'entry.created', by: null, key: keyName(secret), sealed: nonce, hash: goodHash,
    sealedHead: good.slice(0, good.indexOf(',"sealed":')), text: good
  })
  assert.equal(parsed(referenceLine({ ...parts, by: 42 }).text).by, 42)
  assert.ok(isChained(line, NO_HASH))
  assert.deepEqual(openLine(line, NO_HASH, key), { id: 1, password: 'contraseña' })
})

test('what is accepted at the edges of the form', () => {
  const edges: readonly (readonly [string, string])[] = [
    ['"seq":1', '"seq":9'], ['"seq":1', '"seq":9007199254740991'], ['null', '1'], ['null', '9007199254740991'],
    ['entry.created', 'a.b'], ['entry.created', `${'a'.repeat(100)}.${'z'.repeat(100)}`],
    ['2026-01-31T12:00:00.000Z', '0000-00-00T00:00:00.000Z'], ['2026-01-31T12:00:00.000Z', '9999-12-31T23:59:59.999Z']
  ]
  for (const [from, to] of edges) {
    assert.notEqual(parseLine(good.replace(from, to)), undefined, to)
  }
})

const sealedText = /"sealed":"([^"]+)"/.exec(good)![1]!

test('what has not exactly the form is no line', () => {
  const changes: readonly (readonly [from: string | RegExp, ...to: readonly string[]])[] = [
    [/^/, ' ', '\uFEFF', '\n'], [/$/, ' ', '\n', '\r', '\0', '}', good],
    [/\}$/, ' }', '', ',"x":1}'], [/^\{(.*)\}$/, '[$1]'],
    [',"by":null', ''], ['"by":null', '"by":null,"by":1'], [/("time":"[^"]+"),("type":"[^"]+")/, '$2,$1'],
    ['"seq"', '"Seq"', '"\\u0073eq"'],
    ['"seq":1', ...[' 1', '0', '01', '-1', '1.0', '1e0', '"1"', '', '12345678901234567', '\u0661']
      .map(value => `"seq":${value}`)],
    ['00.000Z', '00Z', '00.000000Z'], ['.000Z', '.000+00:00', ',000Z', '.000z'], ['T12', ' 12'],
    ['2026', '12026', '+002026'], ['entry', 'Entry', ''],
    ['entry.created', 'entrycreated', 'entry.a.b', 'entry.created2', 'entry.', 'entry-created'],
    [':null', ':"1"', ':0', ':-1', ':12345678901234567', ':undefined'],
    [/"key":"[^"]+"/, ...['30dcd29', '0630dcd29', '630DCD29', '630dcd2g'].map(name => `"key":"${name}"`)],
    [sealedText, '', `${'A'.repeat(37)}=`, ...['-', '_', '='].map(first => first + sealedText.slice(1)),
      `${sealedText.slice(0, 8)} ${sealedText.slice(9)}`],
    [/=*","hash"/, '===","hash"'], [/.("\})$/, '$1'], [/("\})$/, '0$1'], [goodHash, goodHash.replace(/[0-9a-f]$/, 'A')]
  ]
  for (const [from, ...all] of changes) {
    for (const to of all) {
      const changed = good.replace(from, to)
      assert.notEqual(changed, good, to)
      assert.equal(parseLine(changed), undefined, changed)
    }
  }
  for (const text of ['', '{}', 'null', '\0'.repeat(good.length)]) assert.equal(parseLine(text), undefined)
})

test('a seal of 28 bytes is the shortest, and one that is written another way is no line', () => {
  const accepted = (seal: string): boolean => parseLine(good.replace(sealedText, seal)) !== undefined
  const [shortest, padded] = [28, 29].map(bytes => Buffer.alloc(bytes, 0xff).toString('base64')) as [string, string]
  assert.deepEqual([shortest, padded, Buffer.alloc(27).toString('base64')].map(accepted), [true, true, false])
  for (const variant of [padded.replace('8=', '8'), padded.replace('8=', '8=='), padded.replace('8=', '9=')]) {
    assert.ok(Buffer.from(variant, 'base64').equals(Buffer.alloc(29, 0xff)) && !accepted(variant), variant)
  }
})

test('the hash follows from the previous hash and every byte before it, and from nothing else', () => {
  assert.ok(isChained(parsed(good), NO_HASH))
  assert.ok(!isChained(parsed(good), goodHash))
  assert.ok(!isChained(parsed(good), `${'0'.repeat(63)}1`))
  for (const [from, to] of tampering) assert.ok(!isChained(parsed(good.replace(from, to)), NO_HASH), String(to))
  for (let at = 0; at < 64; at++) {
    const other = goodHash.slice(0, at) + (goodHash[at] === '0' ? '1' : '0') + goodHash.slice(at + 1)
    assert.ok(!isChained(parsed(good.replace(goodHash, other)), NO_HASH), `digit ${at} of the hash`)
  }
})

const tampering: readonly (readonly [string, string])[] = [
  ['"seq":1', '"seq":2'], ['2026', '2027'], ['.000Z', '.001Z'], ['created', 'deleted'], ['null', '1'],
  ['630dcd29', '630dcd28'], [sealedText, `A${sealedText.slice(1)}`]
]

test('who has no key can make the hash right again, but not the seal', () => {
  for (const [from, to] of tampering) {
    const { text } = withHash(good.slice(0, good.indexOf(',"hash":')).replace(from, to), NO_HASH)
    assert.ok(isChained(parsed(text), NO_HASH))
    assert.throws(() => openLine(parsed(text), NO_HASH, key), String(to))
  }
})

test('a seal opens only unchanged, in its place and with its key', () => {
  const line = parsed(good)
  for (let at = 0; at < line.sealed.length; at++) {
    const sealed = Buffer.from(line.sealed)
    sealed[at]! ^= 1
    assert.throws(() => openLine({ ...line, sealed }, NO_HASH, key), `byte ${at}`)
  }
  for (const end of [28, 29, line.sealed.length - 1]) {
    assert.throws(() => openLine({ ...line, sealed: line.sealed.subarray(0, end) }, NO_HASH, key), `cut at ${end}`)
  }
  assert.throws(() => openLine(line, goodHash, key))
  assert.throws(() => openLine(line, NO_HASH, keyring([randomBytes(32)]).newest))
})

/** Any JSON value, with what is hard in text. */
function anyData(random: Random, depth: number): unknown {
  const text = (): string => String.fromCharCode(...Array.from({ length: random.int(12) }, () => random.pick([
    random.int(0x80), random.int(0x10000), 0xd800 + random.int(0x800), 0x22, 0x5c
  ])))
  const kinds: (() => unknown)[] = [text, () => random.int(2 ** 31), () => random.next(), () => null]
  kinds.push(() => random.int(2) === 0)
  if (depth > 0) {
    const items = (): unknown[] => Array.from({ length: random.int(4) }, () => anyData(random, depth - 1))
    kinds.push(items, () => Object.fromEntries(items().map((item, i) => [`${text()}${i}`, item])))
  }
  return random.pick(kinds)()
}

test('who reads the disk without the key finds no entry, no user and no token, in no encoding', async t => {
  const folder = freshFolder(t)
  const word = 'Zanahoria-Ñandú-✓-2026'
  const store = await fileStore(folder)
  for (let n = 0; n < 2; n++) {
    await createEntry(store, { password: word, sistema: `${word}-s`, usuario: `${word}-u`, notas: word,
      grupo: 'Verduras', url: 'https://hortaliza.example' }, null)
  }
  await store.accounts.addUser('legumbre@example.org', 'Calabaza', ['*'], 'hierbabuena hierbabuena', ['Verduras'])
  const { token } = (await store.accounts.issue('legumbre@example.org', undefined, undefined))!
  await store.close()
  const bytes = journalBytes(folder)
  const lines = linesOf(bytes).map(line => JSON.parse(line))
  const seals = lines.map(({ sealed }) => Buffer.from(sealed, 'base64'))
  const held = Buffer.concat([bytes, ...seals])
  const hash = createHash('sha256').update(token).digest()
  for (const secret of [word, 'Zanahoria', 'Verduras', 'hortaliza', 'legumbre', 'Calabaza', 'hierbabuena', token,
    token.slice(4), hash.toString('hex'), hash, hash.toString('base64url'), 'password', 'usuario', 'scrypt']) {
    const plain = typeof secret === 'string' ? Buffer.from(secret) : secret
    for (const form of [plain, Buffer.from(plain.toString('utf8'), 'utf16le'), Buffer.from(plain.toString('hex')),
      ...[0, 1, 2].map(shift => plain.subarray(shift, shift + Math.floor((plain.length - shift) / 3) * 3))
        .filter(part => part.length > 5).map(part => Buffer.from(part.toString('base64')))]) {
      assert.equal(held.indexOf(form), -1, form.toString())
    }
  }
  // What can be seen: how many records there are, and of each the type, the time, the length and the user's number.
  assert.deepEqual(new Set(lines.flatMap(line => Object.keys(line))),
    new Set(['seq', 'time', 'type', 'by', 'key', 'sealed', 'hash']))
  const [one, two] = seals.filter((_, i) => lines[i].type === 'fields.created')
  assert.notEqual(one!.toString('hex', 12), two!.toString('hex', 12), 'equal data is sealed to different bytes')
})

test('the first bit of a nonce marks the first line of each write, and no nonce comes twice', async t => {
  const folder = freshFolder(t)
  const writes: number[] = []
  const files: Files = {
    ...disk,
    append: (descriptor, bytes, done) => { writes.push(linesOf(bytes).length); disk.append(descriptor, bytes, done) }
  }
  const sizes = [1, 2, 255, 256, 257, 1, MAX_COMMIT_RECORDS, MAX_COMMIT_RECORDS + 1, 300]
  let n = 0
  for (let starts = 0; starts < 2; starts++) {
    const { journal } = await openJournal(folder, { files })
    for (const size of sizes) await commitTogether(journal, Array.from({ length: size }, () => event(++n)))
    await journal.close()
  }
  const [begun, ...lines] = verify(journalBytes(folder), keysOf(folder))
  assert.deepEqual([begun!.nonce >= '8', lines.length], [true, n])
  assert.ok(n > 6_000)
  assert.ok(writes.length >= 2 * sizes.length + 2, 'a write has its bound')
  const expected = writes.flatMap(size => Array.from({ length: size }, (_, i) => i === 0))
  assert.deepEqual(lines.map(line => Number.parseInt(line.nonce.slice(0, 2), 16) >= 0x80), expected)
  assert.equal(new Set(lines.map(line => line.nonce)).size, n)
})

test('256 nonces come from each call for randomness, each once', () => {
  const asked: number[] = []
  const nonce = nonces(bytes => { asked.push(bytes); return randomBytes(bytes) })
  assert.equal(new Set(Array.from({ length: 1_000 }, () => nonce().toString('hex'))).size, 1_000)
  assert.deepEqual(asked, [0, ...Array(4).fill(256 * 12)])
})
