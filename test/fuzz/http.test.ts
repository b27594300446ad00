/** Bytes that only resemble requests, by the thousand, against a whole service. `SEED` and `COUNT` repeat, and more. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test, type TestContext } from 'node:test'
import { ANA, PASSWORD, startProtected, tokenOf } from '../support/accounts.ts'
import { assertErrorForm, hear, type Said } from '../support/answers.ts'
import { countFromEnv, mutate } from '../support/mutations.ts'
import { randomOf, type Random } from '../support/random.ts'
import { chunked, message } from '../support/raw.ts'
import { send, startService, type Started } from '../support/service.ts'

const COUNT = countFromEnv(2_000)
const AT_ONCE = 16
const BATCH = 200
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
  'message,status', 'passwords,status', 'password,message,status', 'token,user,status'
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

/**
 * Sends cases on connections of their own, some at once; after each batch the service must be well. `start` gives the
 * requests that a batch starts from; `token` is one that may read, and is not among them.
 */
async function bombard(
  t: TestContext, { service, url, warnings }: Started, start: () => Promise<readonly Buffer[]>, token: string,
  random: Random
): Promise<void> {
  const { hostname: host, port } = new URL(url)
  const seen = new Map<number, number>()
  let created = 0
  let resets = 0
  let entries = service.store.entryCount
  const one = async (valid: readonly Buffer[]): Promise<void> => {
    const sent = pieces(valid, random)
    try {
      const { answers, wasReset } = await hear({ host, port: Number(port) }, sent)
      for (const said of answers) {
        assertForm(said)
        seen.set(said.status, (seen.get(said.status) ?? 0) + 1)
        if (said.json?.message === CREATED) created++
      }
      if (wasReset) resets++
    } catch (error) {
      t.diagnostic(`the bytes, base64, in ${sent.length} pieces: ${sent.map(one => one.toString('base64')).join(' ')}`)
      throw error
    }
  }
  for (let done = 0; done < COUNT / 2; done += BATCH) {
    const valid = await start()
    for (let i = 0; i < BATCH; i += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, () => one(valid)))
    service.store.check()
    const [normal] = (await hear({ host, port: Number(port) },
      [message('GET', '/api/getPassword/1', undefined, [`Authorization: Bearer ${token}`])])).answers
    assert.equal(normal?.status, 200, 'a normal request is answered as ever')
    const more = service.store.entryCount - entries
    if (resets === 0) assert.equal(more, created, 'an entry for each acknowledgement, and no other')
    else assert.ok(more >= created, 'what was acknowledged is there')
    assert.deepEqual(warnings.filter(line => /failed|could not/.test(line)), [])
    entries = service.store.entryCount
    created = resets = 0
  }
  const counts = JSON.stringify(Object.fromEntries([...seen].sort(([a], [b]) => a - b)))
  t.diagnostic(`statuses: ${counts}; entries: ${service.store.entryCount}`)
  for (const status of [200, 400, 404]) assert.ok(seen.has(status), `no request came to ${status}: ${counts}`)
}

test('mutated requests are answered in the contract\'s form, and the open service lives on', async t => {
  const started = await startService(t, { 'cors-origins': 'https://a.example', 'trust-proxy': '127.0.0.1' })
  for (let i = 0; i < 3; i++) {
    await started.service.store.createEntry({ password: 'p', sistema: 's', usuario: 'u' }, null)
  }
  await bombard(t, started, async () => requests('pes_none'), 'pes_none', randomOf(t))
})

test('mutated requests are answered in the contract\'s form, and the protected service lives on', async t => {
  const started = await startProtected(t, { 'max-body-bytes': '400' })
  await started.service.store.createEntry({ password: 'p', sistema: 's', usuario: 'u' }, null)
  const reader = await tokenOf(started, ANA, ['password:read'])
  // A new token for each batch: a logout that takes another request's token is no fault.
  const start = async (): Promise<readonly Buffer[]> => [
    ...requests(await tokenOf(started)),
    message('POST', '/api/createPassword', ENTRY,
      [`Authorization: Bearer ${await tokenOf(started, ANA, ['password:read'])}`])
  ]
  await bombard(t, started, start, reader, randomOf(t))
})

const BODIES: readonly Buffer[] = [
  ENTRY, ENTRY, ENTRY, '{}', '[]', 'null', '"x"', '1e5', ' {} ',
  '{"password":"a","password":"b","sistema":"s","usuario":"u"}',
  '{"password":{"a":[1,-0.5e-7,true,null,{"b":"\\n"}]},"sistema":"","usuario":null,"id":9,"status":0}',
  '{"password":"😀\\ud83d\\ude00 \\ud800","sistema":"\\u0000\\/","usuario":"ñ\u2028"}',
  `{"password":"p","sistema":"s","usuario":"u","x":${'['.repeat(62)}${']'.repeat(62)}}`,
  '\ufeff{"password":"p","sistema":"s","usuario":"u"}'
].map(text => Buffer.from(text))

/** What a plain JSON parser makes of a body; undefined: it is not JSON in UTF-8. */
function plainly(body: Buffer): { readonly value: any } | undefined {
  try {
    return { value: JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)) }
  } catch {
    return undefined
  }
}

/** Holds the answer to a create to what the body was, as another parser understands it. */
function assertJudged(body: Buffer, { status, json }: Said, stored: () => any): void {
  const plain = body.length === 0 ? { value: {} } : plainly(body)
  if (status === 200) {
    const { password, sistema, usuario } = plain?.value
    assert.deepEqual(stored(), { password, sistema, usuario })
    return
  }
  assert.equal(status, 400, JSON.stringify(json))
  const [said = ''] = json.errors.body ?? []
  const isObject = typeof plain?.value === 'object' && plain.value !== null && !Array.isArray(plain.value)
  if (said !== '') {
    assert.ok(!isObject || /a key twice|nest/.test(said), `${said} of ${body.toString()}`)
    return
  }
  assert.ok(isObject, 'fields are named only where there is an object')
  const failing = ['password', 'sistema', 'usuario'].filter(field => {
    const value: unknown = Object.hasOwn(plain.value, field) ? plain.value[field] : undefined
    return typeof value !== 'string' || value === ''
  })
  assert.deepEqual(Object.keys(json.errors), failing)
}

test('§4.3 create: a mutated body is stored as another JSON parser reads it, or refused by name', async t => {
  const random = randomOf(t)
  const { service, url } = await startService(t)
  const { hostname: host, port } = new URL(url)
  const seen = { accepted: 0, refused: 0 }
  for (let done = 0; done < COUNT / 2; done += 10) {
    const bodies = Array.from({ length: 10 }, () => mutate(random.pick(BODIES), random, BODIES))
    const before = service.store.entryCount
    const { answers } = await hear({ host, port: Number(port) },
      [Buffer.concat(bodies.map(body => message('POST', '/api/createPassword', body)))])
    assert.equal(answers.length, bodies.length)
    let next = before
    for (const [i, body] of bodies.entries()) {
      try {
        assertJudged(body, answers[i]!, () => {
          const { password, sistema, usuario } = service.store.entry(++next)!
          return { password, sistema, usuario }
        })
      } catch (error) {
        t.diagnostic(`the body, base64: ${body.toString('base64')}; answered ${JSON.stringify(answers[i])}`)
        throw error
      }
      seen[answers[i]!.status === 200 ? 'accepted' : 'refused']++
    }
    assert.equal(service.store.entryCount, next, 'an entry for each acknowledgement, in their order')
  }
  service.store.check()
  assert.equal((await send(url, 'GET', '/api/listPassword')).json.length, service.store.entryCount)
  t.diagnostic(JSON.stringify(seen))
  assert.ok(seen.accepted > 0 && seen.refused > 0)
})
