/** Guards where the tests of the interface look at only one side of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Failure } from '../../src/errors.ts'
import { parseAddressSet } from '../../src/http/client.ts'
import { RateLimit } from '../../src/http/rate-limit.ts'
import { entryRoutes } from '../../src/entries/entry-routes.ts'
import { sessionRoutes } from '../../src/accounts/login-routes.ts'
import type { PartContext } from '../../src/part.ts'
import { PARTS, readSettings, SETTINGS } from '../../src/settings.ts'
import { startProtected } from '../support/accounts.ts'
import { answered } from '../support/pipeline.ts'
import { freshStore } from '../support/stores.ts'
import { atEnd, send } from '../support/service.ts'

test('where a route alone has a limit, its answers tell that one', async t => {
  const { url } = await startProtected(t, { 'rate-limit': '0', 'login-limit': '2' })
  const seen: unknown[] = []
  for (let i = 0; i < 3; i++) {
    const { status, headers } = await send(url, 'POST', '/api/login', { email: 'a@b', password: 'wrong' })
    seen.push([status, headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')])
  }
  assert.deepEqual(seen, [[401, '2', '1'], [401, '2', '0'], [429, '2', '0']])
})

test('a request waits for what others wrote if an id or a token that they may have made decides about it', async () => {
  const before = (): undefined => undefined
  const authenticate = (): undefined => undefined
  for (const [what, waits, route, options] of [
    ['a public GET tells nothing of it', 0, { isPublic: true }, {}], ['any other GET does', 1, {}, {}],
    ['a change that needs neither', 0, { method: 'POST' }, {}],
    ['a change of an id, without tokens', 1, { method: 'POST', before }, {}],
    ['a change, with tokens', 1, { method: 'POST', isPublic: true }, { authenticate }]
  ] as const) {
    let waited = 0
    const catchUp = async (): Promise<void> => { waited++ }
    assert.equal((await answered({ catchUp, ...options }, { host: 'a' }, route)).status, 204, what)
    assert.equal(waited, waits, what)
  }
  const catchUp = async (): Promise<void> => { throw new Failure('journal-unreachable', 'as the test asked') }
  assert.equal((await answered({ catchUp }, { host: 'a' })).status, 503)
})

/** What spares a route a guard. Every other route has none of it. */
const SPARED: { readonly [operation: string]: readonly string[] } = {
  login: ['isPublic'], logout: ['takesAnyToken', 'isCountedByAddress'],
  changeOwnPassword: ['takesAnyToken', 'isCountedByAddress'], ownSessions: ['takesAnyToken', 'isCountedByAddress'],
  endOwnSessions: ['takesAnyToken', 'isCountedByAddress'], page: ['isPublic'], openapi: ['isPublic'],
  health: ['isPublic', 'allowsHttp'], live: ['isPublic', 'allowsHttp'], metrics: ['isPublic', 'allowsHttp'],
  status: ['isPublic']
}

test('a route is spared a guard only where this table says so', async t => {
  const store = await freshStore(t)
  const { accounts, journal } = store
  const flags = ['--auth=bearer', ...'extraRoutes' in SETTINGS ? ['--extra-routes=on'] : []]
  const context = { store, accounts, journal, settings: readSettings(flags, {}),
    routes: () => [] } as unknown as PartContext<object>
  const opened = await Promise.all(PARTS.map(async part => await part.open?.(context) ?? {}))
  atEnd(t, () => { for (const part of opened) part.close?.() })
  const routes = [
    ...entryRoutes(store), ...sessionRoutes(accounts, { loginLimit: 0, ttlMinutes: undefined }),
    ...opened.flatMap(({ routes = [] }) => [...routes])
  ]
  assert.ok(routes.length >= 7)
  for (const { operation, path, isPublic, allowsHttp, takesAnyToken, isCountedByAddress } of routes) {
    const spared = Object.entries({ isPublic, allowsHttp, takesAnyToken, isCountedByAddress })
      .filter(([, is]) => is === true).map(([name]) => name)
    assert.deepEqual(spared, SPARED[operation] ?? [], `${operation} ${path}`)
  }
})

test('§5.9 HTTPS is what came by TLS, or what a trusted proxy says came by it', async () => {
  for (const [isSecure, isProxy, forwardedProto, status] of [
    [true, false, undefined, 204], [false, false, undefined, 403], [false, false, 'https', 403],
    [false, true, 'HTTPS', 204], [false, true, 'http', 403], [false, true, undefined, 403]
  ] as const) {
    const options = { warn: () => {}, asksForHttps: true, trustedProxies: isProxy ? parseAddressSet(['127.0.0.1'])
      : undefined }
    // Whose request it is makes no difference: a client that is trusted as well, or, as in most cases, is not.
    for (const client of [undefined, '127.0.0.1', '192.0.2.1']) {
      const fields = { host: 'a', 'x-forwarded-proto': forwardedProto, 'x-forwarded-for': client }
      assert.equal((await answered(options, fields, { isSecure })).status, status,
        `${isSecure} ${isProxy} ${forwardedProto} ${client}`)
      assert.equal((await answered(options, fields, { isSecure, allowsHttp: true })).status, 204)
    }
  }
})

test('§8.4 a request that the general limit refuses counts in no other', async () => {
  const limitOf = (limit: number): RateLimit => new RateLimit(limit, undefined, () => 0)
  const [general, own] = [limitOf(1), limitOf(5)]
  const ask = async (): Promise<number> => (await answered({ rateLimit: general }, { host: 'a' },
    { limit: own })).status
  assert.equal(await ask(), 204)
  for (let i = 0; i < 3; i++) assert.equal(await ask(), 429)
  assert.deepEqual([general.peek('127.0.0.1').allowed, own.peek('127.0.0.1').remaining], [false, 4])
})
