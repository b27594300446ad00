import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Router, type Route } from '../../src/http/router.ts'

type Pattern = readonly [method: 'GET' | 'POST', path: string]

function routerOf(...patterns: readonly Pattern[]): Router {
  const routeOf = ([method, path]: Pattern): Route =>
    ({ operation: `${method} ${path}`, method, path, handle: () => ({ status: 204 }) })
  return new Router(patterns.map(routeOf))
}

/** The pattern and the id that are found, or the methods of the path. */
function found(router: Router, method: string, path: string): unknown {
  const result = router.find(method, path)
  return result?.route === undefined ? result?.allow : [result.route.operation, result.id]
}

const shop = routerOf(
  ['GET', '/'], ['GET', '/goods'], ['POST', '/goods'], ['GET', '/goods/{id}'], ['POST', '/goods/{id}'],
  ['GET', '/goods/new'], ['POST', '/orders/{id}'], ['POST', '/login']
)

test('a path is found by its method, a whole path before an id; HEAD where GET is', () => {
  const rows: readonly (readonly [method: string, path: string, pattern: string, id: number])[] = [
    ['GET', '/', 'GET /', 0], ['GET', '/goods', 'GET /goods', 0], ['POST', '/goods', 'POST /goods', 0],
    ['POST', '/goods/7', 'POST /goods/{id}', 7], ['GET', '/goods/new', 'GET /goods/new', 0],
    ['GET', '/goods/newer', 'GET /goods/{id}', 0], ['HEAD', '/goods/7', 'GET /goods/{id}', 7]
  ]
  for (const [method, path, pattern, id] of rows) assert.deepEqual(found(shop, method, path), [pattern, id], path)
})

test('a number behind an id is a version', () => {
  const router = routerOf(['GET', '/goods/{id}'], ['GET', '/old/{id}/{version}'])
  const rows: readonly (readonly [path: string, found: unknown])[] = [
    ['/old/7/3', [7, 3]], ['/old/x/3', [0, 3]], ['/old/7/x', [7, 0]], ['/old/7/%33', [7, 0]], ['/old/7/', undefined],
    ['/old/7', undefined], ['/old//3', [0, 3]], ['/old/1/7/3', undefined], ['/7/3', undefined]
  ]
  for (const [path, wanted] of rows) {
    const one = router.find('GET', path)
    assert.deepEqual(one?.route && [one.id, one.version], wanted, path)
  }
})

test('a method that a path does not have is answered by those that it has', () => {
  assert.deepEqual(found(shop, 'PUT', '/goods'), ['GET', 'POST', 'HEAD', 'OPTIONS'])
  assert.deepEqual(found(shop, 'PUT', '/goods/7'), ['GET', 'POST', 'HEAD', 'OPTIONS'])
  for (const method of ['OPTIONS', 'HEAD', 'get', 'constructor', '__proto__']) {
    assert.deepEqual(found(shop, method, '/login'), ['POST', 'OPTIONS'])
  }
})

test('a path that is no pattern, or only the beginning of a pattern, is not found', () => {
  const paths = [
    '/good', '/goodss', '/Goods', '/goods/', '/goods//', '//goods', '/goods/7/', '/goods//7', '/goods/new/7', '/orders',
    '/orders/', '/login/', '/login/x', '/goods%2f7', '/%67oods', '/goods;x', '/{id}', '/toString', '/__proto__', '*', ''
  ]
  for (const path of paths) assert.equal(found(shop, 'GET', path), undefined, path)
})

test('an id is a positive integer in its plain form; anything else, percent-encoded too, is none', () => {
  const given = {
    1: 1, 999999999999999: 999_999_999_999_999, '%31': 0, '%31%30': 0, 1000000000000000: 0, '0': 0, '01': 0, '-1': 0,
    '+1': 0, '1.0': 0, '1e3': 0, '0x1': 0, '1%20': 0, '%2531': 0, '%D9%A1': 0, '%': 0, '%1': 0, '%ZZ': 0, '%e9': 0,
    '%ed%a0%80': 0, '1%': 0, '%00': 0, '{id}': 0
  }
  for (const [segment, id] of Object.entries(given)) {
    assert.deepEqual(found(shop, 'GET', `/goods/${segment}`), ['GET /goods/{id}', id], segment)
  }
})

test('two routes of one method and path are refused, and an id anywhere but at the end', () => {
  assert.throws(() => routerOf(['GET', '/a/{id}'], ['GET', '/a/{id}']), /GET \/a\/\{id\} was added before/)
  for (const path of ['/a/{id}/b', '/a/{version}', '/a/{id}/{id}', '/a/b{id}', '/a/{name}', 'a']) assert.throws(() =>
    routerOf(['GET', path]), /only its end/)
  assert.equal(routerOf(['GET', '/a/{id}'], ['POST', '/a/{id}']).find('POST', '/a/1')?.route?.method, 'POST')
})

test('a path of a million segments is not found, and nothing overflows', () => {
  assert.equal(shop.find('GET', '/goods'.repeat(1_000_000)), undefined)
  assert.equal(shop.find('GET', '/'.repeat(1_000_000)), undefined)
})
