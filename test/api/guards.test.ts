/** Guards (api/guards.ts) where the tests of the interface look at only one side of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RouteContext } from '../../src/http/context.ts'
import { entryRoutes } from '../../src/http/routes.ts'
import { refusalOf, UNCOUNTED_GUARDS } from '../../src/http/guards.ts'
import { sessionRoutes } from '../../src/http/login-routes.ts'
import { RateLimit, takeFromLimits } from '../../src/http/rate-limit.ts'
import { allowsStaleReads } from '../../src/http/request.ts'
import { parseAddressSet } from '../../src/http/address.ts'
import type { PartContext } from '../../src/part.ts'
import { PARTS, readSettings, SETTINGS } from '../../src/settings.ts'
import { startProtected } from '../support/accounts.ts'
import { freshStore } from '../support/compose.ts'
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

test('a request need not wait for what others wrote where its route says so, unless its token was checked', () => {
  const authenticate = (): undefined => undefined
  const cases = [
    [{}, {}, false], [{}, { allowsStaleReads: true }, true], [{ authenticate }, { allowsStaleReads: true }, false],
    [{ authenticate }, { allowsStaleReads: true, isPublic: true }, true], [{ authenticate }, { isPublic: true }, false]
  ] as const
  for (const [options, route, expected] of cases) {
    assert.equal(allowsStaleReads({ options, route } as unknown as RouteContext), expected, JSON.stringify(route))
  }
})

/** What spares a route a guard, or the wait for what others wrote. Every other route has none of it. */
const SPARED: { readonly [operation: string]: readonly string[] } = {
  createPassword: ['allowsStaleReads'], login: ['isPublic'], logout: ['takesAnyToken'],
  page: ['isPublic', 'allowsStaleReads'], openapi: ['isPublic', 'allowsStaleReads'],
  health: ['isPublic', 'allowsStaleReads', 'allowsHttp'], metrics: ['isPublic', 'allowsStaleReads', 'allowsHttp'],
  status: ['allowsStaleReads']
}

test('a route is spared a guard, or the wait for what others wrote, only where this table says so', async t => {
  const store = await freshStore(t)
  const { accounts, journal } = store
  const flags = ['--auth=bearer', ...'extraRoutes' in SETTINGS ? ['--extra-routes=on'] : []]
  const context = { store, accounts, journal, settings: readSettings(flags, {}), routes: () => [] } as unknown as PartContext<object>
  const opened = await Promise.all(PARTS.map(async part => await part.open?.(context) ?? {}))
  atEnd(t, () => { for (const part of opened) part.close?.() })
  const routes = [
    ...entryRoutes(store), ...sessionRoutes({ accounts, loginLimit: undefined, ttlMinutes: undefined }),
    ...opened.flatMap(({ routes = [], localRoutes = [] }) => [...routes, ...localRoutes])
  ]
  assert.ok(routes.length >= 7)
  for (const { operation, path, isPublic, allowsStaleReads, allowsHttp, takesAnyToken } of routes) {
    const spared = Object.entries({ isPublic, allowsStaleReads, allowsHttp, takesAnyToken })
      .filter(([, is]) => is === true).map(([name]) => name)
    assert.deepEqual(spared, SPARED[operation] ?? [], `${operation} ${path}`)
  }
})

test('§5.9 HTTPS is what came by TLS, or what a trusted proxy says came by it', () => {
  for (const [isSecure, isProxy, forwardedProto, isRefused] of [
    [true, false, undefined, false], [false, false, undefined, true], [false, false, 'https', true],
    [false, true, 'HTTPS', false], [false, true, 'http', true], [false, true, undefined, true]
  ] as const) {
    const options = { asksForHttps: true, trustedProxies: isProxy ? parseAddressSet(['127.0.0.1']) : undefined }
    const head = { 'x-forwarded-proto': forwardedProto }
    const ctx = { options, head, peer: { isSecure, address: '127.0.0.1' } } as unknown as RouteContext
    assert.equal(refusalOf(UNCOUNTED_GUARDS, ctx) !== undefined, isRefused, `${isSecure} ${isProxy} ${forwardedProto}`)
    assert.equal(refusalOf(UNCOUNTED_GUARDS, { ...ctx, route: { allowsHttp: true } } as RouteContext), undefined)
  }
})

test('§8.4 a request that the general limit refuses counts in no other', () => {
  const [general, own] = [new RateLimit(1, () => 0), new RateLimit(5, () => 0)]
  const ctx = {
    options: { rateLimit: general }, isUnderApi: true, client: '127.0.0.1', peer: { address: '127.0.0.1', key: 'ip' },
    route: { rateLimit: own }, session: undefined
  } as unknown as RouteContext
  assert.equal(takeFromLimits(ctx), undefined)
  for (let i = 0; i < 3; i++) assert.equal(takeFromLimits(ctx)?.status, 429)
  assert.deepEqual([general.peek('ip').allowed, own.peek('ip').remaining], [false, 4])
})
