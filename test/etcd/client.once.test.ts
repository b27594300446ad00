/** How long a client waits for an endpoint, and for what it turns to the next one. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { disk } from '../../src/journal/files.ts'
import { etcdAccess, EtcdClient } from '../../src/parts/etcd/etcd-client.ts'
import { MAX_ETCD_ANSWER_BYTES } from '../../src/parts/etcd/etcd-limits.ts'
import { EtcdLog } from '../../src/parts/etcd/etcd-log.ts'
import { base64, callEtcd, etcdMissing, startCluster } from '../support/etcd.ts'
import { settingsOf } from '../support/instances.ts'
import { failure } from '../support/journal.ts'
import { atEnd, freshFolder } from '../support/service.ts'

async function endpoint(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(t, () => { server.closeAllConnections(); server.close() })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

// A silence far longer than this process, which is both sides, may stand still; who is cut off waits for none.
for (const [what, silenceMs, expected] of [['silent', 3_000, 'near'], ['cut off', undefined, 'far']] as const) {
  test(`a watch that is ${what} leaves the client at the ${expected} endpoint`, async t => {
    const near = await endpoint(t, (request, response) => {
      if (request.url !== '/v3/watch') { response.end('{"at":"near"}'); return }
      response.write('{"result":{}}\n')
      if (silenceMs === undefined) setTimeout(() => response.destroy(), 50)
    })
    const far = await endpoint(t, (_request, response) => { response.end('{"at":"far"}') })
    const client = new EtcdClient({ endpoints: [near, far] })
    atEnd(t, () => client.close())
    const messages: unknown[] = []
    const { signal } = new AbortController()
    await assert.rejects(client.follow('/v3/watch', {}, message => messages.push(message), signal, silenceMs))
    assert.equal(messages.length, 1)
    assert.equal((await client.ask('/v3/kv/txn', () => ({}), performance.now() + 10_000)).at, expected)
  })
}

test('a message that is too large ends a watch', async t => {
  const url = await endpoint(t, (_request, response) => { response.end(Buffer.alloc(MAX_ETCD_ANSWER_BYTES + 1, 'x')) })
  const client = new EtcdClient({ endpoints: [url] })
  atEnd(t, () => client.close())
  await assert.rejects(client.follow('/v3/watch', {}, () => {}, new AbortController().signal), /a message is too large/)
})

test('a watch brings much in parts', { skip: etcdMissing() }, async t => {
  const { members: [member] } = await startCluster(t)
  const value = base64('x'.repeat(400_000))
  await callEtcd(member!.url, '/v3/kv/txn', { success: [1, 2, 3].map(seq => // two of them do not fit a part
    ({ request_put: { key: base64(`/pes/${String(seq).padStart(16, '0')}`), value } })) })
  const client = new EtcdClient({ endpoints: [member!.url] })
  atEnd(t, () => client.close())
  const seen: number[] = []
  await assert.rejects(new EtcdLog(client, '/pes').follow('0', ({ records }) => {
    seen.push(...records.map(({ seq }) => seq))
    if (seen.length === 3) throw new Error('all are there')
  }, new AbortController().signal), /all are there/)
  assert.deepEqual(seen, [1, 2, 3])
})

// Whatever it answers; and though the watch there has gone on all the time.
for (const [what, refusal, watchedAt] of [
  ['answers', undefined, 'second'], ['refuses', '{"code":7,"message":"permission denied"}', 'second'],
  ['answers', undefined, 'first']
] as const) {
  test(`the watch at its ${watchedAt}, the client returns to its first endpoint once that ${what} again`, async t => {
    let isDown = false
    const first = await endpoint(t, (request, response) => {
      if (request.url === '/v3/watch') response.write('{"result":{}}\n')
      else if (isDown) request.socket.destroy()
      else if (request.url === '/v3/kv/range' && refusal !== undefined) response.writeHead(500).end(refusal)
      else response.end('{"at":"first"}')
    })
    const second = await endpoint(t, (request, response) => {
      if (request.url === '/v3/watch') response.write('{"result":{}}\n')
      else response.end('{"at":"second"}')
    })
    const client = new EtcdClient({ endpoints: [first, second] }, 100)
    atEnd(t, () => client.close())
    const ask = async (): Promise<string> => (await client.ask('/v3/kv/txn', () => ({}), performance.now() + 20_000)).at
    const watch = async (): Promise<() => Promise<void>> => {
      let ended = Promise.resolve()
      await new Promise<void>((resolve, reject) => {
        ended = client.follow('/v3/watch', {}, () => resolve(), new AbortController().signal)
        ended.catch(reject)
      })
      return () => assert.rejects(ended, /first endpoint answers/)
    }
    let returned = watchedAt === 'first' ? await watch() : undefined
    isDown = true
    assert.equal(await ask(), 'second')
    returned ??= await watch()
    for (let i = 0; i < 3; i++) {
      await new Promise(resolve => setTimeout(resolve, 150))
      assert.equal(await ask(), 'second', 'while it is down')
    }
    isDown = false
    let hasReturned = false
    void returned().then(() => { hasReturned = true })
    for (const endMs = performance.now() + 30_000; !hasReturned && performance.now() < endMs;) {
      await ask() // which has it look
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    assert.ok(hasReturned)
    assert.equal(await ask(), 'first')
  })
}

test('of two requests that fail at once, one moves on: the next endpoint is not passed over', async t => {
  const held: ServerResponse[] = []
  const first = await endpoint(t, (_request, response) => {
    if (held.push(response) === 2) for (const { socket } of held) socket!.destroy()
  })
  const others = await Promise.all(['second', 'third'].map(at =>
    endpoint(t, (_request, response) => { response.end(JSON.stringify({ at })) })))
  const client = new EtcdClient({ endpoints: [first, ...others] })
  atEnd(t, () => client.close())
  const ask = (): Promise<unknown> => client.ask('/v3/kv/txn', () => ({}), performance.now() + 20_000)
  assert.deepEqual(await Promise.all([ask(), ask()]), [{ at: 'second' }, { at: 'second' }])
})

/** Answers a byte at a time, for ever: never silent for long. */
function trickle(response: ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'application/json' })
  const timer = setInterval(() => response.write(' '), 100)
  response.on('close', () => clearInterval(timer))
}

// They wait.
describe('answers that come slowly, or are none', { concurrency: true }, () => {
  test('an endpoint that answers a byte at a time is left in time, and less is asked for', async t => {
    const near = await endpoint(t, (_request, response) => trickle(response))
    const far = await endpoint(t, (request, response) => { request.pipe(response) })
    const client = new EtcdClient({ endpoints: [near, far] })
    atEnd(t, () => client.close())
    const beganMs = performance.now()
    assert.deepEqual(await client.ask('/v3/kv/txn', attempt => ({ attempt }), performance.now() + 30_000),
      { attempt: 1 })
    assert.ok(performance.now() - beganMs < 10_000, 'long before the end')
  })

  test('so is one that lets the user wait for a token, and the watch for its beginning', async t => {
    const slow = await endpoint(t, (_request, response) => trickle(response))
    const client = new EtcdClient({ endpoints: [slow], user: { name: 'pes', password: () => 'p' } })
    atEnd(t, () => client.close())
    const beganMs = performance.now()
    const { signal } = new AbortController()
    await Promise.all([
      assert.rejects(client.ask('/v3/kv/txn', () => ({}), performance.now() + 1_000),
        failure('journal-unreachable', /no answer in time/)),
      assert.rejects(client.follow('/v3/watch', {}, () => {}, signal), /no answer in time/)
    ])
    assert.ok(performance.now() - beganMs < 20_000) // else never
  })

  test('an answer of something that is not etcd is reported as that', async t => {
    const answers = [
      [200, '<p>', 'journal-unreachable'], [502, '{"error":"x"}', 'journal-unreachable'],
      [404, '<p>', 'journal-refused']
    ] as const
    await Promise.all(answers.map(async ([status, text, code]) => {
      const other = await endpoint(t, (_request, response) => { response.writeHead(status).end(text) })
      const client = new EtcdClient({ endpoints: [other] })
      atEnd(t, () => client.close())
      await assert.rejects(client.ask('/v3/kv/txn', () => ({}), performance.now() + 3_000),
        failure(code, new RegExp(`HTTP status ${status}, and no answer of etcd's$`)))
    }))
  })
})

/** gRPC's codes, and whether the failure may be over at another endpoint. */
const CODES = [
  [1, true], [2, true], [3, false], [4, true], [5, false], [7, false], [8, false], [9, false], [11, false], [12, false],
  [13, true],
  [14, true]
] as const

test('what may succeed at another endpoint is asked there; any other refusal is given with its words', async t => {
  for (const [code, passes] of CODES) {
    const near = await endpoint(t, (_request, response) => {
      response.writeHead(500).end(JSON.stringify({ code, message: `words of ${code}` }))
    })
    const far = await endpoint(t, (_request, response) => { response.end('{"at":"far"}') })
    const client = new EtcdClient({ endpoints: [near, far] })
    atEnd(t, () => client.close())
    const asked = client.ask('/v3/kv/txn', () => ({}), performance.now() + 20_000)
    if (passes) assert.deepEqual(await asked, { at: 'far' }, `code ${code}`)
    else await assert.rejects(asked, failure('journal-refused', new RegExp(`words of ${code}$`)))
  }
})

for (const [code, message] of [
  [16, 'etcdserver: invalid auth token'], [3, 'etcdserver: revision of auth store is old']
] as const) {
  test(`after "${message}" the client logs in again at the same endpoint`, async t => {
    let logins = 0
    const near = await endpoint(t, (request, response) => {
      if (request.url === '/v3/auth/authenticate') { response.end(`{"token":"login ${++logins}"}`); return }
      if (request.headers.authorization === 'login 2') { response.end('{"at":"near"}'); return }
      response.writeHead(400).end(JSON.stringify({ code, message }))
    })
    const far = await endpoint(t, (_request, response) => { response.end('{"at":"far"}') })
    const client = new EtcdClient({ endpoints: [near, far], user: { name: 'pes', password: () => '' } })
    atEnd(t, () => client.close())
    const ask = async (): Promise<string> =>
      (await client.ask('/v3/kv/txn', () => ({}), performance.now() + 20_000)).at
    await client.follow('/v3/watch', {}, () => {}, new AbortController().signal).catch(() => {}) // has logged in
    assert.deepEqual([await ask(), await ask(), logins], ['near', 'near', 2])
  })
}

test('the password of etcd is the first line that its file has at a login, to the letter', t => {
  const path = join(freshFolder(t), 'password')
  writeFileSync(path, 'the one at the start')
  const settings = { ...settingsOf('http://localhost:2379', '/pes'), etcdUser: 'pes', etcdPasswordFile: path }
  const { user } = etcdAccess(settings, disk)
  for (const [text, password] of [
    ['word', 'word'], ['word\n', 'word'], ['word\r\n', 'word'], [' word \n', ' word '], ['word\nanother\n', 'word'],
    ['', '']
  ] as const) {
    writeFileSync(path, text)
    assert.equal(user!.password(), password, JSON.stringify(text))
  }
})
