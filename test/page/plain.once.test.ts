/** The page's texts, answers and order without a browser. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { refusalOf, Rights, type Answer } from '../../src/parts/page/browser/answers.ts'
import { Entries } from '../../src/parts/page/browser/entries.ts'
import { briefName, hostIn, plainText, sentences, webAddress } from '../../src/parts/page/browser/plain.ts'

test('controls, formats and directions are shown by their number', () => {
  for (const [text, shown] of [
    ['a\u202eb', 'a⟨U+202E⟩b'], ['   ', '⟨U+0020⟩⟨U+0020⟩⟨U+0020⟩'], ['\u00a0', '⟨U+00A0⟩'], ['a\nb', 'a⟨U+000A⟩b'],
    ['\ud800', '⟨U+D800⟩'], [' a ', ' a '], ['❤\ufe0f', '❤\ufe0f'], ['ñ', 'ñ'],
    ['👨‍👩‍👧', '👨‍👩‍👧'], ['🏳️‍🌈', '🏳️‍🌈'], ['👩🏽‍🚀', '👩🏽‍🚀'], ['a\u200db', 'a⟨U+200D⟩b'],
    ['👨\u200d', '👨⟨U+200D⟩'], ['\u200d👨', '⟨U+200D⟩👨']
  ] as const) assert.equal(plainText(text), shown)
})

test('a name in a message has at most forty characters, and no half of a pair', () => {
  assert.equal(briefName('x'.repeat(40)), 'x'.repeat(40))
  assert.equal(briefName('x'.repeat(41)), `${'x'.repeat(40)}…`)
  assert.equal(briefName(`${'x'.repeat(39)}👨y`), `${'x'.repeat(39)}…`)
  assert.equal(briefName(`${'x'.repeat(38)}👨‍👩‍👧y`), `${'x'.repeat(38)}…`, 'nor a part of a joined emoji')
})

test('sentences in a row have one full stop each', () => {
  assert.equal(sentences('Sin conexión', 'Comprueba la conexión.', 'No se guardó.'),
    'Sin conexión. Comprueba la conexión. No se guardó.')
  assert.equal(sentences('', 'a', '', 'b'), 'a. b')
})

test('a web address is http or https, and carries nobody', () => {
  for (const text of ['https://a.example', 'http://a.example/b?c']) assert.notEqual(webAddress(text), undefined, text)
  for (const text of ['javascript:alert(1)', 'https:a', 'ftp://a.example', 'http://u:p@a.example/', 'a.example',
    'https://']) {
    assert.equal(webAddress(text), undefined, text)
  }
})

test('a host is shown as it was typed, not in Punycode, unless its letters look like others', () => {
  for (const [text, host] of [
    ['https://www.españa.es/acceso', 'www.españa.es'], ['https://WWW.España.es', 'www.españa.es'],
    ['https://日本.jp', '日本.jp'],
    ['https://a.example:8443/b', 'a.example:8443'], ['https://españa.es:444', 'españa.es:444'],
    ['https://\u0430pple.com', 'xn--pple-43d.com'], ['https://españa.es\\@evil.com', 'españa.es'],
    ['ftp://españa.es', undefined]
  ] as const) assert.equal(hostIn(text), host, text)
})

test('Ñ follows N, and numbers are sorted by their value', () => {
  const entries = new Entries()
  const names = ['Ñandú', 'nz', 'Nube', 'oro', 'srv 10', 'SRV 9', 'Ágora', 'banco', 'nómina']
  entries.load({ entries: names.map((sistema, i) => ({ id: i + 1, sistema, usuario: '', url: '', grupo: '',
    hasNotes: false, hasCode: false })) })
  assert.deepEqual(entries.shown.map(({ sistema }) => sistema),
    ['Ágora', 'banco', 'nómina', 'Nube', 'nz', 'Ñandú', 'oro', 'SRV 9', 'srv 10'])
})

test('a filter leaves what is reused, exposed, to somebody, old, of a group; with the search, and counted', () => {
  const entries = new Entries()
  const one = (id: number, more: object = {}): Parameters<Entries['put']>[0] =>
    ({ id, sistema: `s${id}`, usuario: '', url: '', grupo: '', hasNotes: false, hasCode: false,
      changed: new Date().toISOString(), ...more })
  entries.load({ entries: [one(1, { reused: 1 }), one(2, { reused: 1, grupo: 'a' }), one(3, { exposed: 1,
    exposedTo: [{ id: 7, email: 'eva@example.org' }] }),
    one(4, { changed: new Date(Date.now() - 366 * 86_400_000).toISOString() }), one(5, { grupo: 'b' }),
    one(6, { changed: undefined })] })
  const ids = (filter: Parameters<Entries['select']>[0] = {}): readonly number[] => {
    entries.select(filter)
    return entries.shown.map(({ id }) => id)
  }
  assert.deepEqual(ids({ state: 'reused' }), [1, 2])
  assert.deepEqual(ids({ state: 'exposed' }), [3])
  assert.deepEqual(ids({ state: 'exposed', person: 7 }), [3])
  assert.deepEqual(ids({ state: 'exposed', person: 8 }), [])
  entries.put(one(3, { exposed: 2, exposedTo: [{ id: 7, email: 'eva@example.org' }] }))
  assert.deepEqual(ids({ state: 'exposed', person: 8 }), [3], 'who may be one of those that are not named')
  assert.deepEqual(ids({ state: 'old' }), [4], 'one whose age is not known is not called old')
  assert.deepEqual(ids({ group: 'a' }), [2])
  assert.deepEqual(ids({ group: '' }), [1, 3, 4, 6])
  assert.deepEqual(ids({ group: 'a', state: 'reused' }), [2], 'both together')
  assert.deepEqual([entries.groups, entries.people.map(({ id }) => id)], [['a', 'b'], [7]])
  entries.search('s5')
  assert.deepEqual(ids({ group: 'b' }), [5])
  assert.deepEqual(ids({ group: 'a' }), [])
  assert.deepEqual([entries.count({ group: 'a' }), entries.count({}, 's5')], [1, 1])
  entries.search('b')
  assert.deepEqual(ids(), [5], 'the group is searched')
  entries.search('')
  assert.equal(ids().length, 6)
})

test('an answer counts by the contract\'s words, a limit also by a proxy\'s', () => {
  for (const [status, message, why] of [
    [404, 'contraseña no encontrada', 'unknown'], [404, 'Not Found', 'failed'], [401, 'Unauthenticated.', 'login'],
    [401, 'no', 'failed'],
    [403, 'Invalid ability provided.', 'forbidden'], [403, undefined, 'failed'], [400, 'Invalid data', 'invalid'],
    [412, 'Precondition Failed', 'changed'], [413, undefined, 'large'], [429, 'slow down', 'limited'],
    [503, undefined, 'busy'], [500, 'x', 'failed']
  ] as const) {
    const response = new Response('', { status, headers: { 'Retry-After': '7' } })
    const refusal = refusalOf('listEntries', response, message === undefined ? {} : { message })
    assert.deepEqual([refusal.why, refusal.waitSeconds], [why, 7], `${status} ${message}`)
  }
})

/** Built: its source does not compile beside Node's types. */
const { Api } = await import(String(new URL('../../dist/parts/page/browser/api.js', import.meta.url)))

/** What a gateway may say instead of the service. */
const FOREIGN: readonly (readonly [status: number, text: string])[] = [
  [200, '<html>'], [200, ''], [200, 'null'], [200, '{}'], [200, '{"ok":true}'], [200, '{"status":200,"message":"OK"}'],
  [200, '{"status":200,"message":"contraseña"}'], [200, '{"message":"Logged out"}'],
  [200, '{"passwords":{"id":2},"password":{"id":2,"password":"p"},"status":200}'], [200, '{"token":1,"user":"ana"}'],
  [400, '{"message":"Bad Request"}'], [401, '{"message":"Unauthorized"}'], [403, '{"message":"Forbidden"}'],
  [404, '{"message":"not found","status":404}'], [412, '{"message":"failed"}'], [304, ''], [500, '{}']
]

test('no operation takes a gateway\'s words for the service\'s', async t => {
  const real = globalThis.fetch
  t.after(() => { globalThis.fetch = real })
  const api = new Api()
  const operations: { readonly [name: string]: () => Promise<Answer<unknown>> } = {
    list: () => api.list(), get: () => api.get(1), create: () => api.create({}), update: () =>
      api.update(1, {}, undefined),
    remove: () => api.remove(1), deleted: () => api.deleted(undefined), restore: () => api.restore(1),
    history: () => api.history(1), changePassword: () => api.changePassword('p', 'q'), login: () => api.login('a', 'p')
  }
  const answerOf = async (status: number, text: string, ask: () => Promise<Answer<unknown>>): Promise<string> => {
    globalThis.fetch = async () => new Response(status === 304 ? null : text, { status })
    const answer = await ask()
    return answer.ok ? 'ok' : answer.why
  }
  for (const [status, text] of FOREIGN) {
    for (const [name, ask] of Object.entries(operations)) {
      assert.equal(await answerOf(status, text, ask), 'failed', `${name}: ${status} ${text}`)
    }
  }
  const token = '{"token":"t","user":{"email":"e","name":"n"}}'
  for (const [status, text] of FOREIGN) {
    assert.equal(await answerOf(200, token, operations['login']!), 'ok')
    assert.equal(await answerOf(status, text, () => api.logout()), 'failed', `logout: ${status} ${text}`)
  }
})

test('what an account may do: what one of its abilities allows; nothing that is not served', () => {
  const rights = new Rights()
  rights.serve({ createPassword: ['*', 'password:create'], restorePassword: ['*', 'password:restore'],
    getPassword: null,
    listEntries: ['*', 'entry:list', 'password:read'] })
  assert.ok(rights.isOpen && rights.may('createPassword') && !rights.may('historyPassword'))
  rights.begin(['password:read'])
  assert.ok(rights.may('listEntries') && !rights.may('restorePassword'))
  assert.ok(rights.may('getPassword'), 'one that asks for no ability')
  rights.begin(['*'])
  assert.ok(rights.may('restorePassword'))
  rights.deny('restorePassword')
  assert.ok(!rights.may('restorePassword'))
  rights.begin()
  assert.ok(rights.may('restorePassword'), 'forgotten with the session')
})

test('entries are sorted by host, by numbers within names, by age; and searched by address', () => {
  const entries = new Entries()
  const one = (id: number, sistema: string, changed?: string, url: string = ''): Parameters<Entries['put']>[0] =>
    ({ id, sistema, usuario: 'u', url, grupo: '', hasNotes: false, hasCode: false, ...changed !== undefined &&
      { changed } })
  entries.load({ entries: [one(1, 'srv 10', '2026-01-02'), one(2, 'https://mail.example/x', '2026-03-01'),
    one(3, 'srv 9'), one(4, 'Ñandú', '2026-02-01', 'https://zoo.example')] })
  const ids = (): readonly number[] => entries.shown.map(({ id }) => id)
  assert.deepEqual(ids(), [2, 4, 3, 1])
  entries.sort({ by: 'changed', isReversed: false })
  assert.deepEqual(ids(), [2, 4, 1, 3], 'the newest first, and last those of which it is not known')
  entries.sort({ by: 'changed', isReversed: true })
  assert.deepEqual(ids(), [3, 1, 4, 2])
  entries.search('ZOO nandu')
  assert.deepEqual(ids(), [4])
  const same = entries.get(4)
  entries.load({ entries: [one(4, 'Ñandú', '2026-02-01', 'https://zoo.example')] })
  assert.equal(entries.get(4), same, 'as it was, it stays the same')
})
