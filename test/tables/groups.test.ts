/**
 * What a caller with groups gets of each operation: the entries in sight as everybody, and of all others the very
 * answer to an unknown id. Each route with an id, and each list, must have a row.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createEntry, deleteEntry, updateEntry } from '../../src/entries/entry-commands.ts'
import { sees, type Groups } from '../../src/rights/rights.ts'
import { ANA, call, startProtected } from '../support/accounts.ts'
import { connectRaw, message, type RawAnswer } from '../support/raw.ts'
import { type Started } from '../support/service.ts'

const SEED = 'JBSW Y3DP EHPK 3PXP'
const GROUPS: readonly Groups[] = [undefined, [], ['ghost'], ['a'], ['a', 'b']]
/** By id, from 1: its group, and whether it is deleted. */
const ENTRIES: readonly (readonly [grupo: string | undefined, isDeleted: boolean])[] = [
  ['a', false], ['b', false], [undefined, false], ['a', true], ['b', true], [undefined, true], ['c', false]
]
const UNKNOWN = 999
/** Method, path up to the id, body, and whether the answer to an active or a deleted entry is 200. */
const OF_ONE: { readonly [operation: string]: readonly [method: string, path: string, body?: object] } = {
  getPassword: ['GET', '/api/getPassword/'],
  updatePassword: ['POST', '/api/updatePassword/', { usuario: 'changed' }],
  deletePassword: ['POST', '/api/deletePassword/'],
  restorePassword: ['POST', '/api/restorePassword/'],
  historyPassword: ['GET', '/api/historyPassword/'],
  formerPassword: ['GET', '/api/formerPassword/'],
  formerNotes: ['GET', '/api/formerNotes/'],
  whoKnows: ['GET', '/api/whoKnows/'],
  oneTimeCode: ['GET', '/api/oneTimeCode/']
}
/** These take an id as a place in a list. */
const OF_LISTS = ['olderDeletedPasswords']
/** These take no id and tell of no entry that the caller has not given. */
const OF_NO_ENTRY = ['createPassword', 'login', 'logout', 'changeOwnPassword', 'ownSessions', 'endOwnSessions']
/** The ids that a list has. */
const LISTS: { readonly [path: string]: (answer: any) => readonly number[] } = {
  '/api/listPassword': list => Array.isArray(list) ? list.map(({ id }) => id) : [],
  '/api/listEntries': list => list.map(({ id }: { id: number }) => id),
  '/api/deletedPasswords': ({ passwords }) => passwords.map(({ id }: { id: number }) => id),
  '/api/deletedPasswords/6': ({ passwords }) => passwords.map(({ id }: { id: number }) => id),
  '/api/deletedPasswords/8': ({ passwords }) => passwords.map(({ id }: { id: number }) => id),
  '/api/deletedPasswords/999999': ({ passwords }) => passwords.map(({ id }: { id: number }) => id)
}

async function started(t: TestContext): Promise<Started> {
  const started = await startProtected(t, { 'extra-routes': 'on', 'rate-limit': '0' })
  const { store } = started.service
  for (const [i, [grupo, isDeleted]] of ENTRIES.entries()) {
    await createEntry(store, { password: 'the same', sistema: `s${i + 1}`, usuario: `u of ${grupo}`, notas: 'n',
      otp: SEED, grupo }, null)
    if (isDeleted) await deleteEntry(store, i + 1, null)
  }
  return started
}

async function tokenFor({ service }: Started, groups: Groups): Promise<string> {
  return (await service.accounts!.issue(ANA, undefined, undefined, undefined, groups))!.token
}

/** Its entry was in sight, and the service waits for its body: the returned function sends that. */
async function beginUpdate(t: TestContext, url: string, id: number, token: string): Promise<() => Promise<RawAnswer>> {
  const body = '{"usuario":"late"}'
  const request = message('POST', `/api/updatePassword/${id}`, body,
    [`Authorization: Bearer ${token}`, 'Expect: 100-continue'])
  const client = await connectRaw(t, url)
  await client.send(request.subarray(0, -body.length))
  assert.equal((await client.answer()).status, 100)
  return async () => {
    await client.send(body)
    return client.answer()
  }
}

/** All that a client is given, without the time of the answer. */
function whole({ line, headers, text }: RawAnswer): object {
  const { date: _, ...others } = headers
  return { line, names: Object.keys(headers), headers: others, text }
}

for (const groups of GROUPS) {
  const who = groups === undefined ? 'without a list of groups' : `with the groups ${JSON.stringify(groups)}`

  test(`each operation answers a caller ${who} as for an unknown id, unless the entry is in sight`, async t => {
    const service = await started(t)
    const { url, service: { store } } = service
    const token = await tokenFor(service, groups)
    const all = await tokenFor(service, undefined)
    const versionOf = async (id: number): Promise<number> =>
      (await call(t, url, 'GET', `/api/historyPassword/${id}`, { token: all })).json.history?.at(-1).version ?? 1
    const paths = (await call(t, url, 'GET',
      '/openapi.json')).json.paths as { [path: string]: { [method: string]: any } }
    const withId = Object.entries(paths).filter(([path]) => path.includes('{id}'))
      .flatMap(([, methods]) => Object.values(methods).map(({ operationId }) => operationId as string))
    assert.deepEqual(withId.filter(name => !OF_LISTS.includes(name)).sort(), Object.keys(OF_ONE).sort())
    const lists = Object.entries(paths).filter(([path]) => path.startsWith('/api/') && !path.includes('{id}'))
      .filter(([, methods]) => Object.values(methods).some(({ operationId }) => !OF_NO_ENTRY.includes(operationId)))
    assert.deepEqual(lists.map(([path]) => path).sort(), Object.keys(LISTS).filter(path => !/\d$/.test(path)).sort())
    for (const [operation, [method, path, body]] of Object.entries(OF_ONE)) {
      const ask = async (id: number, fields: readonly string[] = []): Promise<RawAnswer> => {
        const version = operation.startsWith('former') ? `/${await versionOf(id)}` : ''
        return call(t, url, method, `${path}${id}${version}`, { token, body, fields })
      }
      const unknown = await ask(UNKNOWN)
      assert.deepEqual([unknown.status, unknown.text], [404, '{"message":"contraseña no encontrada","status":404}'])
      for (const [i, [grupo]] of ENTRIES.entries()) {
        const id = i + 1
        const before = store.state.entries.get(id)
        const answer = await ask(id)
        const what = `${operation} of an entry of ${grupo}`
        if (sees(groups, grupo)) assert.equal(answer.status, 200, what)
        else {
          assert.deepEqual(whole(answer), whole(unknown), what)
          assert.deepEqual(store.state.entries.get(id), before, what)
          const tag = store.state.entries.tag(id)
          const conditional = await ask(id, [`If-Match: "${tag}"`, `If-None-Match: "${tag}"`])
          assert.deepEqual(whole(conditional), whole(unknown), `${what}, with its tag`)
        }
        if (sees(groups, grupo) && store.state.entries.isActive(id) === ENTRIES[i]![1]) {
          const back = ENTRIES[i]![1] ? 'deletePassword' : 'restorePassword'
          await call(t, url, 'POST', `/api/${back}/${id}`, { token })
        }
      }
    }
  })

  test(`a list for a caller ${who} has what is in sight; the rest changes no byte, length or tag of it`, async t => {
    const service = await started(t)
    const { url, service: { store } } = service
    const token = await tokenFor(service, groups)
    const inSight = (isDeleted: boolean): number[] => ENTRIES.flatMap(([grupo, is], i) =>
      is === isDeleted && sees(groups, grupo) ? [i + 1] : [])
    const ask = async (): Promise<readonly RawAnswer[]> =>
      Promise.all(Object.keys(LISTS).map(path => call(t, url, 'GET', path,
        { token, fields: ['Accept-Encoding: gzip'] })))
    const first = await ask()
    for (const [i, idsIn] of Object.values(LISTS).entries()) {
      const ids = [...idsIn(first[i]!.json)].sort((a, b) => a - b)
      const isOfDeleted = i > 1
      const expected = inSight(isOfDeleted).filter(id => i !== 3 || id < 6)
      assert.deepEqual(ids, expected, Object.keys(LISTS)[i])
    }
    if (inSight(false).length === 0) {
      assert.deepEqual([first[0]!.status, first[0]!.json], [404, { message: 'No passwords found', status: 404 }])
    }
    if (groups === undefined) return
    assert.ok(!first.some(({ text }) => text.includes('reused')), 'how many share a password is about all entries')
    await createEntry(store, { password: 'the same', sistema: 's', usuario: 'u', grupo: 'other' }, null)
    await updateEntry(store, 7, { password: 'another', notas: 'x'.repeat(5_000) }, null)
    await deleteEntry(store, 7, null)
    assert.deepEqual((await ask()).map(whole), first.map(whole))
  })
}

test('whatever else is right or wrong with a request, an entry out of sight is answered as an unknown id', async t => {
  const service = await started(t)
  const token = await tokenFor(service, ['a'])
  const json = 'Content-Type: application/json'
  const bodies: readonly (readonly [string | undefined, readonly string[]])[] = [
    [undefined, []], ['{}', [json]], ['{"usuario":7}', [json]], ['{"usuario":"v"', [json]], ['{"grupo":"a"}', [json]],
    ['{"grupo":"b"}', [json]], ['x'.repeat(100_000), [json]],
    ['usuario=v', ['Content-Type: application/x-www-form-urlencoded']],
    ['{}', [json, 'Content-Encoding: gzip']], ['{}', [json, 'If-Match: *']], ['{}', [json, 'If-Match: "']],
    ['{}', [json, 'If-Match: "a", *']]
  ]
  for (const [operation, [method, path]] of Object.entries(OF_ONE)) {
    for (const verb of method === 'GET' ? ['GET', 'HEAD', 'POST', 'OPTIONS'] : ['POST', 'GET', 'PUT', 'OPTIONS']) {
      for (const [body, fields] of bodies) {
        const ask = (id: number): Promise<RawAnswer> =>
          call(t, service.url, verb, `${path}${id}`, { token, body, fields })
        const unknown = whole(await ask(UNKNOWN))
        for (const id of [2, 3, 5, 6]) {
          assert.deepEqual(whole(await ask(id)), unknown,
            `${verb} ${operation} ${id} ${JSON.stringify([body?.slice(0, 20), fields])}`)
        }
      }
    }
  }
})

test('two callers with the same groups in another order, and others between them, get what is theirs', async t => {
  const service = await started(t)
  const rows = [[['a', 'b'], [1, 2]], [['b'], [2]], [['b', 'a'], [1, 2]], [['c'], [7]], [undefined, [1, 2, 3, 7]],
    [[], []], [['a', 'bc'], [1]], [['ab', 'c'], [7]], [['abc'], []]] as const
  const tokens = await Promise.all(rows.map(([groups]) => tokenFor(service, groups)))
  for (let round = 0; round < 3; round++) {
    for (const path of ['/api/listPassword', '/api/listEntries']) {
      const answers = await Promise.all(tokens.map(token => call(t, service.url, 'GET', path, { token })))
      assert.deepEqual(answers.map(({ json }) => [...LISTS[path]!(json)]), rows.map(([, ids]) => ids), path)
    }
  }
})

test('an entry moved out of sight, or away, while a body is coming is unknown then, and nothing changes', async t => {
  const service = await started(t)
  const { url, service: { store } } = service
  const token = await tokenFor(service, ['a'])
  const unknown = await call(t, url, 'POST', `/api/updatePassword/${UNKNOWN}`, { token, body: { usuario: 'late' } })
  for (const grupo of ['b', '', 'new']) {
    await updateEntry(store, 1, { grupo: 'a' }, null)
    const late = await beginUpdate(t, url, 1, token)
    await updateEntry(store, 1, { grupo }, null)
    assert.deepEqual(whole(await late()), whole(unknown), grupo)
    assert.notEqual(store.state.entries.get(1)?.usuario, 'late')
  }
})

test('moves beside reads, changes and lists: whoever sees one group gets an entry of that group or none', async t => {
  const service = await started(t)
  const { url, service: { store } } = service
  const [token, all] = [await tokenFor(service, ['a']), await tokenFor(service, undefined)]
  const move = (grupo: string): Promise<RawAnswer> => call(t, url, 'POST', '/api/updatePassword/1',
    { token: all, body: { grupo } })
  for (let round = 0; round < 40; round++) {
    const isOut = round % 2 === 0
    const [, got, changed, list] = await Promise.all([
      move(isOut ? 'b' : 'a'), call(t, url, 'GET', '/api/getPassword/1', { token }),
      call(t, url, 'POST', '/api/updatePassword/1', { token, body: { usuario: `u${round}` } }),
      call(t, url, 'GET', '/api/listPassword', { token })
    ])
    if (got.status === 200) assert.equal(got.json.passwords.grupo, 'a')
    else assert.equal(got.status, 404)
    if (changed.status === 200) assert.equal(changed.json.password.grupo, 'a')
    else assert.equal(changed.status, 404)
    assert.ok(list.status === 404 || list.json.every(({ grupo }: { grupo: string }) => grupo === 'a'))
    assert.equal((await call(t, url, 'GET', '/api/getPassword/1', { token })).status, isOut ? 404 : 200,
      'once the move is answered')
    assert.equal(store.state.entries.get(1)?.usuario === `u${round}`, changed.status === 200)
  }
})

test('a confined user sees less from the next request on, by every token; what is on its way is refused', async t => {
  const service = await started(t)
  const { url, service: { accounts } } = service
  const [token, own] = [await tokenFor(service, undefined), await tokenFor(service, ['a', 'b'])]
  const seen = async (token: string): Promise<readonly number[]> =>
    LISTS['/api/listPassword']!((await call(t, url, 'GET', '/api/listPassword', { token })).json)
  assert.deepEqual([await seen(token), await seen(own)], [[1, 2, 3, 7], [1, 2]])
  const late = await beginUpdate(t, url, 2, token)
  await accounts!.changeUser(ANA, undefined, undefined, ['a'])
  assert.equal((await late()).status, 404)
  assert.deepEqual([await seen(token), await seen(own)], [[1], [1]])
  await accounts!.changeUser(ANA, undefined, undefined, null)
  assert.deepEqual([await seen(token), await seen(own)], [[1, 2, 3, 7], [1]])
})

test('§4.3 creating over HTTP: in the only group, or with the sentence of the field that names the groups', async t => {
  const service = await started(t)
  const fields = { password: 'p', sistema: 's', usuario: 'u' }
  const oneOf = (names: string): object => ({ grupo: [`The grupo field must be one of ${names}.`] })
  const rows: readonly (readonly [Groups, string | undefined, string | undefined | object])[] = [
    [undefined, undefined, undefined], [['a'], undefined, 'a'], [['a', 'b'], undefined, oneOf('a, b')],
    [['a', 'b'], 'B', 'b'], [['a', 'b'], 'c', oneOf('a, b')], [['a'], 'nobody has it', oneOf('a')],
    [['a'], 'a,b', { grupo: ['The grupo field must be a name of 1 to 64 characters on one line, without commas, @, * ' +
      'and invisible characters.'] }]
  ]
  for (const [groups, grupo, expected] of rows) {
    const token = await tokenFor(service, groups)
    const answer = await call(t, service.url, 'POST', '/api/createPassword', { token, body: { ...fields, grupo } })
    const what = JSON.stringify([groups, grupo])
    if (typeof expected === 'object') assert.deepEqual([answer.status, answer.json],
      [400, { message: 'Invalid data', errors: expected, status: 400 }], what)
    else {
      const made = await call(t, service.url, 'GET', answer.headers['location']!, { token })
      assert.deepEqual([answer.status, made.json.passwords.grupo], [200, expected], what)
    }
  }
})

test('a move takes the ability to delete, too; the same group in another spelling is no move', async t => {
  const service = await started(t)
  const { token } = (await service.service.accounts!.issue(ANA, ['password:update', 'password:read'], undefined))!
  const ask = async (body: object): Promise<number> => (await call(t, service.url, 'POST', '/api/updatePassword/1',
    { token, body })).status
  assert.deepEqual([await ask({ grupo: 'b' }), await ask({ grupo: '' }), await ask({ grupo: ' A' }),
    await ask({ usuario: 'v' })],
    [403, 403, 200, 200])
})

test('the history of an entry that came from a group out of sight shows its states since it came', async t => {
  const service = await started(t)
  const { url, service: { store } } = service
  await updateEntry(store, 2, { password: 'of b alone' }, null)
  await updateEntry(store, 2, { password: 'when it came' }, null)
  await updateEntry(store, 2, { grupo: 'a' }, null)
  await updateEntry(store, 2, { usuario: 'since' }, null)
  await updateEntry(store, 2, { grupo: 'c' }, null)
  await updateEntry(store, 2, { password: 'of c alone' }, null)
  await updateEntry(store, 2, { grupo: 'a', url: 'back' }, null)
  const token = await tokenFor(service, ['a'])
  const { history } = (await call(t, url, 'GET', '/api/historyPassword/2', { token })).json
  assert.deepEqual(history.map(({ change }: { change: string }) => change),
    ['updated', 'unseen', 'unseen', 'updated', 'updated', 'unseen', 'unseen', 'unseen'])
  const former: any[] = []
  for (const { version } of history) {
    former.push((await call(t, url, 'GET', `/api/formerPassword/2/${version}`, { token })).json.password)
  }
  assert.deepEqual(former, ['of c alone', undefined, undefined, undefined, 'when it came', undefined, undefined,
    undefined])
  assert.deepEqual(history.map(({ values }: any) => values), [
    { sistema: 's2', usuario: 'since', url: 'back', grupo: 'a' }, undefined, undefined, { usuario: 'since' },
    { sistema: 's2', usuario: 'u of b', grupo: 'a' }, undefined, undefined, undefined
  ])
  for (const one of history) {
    if (one.change === 'unseen') assert.deepEqual(Object.keys(one).sort(), ['by', 'change', 'time', 'version'])
    if (one.change === 'unseen') assert.equal(one.by, null)
  }
})

test('the versions of a history count the changes of its entry, and nothing that others did', async t => {
  const service = await started(t)
  const token = await tokenFor(service, ['a'])
  const ofB = await tokenFor(service, ['b'])
  for (let n = 0; n < 3; n++) {
    await updateEntry(service.service.store, 1, { usuario: `v${n}` }, null)
    await updateEntry(service.service.store, 2, { password: `of b ${n}` }, null)
    await call(t, service.url, 'GET', '/api/listPassword', { token: ofB })
  }
  const { history } = (await call(t, service.url, 'GET', '/api/historyPassword/1', { token })).json
  assert.deepEqual(history.map(({ version }: { version: number }) => version), [4, 3, 2, 1])
})

test('the counts of /metrics are about all entries, so a token with groups is none there', async t => {
  const service = await started(t)
  const from = { fields: ['X-Forwarded-For: 192.0.2.1'] }
  const statuses = await Promise.all(GROUPS.map(async groups =>
    (await call(t, service.url, 'GET', '/metrics', { ...from, token: await tokenFor(service, groups) })).status))
  assert.deepEqual(statuses, [200, 403, 403, 403, 403])
})

test('a login is answered with the groups of its user, and an empty list is written', async t => {
  const service = await started(t)
  const login = async (): Promise<any> =>
    (await call(t, service.url, 'POST', '/api/login', { body: { email: ANA,
      password: 'correct horse battery staple' } })).json.user
  for (const groups of [null, [], ['a', 'b']]) {
    await service.service.accounts!.changeUser(ANA, undefined, undefined, groups)
    assert.deepEqual((await login()).groups, groups ?? undefined)
  }
})
