/** The list without secrets, and the fields beyond the contract's three. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { LIST_PAGE_ENTRIES } from '../../src/limits.ts'
import { isPackable, packer } from '../../src/parts/page-api/packing.ts'
import { createEntry, deleteEntry, updateEntry } from '../../src/entries/entry-commands.ts'
import { Exposure } from '../../src/knowledge/exposure.ts'
import type { Store } from '../../src/store/store.ts'
import { listingOf } from '../../src/parts/page-api/listing.ts'
import { ANA, PASSWORD, startProtected } from '../support/accounts.ts'
import { fileStore, memoryStore } from '../support/stores.ts'
import { ask, message, type RawAnswer } from '../support/raw.ts'
import { randomOf } from '../support/random.ts'
import { compact, importEntries } from '../support/rewrite.ts'
import { freshFolder, send, startService } from '../support/service.ts'

function listOf({ state }: Pick<Store, 'state'>): ReturnType<typeof listingOf> {
  const exposure = new Exposure(state, new Map([['getPassword', ['password:read']]]))
  return listingOf(state, exposure, true)
}

const FLAGS = { 'extra-routes': 'on' }
const LIST = '/api/listEntries'
const fields = (password: string, more: object = {}): { password: string, sistema: string, usuario: string } =>
  ({ password, sistema: 's', usuario: 'u', ...more })

async function listed(
  url: string, token: string, known?: string, path: string = LIST
): Promise<{ readonly status: number, readonly text: string, readonly tag: string }> {
  const headers = { Authorization: `Bearer ${token}`, ...known !== undefined && { 'If-None-Match': known } }
  const answer = await fetch(url + path, { headers })
  return { status: answer.status, text: await answer.text(), tag: answer.headers.get('ETag') ?? '' }
}

test('the list has what each active entry is for, and no secret; an empty store gives an empty list', async t => {
  const { url, service: { store } } = await startService(t, FLAGS)
  assert.deepEqual((await send(url, 'GET', LIST)).json, [])
  await createEntry(store, fields('secret 1', { url: 'https://a.example/', notas: 'secret note' }), null)
  await createEntry(store, fields('secret 2'), null)
  await createEntry(store, fields('secret 3'), null)
  await deleteEntry(store, 2, null)
  const { json } = await send(url, 'GET', LIST)
  assert.doesNotMatch(JSON.stringify(json), /secret/)
  const times = json.map(({ changed }: { changed: string }) => changed)
  for (const time of times) assert.ok(Math.abs(Date.now() - Date.parse(time)) < 60_000, time)
  assert.deepEqual(json, [
    { id: 1, sistema: 's', usuario: 'u', url: 'https://a.example/', status: 1, changed: times[0], notas: true },
    { id: 3, sistema: 's', usuario: 'u', status: 1, changed: times[1] }
  ])
})

test('who may read all passwords learns how many others are the same, and nobody else does', async t => {
  const users = { [ANA]: ['password:read', 'password:create'], 'bea@example.org': ['entry:list', 'password:create'],
    'cid@example.org': ['password:create'] }
  const { url, service } = await startProtected(t, FLAGS, users)
  for (const password of ['same', 'other', 'same', 'same']) await createEntry(service.store, fields(password), null)
  await deleteEntry(service.store, 4, null)
  const tokenOf = async (email: string, abilities?: readonly string[]): Promise<string> =>
    (await service.accounts!.issue(email, abilities, undefined))!.token
  const reused = async (token: string): Promise<unknown> => {
    const { status, text } = await listed(url, token)
    return status === 200 ? JSON.parse(text).map((one: { reused?: number }) => one.reused) : status
  }
  assert.deepEqual(await reused(await tokenOf(ANA)), [1, undefined, 1])
  assert.deepEqual(await reused(await tokenOf(ANA, ['entry:list'])), [undefined, undefined, undefined])
  assert.deepEqual(await reused(await tokenOf('bea@example.org')), [undefined, undefined, undefined])
  assert.equal(await reused(await tokenOf('cid@example.org')), 403)
  await assert.rejects(tokenOf('bea@example.org', ['password:read']), { code: 'input-invalid' })
  const narrow = await tokenOf(ANA, ['entry:list'])
  for (const path of ['listPassword', 'getPassword/1']) {
    assert.equal((await listed(url, narrow, undefined, `/api/${path}`)).status, 403)
  }
})

test('exposed is shown to callers who may ask who knows a password, whatever groups they have', async t => {
  const users = { [ANA]: ['*'], 'bea@example.org': ['password:read'] }
  const { url, service: { store, accounts } } = await startProtected(t, FLAGS, users)
  for (const grupo of ['a', 'b']) await createEntry(store, fields('same', { grupo }), null)
  const { token: beas } = (await accounts!.issue('bea@example.org', undefined, undefined))!
  assert.equal((await listed(url, beas, undefined, '/api/getPassword/1')).status, 200)
  await accounts!.removeUser('bea@example.org')
  const rows: readonly (readonly [
    abilities: readonly string[], groups: readonly string[] | undefined, shown: readonly (readonly unknown[])[]
  ])[] = [
    [['entry:list'], undefined, [[1], [2]]], [['password:read'], undefined, [[1, 1], [2, 1]]],
    [['entry:list', 'entry:knowledge'], undefined, [[1, undefined, 1], [2]]],
    [['*'], undefined, [[1, 1, 1], [2, 1, 1]]], [['entry:list'], ['a'], [[1]]], [['password:read'], ['a'], [[1]]],
    [['entry:list', 'entry:knowledge'], ['a'], [[1, undefined, 1]]], [['*'], ['a', 'b'], [[1, undefined, 1], [2]]],
    [['password:read'], ['a', 'b'], [[1], [2]]], [['*'], ['b'], [[2]]], [['*'], [], []]
  ]
  for (const [abilities, groups, shown] of rows) {
    const { token } = (await accounts!.issue(ANA, abilities, undefined, undefined, groups))!
    const found = JSON.parse((await listed(url, token)).text)
      .map(({ id, reused, exposed }: { id: number, reused?: number, exposed?: number }) => [id, reused, exposed])
    const wanted = shown.map(([id, reused, exposed]) => [id, reused, exposed])
    assert.deepEqual(found, wanted, JSON.stringify([abilities, groups]))
  }
})

test('ABILITIES can ask for another ability, and for exactly that', async t => {
  const { url, service } = await startProtected(t, { ...FLAGS, abilities: 'listEntries=x' },
    { [ANA]: ['password:read'], 'bea@example.org': ['x'] })
  const statuses: number[] = []
  for (const email of [ANA, 'bea@example.org']) {
    statuses.push((await listed(url, (await service.accounts!.issue(email, undefined, undefined))!.token)).status)
  }
  assert.deepEqual(statuses, [403, 200])
})

test('where any token may list the passwords, any token learns how many are the same', async t => {
  const flags = { ...FLAGS, abilities: 'listPassword=any' }
  const { url, service } = await startProtected(t, flags, { [ANA]: ['password:create'] })
  for (const password of ['same', 'same']) await createEntry(service.store, fields(password), null)
  const { token } = (await service.accounts!.issue(ANA, undefined, undefined))!
  assert.deepEqual(JSON.parse((await listed(url, token)).text).map((one: { reused?: number }) => one.reused), [1, 1])
})

test('each form has a tag of its own, which answers 304 without a body until something in it changes', async t => {
  const { url, service } = await startProtected(t, FLAGS, { [ANA]: ['*'] })
  const { store } = service
  for (const password of ['same', 'same', 'other']) await createEntry(store, fields(password), null)
  const all = (await service.accounts!.issue(ANA, undefined, undefined))!.token
  const narrow = (await service.accounts!.issue(ANA, ['entry:list'], undefined))!.token
  const tagOf = async (token: string): Promise<string> => (await listed(url, token)).tag
  const [wide, plain] = [await tagOf(all), await tagOf(narrow)]
  assert.notEqual(wide, plain)
  for (const known of [wide, `W/${wide}`, `"a", ${wide}`, '*']) {
    const { status, text, tag } = await listed(url, all, known)
    assert.deepEqual([status, text, tag], [304, '', wide], known)
  }
  for (const known of [plain, 'x', wide.slice(1)]) assert.equal((await listed(url, all, known)).status, 200, known)
  await updateEntry(store, 1, { notas: 'as true' }, null)
  const withNotes = await tagOf(narrow)
  assert.notEqual(withNotes, plain)
  await updateEntry(store, 1, { notas: 'as true, too' }, null)
  assert.equal(await tagOf(narrow), withNotes)
  await updateEntry(store, 1, { notas: '' }, null)
  assert.equal(await tagOf(narrow), plain)
  await updateEntry(store, 3, { password: 'same' }, null)
  const [nextWide, nextPlain] = [await tagOf(all), await tagOf(narrow)]
  assert.ok(nextWide !== wide && nextPlain !== plain)
  assert.equal((await send(url, 'POST', '/api/login', { email: ANA, password: PASSWORD })).status, 200)
  assert.equal(await tagOf(all), nextWide, 'nothing of users is in it')
})

test('changed is when the password was set: no other edit moves it, and compaction and restarts keep it', async t => {
  const folder = freshFolder(t)
  let wallMs = Date.UTC(2026, 0, 1)
  const open = (): ReturnType<typeof fileStore> => fileStore(folder, { wallMs: () => wallMs += 60_000 })
  let store = await open()
  const changed = (id: number): number | undefined => store.state.entries.changedMs(id)
  await createEntry(store, fields('p'), null)
  const created = changed(1)
  assert.equal(created, wallMs)
  for (const change of [{ usuario: 'new' }, { url: 'https://x/' }, { notas: 'n' },
    { password: 'p' }]) await updateEntry(store, 1, change, null)
  await deleteEntry(store, 1, null)
  assert.equal(changed(1), created)
  await updateEntry(store, 1, { password: 'second', usuario: 'x' }, null)
  const second = changed(1)
  assert.ok(second! > created!)
  await importEntries(store, [{ ...fields('p'), status: 1 }])
  const imported = changed(2)
  assert.equal(imported, wallMs)
  for (let round = 0; round < 2; round++) {
    await compact(store)
    await store.close()
    store = await open()
    assert.deepEqual([changed(1), changed(2)], [second, imported])
  }
  await store.close()
})

test('a second entry with a password, or the last but one, changes the count of one on another page', async () => {
  const store = memoryStore()
  const list = listOf(store)
  const counts = async (): Promise<unknown> => {
    const rows = JSON.parse((await list('reused')).bytes.toString()) as { readonly id: number,
      readonly reused?: number }[]
    return rows.flatMap(({ id, reused }) => reused === undefined ? [] : [[id, reused]])
  }
  for (let n = 1; n <= LIST_PAGE_ENTRIES + 2; n++) await createEntry(store, fields(`${n}`), null)
  assert.deepEqual(await counts(), [])
  for (const [id, password, shown] of [
    [LIST_PAGE_ENTRIES + 1, '1', [[1, 1], [LIST_PAGE_ENTRIES + 1, 1]]],
    [LIST_PAGE_ENTRIES + 2, '1', [[1, 2], [LIST_PAGE_ENTRIES + 1, 2], [LIST_PAGE_ENTRIES + 2, 2]]],
    [LIST_PAGE_ENTRIES + 2, 'x', [[1, 1], [LIST_PAGE_ENTRIES + 1, 1]]], [LIST_PAGE_ENTRIES + 1, 'y', []]
  ] as const) {
    await updateEntry(store, id, { password }, null)
    assert.deepEqual(await counts(), shown, password)
  }
})

test('a list of more pages than are made at once is whole, and counts equal passwords on each of them', async () => {
  const store = memoryStore()
  const pages = 3 * 64
  const shared = Array.from({ length: pages }, (_, page) => page * LIST_PAGE_ENTRIES + 1)
  await importEntries(store, Array.from({ length: pages * LIST_PAGE_ENTRIES }, (_, i) =>
    ({ ...fields(i % LIST_PAGE_ENTRIES === 0 ? 'the same' : `${i}`), status: 1 as const })))
  const rows = JSON.parse((await listOf(store)('reused')).bytes.toString())
  assert.equal(rows.length, pages * LIST_PAGE_ENTRIES)
  assert.deepEqual(rows.filter(({ reused }: { reused?: number }) => reused === pages - 1)
    .map(({ id }: { id: number }) => id), shared)
})

test('whatever changes, both forms are what a look at every entry gives', async t => {
  const random = randomOf(t)
  const store = memoryStore()
  const { entries } = store.state
  const list = listOf(store)
  const textOf = async (form: 'plain' | 'reused'): Promise<string> => (await list(form)).bytes.toString()
  for (let round = 0; round < 60; round++) {
    for (let n = random.int(LIST_PAGE_ENTRIES); n > 0; n--) {
      const id = 1 + random.int(entries.size + 1)
      const password = `${random.int(40)}`
      const kind = random.int(4)
      if (kind < 2) await createEntry(store, fields(password, random.int(2) === 0 ? { url: 'https://ñ/' } : {}), null)
      else if (kind === 2) await updateEntry(store, id, { password }, null)
      else await deleteEntry(store, id, null)
    }
    const active = [...entries.entries()].filter(({ status }) => status === 1)
    const expected = (showsReused: boolean): unknown =>
      active.map(({ id, sistema, usuario, url, status, password }) => {
      const reused = active.filter(one => one.password === password).length - 1
      return JSON.parse(JSON.stringify({
        id, sistema, usuario, url, status, changed: new Date(entries.changedMs(id)!).toISOString(),
        reused: showsReused && reused > 0 ? reused : undefined
      }))
    })
    for (const form of ['reused', 'plain'] as const) {
      assert.deepEqual(JSON.parse(await textOf(form)), expected(form === 'reused'))
    }
  }
})

test('a large list comes compressed to who takes gzip, and as it is to others; each has a tag of its own', async t => {
  const { url, service: { store } } = await startService(t, FLAGS)
  const get = (accept: string | undefined, known: string = '', method: string = 'GET'): Promise<RawAnswer> =>
    ask(t, url,
    message(method, LIST, undefined, [...accept === undefined ? [] : [`Accept-Encoding: ${accept}`],
      `If-None-Match: ${known}`]))
  await createEntry(store, fields('p'), null)
  const small = await get('gzip')
  assert.deepEqual([small.headers['content-encoding'], small.headers['vary']], [undefined, 'Accept-Encoding'])
  for (let n = 0; n < 200; n++) await createEntry(store, fields(`secret ${n}`, { sistema: `Ñandú ${n}` }), null)
  const plain = await get(undefined)
  for (const accept of ['', 'br', 'gzip;q=0', 'gzip;q=0.000, br', '*;q=0', 'identity', 'xgzip']) {
    const { headers, body } = await get(accept)
    assert.deepEqual([headers['content-encoding'], headers['etag'], headers['vary']],
      [undefined, plain.headers['etag'], 'Accept-Encoding'], accept)
    assert.ok(body.equals(plain.body))
  }
  const packed = await get('gzip')
  for (const accept of ['gzip', 'GZIP ; q=0.1', '*', 'gzip, deflate, br, zstd']) {
    const { headers, body } = await get(accept)
    assert.deepEqual([headers['content-encoding'], headers['etag'], headers['vary']],
      ['gzip', packed.headers['etag'], 'Accept-Encoding'], accept)
    assert.equal(headers['content-length'], String(body.length))
    assert.ok(gunzipSync(body).equals(plain.body) && body.length * 4 < plain.body.length)
  }
  const [plainTag = '', packedTag = ''] = [plain.headers['etag'], packed.headers['etag']]
  assert.notEqual(packedTag, plainTag)
  for (const [accept, known, status] of [
    ['gzip', packedTag, 304], ['gzip', `W/${packedTag}`, 304], ['gzip', plainTag, 200], ['br', plainTag, 304],
    ['br', packedTag, 200]
  ] as const) {
    const answer = await get(accept, known)
    assert.deepEqual([answer.status, answer.headers['vary']], [status, 'Accept-Encoding'], `${accept} ${known}`)
    if (status === 304) assert.deepEqual([answer.headers['etag'], answer.headers['content-encoding'],
      answer.body.length], [known.replace('W/', ''), undefined, 0])
  }
  const head = await get('gzip', '', 'HEAD')
  for (const name of ['content-encoding', 'content-length', 'etag', 'vary']) assert.equal(head.headers[name],
    packed.headers[name], name)
  assert.equal(head.body.length, 0)
  await updateEntry(store, 1, { usuario: 'new' }, null)
  assert.match(gunzipSync((await get('gzip', packedTag)).body).toString(), /"usuario":"new"/)
})

test('a field that is a list may come in several lines; any other that is known comes once', async t => {
  const { url, service: { store } } = await startService(t, { ...FLAGS, 'trust-proxy': '127.0.0.1', 'rate-limit': '3' })
  for (let n = 0; n < 200; n++) await createEntry(store, fields(`secret ${n}`), null)
  const asked = (method: string, path: string, ...lines: string[]): Promise<RawAnswer> =>
    ask(t, url, message(method, path, method === 'POST' ? '{}' : undefined, lines))
  const [list, entry] = [(await asked('GET', LIST)).headers['etag'],
    (await asked('GET', '/api/getPassword/1')).headers['etag']]
  const [first, second] = ['X-Forwarded-For: 192.0.2.1', 'X-Forwarded-For: 192.0.2.2']
  assert.equal((await asked('GET', LIST, 'If-None-Match: "a"', `If-None-Match: ${list}`, first)).status, 304)
  assert.equal((await asked('GET', LIST, 'Accept-Encoding: br', 'Accept-Encoding: gzip',
    first)).headers['content-encoding'], 'gzip')
  assert.equal((await asked('POST', '/api/updatePassword/1', 'If-Match: "a"', `If-Match: ${entry}`, first)).status, 200)
  assert.equal((await asked('GET', LIST, first)).status, 429)
  assert.equal((await asked('GET', LIST, first, second)).headers['x-ratelimit-remaining'], '2',
    'the last one is the nearest')
  assert.equal((await asked('GET', LIST, 'Upgrade: a', 'Upgrade: b', second)).status, 200)
  const single = ['Origin', 'Authorization', 'Content-Type', 'Content-Encoding', 'Expect', 'X-Forwarded-Proto',
    'Sec-Fetch-Site']
  for (const [n, name] of single.entries()) {
    assert.equal((await asked('GET', LIST, `${name}: a`, `${name}: a`, `X-Forwarded-For: 198.51.100.${n}`)).status, 400,
      name)
  }
})

test('one list is compressed at a time, and once; a list that is too large is not', async () => {
  const store = memoryStore()
  const list = listOf(store)
  for (let n = 0; n < 100; n++) await createEntry(store, fields(`${n % 50}`), null)
  const packedOf = packer()
  const [plain, wide] = [await list('plain'), await list('reused')]
  const first = packedOf(plain, 'plain')
  assert.equal(packedOf(plain, 'plain'), first, 'who asks for the same meanwhile waits for it')
  assert.equal(packedOf(wide, 'reused'), undefined, 'who asks for another one gets it as it is')
  assert.ok(gunzipSync((await first)!).equals(plain.bytes))
  assert.ok(gunzipSync((await packedOf(wide, 'reused'))!).equals(wide.bytes))
  assert.equal(packedOf(plain, 'plain'), first, 'the last text of each form is kept')
  assert.ok(!isPackable({ bytes: Buffer.alloc(17 * 1024 * 1024), tag: '' }))
})

for (const [what, given, kept] of [
  ['texts', { url: 'https://a/', notas: 'line 1\nline 2' }, { url: 'https://a/', notas: 'line 1\nline 2' }],
  ['null', { url: null, notas: null }, {}], ['empty texts', { url: '', notas: '' }, {}], ['nothing', {}, {}]
] as const) {
  test(`url and notas are created and updated by ${what}; without them an entry is as the contract has it`, async t => {
    const { url } = await startService(t, FLAGS)
    const got = async (): Promise<unknown> => (await send(url, 'GET', '/api/getPassword/1')).json.passwords
    assert.equal((await send(url, 'POST', '/api/createPassword', fields('p', given))).status, 200)
    const entry = { id: 1, password: 'p', sistema: 's', usuario: 'u', ...kept, status: 1 }
    assert.equal(JSON.stringify(await got()), JSON.stringify(entry))
    await send(url, 'POST', '/api/updatePassword/1', { url: 'https://b/', notas: 'other' })
    const { json } = await send(url, 'POST', '/api/updatePassword/1', given)
    const left = what === 'nothing' ? { ...entry, url: 'https://b/', notas: 'other', status: 1 } : entry
    assert.deepEqual([json.password, await got()], [left, left])
  })
}

test('a url or notas of another type is refused, on create and on update, by the field’s name', async t => {
  const { url } = await startService(t)
  await send(url, 'POST', '/api/createPassword', fields('p'))
  for (const path of ['createPassword', 'updatePassword/1']) {
    for (const wrong of [1, true, [], {}]) {
      const { status, json } = await send(url, 'POST', `/api/${path}`, fields('p', { url: wrong, notas: wrong }))
      const errors = { url: ['The url field must be a string.'], notas: ['The notas field must be a string.'] }
      assert.deepEqual([status, json], [400, { message: 'Invalid data', errors, status: 400 }],
        `${path} ${JSON.stringify(wrong)}`)
    }
  }
})

test('the deletion of an entry is news for those on other pages that have the same password', async () => {
  const store = memoryStore()
  const list = listOf(store)
  const reused = async (): Promise<unknown> => JSON.parse(String((await list('reused')).bytes))[0].reused
  await createEntry(store, fields('same'), null)
  for (let n = 2; n <= LIST_PAGE_ENTRIES; n++) await createEntry(store, fields(`p${n}`), null)
  const { id } = await createEntry(store, fields('same'), null)
  assert.equal(await reused(), 1)
  await deleteEntry(store, id, null)
  assert.equal(await reused(), undefined)
})
