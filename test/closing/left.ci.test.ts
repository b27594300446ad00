/**
 * Clients that leave: in each way, at each point, more of them than any bound holds. Whatever was counted or kept for
 * them is given back: the service has no connection left, serves what is largest, and closes without a rest.
 */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { ANA, call, PASSWORD, startProtected, tokenOf } from '../support/accounts.ts'
import { certificateFiles } from '../support/certificate.ts'
import { holdAppend } from '../support/faulty-files.ts'
import { connectRequest, entry, garbage } from '../support/framings.ts'
import { leavesNothing } from '../support/leaks.ts'
import { until } from '../support/program.ts'
import { chunk, chunked, connectRaw, message, type RawClient } from '../support/raw.ts'
import { freshFolder, within, type Scope, type Started } from '../support/service.ts'

/** Of each way and each end. That the room of bodies is given back is tried with more of them in `http/body`. */
const CLIENTS = 16
const LARGE = JSON.stringify({ password: 'x'.repeat(60_000), sistema: 's', usuario: 'u' })
let changes = 0
/** As large, and unlike any before: an update that changes nothing is not written. */
const another = (): string => LARGE.replace('xxxxxxxxxx', String(++changes).padStart(10, '0'))
const LOGIN = JSON.stringify({ email: ANA, password: PASSWORD })

/** How far a client comes; what is sent last may be answered before it leaves, or not. */
const POINTS: { readonly [point: string]: (fields: readonly string[]) => readonly (string | Buffer)[] } = {
  'a connection': () => [],
  'half a head': () => ['GET /api/listPassword HTTP/1.1\r\nHost: a\r\nA: b'],
  'a head whose body does not come': fields => [message('POST', '/api/updatePassword/1', LARGE, fields).subarray(0,
    -LARGE.length)],
  'half a body': fields => [message('POST', '/api/updatePassword/1', LARGE, fields).subarray(0, -10)],
  'half a body of a route that needs none': fields => [message('POST', '/api/deletePassword/2', LARGE,
    fields).subarray(0, -10)],
  'half a body in chunks': fields => [chunkedHead('/api/updatePassword/1', fields), chunk(LARGE.slice(9)), '9\r\n{"a'],
  'half a body that nobody needs': fields => [message('POST', '/api/nope', LARGE, fields).subarray(0, -10)],
  'a body that breaks': fields => [chunkedHead('/api/updatePassword/1', fields), chunk(LARGE), 'zz\r\n'],
  'a client that waits for leave': fields => [message('POST', '/api/updatePassword/1', LARGE,
    [...fields, 'Expect: 100-continue']).subarray(0, -LARGE.length)],
  'a create': fields => [message('POST', '/api/createPassword', entry, fields)],
  'an update': fields => [message('POST', '/api/updatePassword/1', LARGE, [...fields, 'If-Match: *'])],
  'a body that is refused': fields => [message('POST', '/api/updatePassword/1', LARGE.slice(0, -1), fields)],
  'a body that is too large': fields => [message('POST', '/api/updatePassword/1', LARGE.repeat(2), fields)],
  'a login': () => [message('POST', '/api/login', LOGIN)],
  'a list': fields => [message('GET', '/api/listPassword', undefined, fields)],
  'a history': fields => [message('GET', '/api/historyPassword/1', undefined, fields)],
  'many gets': fields => [Buffer.concat(Array<Buffer>(20).fill(message('GET', '/api/getPassword/1', undefined,
    fields)))],
  'a get behind a create': fields => [message('POST', '/api/updatePassword/1', LARGE, fields),
    message('GET', '/api/getPassword/1', undefined, fields)],
  'nonsense': () => [garbage],
  'a tunnel': () => [connectRequest]
}

const chunkedHead = (target: string, fields: readonly string[]): Buffer =>
  Buffer.from(chunked('POST', target, []).toString('latin1').replace(/\r\n\r\n$/, `\r\n${fields.join('\r\n')}\r\n\r\n`))

const ENDS: { readonly [end: string]: (client: RawClient) => void } = {
  'closes its connection': client => client.destroy(), 'resets it': client => client.reset(), 'ends its side': client =>
    client.finish()
}

async function connectionsOf(t: Scope, { url }: Started, token: string): Promise<number> {
  const { text } = await call(t, url, 'GET', '/metrics', { token })
  return Number(/^pes_http_connections (\d+)$/m.exec(text)?.[1])
}

/** What is left is nothing: the largest bodies are taken at once, a login and a list are answered. */
async function assertWell(t: Scope, started: Started, token: string, what: string): Promise<void> {
  await until(`no connection is left of ${what}`, async () => await connectionsOf(t, started, token) === 1)
  // A service that is busy says so, and may be asked again.
  const isDone = async (method: string, path: string, body?: string): Promise<boolean> => {
    const { status } = await call(t, started.url, method, path, path.endsWith('login') ? { body } : { token, body })
    assert.ok(status === 200 || status === 503, `${path} is answered ${status} after ${what}`)
    return status === 200
  }
  await Promise.all([
    until(`a login after ${what}`, () => isDone('POST', '/api/login', LOGIN)),
    until(`a list after ${what}`, () => isDone('GET', '/api/listPassword')),
    ...Array.from({ length: 20 }, () => until(`a change after ${what}`, () =>
      isDone('POST', '/api/updatePassword/1', another())))
  ])
}

/** Clients who come as far as that and leave, half of them without waiting for what they are answered. */
async function leave(
  t: Scope, { url }: Started, bytes: readonly (string | Buffer)[], end: (client: RawClient) => void, clients: number
): Promise<void> {
  await Promise.all(Array.from({ length: clients }, async (_, i) => {
    const client = await connectRaw(t, url)
    const sent = client.send(...bytes)
    if (i % 2 === 0) { await sent; await new Promise(resolve => setTimeout(resolve, i)) }
    end(client)
  }))
}

for (const over of ['TCP', 'TLS'] as const) {
  test(`over ${over}: of clients who leave, wherever and however, nothing is left`, async t => {
    const [place, tls] = [freshFolder(t), over === 'TLS' ? certificateFiles(freshFolder(t)) : {}]
    const act = (): Promise<void> => within(async scope => {
      const started = await startProtected(scope, { 'login-limit': '0', 'extra-routes': 'on', ...tls })
      const token = await tokenOf(started)
      for (let n = 0; n < 2; n++) await call(scope, started.url, 'POST', '/api/createPassword', { token, body: LARGE })
      const rest = Object.keys(POINTS)
      while (rest.length > 0) {
        const points = rest.splice(0, 5)
        await within(async scope => {
          // Over TLS only the sockets are others.
          for (const end of Object.values(ENDS)) await Promise.all(points.map(point =>
            leave(scope, started, POINTS[point]!([`Authorization: Bearer ${token}`]), end, over === 'TLS' ? 4
              : CLIENTS)))
        })
        await within(scope => assertWell(scope, started, token, points.join(', ')))
      }
    })
    await leavesNothing({ folder: place }, 'clients left', act)
  })
}

test('of clients who leave while the disk stands still nothing is left, and no more made than asked for', async t => {
  const started = await startProtected(t, { 'login-limit': '0' })
  const token = await tokenOf(started)
  await call(t, started.url, 'POST', '/api/createPassword', { token, body: LARGE })
  for (const [path, bodyOf] of [['/api/createPassword', () => entry], ['/api/updatePassword/1', another]] as const) {
    for (const end of Object.values(ENDS)) {
      const before = started.service.store.state.entries.size
      const { reached, release } = holdAppend(t)
      await within(async scope => {
        const clients = await Promise.all(Array.from({ length: 2 * CLIENTS }, () => connectRaw(scope, started.url)))
        for (const client of clients) void client.send(message('POST', path, bodyOf(),
          [`Authorization: Bearer ${token}`]))
        await reached;
        for (const client of clients) { end(client); await new Promise(resolve => setTimeout(resolve, 5)) }
        release()
      })
      await assertWell(t, started, token, 'the clients who left')
      assert.ok(started.service.store.state.entries.size <= before + 2 * CLIENTS)
    }
  }
})
