/** Pages of other origins (contract §5.8), and those that must get nothing from the open configuration. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ANA, call, PASSWORD, startProtected, tokenOf } from '../support/accounts.ts'
import type { RawAnswer } from '../support/raw.ts'
import { startService } from '../support/service.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'

const APP = 'https://app.example.org'
const OTHER = 'http://localhost:5173'
const CORS = { 'cors-origins': `${APP}, ${OTHER}` }
const PREFLIGHT = ['Access-Control-Request-Method: POST', 'Access-Control-Request-Headers: authorization,content-type']
const ENTRY = { password: 'p', sistema: 's', usuario: 'u' }

function allowances({ headers }: RawAnswer): string[] {
  return Object.keys(headers).filter(name => name.startsWith('access-control-')).sort()
}

const words = (text: string | undefined): string[] => (text ?? '').split(',').map(word => word.trim().toLowerCase())

test('§5.8 a preflight of a configured origin is 204 with all that the operations need', async t => {
  for (const flags of [{}, { auth: 'bearer' }]) {
    const { url } = await startService(t, { ...flags, ...CORS, 'rate-limit': '5' })
    for (const origin of [APP, OTHER]) {
      for (const path of ['/api/createPassword', '/api/getPassword/1', '/api/login', '/api/unknown']) {
        const answer = await call(t, url, 'OPTIONS', path, { fields: [`Origin: ${origin}`, ...PREFLIGHT] })
        const { headers } = answer
        assert.deepEqual([answer.status, answer.text, headers['vary']], [204, '', 'Origin'])
        assert.equal(headers['access-control-allow-origin'], origin)
        assert.equal(headers['access-control-allow-credentials'], 'true')
        const [methods, names] = ['methods', 'headers'].map(what => words(headers[`access-control-allow-${what}`]))
        assert.deepEqual(['get', 'post'].filter(method => !methods!.includes(method)), [])
        assert.deepEqual(['authorization', 'content-type', 'accept', 'if-match', 'if-none-match'].filter(name =>
          !names!.includes(name)), [])
        assert.ok(Number(headers['access-control-max-age']) > 0)
        assert.equal(headers['x-ratelimit-remaining'], '5', 'it is not counted')
      }
    }
  }
})

test('§5.8 the answer itself may be read, with its rate-limit fields, whatever its status', async t => {
  const started = await startProtected(t, { ...CORS, 'rate-limit': '5', 'login-limit': '1' })
  const token = await tokenOf(started)
  const fields = [`Origin: ${APP}`]
  const asked = async (method: string, path: string, options: object): Promise<RawAnswer> =>
    call(t, started.url, method, path, { fields, ...options })
  const answers = [
    await asked('POST', '/api/createPassword', { token, body: ENTRY }),
    await asked('POST', '/api/createPassword', { token, body: {} }),
    await asked('GET', '/api/listPassword', {}),
    await asked('GET', '/api/unknown', { token }),
    await asked('POST', '/api/login', { body: { email: ANA, password: 'wrong' } }),
    await asked('POST', '/api/login', { body: { email: ANA, password: PASSWORD } }),
    await asked('GET', '/api/listPassword', { token })
  ]
  assert.deepEqual(answers.map(answer => answer.status), [200, 400, 401, 404, 401, 429, 429])
  for (const { status, headers } of answers) {
    assert.equal('retry-after' in headers, status === 429)
    assert.equal(headers['access-control-allow-origin'], APP)
    assert.equal(headers['access-control-allow-credentials'], 'true')
    assert.deepEqual(words(headers['access-control-expose-headers']).sort(),
      ['etag', 'location', 'retry-after', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-request-id'])
    assert.equal(headers['vary'], 'Origin')
  }
})

const FOREIGN = [
  'https://evil.example', 'https://app.example.org.evil.example', 'https://evil.app.example.org',
  'http://app.example.org',
  'https://app.example.org:444', 'https://app.example.org:443', 'https://app.example.org/', 'HTTPS://APP.EXAMPLE.ORG',
  'https://app.example.orgx', 'null', '*', '', `${APP} ${OTHER}`, `${APP}, ${OTHER}`
]

test('§5.8 protected: foreign origins, or any without CORS_ORIGINS, have no allowance, first or later', async t => {
  const [some, none] = [await startProtected(t, CORS), await startProtected(t)]
  for (const origin of [...FOREIGN, APP]) {
    const fields = [`Origin: ${origin}`]
    const started = origin === APP ? none : some // which allows no origin, and so varies by none
    const token = await tokenOf(started)
    for (const answer of [
      await call(t, started.url, 'OPTIONS', '/api/createPassword', { fields: [...fields, ...PREFLIGHT] }),
      await call(t, started.url, 'GET', '/api/listPassword', { fields, token })
    ]) {
      assert.deepEqual(allowances(answer), [], origin)
      assert.equal(answer.headers['vary'], origin === APP ? undefined : 'Origin')
    }
  }
})

test('OPTIONS that is no preflight is answered as ever, and counts', async t => {
  const { url } = await startService(t, { ...CORS, 'rate-limit': '5' })
  const answer = await call(t, url, 'OPTIONS', '/api/listPassword', { fields: [`Origin: ${APP}`] })
  assert.equal(answer.headers['allow'], 'GET, HEAD, OPTIONS')
  assert.equal(answer.headers['x-ratelimit-remaining'], '4')
})

// What a page can make its visitor's browser send, field by field (Fetch standard: no preflight for these).
const FORM = ['Content-Type: application/x-www-form-urlencoded']
const TEXT = ['Content-Type: text/plain;charset=UTF-8']
const JSON_BODY = JSON.stringify(ENTRY)
const HOSTILE: readonly (readonly [string, string, string, string | undefined, readonly string[]])[] = [
  ['a cross-site form', 'POST', '/api/createPassword', 'password=p&sistema=s&usuario=u',
    ['Origin: https://evil.example', ...FORM]],
  ['a form that deletes', 'POST', '/api/deletePassword/1', undefined, ['Origin: https://evil.example']],
  ['a form with JSON as text', 'POST', '/api/createPassword', JSON_BODY, ['Origin: null', 'Content-Type: text/plain']],
  ['fetch with text/plain', 'POST', '/api/updatePassword/1', JSON_BODY, ['Origin: https://evil.example', ...TEXT]],
  ['fetch with JSON', 'POST', '/api/createPassword', JSON_BODY, ['Origin: https://evil.example']],
  ['another port of this machine', 'POST', '/api/createPassword', JSON_BODY, ['Origin: http://127.0.0.1:1']],
  ['DNS rebinding that reads', 'GET', '/api/listPassword', undefined, ['Host: evil.example']],
  ['DNS rebinding that writes', 'POST', '/api/createPassword', JSON_BODY,
    ['Host: evil.example', 'Origin: http://evil.example']],
  ['DNS rebinding to a name like ours', 'GET', '/api/listPassword', undefined, ['Host: localhost.evil.example']],
  ['a preflight', 'OPTIONS', '/api/createPassword', undefined, ['Origin: https://evil.example', ...PREFLIGHT]],
  ['another site that sends no Origin', 'GET', '/api/listPassword', undefined, ['Sec-Fetch-Site: cross-site']],
  ['a neighbour that sends no Origin', 'GET', '/api/listPassword', undefined, ['Sec-Fetch-Site: same-site']]
]

test('§8 open: a foreign page gets nothing, changes nothing, and uses up nothing of its visitor\'s limit', async t => {
  const { url, service } = await startService(t, { 'rate-limit': '5' })
  await createEntry(service.store, { password: 'the-secret', sistema: 'the-system', usuario: 'the-user' }, null)
  const before = service.store.journal.status()
  for (const [what, method, path, body, fields] of HOSTILE) {
    const { status, text, headers } = await call(t, url, method, path, { body, fields })
    const [why, setting] = fields[0]!.startsWith('Host') ? ['host', 'ALLOWED_HOSTS'] : ['origin', 'CORS_ORIGINS']
    const says = `{"message":"This ${why} is not allowed. The setting ${setting} can allow it.","status":403}`
    assert.deepEqual([status, text], [403, says], what)
    assert.deepEqual(Object.keys(headers).filter(name => name.startsWith('access-control-')), [])
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.deepEqual([headers['x-ratelimit-remaining'], headers['retry-after']], ['5', undefined])
  }
  assert.deepEqual(service.store.journal.status(), before)
  for (const [i, site] of ['same-origin', 'none'].entries()) {
    const { status, headers } = await call(t, url, 'GET', '/api/listPassword', { fields: [`Sec-Fetch-Site: ${site}`] })
    assert.deepEqual([status, headers['x-ratelimit-remaining']], [200, String(4 - i)])
  }
})

test('open: a configured origin may use it, and still not under a foreign Host', async t => {
  const { url, service } = await startService(t, CORS)
  const create = (fields: readonly string[]): Promise<RawAnswer> =>
    call(t, url, 'POST', '/api/createPassword', { body: ENTRY, fields })
  const answer = await create([`Origin: ${APP}`])
  assert.deepEqual([answer.status, answer.headers['access-control-allow-origin']], [200, APP])
  assert.equal((await create([`Origin: ${APP}`, 'Host: evil.example'])).status, 403)
  assert.equal((await create(['Origin: http://127.0.0.1'])).status, 200, 'its own origin')
  assert.equal(service.store.state.entries.count, 2)
})
