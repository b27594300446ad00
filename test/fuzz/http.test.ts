/** Bytes that only resemble requests, by the thousand, against a whole service. `SEED` and `COUNT` repeat, and more. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test, type TestContext } from 'node:test'
import { ANA, PASSWORD, startProtected, tokenOf } from '../support/accounts.ts'
import { assertErrorForm, hear, type Heard, type Said } from '../support/answers.ts'
import { countFromEnv, mutate } from '../support/mutations.ts'
import { randomOf, type Random } from '../support/random.ts'
import { chunked, message } from '../support/raw.ts'
import { startService, type Started } from '../support/service.ts'
import { checkState } from '../support/check.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'

const COUNT = countFromEnv(30)
const CREATED = 'SE CREÓ UNA NUEVA CONTRASEÑA'
const ENTRY = '{"password":"p","sistema":"s \\u00f1","usuario":"u"}'

/** Requests that are all answered, which mutations start from. */
function requests(token: string): Buffer[] {
  const fields = [`Authorization: Bearer ${token}`, 'Accept: application/json']
  return [
    message('GET', '/api/listPassword', undefined, fields),
    message('GET', '/api/getPassword/1', undefined, [...fields, 'X-Forwarded-For: 10.0.0.1, 10.0.0.2']),
    message('GET', '/api/getPassword/1?a=%20b', undefined, [...fields, 'Connection: close']),
    message('HEAD', '/api/getPassword/2', undefined, fields),
    message('GET', '/api/getPassword/999999999', undefined, fields),
    message('POST', '/api/createPassword', '{"password":', fields),
    message('OPTIONS', '/api/createPassword', undefined, ['Origin: https://a.example',
      'Access-Control-Request-Method: POST', 'Access-Control-Request-Headers: content-type']),
    message('OPTIONS', '*'),
    message('POST', '/api/createPassword', ENTRY, fields),
    message('POST', '/api/createPassword', ENTRY, [...fields, 'Expect: 100-continue']),
    message('POST', '/api/createPassword', `{"password":"${'ñ'.repeat(300)}","sistema":"s","usuario":"u"}`, fields),
    chunked('POST', '/api/createPassword', [ENTRY.slice(0, 7), ENTRY.slice(7), '']),
    message('POST', '/api/updatePassword/1', '{"usuario":"v","password":"\\ud800"}', fields),
    message('POST', '/api/deletePassword/3', undefined, fields),
    message('POST', '/api/login', `{"email":"${ANA}","password":"${PASSWORD}"}`),
    message('POST', '/api/logout', undefined, ['Authorization: Bearer pes_nobody']),
    Buffer.from('GET /api/listPassword HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n'),
    Buffer.from('CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n'),
    Buffer.from('GET /api/getPassword/1 HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n')
  ]
}

/** One to six requests on a connection, the most of them mutated, cut into pieces anywhere. */
function pieces(valid: readonly Buffer[], random: Random): Buffer[] {
  const many = Array.from({ length: random.next() < 0.5 ? 1 : 1 + random.int(6) }, () => {
    const one = random.pick(valid)
    return random.next() < 0.85 ? mutate(one, random, valid) : one
  })
  const bytes = Buffer.concat(many)
  if (random.next() < 0.7) return [bytes]
  const cut = random.int(bytes.length + 1)
  return [bytes.subarray(0, cut), bytes.subarray(cut)]
}

const SUCCESSES: readonly string[] = [
  'message,status', 'passwords,status', 'password,message,status', 'token,user,expires,status'
]
const ENTRY_KEYS = 'id,password,sistema,usuario,status'
const STATUSES = [200, 204, 400, 401, 403, 404, 405, 408, 413, 415, 417, 429, 431, 503]

/** Holds an answer to the contract's forms (§1, §7). */
function assertForm(said: Said): void {
  const { status, json } = said
  assert.ok(STATUSES.includes(status), `${status} ${JSON.stringify(json)}`)
  if (json === undefined) return
  if (status !== 200) { assertErrorForm(said); return }
  const entries = Array.isArray(json) ? json : [json.passwords ?? json.password].filter(one => one !== undefined)
  for (const entry of entries) assert.equal(Object.keys(entry).join(), ENTRY_KEYS)
  if (Array.isArray(json)) { assert.ok(json.length > 0 && json.every(entry => entry.status === 1)); return }
  assert.equal(json.status, 200)
  assert.ok(SUCCESSES.includes(Object.keys(json).join()), JSON.stringify(json))
}

const AT_ONCE = 16
const BATCH = 7 * AT_ONCE

/**
 * Bombards a service, on connections of their own, with mutations of what `start` gives anew for each batch; `token`
 * may read, and is not in it. After each batch the service must be well.
 */
async function bombardService(
  t: TestContext, { service, url, warnings }: Started, start: () => Promise<readonly Buffer[]>, token: string
): Promise<void> {
  const random = randomOf(t)
  const { hostname: host, port } = new URL(url)
  const where = { host, port: Number(port) }
  const seen = new Map<number, number>()
  let valid: readonly Buffer[] = []
  const one = async (sent: readonly Buffer[]): Promise<Heard> => {
    try {
      const heard = await hear(where, sent)
      for (const said of heard.answers) {
        assertForm(said)
        seen.set(said.status, (seen.get(said.status) ?? 0) + 1)
      }
      return heard
    } catch (error) {
      t.diagnostic(`the bytes, base64, in ${sent.length} pieces: ${sent.map(one => one.toString('base64')).join(' ')}`)
      throw error
    }
  }
  for (let done = 0; done < COUNT; done += BATCH) {
    valid = await start()
    const entries = service.store.state.entries.count
    const heard: Heard[] = []
    for (const request of valid) heard.push(await one([request]))
    // Else most of what follows would say little, being refused at the door.
    for (const status of [200, 400, 404]) assert.ok(seen.has(status), `no request comes to ${status} as it stands`)
    for (let i = 0; i < BATCH; i += AT_ONCE) {
      heard.push(...await Promise.all(Array.from({ length: AT_ONCE }, () => one(pieces(valid, random)))))
    }
    checkState(service.store.state)
    const normal = message('GET', '/api/getPassword/1', undefined, [`Authorization: Bearer ${token}`])
    assert.equal((await hear(where, [normal])).answers[0]?.status, 200, 'a normal request is answered as ever')
    const created = heard.flatMap(({ answers }) => answers).filter(({ json }) => json?.message === CREATED).length
    const more = service.store.state.entries.count - entries
    if (heard.some(({ wasReset }) => wasReset)) assert.ok(more >= created, 'what was acknowledged is there')
    else assert.equal(more, created, 'an entry for each acknowledgement, and no other')
    assert.deepEqual(warnings.filter(line => /failed|could not/.test(line)), [])
  }
  t.diagnostic(JSON.stringify(Object.fromEntries([...seen].sort(([a], [b]) => a - b))))
}

test('mutated requests are answered in the contract\'s form, and the open service lives on', async t => {
  const started = await startService(t, { 'cors-origins': 'https://a.example', 'trust-proxy': '127.0.0.1' })
  for (let i = 0; i < 3; i++) {
    await createEntry(started.service.store, { password: 'p', sistema: 's', usuario: 'u' }, null)
  }
  await bombardService(t, started, async () => requests('pes_none'), 'pes_none')
})

test('mutated requests are answered in the contract\'s form, and the protected service lives on', async t => {
  const started = await startProtected(t, { 'max-body-bytes': '400' })
  await createEntry(started.service.store, { password: 'p', sistema: 's', usuario: 'u' }, null)
  const reader = await tokenOf(started, ANA, ['password:read'])
  // A new token for each batch: a logout that takes another request's token is no fault.
  const start = async (): Promise<readonly Buffer[]> => [
    ...requests(await tokenOf(started)),
    message('POST', '/api/createPassword', ENTRY,
      [`Authorization: Bearer ${await tokenOf(started, ANA, ['password:read'])}`])
  ]
  await bombardService(t, started, start, reader)
})
