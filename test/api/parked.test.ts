/** Requests that take their time, or say where they come from. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectRaw } from '../support/raw.ts'
import { startProtected, tokenOf } from '../support/accounts.ts'
import { startService } from '../support/service.ts'

const BODY = '{"password":"p","sistema":"s","usuario":"u"}'

test('§5.7 a request whose body comes after its token was revoked is refused, and changes nothing', async t => {
  const started = await startProtected(t)
  const token = await tokenOf(started)
  const client = await connectRaw(t, started.url)
  await client.send('POST /api/createPassword HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
    `Authorization: Bearer ${token}\r\nContent-Length: ${BODY.length}\r\n\r\n`, BODY.slice(0, 5))
  const { accounts } = started.service.store
  const { hash, user } = accounts.session(token)!
  assert.equal(await accounts.revoke(hash, user), true)
  await client.send(BODY.slice(5))
  assert.equal((await client.answer()).status, 401)
  assert.equal(started.service.store.entryCount, 0)
})

test('a GET that another site\'s page sends without an Origin is refused, and not counted', async t => {
  const { url } = await startService(t, { 'rate-limit': '5' })
  const statusFrom = async (site: string): Promise<readonly [number, string | null]> => {
    const client = await connectRaw(t, url)
    await client.send(`GET /api/listPassword HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: ${site}\r\n\r\n`)
    const { status, headers } = await client.answer()
    return [status, headers['x-ratelimit-remaining'] ?? null]
  }
  assert.deepEqual(await statusFrom('cross-site'), [403, '5'])
  assert.deepEqual(await statusFrom('same-site'), [403, '5'])
  assert.deepEqual(await statusFrom('same-origin'), [404, '4'])
  assert.deepEqual(await statusFrom('none'), [404, '3'])
})

test('§8 a malformed request under /api is counted, and refused once there were too many', async t => {
  const { url } = await startService(t, { 'rate-limit': '2' })
  for (const expected of [400, 400, 429]) {
    const client = await connectRaw(t, url)
    await client.send('GET /api/listPassword HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n')
    const { status, headers } = await client.answer()
    assert.deepEqual([status, headers['x-ratelimit-limit']], [expected, '2'])
  }
})
