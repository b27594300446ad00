import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Router } from '../../src/http/router.ts'

function routerOf(...routes: readonly (readonly [method: string, pattern: string])[]): Router<string> {
  const router = new Router<string>()
  for (const [method, pattern] of routes) router.add(method, pattern, `${method} ${pattern}`)
  return router
}

function found(router: Router<string>, method: string, path: string): unknown {
  const result = router.find(method, path)
  return result !== undefined && 'params' in result ? { ...result, params: { ...result.params } } : result
}

const shop = routerOf(
  ['GET', '/'], ['GET', '/goods'], ['POST', '/goods'], ['GET', '/goods/{id}'], ['DELETE', '/goods/{id}'],
  ['GET', '/goods/new'], ['POST', '/goods/{id}/orders/{order}'], ['POST', '/login']
)

test('a path is found by its method, a literal segment before a parameter; HEAD where GET is', () => {
  const paths: readonly (readonly [method: string, path: string, target: string, params?: object])[] = [
    ['GET', '/', 'GET /'], ['GET', '/goods', 'GET /goods'], ['POST', '/goods', 'POST /goods'],
    ['DELETE', '/goods/7', 'DELETE /goods/{id}', { id: '7' }],
    ['POST', '/goods/7/orders/a', 'POST /goods/{id}/orders/{order}', { id: '7', order: 'a' }],
    ['GET', '/goods/new', 'GET /goods/new'], ['GET', '/goods/newer', 'GET /goods/{id}', { id: 'newer' }],
    ['HEAD', '/goods/7', 'GET /goods/{id}', { id: '7' }]
  ]
  for (const [method, path, target, params = {}] of paths) {
    assert.deepEqual(found(shop, method, path), { target, params })
  }
})

test('a method that a path does not have is answered by those that it has', () => {
  assert.deepEqual(found(shop, 'PUT', '/goods'), { target: undefined, allow: ['GET', 'POST', 'HEAD', 'OPTIONS'] })
  assert.deepEqual(found(shop, 'OPTIONS', '/login'), { target: undefined, allow: ['POST', 'OPTIONS'] })
  assert.deepEqual(found(shop, 'HEAD', '/login'), { target: undefined, allow: ['POST', 'OPTIONS'] })
  assert.deepEqual(found(shop, 'get', '/login'), { target: undefined, allow: ['POST', 'OPTIONS'] })
})

test('a path that is no pattern, or only the beginning of one, is not found', () => {
  const paths = [
    '/good', '/goodss', '/Goods', '/goods/', '/goods//', '//goods', '/goods/7/', '/goods/7/orders', '/goods/7/orders/',
    '/goods//orders/1', '/goods/new/orders/1', '/login/', '/login/x', '/goods%2f7', '/%67oods', '/goods;x'
  ]
  for (const path of paths) assert.equal(found(shop, 'GET', path), undefined, path)
})

test('the names of every object\'s properties are names like any other', () => {
  const router = routerOf(['GET', '/{__proto__}'], ['GET', '/a/{constructor}'])
  for (const path of ['/toString', '/__proto__', '/hasOwnProperty']) {
    const result = router.find('GET', path)
    assert.ok(result !== undefined && 'params' in result)
    assert.deepEqual(Object.entries(result.params), [['__proto__', path.slice(1)]])
    assert.equal(result.params['toString'], undefined)
  }
  for (const path of ['/toString', '/constructor', '/__proto__']) assert.equal(found(shop, 'GET', path), undefined)
  for (const method of ['constructor', '__proto__', 'toString']) {
    assert.deepEqual(found(shop, method, '/login'), { target: undefined, allow: ['POST', 'OPTIONS'] })
  }
})

test('a parameter is percent-decoded once, as UTF-8', () => {
  const given = { '%31': '1', '1%20': '1 ', '..%2f': '../', '%00': '\0', 'a+b': 'a+b', '%2531': '%31', '%C3%b1': 'ñ' }
  for (const [segment, id] of Object.entries(given)) {
    assert.deepEqual(found(shop, 'GET', `/goods/${segment}`), { target: 'GET /goods/{id}', params: { id } }, segment)
  }
})

test('a parameter whose percent-encoding is malformed is undefined, and the path is found all the same', () => {
  for (const segment of ['%', '%1', '%ZZ', '%e9', '%C3%28', '%ed%a0%80', '1%']) {
    assert.deepEqual(found(shop, 'GET', `/goods/${segment}`),
      { target: 'GET /goods/{id}', params: { id: undefined } }, segment)
  }
})

test('the same method and pattern cannot be added twice, nor two parameter names in one position', () => {
  const router = routerOf(['GET', '/a/{id}'])
  assert.throws(() => router.add('GET', '/a/{id}', 'again'), /GET \/a\/\{id\} was added before/)
  assert.throws(() => router.add('POST', '/a/{name}', 'other'), /\{id\} is here already/)
  router.add('POST', '/a/{id}', 'other')
  assert.equal(router.find('POST', '/a/1')?.target, 'other')
})

test('a path of a million segments is not found, and nothing overflows', () => {
  assert.equal(shop.find('GET', '/goods'.repeat(1_000_000)), undefined)
  assert.equal(shop.find('GET', '/'.repeat(1_000_000)), undefined)
})
