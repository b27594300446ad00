/** The rate limit (contract §8) as clients meet it, on sockets from several addresses of the loopback network. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ask, connectRaw, message, type RawAnswer } from '../support/raw.ts'
import { startService } from '../support/service.ts'

const entry = '{"password":"p","sistema":"s","usuario":"u"}'
const getOne = message('GET', '/api/getPassword/1')
const NAMES = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'retry-after']

function limits({ status, headers }: RawAnswer): readonly unknown[] {
  return [status, ...NAMES.map(name => headers[name])]
}

function assertTooMany(answer: RawAnswer, limit: string): void {
  assert.equal(answer.text, '{"message":"Too Many Requests"}')
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
  assert.deepEqual(limits(answer).slice(0, 3), [429, limit, '0'])
  assert.match(answer.headers['retry-after'] ?? '', /^([1-9]|[1-5][0-9]|60)$/)
}

test('§8, §8.2 60 requests of an address pass, on one connection or one each; each further one is 429', async t => {
  const { url } = await startService(t, { 'rate-limit': '60' })
  for (const localAddress of ['127.0.0.1', '127.0.0.2', '127.0.1.2']) {
    const client = await connectRaw(t, url, { localAddress })
    const many = async (count: number): Promise<RawAnswer[]> => {
      const answers: RawAnswer[] = []
      while (answers.length < count) {
        await client.send(getOne)
        answers.push(await client.answer())
      }
      return answers
    }
    const answers = await many(58)
    for (let i = 0; i < 2; i++) answers.push(await ask(t, url, getOne, { localAddress }))
    assert.deepEqual(answers.map(limits), answers.map((_, i) => [404, '60', String(59 - i), undefined]))
    for (const answer of await many(40)) assertTooMany(answer, '60')
    assertTooMany(await ask(t, url, getOne, { localAddress }), '60')
  }
})

test('§8 every answer under /api counts and says so, and only a 429 says when to come again', async t => {
  const { url } = await startService(t, { 'rate-limit': '1000' })
  const requests: readonly (readonly [status: number, request: Buffer])[] = [
    [404, message('GET', '/api/listPassword')],
    [200, message('POST', '/api/createPassword', entry)],
    [200, message('GET', '/api/listPassword')],
    [204, message('OPTIONS', '/api/listPassword')],
    [200, message('GET', '/api/getPassword/1')],
    [404, message('GET', '/api/getPassword/abc')],
    [200, message('POST', '/api/updatePassword/1', '{"password":"q"}')],
    [200, message('POST', '/api/deletePassword/1')],
    [400, message('POST', '/api/createPassword', 'nonsense')],
    [400, message('POST', '/api/createPassword')],
    [413, message('POST', '/api/createPassword', 'x'.repeat(70_000))],
    [415, message('POST', '/api/createPassword', entry, ['Content-Type: text/plain'])],
    [405, message('DELETE', '/api/deletePassword/1')],
    [404, message('GET', '/api/nope')],
    [404, message('GET', '/api/')],
    [404, message('GET', '/api')]
  ]
  for (const [i, [status, request]] of requests.entries()) {
    const answer = await ask(t, url, request)
    assert.deepEqual(limits(answer), [status, '1000', String(999 - i), undefined], request.toString().split('\r')[0])
  }
})

test('§8, §8.3 a malformed request under /api is counted, says what is left, and is 429 after too many', async t => {
  const { url } = await startService(t, { 'rate-limit': '2' })
  const twice = message('GET', '/api/listPassword', undefined, ['Host: a', 'Host: b'])
  const expecting = message('GET', '/api/listPassword', undefined, ['Expect: 200-ok'])
  for (const [request, expected, left] of [[twice, 400, '1'], [expecting, 417, '0'], [twice, 429, '0'],
    [expecting, 429, '0']] as const) {
    assert.deepEqual(limits(await ask(t, url, request)).slice(0, 3), [expected, '2', left])
  }
})

test('§8 what is not under /api is not counted, and says nothing of a limit', async t => {
  const { url } = await startService(t, { 'rate-limit': '1' })
  const targets = [
    '/', '/apix', '/ap', '/API/listPassword', '//api/listPassword', '/x/api/', '/%61pi/listPassword', '/?/api/'
  ]
  for (const target of targets) {
    assert.deepEqual(limits(await ask(t, url, message('GET', target))), [404, undefined, undefined, undefined], target)
  }
  assert.deepEqual(limits(await ask(t, url, getOne)), [404, '1', '0', undefined])
  assert.deepEqual(limits(await ask(t, url, message('GET', '/'))), [404, undefined, undefined, undefined])
})

test('§8 what is refused by the limit changes nothing, and its body is not waited for', async t => {
  const { url, service } = await startService(t, { 'rate-limit': '1' })
  await ask(t, url, message('POST', '/api/createPassword', entry))
  const before = service.store.journal.status()
  const requests = [
    message('POST', '/api/createPassword', entry), message('POST', '/api/updatePassword/1', '{"password":"q"}'),
    message('POST', '/api/deletePassword/1'), message('POST', '/api/createPassword', entry).subarray(0, -entry.length),
    message('POST', '/api/createPassword', 'nonsense', ['Content-Type: text/plain']), message('GET', '/api/nope'),
    message('DELETE', '/api/listPassword'), message('OPTIONS', '/api/listPassword')
  ]
  for (const request of requests) assertTooMany(await ask(t, url, request), '1')
  const head = await ask(t, url, message('HEAD', '/api/listPassword'))
  assert.deepEqual([head.status, head.headers['content-length'], head.text], [429, '31', ''])
  assert.deepEqual(service.store.journal.status(), before)
})

const FORWARDED: readonly (readonly [from: string, fields: readonly string[], before: number])[] = [
  ['127.0.0.1', ['192.0.2.1'], 0], ['127.0.0.1', ['1.2.3.4', '192.0.2.1', '10.1.1.1'], 1], ['127.0.0.1', [], 0],
  ['127.0.0.1', ['2001:db8:1:2::1'], 0], ['127.0.0.1', ['2001:DB8:1:2:ffff:ffff:ffff:ffff'], 1],
  ['127.0.0.2', ['192.0.2.1'], 0], ['127.0.0.2', ['127.0.0.1'], 1]
]

test('§8 behind a trusted proxy a client is who the proxy says; what anybody else says does not count', async t => {
  const { url } = await startService(t, { 'rate-limit': '1000', 'trust-proxy': '127.0.0.1,10.0.0.0/8' })
  for (const [localAddress, values, before] of FORWARDED) {
    const fields = values.map(value => `X-Forwarded-For: ${value}`)
    const answer = await ask(t, url, message('GET', '/api/getPassword/1', undefined, fields), { localAddress })
    assert.deepEqual(limits(answer), [404, '1000', String(999 - before), undefined],
      `${localAddress} ${values.join(' | ')}`)
  }
})
