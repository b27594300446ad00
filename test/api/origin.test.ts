import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isHostAllowed } from '../../src/http/client.ts'
import { answered } from '../support/pipeline.ts'
import { ask, message } from '../support/raw.ts'
import { startService } from '../support/service.ts'

const entry = '{"password":"p","sistema":"s","usuario":"u"}'

async function isOriginAllowed(origin: string, scheme: string, host: string,
  corsOrigins: ReadonlySet<string>): Promise<boolean> {
  const options = { corsOrigins, guardedHosts: new Set([host]) }
  return (await answered(options, { host, origin }, { isSecure: scheme === 'https' })).status !== 403
}

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
  for (const host of hosts) {
    for (const time of ['first', 'second']) assert.equal(isHostAllowed(host, allowed), false,
      `${JSON.stringify(host)}, ${time} request`)
  }
})

test('an origin is allowed when it is the service itself, as the request names it, or is in the set', async () => {
  const allowed = new Set(['https://app.example'])
  assert.equal(await isOriginAllowed('http://127.0.0.1:3000', 'http', '127.0.0.1:3000', allowed), true)
  assert.equal(await isOriginAllowed('http://localhost', 'http', 'LocalHost', allowed), true)
  assert.equal(await isOriginAllowed('https://vault.example', 'https', 'vault.example', allowed), true)
  assert.equal(await isOriginAllowed('https://app.example', 'http', '127.0.0.1:3000', allowed), true)
})

test('an origin of another scheme, host or port, or none at all, is not allowed', async () => {
  const allowed = new Set(['https://app.example'])
  const origins = [
    'https://127.0.0.1:3000', 'http://127.0.0.1', 'http://127.0.0.1:3001', 'http://localhost:3000',
    'http://evil.example', 'null', '', '*', 'http://', '127.0.0.1:3000', 'http://127.0.0.1:3000/',
    'http://127.0.0.1:3000.evil.example',
    'http://app.example', 'https://app.example:8443', 'https://app.example.evil.example'
  ]
  for (const origin of origins) assert.equal(await isOriginAllowed(origin, 'http', '127.0.0.1:3000', allowed), false,
    origin)
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
