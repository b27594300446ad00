/** Who may do what in the protected configuration (contract §5.2, §5.6, §5.7), on sockets. */
import assert from 'node:assert/strict'
import type { Reply } from '../../src/http/reply.ts'
import { withAbilities, type Route } from '../../src/http/router.ts'
import { covers } from '../../src/rights/rights.ts'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { ANA, call, FIVE, PASSWORD, startProtected, tokenOf } from '../support/accounts.ts'
import { answered } from '../support/pipeline.ts'
import { ask, connectRaw, message, type RawAnswer } from '../support/raw.ts'
import { type Started } from '../support/service.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'

const ENTRY = { password: 'p', sistema: 's', usuario: 'u' }
const BEA = 'bea@example.org'
const TWO = { [ANA]: ['*'], [BEA]: ['*'] }

function assertUnauthenticated(answer: RawAnswer, why: string): void {
  assert.equal(answer.text, '{"message":"Unauthenticated.","status":401}', why)
  assert.equal(answer.status, 401, why)
  assert.equal(answer.headers['www-authenticate'], 'Bearer', why)
}

/** The hash of the chain's head: the same before and after what must have changed nothing. */
const head = ({ service }: Started): string => service.store.journal.status().head

test('§5.2 an operation without a token that is valid: 401, and nothing changes', async t => {
  const started = await startProtected(t)
  const { url, service } = started
  await createEntry(service.store, ENTRY, null)
  const [good, revoked] = [await tokenOf(started), await tokenOf(started)]
  await service.accounts!.revoke(service.accounts!.session(revoked)!.hash, null)
  const expired = await tokenOf(started, ANA, ['*'], 1e-9)
  while (service.accounts!.session(expired) !== undefined) await new Promise(setImmediate)
  const cases: { readonly [why: string]: readonly string[] } = {
    'none': [],
    'wrong': [`Authorization: Bearer pes_${'A'.repeat(43)}`],
    'no token\'s form': ['Authorization: Bearer 1'],
    'revoked': [`Authorization: Bearer ${revoked}`],
    'expired': [`Authorization: Bearer ${expired}`],
    'another scheme': [`Authorization: Basic ${good}`],
    'no scheme': [`Authorization: ${good}`],
    'two tokens in one': [`Authorization: Bearer ${good}, Bearer ${good}`],
    'more behind it': [`Authorization: Bearer ${good} x`],
    'in quotes': [`Authorization: Bearer "${good}"`],
    'empty': ['Authorization: Bearer'],
    'in a cookie': [`Cookie: token=${good}; access_token=${good}`],
    'in another field': [`X-Api-Token: ${good}`, `Proxy-Authorization: Bearer ${good}`]
  }
  const before = head(started)
  for (const [name, method, path, body] of FIVE) {
    for (const [why, fields] of Object.entries(cases)) {
      assertUnauthenticated(await call(t, url, method, path, { body, fields }), `${name}: ${why}`)
    }
    for (const field of ['access_token', 'api_token', 'token', 'Authorization']) {
      const query = `?${field}=${good}&${field}=Bearer%20${good}`
      assertUnauthenticated(await call(t, url, method, path + query, { body }), `${name}: ${query}`)
    }
    const twice = Array<string>(2).fill(`Authorization: Bearer ${good}`)
    assert.equal((await call(t, url, method, path, { body, fields: twice })).status, 400)
  }
  assert.equal(head(started), before)
})

test('§5.6 an operation without its ability: 403, and nothing changes; with it, among others or as *: 200', async t => {
  const started = await startProtected(t)
  const { url, service } = started
  await createEntry(service.store, ENTRY, null)
  for (const [name, method, path, body, ability] of FIVE) {
    const near = [ability.toUpperCase(), `${ability}x`, 'password', 'password:*', '**', '']
    for (const close of near) assert.equal(covers([close], ability), false, close)
    const others = FIVE.map(one => one[4]).filter(other => other !== ability)
    const weak = await Promise.all([[], others].map(abilities => tokenOf(started, ANA, abilities)))
    const before = head(started)
    for (const token of weak) {
      const answer = await call(t, url, method, path, { body, token })
      assert.equal(answer.text, '{"message":"Invalid ability provided.","status":403}', name)
      assert.equal(answer.status, 403)
    }
    assert.equal(head(started), before)
    for (const abilities of [['*'], [ability], ['password:read', ability], ['password:read', '*']]) {
      const token = await tokenOf(started, ANA, abilities)
      assert.equal((await call(t, url, method, path, { body, token })).status, 200, `${name}: ${abilities.join()}`)
    }
  }
})

test('§5.2 the scheme is read in any case, and any number of spaces follows it', async t => {
  const started = await startProtected(t)
  const token = await tokenOf(started)
  for (const scheme of ['bearer', 'BEARER', 'bEaReR', 'Bearer  ']) {
    const fields = [`Authorization: ${scheme} ${token}`, 'Accept: application/json']
    assert.equal((await call(t, started.url, 'GET', '/api/listPassword', { fields })).status, 404, scheme)
  }
})

test('§5.2 HEAD is guarded as GET is', async t => {
  const started = await startProtected(t)
  await createEntry(started.service.store, ENTRY, null)
  const [able, unable] = [await tokenOf(started), await tokenOf(started, ANA, ['password:create'])]
  const statuses = []
  for (const token of [undefined, unable, able]) {
    statuses.push((await call(t, started.url, 'HEAD', '/api/getPassword/1', { token })).status)
  }
  assert.deepEqual(statuses, [401, 403, 200])
})

test('§5.2 no route but login is there without a token, not even for an unknown id or a wrong body', async t => {
  const { url } = await startProtected(t)
  for (const [method, path, body] of [
    ['GET', '/api/getPassword/99', undefined], ['POST', '/api/updatePassword/99', '{'],
    ['POST', '/api/createPassword', '{'], ['POST', '/api/deletePassword/x', undefined],
    ['POST', '/api/logout', undefined]
  ] as const) assertUnauthenticated(await call(t, url, method, path, { body }), path)
  assert.equal((await call(t, url, 'POST', '/api/login', { body: '{}' })).status, 400)
})

test('a request without a token is refused before its body is sent', async t => {
  const { url } = await startProtected(t)
  const client = await connectRaw(t, url)
  await client.send(message('POST', '/api/createPassword', undefined, [
    'Content-Type: application/json', 'Content-Length: 1000', 'Expect: 100-continue'
  ]))
  assertUnauthenticated(await client.answer(), 'no 100 came before it')
  client.destroy()
})

test('§5.6 ABILITIES gives operations their ability; others keep their own, and any needs just a token', async t => {
  const flags = { abilities: 'listPassword=vault.look,getPassword=any,deletePassword=vault:burn' }
  const started = await startProtected(t, flags)
  await createEntry(started.service.store, ENTRY, null)
  const expected: Record<string, readonly [number, number, number, number]> = {
    listPassword: [403, 200, 403, 403], getPassword: [200, 200, 200, 200], createPassword: [403, 403, 403, 200],
    updatePassword: [403, 403, 403, 403], deletePassword: [403, 403, 200, 403]
  }
  const given = [[], ['vault.look'], ['vault:burn'], ['password:create']]
  const tokens = await Promise.all(given.map(abilities => tokenOf(started, ANA, abilities)))
  for (const [name, method, path, body] of FIVE) {
    const statuses = []
    for (const token of tokens) statuses.push((await call(t, started.url, method, path, { body, token })).status)
    assert.deepEqual(statuses, expected[name], name)
    assertUnauthenticated(await call(t, started.url, method, path, { body }), name)
  }
})

test('§5.4, §5.7 a request after a logout is refused, and one that is sent with it is not carried out', async t => {
  const started = await startProtected(t)
  const fields = [`Authorization: Bearer ${await tokenOf(started)}`]
  const client = await connectRaw(t, started.url)
  const create = message('POST', '/api/createPassword', JSON.stringify(ENTRY), fields)
  await client.send(create)
  assert.equal((await client.answer()).status, 200)
  await client.send(message('POST', '/api/logout', undefined, fields), create)
  assert.deepEqual((await client.untilEnd()).map(answer => answer.status), [200])
  for (const request of [create, message('GET', '/api/listPassword', undefined, fields)]) {
    assert.equal((await ask(t, started.url, request)).status, 401)
  }
  assert.equal(started.service.store.state.entries.count, 1)
})

test('every line of the journal names whose token it was', async t => {
  const started = await startProtected(t, {}, TWO)
  const [ana, bea] = [await tokenOf(started), await tokenOf(started, BEA)]
  const create = { body: ENTRY }
  await call(t, started.url, 'POST', '/api/createPassword', { token: bea, ...create })
  await call(t, started.url, 'POST', '/api/updatePassword/1', { token: ana, body: { sistema: 'x' } })
  await call(t, started.url, 'POST', '/api/deletePassword/1', { token: bea })
  await call(t, started.url, 'POST', '/api/logout', { token: ana })
  const lines = readFileSync(join(started.folder, 'journal.jsonl'), 'utf8').trimEnd().split('\n')
  assert.deepEqual(lines.map(line => JSON.parse(line)).map(({ type, by }) => [type, by]), [
    ['user.added', null], ['user.added', null], ['recording.begun', null], ['token.issued', null],
    ['token.issued', null], ['entry.created', 2], ['entry.updated', 1], ['passwords.told', 1], ['entry.deleted', 2],
    ['token.revoked', 1]
  ])
})

test('§8.4 with RATE_LIMIT_BY=user the tokens of a user share a counter, from wherever they come', async t => {
  const started = await startProtected(t, { 'rate-limit': '3', 'rate-limit-by': 'user' }, TWO)
  const [one, two] = [await tokenOf(started), await tokenOf(started)]
  const from = async (token: string | undefined, localAddress: string): Promise<readonly unknown[]> => {
    const { status, headers } = await call(t, started.url, 'GET', '/api/listPassword', { token, localAddress })
    return [status, headers['x-ratelimit-remaining']]
  }
  assert.deepEqual(await from(one, '127.0.0.1'), [404, '2'])
  assert.deepEqual(await from(two, '127.0.0.2'), [404, '1'])
  assert.deepEqual(await from(one, '127.0.0.3'), [404, '0'])
  assert.deepEqual(await from(two, '127.0.0.4'), [429, '0'])
  assert.deepEqual(await from(await tokenOf(started, BEA), '127.0.0.1'), [404, '2'], 'another user from there')
  assert.deepEqual(await from(undefined, '127.0.0.1'), [401, '2'], 'without a token it is the address')
  assert.deepEqual(await from(`pes_${'A'.repeat(43)}`, '127.0.0.1'), [401, '1'], 'and with a wrong one')
  assert.deepEqual(await from('x', '127.0.0.1'), [401, '0'])
  assert.deepEqual(await from(undefined, '127.0.0.1'), [429, '0'])
  assert.deepEqual(await from(await tokenOf(started, BEA), '127.0.0.1'), [404, '1'], 'which costs a user nothing')
})

test('§8 by default a token makes no difference to whom a request counts against', async t => {
  const started = await startProtected(t, { 'rate-limit': '2' }, TWO)
  const statuses = []
  for (const token of [await tokenOf(started), await tokenOf(started, BEA), await tokenOf(started), undefined]) {
    statuses.push((await call(t, started.url, 'GET', '/api/listPassword', { token })).status)
  }
  assert.deepEqual(statuses, [404, 404, 429, 429])
})

/** The status of a request whose token is revoked before its body has come whole. */
async function revokedMeanwhile(
  t: TestContext, started: Awaited<ReturnType<typeof startProtected>>, path: string, fields: object
): Promise<number> {
  const accounts = started.service.accounts!
  const token = await tokenOf(started)
  const body = JSON.stringify(fields)
  const request = message('POST', path, body, [`Authorization: Bearer ${token}`])
  const client = await connectRaw(t, started.url)
  await client.send(request.subarray(0, -body.length + 5))
  const { hash, user } = accounts.session(token)!
  assert.equal(await accounts.revoke(hash, user), true)
  await client.send(request.subarray(-body.length + 5))
  return (await client.answer()).status
}

test('§5.7 a request whose body comes after its token was revoked is refused, and changes nothing', async t => {
  const started = await startProtected(t)
  const { count } = started.service.store.state.entries
  assert.equal(await revokedMeanwhile(t, started, '/api/createPassword', ENTRY), 401)
  assert.equal(started.service.store.state.entries.count, count)
})

test('§5.7 a read that waits is answered only if its token may do the same behind the wait', async t => {
  const started = await startProtected(t)
  const accounts = started.service.accounts!
  const cases: Readonly<Record<string, readonly [act: (hash: string) => Promise<unknown>, status: number]>> = {
    'nothing happens': [async () => {}, 204],
    'revoked': [hash => accounts.revoke(hash, null), 401],
    'of other groups': [() => accounts.changeUser(ANA, undefined, ['*'], ['a']), 503],
    'without the ability': [() => accounts.changeUser(ANA, undefined, ['password:create']), 403]
  }
  for (const [what, [act, status]] of Object.entries(cases)) {
    for (const isPublic of [false, true]) {
      const token = await tokenOf(started)
      const { hash } = accounts.session(token)!
      const handle = (): Promise<Reply> => act(hash).then(() => ({ status: 204 }))
      const { status: given } = await answered({ authenticate: one => accounts.session(one) },
        { host: 'localhost', authorization: `Bearer ${token}` }, { abilities: ['password:read'], isPublic, handle })
      assert.equal(given, isPublic ? 204 : status, what)
    }
  }
})

test('a login whose request brings a token along succeeds, though that is revoked before its body comes', async t => {
  const started = await startProtected(t)
  assert.equal(await revokedMeanwhile(t, started, '/api/login', { email: ANA, password: PASSWORD }), 200)
})

test('a route that was given no ability by mistake is refused, and is not open to any token', () => {
  const route: Route = { operation: 'new', method: 'GET', path: '/api/new', handle: () => ({ status: 204 }) }
  const abilities = new Map([['new', ['password:new']], ['any', undefined]])
  assert.deepEqual(withAbilities([route], abilities)[0]?.abilities, ['password:new'])
  assert.equal(withAbilities([{ ...route, operation: 'any' }], abilities)[0]?.abilities, undefined)
  assert.throws(() => withAbilities([{ ...route, operation: 'forgotten' }], abilities), {
    code: 'route-invalid', message: /forgotten, GET \/api\/new, asks for no ability; its part has to name one/
  })
  for (const free of [{ isPublic: true }, { takesAnyToken: true }]) {
    assert.equal(withAbilities([{ ...route, ...free, operation: 'free' }], abilities)[0]?.abilities, undefined)
  }
})
