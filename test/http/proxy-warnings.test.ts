/** What the operator learns if a proxy's requests are refused for want of HTTPS. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { proxyWarnings } from '../../src/http/proxy-warnings.ts'
import { MAX_WARNED_PROXIES } from '../../src/limits.ts'
import { ANA, PASSWORD } from '../support/accounts.ts'
import { openService } from '../../src/embedding/embedded-service.ts'
import { ask, message } from '../support/raw.ts'
import { freshFolder } from '../support/service.ts'

const UNTRUSTED = { address: '10.9.0.1', isTrusted: false, said: 'https' }

test('a warning names the proxy and what is wrong with it', () => {
  for (const [refused, expected] of [
    [UNTRUSTED, /^a request from 10\.9\.0\.1, which is not in TRUST_PROXY, says that it came by HTTPS/],
    [{ ...UNTRUSTED, said: 'HTTPS' }, /not in TRUST_PROXY/],
    [{ address: '10.9.0.1', isTrusted: true, said: undefined },
      /^a request from 10\.9\.0\.1, a proxy in TRUST_PROXY, has no X-Forwarded-Proto/],
    [{ address: '10.9.0.1', isTrusted: true, said: 'http' }, /TRUST_PROXY, does not say X-Forwarded-Proto: https/],
    [{ address: '10.9.0.1', isTrusted: false, said: undefined }, undefined], // a client that forgot the s
    [{ address: '10.9.0.1', isTrusted: false, said: 'http' }, undefined]
  ] as const) {
    const lines: string[] = []
    proxyWarnings(line => { lines.push(line) })(refused)
    if (expected === undefined) assert.deepEqual(lines, [])
    else assert.match(lines.join('\n'), expected)
  }
})

test('each proxy is named once, and only so many of them', () => {
  const lines: string[] = []
  const warn = proxyWarnings(line => { lines.push(line) })
  for (let n = 0; n < 3; n++) warn(UNTRUSTED)
  assert.equal(lines.length, 1)
  for (let n = 0; n < 100; n++) warn({ ...UNTRUSTED, address: `10.8.0.${n}` })
  assert.equal(lines.length, MAX_WARNED_PROXIES)
})

for (const [what, trustProxy, fields, expected] of [
  ['a proxy that is not trusted', '192.0.2.1', ['X-Forwarded-Proto: https'],
    /127\.0\.0\.1, which is not in trustProxy/],
  ['a trusted proxy that does not say how a request came', '127.0.0.1', [], /trustProxy, has no X-Forwarded-Proto/]
] as const) {
  test(`§5.9 in production a request by ${what} is refused, and a warning says why`, async t => {
    const warnings: string[] = []
    const log = { info: () => {}, warn: (line: string) => { warnings.push(line) } }
    const options = { dataDir: freshFolder(t), port: 0, production: true, init: true, auth: 'bearer',
      tokenTtlMinutes: 5, trustProxy, log }
    const service = await openService(options as object)
    try {
      const url = await service.listen()
      const list = message('GET', '/api/listPassword', undefined, fields)
      for (let n = 0; n < 2; n++) assert.equal((await ask(t, url, list)).status, 403)
      assert.equal(warnings.filter(line => expected.test(line)).length, 1, warnings.join('\n'))
    } finally {
      await service.close()
    }
  })
}

test('§5.9 in production health and metrics refuse a token over plain HTTP, and answer without one', async t => {
  const options = {
    dataDir: freshFolder(t), port: 0, production: true, init: true, auth: 'bearer', tokenTtlMinutes: 5,
    trustProxy: '192.0.2.1'
  }
  const service = await openService(options as object)
  try {
    const url = await service.listen()
    await service.accounts.addUser({ email: ANA, password: PASSWORD, abilities: ['*'], groups: null })
    const { token } = (await service.accounts.issue({ email: ANA, abilities: null, groups: null }))!
    for (const path of ['/healthz', '/livez', '/metrics']) {
      const get = (...fields: readonly string[]): Promise<{ readonly status: number }> =>
        ask(t, url, message('GET', path, undefined, fields))
      assert.equal((await get()).status, 200, path)
      assert.equal((await get(`Authorization: Bearer ${token}`)).status, 403, path)
    }
  } finally {
    await service.close()
  }
})
