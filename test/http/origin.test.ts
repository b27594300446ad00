import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isHostAllowed, isOriginAllowed } from '../../src/http/origin.ts'
import { ask, message, type RawAnswer } from '../support/raw.ts'
import { startService } from '../support/service.ts'

const entry = '{"password":"p","sistema":"s","usuario":"u"}'
const foreignHost = '{"message":"This host is not allowed. The setting ALLOWED_HOSTS can allow it.","status":403}'
const foreignOrigin = '{"message":"This origin is not allowed. The setting CORS_ORIGINS can allow it.","status":403}'

test('a host that is an IP literal, localhost or an allowed name is allowed, with and without a port', () => {
  const allowed = new Set(['vault.example', 'vault.example:8443', 'other.example:81'])
  const hosts = [
    'localhost', 'LocalHost:3000', '127.0.0.1', '192.0.2.7:3000', '[::1]', '[::1]:3000', '[2001:db8::7]',
    'vault.example', 'Vault.Example:1', 'vault.example:8443', 'other.example:81'
  ]
  for (const host of hosts) assert.equal(isHostAllowed(host, allowed), true, host)
})

test('any other host is not allowed', () => {
  const allowed = new Set(['vault.example', 'other.example:81'])
  const hosts = [
    '', 'evil.example', 'evil.example:3000', 'localhost.evil.example', 'evil-localhost', 'notlocalhost',
    '127.0.0.1.evil.example', 'vault.example.evil.example', 'evil.vault.example', 'other.example', 'other.example:82',
    '127.1', '2130706433', '0x7f000001', '0177.0.0.1', '::1', '[::1', '::1]', '[127.0.0.1]', '[localhost]', '[::1]evil',
    '[::1]:x', ':3000', '[]', 'localhost:3000:1', 'user@localhost', 'localhost/', ' localhost',
    'localhost,evil.example', 'toString', '__proto__', '0.0.0.0', '0.0.0.0:3000', '[::]', '[0:0::0]:3000',
    '[::ffff:127.0.0.1]:3000', '[::FFFF:7f00:1]', '[0:0:0:0:0:ffff:c000:207]', '[::ffff:0:0]'
  ]
  for (const host of hosts) assert.equal(isHostAllowed(host, allowed), false, JSON.stringify(host))
})

test('an origin is allowed when it is the service itself, as the request names it, or is in the set', () => {
  const allowed = new Set(['https://app.example'])
  assert.equal(isOriginAllowed('http://127.0.0.1:3000', 'http', '127.0.0.1:3000', allowed), true)
  assert.equal(isOriginAllowed('http://localhost', 'http', 'LocalHost', allowed), true)
  assert.equal(isOriginAllowed('https://vault.example', 'https', 'vault.example', allowed), true)
  assert.equal(isOriginAllowed('https://app.example', 'http', '127.0.0.1:3000', allowed), true)
})

test('an origin of another scheme, host or port, or none at all, is not allowed', () => {
  const allowed = new Set(['https://app.example'])
  const origins = [
    'https://127.0.0.1:3000', 'http://127.0.0.1', 'http://127.0.0.1:3001', 'http://localhost:3000',
    'http://evil.example', 'null', '', '*', 'http://', '127.0.0.1:3000', 'http://127.0.0.1:3000/',
    'http://127.0.0.1:3000.evil.example',
    'http://app.example', 'https://app.example:8443', 'https://app.example.evil.example'
  ]
  for (const origin of origins) assert.equal(isOriginAllowed(origin, 'http', '127.0.0.1:3000', allowed), false, origin)
})

test('a request by a foreign Host is refused, and the answer says what would allow it', async t => {
  const { url } = await startService(t)
  for (const host of ['evil.example', 'evil.example:3000', '127.0.0.1.evil.example', '']) {
    const { status, text } = await ask(t, url, message('GET', '/api/listPassword', undefined, [`Host: ${host}`]))
    assert.deepEqual([status, text], [403, foreignHost], host)
  }
})

test('ALLOWED_HOSTS allows a name, and only it', async t => {
  const { url } = await startService(t, { 'allowed-hosts': 'vault.example,Other.example' })
  const status = async (host: string): Promise<number> =>
    (await ask(t, url, message('POST', '/api/createPassword', entry, [`Host: ${host}`]))).status
  assert.equal(await status('vault.example'), 200)
  assert.equal(await status('VAULT.example:3000'), 200)
  assert.equal(await status('other.example'), 200)
  assert.equal(await status('a.vault.example'), 403)
})

test('a request from a page of another origin is refused and changes nothing', async t => {
  const { url, service } = await startService(t)
  const { host } = new URL(url)
  const from = (origin: string, method: string, target: string, body?: string): Promise<RawAnswer> =>
    ask(t, url, message(method, target, body, [`Host: ${host}`, `Origin: ${origin}`]))
  assert.equal((await from(url, 'POST', '/api/createPassword', entry)).status, 200, 'its own page')
  const before = service.store.journal.health()
  const origins = ['http://evil.example', 'null', `https://${host}`, 'http://127.0.0.1:1', `${url}.evil.example`, '']
  for (const origin of origins) {
    for (const [method, target, body] of [
      ['POST', '/api/createPassword', entry], ['POST', '/api/updatePassword/1', '{"password":"other"}'],
      ['POST', '/api/deletePassword/1', undefined], ['GET', '/api/getPassword/1', undefined],
      ['GET', '/api/listPassword', undefined], ['OPTIONS', '/api/createPassword', undefined]
    ] as const) {
      const { status, text, headers } = await from(origin, method, target, body)
      assert.deepEqual([status, text], [403, foreignOrigin], `${method} ${target} from ${origin}`)
      assert.deepEqual(Object.keys(headers).filter(name => name.startsWith('access-control-')), [])
    }
  }
  assert.deepEqual(service.store.journal.health(), before)
  assert.equal(service.store.entryText(1), '{"id":1,"password":"p","sistema":"s","usuario":"u","status":1}')
})

test('§8 a request refused for its Host or Origin does not count, and the answer says what is left', async t => {
  const { url } = await startService(t, { 'rate-limit': '2' })
  const get = async (field: string): Promise<readonly unknown[]> => {
    const { status, headers } = await ask(t, url, message('GET', '/api/getPassword/1', undefined, [field]))
    return [status, headers['x-ratelimit-limit'], headers['x-ratelimit-remaining'], headers['retry-after']]
  }
  for (let i = 0; i < 5; i++) {
    assert.deepEqual(await get('Host: evil.example'), [403, '2', '2', undefined])
    assert.deepEqual(await get('Origin: http://evil.example'), [403, '2', '2', undefined])
  }
  assert.deepEqual(await get('X-Own: request'), [404, '2', '1', undefined])
  assert.deepEqual(await get('Origin: http://evil.example'), [403, '2', '1', undefined])
  assert.deepEqual(await get('X-Own: request'), [404, '2', '0', undefined])
  assert.deepEqual(await get('Host: evil.example'), [403, '2', '0', undefined])
  assert.equal((await get('X-Own: request'))[0], 429)
})
