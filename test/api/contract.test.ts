/** The contract, line by line: its answers byte for byte, and what was decided where it is silent. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test, type TestContext } from 'node:test'
import { entryRoutes } from '../../src/entries/entry-routes.ts'
import type { Route } from '../../src/http/router.ts'
import { text } from '../../src/rights/validate.ts'
import { MAX_JSON_DEPTH_LEVELS } from '../../src/limits.ts'
import type { EntryFields } from '../../src/entries/entry.ts'
import type { Store } from '../../src/store/store.ts'
import { composePipeline, type Composed } from '../support/pipeline.ts'
import { FaultyFiles } from '../support/faulty-files.ts'
import { randomOf } from '../support/random.ts'
import { ask, chunked, connectRaw, message, type RawAnswer } from '../support/raw.ts'
import { startService } from '../support/service.ts'
import { createEntry, deleteEntry, updateEntry } from '../../src/entries/entry-commands.ts'

const CREATED = '{"message":"SE CREÓ UNA NUEVA CONTRASEÑA","status":200}'
const DELETED = '{"message":"contraseña borrada","status":200}'
const UNKNOWN = '{"message":"contraseña no encontrada","status":404}'
const NONE = '{"message":"No passwords found","status":404}'
const FIELDS = ['password', 'sistema', 'usuario'] as const

interface Api {
  readonly url: string
  readonly store: Store
  /** Sends a request; a string or bytes go out as they are, anything else as JSON. */
  readonly call: (method: string, target: string, body?: unknown, fields?: readonly string[]) => Promise<RawAnswer>
  readonly records: () => number
}

function apiOf(t: TestContext, url: string, store: Store): Api {
  const bytes = (body: unknown): string | Buffer | undefined =>
    body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  return {
    url, store, records: () => store.journal.status().records - 1, // but for that with which a new journal begins
    call: (method, target, body, fields) => ask(t, url, message(method, target, bytes(body), fields))
  }
}

/** A service with entries p1/s1/u1, p2/s2/u2, … */
async function withEntries(t: TestContext, count: number): Promise<Api> {
  const { url, service: { store } } = await startService(t)
  for (let i = 1; i <= count; i++) await createEntry(store, fieldsOf(i), null)
  return apiOf(t, url, store)
}

const fieldsOf = (id: number): EntryFields => ({ password: `p${id}`, sistema: `s${id}`, usuario: `u${id}` })

/** The text of an entry of `withEntries`, with changes. */
function entry(id: number, changes: Record<string, unknown> = {}): string {
  return JSON.stringify({ id, ...fieldsOf(id), status: 1, ...changes })
}

function assertAnswer(answer: RawAnswer, status: number, body: string, what?: string): void {
  assert.equal(answer.text, body, what)
  assert.equal(answer.status, status, what)
}

const got = (text: string): string => `{"passwords":${text},"status":200}`
const updated = (text: string): string =>
  `{"password":${text},"message":"contraseña actualizada","status":200}`

const invalid = (errors: Record<string, string>): string => JSON.stringify({
  message: 'Invalid data', errors: Object.fromEntries(Object.entries(errors).map(([k, v]) => [k, [v]])), status: 400
})
const missing = (...fields: readonly string[]): string =>
  invalid(Object.fromEntries(fields.map(field => [field, `The ${field} field is required.`])))
const noString = (...fields: readonly string[]): string =>
  invalid(Object.fromEntries(fields.map(field => [field, `The ${field} field must be a string.`])))

test('§3, §4.1 list: the active entries as a bare array, ascending by id', async t => {
  const { call, store } = await withEntries(t, 12)
  await deleteEntry(store, 3, null)
  await updateEntry(store, 11, { usuario: 'other' }, null)
  await updateEntry(store, 2, { password: 'other' }, null)
  const expected = [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12].map(id =>
    entry(id, id === 2 ? { password: 'other' } : id === 11 ? { usuario: 'other' } : {}))
  assertAnswer(await call('GET', '/api/listPassword'), 200, `[${expected.join(',')}]`)
})

test('§4.1 list: nothing is stored, or everything was deleted: 404, and 200 with the next entry', async t => {
  const { call } = await withEntries(t, 0)
  assertAnswer(await call('GET', '/api/listPassword'), 404, NONE)
  await call('POST', '/api/createPassword', fieldsOf(1))
  await call('POST', '/api/deletePassword/1')
  assertAnswer(await call('GET', '/api/listPassword'), 404, NONE)
  await call('POST', '/api/createPassword', fieldsOf(2))
  assertAnswer(await call('GET', '/api/listPassword'), 200, `[${entry(2)}]`)
})

test('§2, §3, §4.2 get: an entry with all five fields, a deleted one too; an unknown id: 404', async t => {
  const { call, store } = await withEntries(t, 2)
  await deleteEntry(store, 1, null)
  assertAnswer(await call('GET', '/api/getPassword/1'), 200, got(entry(1, { status: 0 })))
  assertAnswer(await call('GET', '/api/getPassword/2'), 200, got(entry(2)))
  assertAnswer(await call('GET', '/api/getPassword/3'), 404, UNKNOWN)
})

test('§2, §4.3 create: a message, not the entry, which is active and has the next id; two may be the same', async t => {
  const { call } = await withEntries(t, 0)
  for (const id of [1, 2, 3]) {
    assertAnswer(await call('POST', '/api/createPassword', fieldsOf(id)), 200, CREATED)
    assertAnswer(await call('GET', `/api/getPassword/${id}`), 200, got(entry(id)))
  }
  assertAnswer(await call('POST', '/api/createPassword', fieldsOf(3)), 200, CREATED)
})

test('§4.3 create: what fails is named field by field, and nothing else is', async t => {
  const { call, records } = await withEntries(t, 0)
  const whole = { usuario: 'u', sistema: 's', password: 'p' }
  const cases: readonly (readonly [body: unknown, answer: string])[] = [
    [{}, missing(...FIELDS)],
    [{ password: 'p' }, missing('sistema', 'usuario')],
    [{ password: 'p', sistema: 's' }, missing('usuario')],
    [{ password: 'p', usuario: 'u' }, missing('sistema')],
    [{ sistema: 's', usuario: 'u' }, missing('password')],
    [{ Password: 'p', sistema: 's', usuario: 'u' }, missing('password')],
    ...FIELDS.flatMap(field => [
      [{ ...whole, [field]: null }, missing(field)], [{ ...whole, [field]: '' }, missing(field)],
      ...[0, 1, -1.5, true, false, [], ['p'], {}, { password: 'p' }].map(value =>
        [{ ...whole, [field]: value }, noString(field)] as const)
    ] as const),
    [{ usuario: 1, sistema: 2, password: 3 }, noString(...FIELDS)],
    [{ usuario: 1, password: '' }, invalid({
      password: 'The password field is required.', sistema: 'The sistema field is required.',
      usuario: 'The usuario field must be a string.'
    })]
  ]
  for (const [body, answer] of cases) {
    assertAnswer(await call('POST', '/api/createPassword', body), 400, answer, JSON.stringify(body))
  }
  assert.equal(records(), 0)
})

test('§4.4 update: any combination of the fields; the answer is the entry as it is then', async t => {
  const { call } = await withEntries(t, 1)
  const now: Record<string, unknown> = {}
  const sets = [['password'], ['sistema'], ['usuario'], ['password', 'usuario'], ['usuario', 'sistema', 'password']]
  for (const fields of sets) {
    const changes = Object.fromEntries(fields.map(field => [field, `${field} of ${fields.length}`]))
    Object.assign(now, changes)
    assertAnswer(await call('POST', '/api/updatePassword/1', changes), 200, updated(entry(1, now)))
    assertAnswer(await call('GET', '/api/getPassword/1'), 200, got(entry(1, now)))
    assertAnswer(await call('GET', '/api/listPassword'), 200, `[${entry(1, now)}]`)
  }
})

test('§2, §3, §4.5 delete: the entry is listed no more, but got; its id stays taken; no body is looked at', async t => {
  const { call } = await withEntries(t, 2)
  assertAnswer(await call('POST', '/api/deletePassword/2', '{not json', ['Content-Type: text/plain']), 200, DELETED)
  assertAnswer(await call('GET', '/api/listPassword'), 200, `[${entry(1)}]`)
  assertAnswer(await call('GET', '/api/getPassword/2'), 200, got(entry(2, { status: 0 })))
  await call('POST', '/api/createPassword', fieldsOf(3))
  assertAnswer(await call('GET', '/api/listPassword'), 200, `[${entry(1)},${entry(3)}]`)
})

test('§4.4, §4.5 update and delete: an unknown id: 404, and nothing is appended', async t => {
  const { call, records } = await withEntries(t, 1)
  assertAnswer(await call('POST', '/api/updatePassword/2', { password: 'x' }), 404, UNKNOWN)
  assertAnswer(await call('POST', '/api/deletePassword/2'), 404, UNKNOWN)
  assert.equal(records(), 1)
})

test('§1, §7 every answer is JSON, not to be stored nor guessed at, with its status but for list and 429', async t => {
  const { call, url } = await withEntries(t, 1)
  const calls: readonly (readonly [string, string, unknown?, (readonly string[])?])[] = [
    ['GET', '/api/listPassword'], ['GET', '/api/getPassword/1'], ['GET', '/api/getPassword/2'],
    ['POST', '/api/createPassword', { password: 'ñ€😀', sistema: 's', usuario: 'u' }],
    ['POST', '/api/createPassword', {}], ['POST', '/api/createPassword', '['],
    ['POST', '/api/updatePassword/1', { password: 'ñ€😀' }], ['POST', '/api/updatePassword/9', {}],
    ['POST', '/api/deletePassword/1'], ['POST', '/api/createPassword', '{}', ['Content-Type: text/plain']],
    ['POST', '/api/createPassword', ' '.repeat(70_000)],
    ['PUT', '/api/listPassword'], ['GET', '/nope'], ['GET', '/', undefined, ['Host: evil.example']],
    ['GET', 'http://127.0.0.1/'], ['GET', '/', undefined, ['Expect: 200-ok']],
    ['GET', '/', undefined, [`A: ${'a'.repeat(20_000)}`]], ['CONNECT', '127.0.0.1:1']
  ]
  const seen = new Set<number>()
  for (const [method, target, body, fields] of calls) {
    const { status, json, headers, body: bytes } = await call(method, target, body, fields)
    if (!Array.isArray(json)) {
      assert.equal(json.status, status, `${method} ${target}`)
      assert.equal(Object.keys(json).at(-1), 'status')
    }
    assert.equal(headers['content-type'], 'application/json; charset=utf-8')
    assert.equal(headers['content-length'], String(bytes.length))
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers['x-content-type-options'], 'nosniff')
    for (const name of [
      'x-powered-by', 'server', 'set-cookie', 'access-control-allow-origin', 'retry-after', 'x-ratelimit-limit'
    ]) {
      assert.equal(headers[name], undefined, name)
    }
    seen.add(status)
  }
  assert.deepEqual([...seen].sort(), [200, 400, 403, 404, 405, 413, 415, 417, 431])
  assert.equal(Array.isArray((await ask(t, url, message('GET', '/api/listPassword'))).json), true)
  const limited = await startService(t, { 'rate-limit': '1' })
  await ask(t, limited.url, message('GET', '/api/getPassword/1'))
  const { status, json } = await ask(t, limited.url, message('GET', '/api/getPassword/1'))
  assert.deepEqual([status, json], [429, { message: 'Too Many Requests' }])
})

test('§1, §9 the five operations are under /api, GET to read and POST to change, and none removes for good', () => {
  const routes = entryRoutes({} as never).map(({ operation, method, path }) => `${operation} ${method} ${path}`)
  assert.deepEqual(routes, [
    'listPassword GET /api/listPassword', 'getPassword GET /api/getPassword/{id}',
    'createPassword POST /api/createPassword', 'updatePassword POST /api/updatePassword/{id}',
    'deletePassword POST /api/deletePassword/{id}'
  ])
})

test('§5.1, §5.2 by default nothing asks for a token or looks at one; whatever is accepted, JSON comes', async t => {
  const { call } = await withEntries(t, 1)
  for (const field of [
    'Authorization: Bearer nonsense', 'Authorization: Basic YTpi', 'Authorization: ', 'Accept: text/html',
    'Accept: */*;q=0'
  ]) {
    const answer = await call('GET', '/api/getPassword/1', undefined, [field])
    assertAnswer(answer, 200, got(entry(1)), field)
    assert.deepEqual(answer.headers['content-type'], 'application/json; charset=utf-8')
    assert.equal(answer.headers['www-authenticate'], undefined)
  }
})

test('HEAD is answered as GET, without the body, and without its length if it has passwords', async t => {
  const { call, url } = await withEntries(t, 300)
  const targets = ['/api/listPassword', '/api/getPassword/1', '/api/getPassword/999', '/api/createPassword', '/nope']
  for (const target of targets) {
    const [get, head] = [await call('GET', target), await call('HEAD', target)]
    assert.equal(head.status, get.status, target)
    assert.equal(head.text, '')
    const { 'content-length': length, ...fields } = get.headers
    const hasPasswords = target === '/api/listPassword' || target === '/api/getPassword/1'
    const expected = { ...fields, ...!hasPasswords && { 'content-length': length } }
    assert.deepEqual({ ...head.headers, date: '' }, { ...expected, date: '' }, target)
  }
  const client = await connectRaw(t, url)
  await client.send(message('HEAD', '/api/listPassword'), message('GET', '/api/getPassword/1'))
  assert.equal((await client.answer(true)).status, 200)
  assert.equal((await client.answer()).text, got(entry(1)), 'no body came in between')
})

const ALLOWED = {
  '/api/listPassword': 'GET, HEAD, OPTIONS', '/api/getPassword/1': 'GET, HEAD, OPTIONS',
  '/api/getPassword/999': 'GET, HEAD, OPTIONS', '/api/createPassword': 'POST, OPTIONS',
  '/api/updatePassword/1': 'POST, OPTIONS', '/api/deletePassword/1': 'POST, OPTIONS'
}
test('OPTIONS tells the methods of a path, and every other method is answered by 405 with them', async t => {
  const { call, records } = await withEntries(t, 1)
  for (const [target, allow] of Object.entries(ALLOWED)) {
    const { status, headers, text } = await call('OPTIONS', target)
    assert.deepEqual([status, headers['allow'], text, headers['content-type']], [204, allow, '', undefined], target)
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND']) {
      if (allow.includes(method)) continue
      const refused = await call(method, target)
      assertAnswer(refused, 405, '{"message":"Method Not Allowed","status":405}', method)
      assert.equal(refused.headers['allow'], allow)
    }
  }
  assert.equal(records(), 1)
})

test('an unknown path: 404', async t => {
  const { call } = await withEntries(t, 1)
  const targets = [
    '/', '/api', '/api/', '/api/listPassword/', '/api/listpassword', '/listPassword', '/API/listPassword',
    '/api//listPassword', '/api/getPassword', '/api/getPassword/1/x', '/api/createPassword/1', '/api/x/../listPassword',
    '/api/%6cistPassword', '/api/login', '/api/logout', '/api/__proto__', '/api/listPassword;x=1'
  ]
  for (const target of targets) {
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      assertAnswer(await call(method, target), 404, '{"message":"Not Found","status":404}', `${method} ${target}`)
    }
  }
})

test('a query is not looked at, and an id that is percent-encoded is none', async t => {
  const { call } = await withEntries(t, 12)
  assertAnswer(await call('GET', '/api/getPassword/1?id=2'), 200, got(entry(1)))
  assertAnswer(await call('GET', '/api/getPassword/12?'), 200, got(entry(12)))
  for (const id of ['%31', '1%32', '%31?']) {
    assertAnswer(await call('GET', `/api/getPassword/${id}`), 404, UNKNOWN, id)
  }
  assertAnswer(await call('POST', '/api/deletePassword/2?/3'), 200, DELETED)
})

test('an id that is not a canonical positive integer is as an unknown one', async t => {
  const { call, records } = await withEntries(t, 12)
  const ids = [
    'abc', '01', '1.0', '.1', '1e3', '-1', '+1', '0', '-0', '1_0', '0x1', '1n', '99999999999999999999',
    '9007199254740993',
    '9'.repeat(400), '18446744073709551617', '4294967297', 'NaN', 'Infinity', 'null', 'true', '[1]', '%00', '1%00',
    '%ZZ',
    '%', '%C3%28', '..%2f1', '.', '..', '1%20', '%0a1', '1%0d%0a', '%EF%BC%91', '%D9%A1', '%C2%B9', '%2531', '*', '1;',
    '{id}', '__proto__', 'constructor', 'length', '13'
  ]
  for (const id of ids) {
    assertAnswer(await call('GET', `/api/getPassword/${id}`), 404, UNKNOWN, `get ${id}`)
    assertAnswer(await call('POST', `/api/updatePassword/${id}`, { password: 'x' }), 404, UNKNOWN, `update ${id}`)
    assertAnswer(await call('POST', `/api/deletePassword/${id}`), 404, UNKNOWN, `delete ${id}`)
  }
  assert.equal(records(), 12)
})

test('§2 whatever the text, it is got, listed and updated as given: never trimmed, lone surrogates too', async t => {
  const random = randomOf(t)
  const { url, store } = await withEntries(t, 0)
  const client = await connectRaw(t, url)
  const unit = (): string => String.fromCharCode(random.pick([
    random.int(0x80), random.int(0x800), random.int(0x10000), 0xd800 + random.int(0x800), 0x22, 0x5c]))
  const anyText = (): string => Array.from({ length: 1 + random.int(30) }, unit).join('')
  const texts = [
    ' ', '  both ends  ', '\t\r\n', '\u0000', 'a\u0000b', '\u007f\u0080\u009f', '"\\/\b\f', '</script>',
    '\'; --', 'e\u0301', '\u{1f469}\u200d\u{1f4bb}', '\u{10ffff}', '\ufeffBOM', '\ufffd\ufffe\uffff', '\u2028\u2029',
    '\u202eright', '\u200b',
    '\u3000', 'null', '0', 'undefined', '{}', '%41', '&amp;', '\\ud800', '\ud800', '\udc00\ud800', 'x'.repeat(10_000),
    '😀'.repeat(1_000)
  ]
  const all: string[] = []
  for (let id = 1; id <= 100; id++) {
    const given = { password: texts[id - 1] ?? anyText(), sistema: anyText(), usuario: anyText() }
    const later = { sistema: texts[id - 1] ?? anyText() }
    const expected = (entry: object): string => JSON.stringify({ id, ...entry, status: 1 })
    await client.send(message('POST', '/api/createPassword', JSON.stringify(given)))
    assert.equal((await client.answer()).text, CREATED)
    await client.send(message('GET', `/api/getPassword/${id}`))
    assert.equal((await client.answer()).text, got(expected(given)))
    await client.send(message('POST', `/api/updatePassword/${id}`, JSON.stringify(later)))
    assert.equal((await client.answer()).text, updated(expected({ ...given, ...later })))
    all.push(expected({ ...given, ...later }))
  }
  await client.send(message('GET', '/api/listPassword'))
  assert.equal((await client.answer()).text, `[${all.join(',')}]`)
  assert.equal(store.state.entries.count, 100)
})

const whole = '{"password":"p","sistema":"s","usuario":"u"}'
const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
const malformed: readonly (readonly [what: string, body: string | Buffer, fault: string])[] = [
  ['an array of an object', `[${whole}]`, 'is not an object (at byte 0)'],
  ['white space alone', ' \n\t', 'ends where a value should be (at byte 3)'],
  ['a form', 'password=SECRET&sistema=s&usuario=u',
    'has an unexpected character where a value should be (at byte 0)'],
  ['a cut object', '{"password":"SECRET"',
    'ends in an object, where a comma or its end should be (at byte 20)'],
  ['something behind the object', `${whole}\n  SECRET`,
    'has an unexpected character after the end of the value (at byte 47)'],
  ['a key twice, once by an escape', '{"password":"SECRET","\\u0070assword":"p","sistema":"s","usuario":"u"}',
    'has a key twice in one object (at byte 21)'],
  ['a key twice in what is ignored', '{"x":{"SECRET":1,"SECRET":2}}',
    'has a key twice in one object (at byte 17)'],
  ['too many levels', `{"x":${nested(MAX_JSON_DEPTH_LEVELS)}}`,
    `nests deeper than ${MAX_JSON_DEPTH_LEVELS} levels (at byte 68)`],
  ['Latin-1', Buffer.from('{"password":"contrase\xf1a"}', 'latin1'), 'is not valid UTF-8']
]

test('a body that is malformed: 400 that says what is wrong and where, and does not echo it', async t => {
  const { call, records } = await withEntries(t, 1)
  for (const [what, body, fault] of malformed) {
    for (const target of ['/api/createPassword', '/api/updatePassword/1']) {
      const answer = await call('POST', target, body)
      assertAnswer(answer, 400, invalid({ body: `The body ${fault}.` }), what)
      assert.doesNotMatch(answer.text, /SECRET|contrase/)
    }
  }
  assert.equal(records(), 1)
  const secret = { password: ['SECRET'], SECRET: 1, sistema: { SECRET: 1 } }
  assert.doesNotMatch((await call('POST', '/api/createPassword', secret)).text, /SECRET/)
})

test('no body on create is as an empty object', async t => {
  const { call, url } = await withEntries(t, 0)
  const empty = chunked('POST', '/api/createPassword', [''])
  for (const answer of [
    await call('POST', '/api/createPassword'), await call('POST', '/api/createPassword', ''),
    await call('POST', '/api/createPassword', '', ['Content-Type: text/plain']), await ask(t, url, empty)
  ]) assertAnswer(answer, 400, missing(...FIELDS))
})

test('§2 unknown fields, and an id or status, are ignored in a body', async t => {
  const { call, store } = await withEntries(t, 0)
  const extra = '"id":7,"status":0,"extra":{"a":[1]},"__proto__":{"password":"x"},"constructor":1,"toString":"x"'
  const body = `{${extra},"password":"p1","sistema":"s1","usuario":"u1"}`
  assertAnswer(await call('POST', '/api/createPassword', body), 200, CREATED)
  assert.equal(store.state.entries.text(1), entry(1))
  assertAnswer(await call('POST', '/api/updatePassword/1', `{${extra},"usuario":"new"}`), 200,
    updated(entry(1, { usuario: 'new' })))
  const hidden = '{"__proto__":{"password":"p","sistema":"s","usuario":"u"}}'
  assertAnswer(await call('POST', '/api/createPassword', hidden), 400, missing(...FIELDS))
  assert.equal(({} as Record<string, unknown>)['password'], undefined)
})

test('update: a field that is there is held to the rules of create, one that is absent is not', async t => {
  const { call, records } = await withEntries(t, 1)
  for (const [value, answer] of [[null, missing], ['', missing], [0, noString], [false, noString],
    [['x'], noString]] as const) {
    for (const field of FIELDS) {
      assertAnswer(await call('POST', '/api/updatePassword/1', { [field]: value }), 400, answer(field))
    }
  }
  const mixed = { usuario: 1, password: 'fine', sistema: '' }
  assertAnswer(await call('POST', '/api/updatePassword/1', mixed), 400, invalid({
    sistema: 'The sistema field is required.', usuario: 'The usuario field must be a string.'
  }))
  assert.equal(records(), 1)
})

test('update: an unknown id goes before anything that is wrong with the body', async t => {
  const { call } = await withEntries(t, 1)
  for (const id of ['2', 'abc', '0']) {
    const target = `/api/updatePassword/${id}`
    assertAnswer(await call('POST', target, '{"broken'), 404, UNKNOWN)
    assertAnswer(await call('POST', target, { password: 1 }), 404, UNKNOWN)
    assertAnswer(await call('POST', target, whole, ['Content-Type: text/plain']), 404, UNKNOWN)
    assertAnswer(await call('POST', target, 'x'.repeat(100_000)), 404, UNKNOWN)
    assertAnswer(await call('POST', target), 404, UNKNOWN)
  }
})

test('a change appends one record; one that changes nothing, or deletes again: 200, and none', async t => {
  const { call, records } = await withEntries(t, 1)
  for (const body of [undefined, {}, { password: 'p1' }, fieldsOf(1), { other: 1 }, { url: '', notas: null }]) {
    assertAnswer(await call('POST', '/api/updatePassword/1', body), 200, updated(entry(1)))
  }
  assert.equal(records(), 1)
  await call('POST', '/api/createPassword', whole)
  assert.equal(records(), 2)
  await call('POST', '/api/updatePassword/1', { password: 'x', sistema: 'y', usuario: 'u' })
  assert.equal(records(), 3)
  for (let i = 0; i < 2; i++) assertAnswer(await call('POST', '/api/deletePassword/1'), 200, DELETED)
  assert.equal(records(), 4)
  const deleted = entry(1, { password: 'new', sistema: 'y', usuario: 'u', status: 0 })
  assertAnswer(await call('POST', '/api/updatePassword/1', { password: 'new' }), 200, updated(deleted),
    'it stays deleted')
})

test('§1 a body of another content type, or of none: 415, which says what to send', async t => {
  const { call, records, url } = await withEntries(t, 1)
  const why = 'Unsupported Media Type: send Content-Type: application/json, in UTF-8 and not compressed.'
  const unsupported = `{"message":"${why}","status":415}`
  const types = [
    'text/plain', 'text/json', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x',
    'application/jsonp', 'application/json-patch+json', 'application/vnd.api+json', 'application', 'json', '', '*/*',
    'application/json, text/plain', 'application/json x', 'text/plain; application/json'
  ]
  for (const target of ['/api/createPassword', '/api/updatePassword/1']) {
    for (const type of types) {
      assertAnswer(await call('POST', target, whole, [`Content-Type: ${type}`]), 415, unsupported, type)
    }
    const encoded = await call('POST', target, whole, ['Content-Type: application/json', 'Content-Encoding: gzip'])
    assertAnswer(encoded, 415, unsupported, 'gzip')
    assert.deepEqual([encoded.headers['accept'], encoded.headers['accept-encoding']], ['application/json', 'identity'])
    const none = message('POST', target, undefined, [`Content-Length: ${whole.length}`])
    assertAnswer(await ask(t, url, Buffer.concat([none, Buffer.from(whole)])), 415, unsupported, 'none')
  }
  assert.equal(records(), 1)
})

async function composed(t: TestContext, options: Parameters<typeof composePipeline>[1]): Promise<Api & Composed> {
  const service = await composePipeline(t, options)
  await createEntry(service.store, { password: 'p1', sistema: 's1', usuario: 'u1' }, null)
  return { ...service, ...apiOf(t, service.url, service.store) }
}

test('§4.3, §7 storing fails: each change has its 500, and nothing changes; a full disk heals by itself', async t => {
  for (const code of ['ENOSPC', 'EFBIG', 'EIO']) {
    const disk = new FaultyFiles()
    const { call, store, warnings } = await composed(t, { files: disk.files })
    const before = store.journal.status()
    disk.fail({ at: 1, of: 'append', code, forGood: true })
    const failed = (what: string): string => `{"message":"Error ${what} password","status":500}`
    assertAnswer(await call('POST', '/api/createPassword', whole), 500, failed('creating'), code)
    assertAnswer(await call('POST', '/api/updatePassword/1', { password: 'x' }), 500, failed('updating'))
    assertAnswer(await call('POST', '/api/deletePassword/1'), 500, failed('deleting'))
    assertAnswer(await call('GET', '/api/getPassword/1'), 200, got(entry(1)))
    assertAnswer(await call('GET', '/api/getPassword/2'), 404, UNKNOWN)
    assertAnswer(await call('GET', '/api/listPassword'), 200, `[${entry(1)}]`)
    assertAnswer(await call('POST', '/api/updatePassword/9', { password: 'x' }), 404, UNKNOWN)
    assertAnswer(await call('POST', '/api/createPassword', {}), 400, missing(...FIELDS))
    const { records, head } = store.journal.status()
    assert.deepEqual([records, head], [before.records, before.head])
    assert.ok(warnings.length > 0, 'the operator hears of it')
    if (code !== 'ENOSPC') continue
    disk.heal()
    assertAnswer(await call('POST', '/api/createPassword', fieldsOf(2)), 200, CREATED)
    assertAnswer(await call('GET', '/api/listPassword'), 200, `[${entry(1)},${entry(2)}]`)
  }
})

test('a change is answered, and seen by others, only once it is on disk', async t => {
  const disk = new FaultyFiles()
  const { call, url } = await composed(t, { files: disk.files })
  const held = disk.hold()
  const client = await connectRaw(t, url)
  await client.send(message('POST', '/api/updatePassword/1', '{"password":"new"}'))
  let isAnswered = false
  const answer = client.answer().then(answer => { isAnswered = true; return answer })
  await held.reached
  assertAnswer(await call('GET', '/api/getPassword/1'), 200, got(entry(1)))
  assert.equal(isAnswered, false)
  held.release()
  assertAnswer(await answer, 200, updated(entry(1, { password: 'new' })))
  assertAnswer(await call('GET', '/api/getPassword/1'), 200, got(entry(1, { password: 'new' })))
})

const fail = (): never => { throw new Error('SECRET of the handler') }

const FAILURES: { readonly [what: string]: Partial<Route> } = {
  'a handler throws': {},
  'a handler rejects behind a body': { shape: { password: text }, handle: async () => fail() },
  'what comes before the body throws': { before: fail },
  'a storing handler throws what is no failure of storing': { storingFailed: 'Error failing' }
}

test('what fails as nobody foresaw: 500 with an id and nothing else; the operator gets id and detail', async t => {
  const routes = Object.values(FAILURES).map((route, i): Route =>
    ({ operation: 'fail', method: 'POST', path: `/api/fail${i}`, handle: fail, ...route }))
  const { call, warnings } = await composed(t, { routes, rateLimit: 1_000 })
  const ids = new Set<string>()
  for (const [i, what] of Object.keys(FAILURES).entries()) {
    const answer = await call('POST', `/api/fail${i}`, { password: 'p' })
    assertAnswer(answer, 500, '{"message":"Server Error","status":500}', what)
    const id = answer.headers['x-request-id'] ?? ''
    assert.match(id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    assert.doesNotMatch(JSON.stringify(answer.headers), /SECRET/)
    assert.equal(warnings.length, i + 1)
    assert.match(warnings[i] ?? '', new RegExp(`^request ${id} failed: .*SECRET of the handler`))
    ids.add(id)
  }
  assert.equal(ids.size, warnings.length)
  assertAnswer(await call('GET', '/api/getPassword/1'), 200, got(entry(1)), 'it goes on')
})
