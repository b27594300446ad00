/**
 * A service that is closed while work is under way, of every kind: it ends in time, whatever clients do; who had sent a
 * whole request has an answer or none was promised; what was acknowledged is there afterwards, and nothing is left.
 */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { VERSION } from '../../src/version.ts'
import { openService } from '../../src/embedding/embedded-service.ts'
import { SHUTDOWN_SWEEP_MS, SHUTDOWN_TIMEOUT_MS } from '../../src/limits.ts'
import { ANA, PASSWORD } from '../support/accounts.ts'
import { certificateFiles } from '../support/certificate.ts'
import { holdAppend } from '../support/faulty-files.ts'
import { leavesNothing } from '../support/leaks.ts'
import { programWithin, socketsIn, startProgram } from '../support/program.ts'
import { chunk, chunked, connectRaw, message, type RawClient } from '../support/raw.ts'
import { freshFolder, within, type Scope } from '../support/service.ts'

const ENTRY = { password: 'p', sistema: 's', usuario: 'u' }
const BODY = JSON.stringify(ENTRY)
const LOGIN = JSON.stringify({ email: ANA, password: PASSWORD })
/** What a machine that is busy adds to any wait. */
const SLACK_MS = 8_000

/** What a client is at when the service is closed; what it then sends, if it goes on; and what it may be answered. */
interface Work {
  readonly sends: readonly (string | Buffer)[]
  /** Nothing is sent before the handshake; only over TLS. */
  readonly isBare?: boolean
  readonly then?: string | Buffer
  readonly answers: readonly (number | undefined)[]
  /** Whether it ends only when its time is up: a client that never sends the rest. */
  readonly isSlow?: boolean
}

const create = message('POST', '/api/createPassword', BODY)
const half = create.subarray(0, -5)
const WORKS: { readonly [what: string]: Work } = {
  'a connection that has not sent a byte': { sends: [], answers: [undefined] },
  'half a handshake': { sends: [Buffer.from([0x16, 3, 1, 0, 200, 1])], isBare: true, answers: [undefined] },
  'a connection that waits for its next request': { sends: [message('GET', '/nope')], answers: [404] },
  'half a head': { sends: ['GET /nope HTTP/1.1\r\nHost: a\r\nA'], answers: [undefined], isSlow: true },
  'half a head whose rest comes': { sends: ['GET /nope HTTP/1.1\r\nHost: localhost\r\nA'], then: ': b\r\n\r\n',
    answers: [404] },
  'half a body': { sends: [half], answers: [undefined], isSlow: true },
  'half a body whose rest comes': { sends: [half], then: create.subarray(-5), answers: [200] },
  'half a body in chunks': { sends: [chunked('POST', '/api/createPassword', [BODY.slice(0, 9)])], answers: [undefined],
    isSlow: true },
  'a body in chunks whose rest comes': { sends: [chunked('POST', '/api/createPassword', [BODY.slice(0, 9)])],
    answers: [200],
    then: Buffer.concat([chunk(BODY.slice(9)), chunk('')]) },
  'a client that waits for leave': { sends: [message('POST', '/api/createPassword', BODY,
    ['Expect: 100-continue']).subarray(0, -BODY.length)], then: BODY, answers: [100, 200] },
  'a create': { sends: [create], answers: [200] },
  'a get behind a create': { sends: [create, message('GET', '/api/getPassword/1')], answers: [200] },
  'a login': { sends: [message('POST', '/api/login', LOGIN)], answers: [401, 404] },
  'a body that nobody needs': { sends: [message('POST', '/api/nope', BODY).subarray(0, -5)], answers: [404],
    isSlow: true },
  'a list': { sends: [message('GET', '/api/listPassword')], answers: [200, 404] },
  'a tunnel': { sends: ['CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n'], answers: [405] }
}

const OPERATED = message('POST', '/operator/addEntry', BODY,
  ['Expect: 100-continue', `X-Version: ${VERSION}`]).subarray(0, -BODY.length)
/** The same of operators on the lock's socket; the first one's body comes once the stop has begun. */
const OPERATORS: { readonly [what: string]: { readonly sends: string | Buffer, readonly leaves?: boolean,
  readonly isSlow?: boolean } } = {
  'a body whose rest comes': { sends: OPERATED },
  'a body that broke off': { sends: OPERATED.toString('latin1').replace(/Expect.*\r\n/, '') + '{', leaves: true },
  'a connection that has not sent a byte': { sends: '' },
  'half a head': { sends: 'GET /operator/status HTTP/1.1\r\nHost', isSlow: true },
  'a body that does not come': { sends: OPERATED, isSlow: true }
}

interface Client { readonly what: string, readonly work: Work, readonly client: RawClient }

async function begin(t: Scope, url: string, works: readonly (readonly [string, Work])[]): Promise<Client[]> {
  return await Promise.all(works.map(async ([what, work]) => {
    const client = await connectRaw(t, work.isBare === true ? url.replace('https', 'http') : url,
      { allowHalfOpen: false })
    await client.send(...work.sends)
    return { what, work, client }
  })).then(async clients => {
    // What lies there is read in its order: once a later one was answered, it was read.
    const last = await connectRaw(t, url)
    for (let n = 0; n < 3; n++) { await last.send(message('GET', '/nope')); await last.answer() }
    last.destroy()
    return clients
  })
}

/** What all of them are answered until their connections end; they are let go then, by an end or a reset. */
async function outcomes(clients: readonly Client[]): Promise<number> {
  let acknowledged = 0
  await Promise.all(clients.map(async ({ what, work, client }) => {
    const statuses: number[] = []
    for (;;) {
      const answer = await client.answer().catch(() => undefined)
      if (answer === undefined) break
      statuses.push(answer.status)
      if (answer.json?.message === 'SE CREÓ UNA NUEVA CONTRASEÑA') acknowledged++
    }
    if (work.answers.includes(undefined)) assert.ok(statuses.length === 0 || [400, 408].includes(statuses[0]!),
      `${what}: ${statuses.join()}`)
    // All of it was sent before the service could say that it stops, or is what it was given leave to send.
    else assert.ok(statuses.every(status => work.answers.includes(status)) && statuses.length > 0,
      `${what}: ${statuses.join()}`)
  }))
  return acknowledged
}

const prompt = Object.entries(WORKS).filter(([, { isSlow }]) => isSlow !== true)

/** Tests the program, told to stop over TCP or TLS; `isSlow`: beside clients that never end. */
export function endsInTime(over: 'TCP' | 'TLS', isSlow: boolean): void {
  test(`over ${over}${isSlow ? ', endless clients' : ''}: what is under way ends, what was answered stays`, async t => {
    const limitMs = 2_500
    const works = (isSlow ? Object.entries(WORKS) : prompt).filter(([, { isBare }]) => isBare !== true ||
      over === 'TLS')
    const program = await startProgram(t, {
      flags: over === 'TLS' ? certificateFiles(freshFolder(t)) : {},
      ...isSlow ? { command: programWithin(t, { SHUTDOWN_TIMEOUT_MS: limitMs }) } : {}
    })
    const clients = await begin(t, program.url, works)
    const operators = await Promise.all(Object.entries(OPERATORS).filter(([, one]) => isSlow || one.isSlow !== true)
      .map(async ([, { sends, leaves }]) => {
        const operator = connect(join(program.folder, socketsIn(program.folder)[0]!)).on('error', () => {})
        t.after(() => { operator.destroy() })
        await new Promise(resolve => operator.write(sends, resolve))
        if (leaves === true) operator.destroy()
        else if (sends.includes('100-continue')) assert.match(String(await once(operator, 'data')), /^HTTP\/1\.1 100 /)
        return operator
      }))
    const beganMs = performance.now()
    const ended = program.stop()
    // the rest comes after a sweep of idle connections
    await new Promise(resolve => setTimeout(resolve, SHUTDOWN_SWEEP_MS + 100))
    for (const { work: { then }, client } of clients) if (then !== undefined) await client.send(then)
    // What the operator is through with by the half is carried out.
    operators[0]!.write(BODY)
    const [acknowledged, { code, stderr }] = await Promise.all([outcomes(clients), ended])
    assert.equal(code, 0, stderr)
    assert.ok(performance.now() - beganMs < (isSlow ? limitMs + SLACK_MS : SHUTDOWN_TIMEOUT_MS),
      `${performance.now() - beganMs} ms`)
    assert.deepEqual(socketsIn(program.folder), [])
    const next = await startProgram(t, { flags: { data: program.folder } })
    const list = await fetch(`${next.url}/api/listPassword`).then(answer => answer.json() as Promise<any>)
    assert.equal(Array.isArray(list) ? list.length : 0, acknowledged + 1)
  })
}

/** Tests an embedded service that ends with work under way. */
export function endsEmbedded(): void {
  test('an embedded service that is closed with work under way leaves nothing', async t => {
    const folder = freshFolder(t)
    const act = (): Promise<void> => within(async scope => {
      const service = await openService({ dataDir: folder, port: 0, rateLimit: 0, page: false })
      const url = await service.listen()
      const { reached, release } = holdAppend(scope)
      const clients = await begin(scope, url, prompt.filter(([, { isBare }]) => isBare !== true))
      const called = service.createPassword(ENTRY).then(() => 1, () => 0)
      await reached
      const closed = service.close()
      await new Promise(resolve => setTimeout(resolve, 300))
      for (const { work: { then }, client } of clients) if (then !== undefined) await client.send(then)
      release()
      const [acknowledged, made] = await Promise.all([outcomes(clients), called])
      await closed
      await assert.rejects(service.createPassword(ENTRY), { code: 'journal-closed' })
      const again = await openService({ dataDir: folder })
      assert.equal((await again.listPassword()).length, acknowledged + made)
      for (const { id } of await again.listPassword()) await again.deletePassword(id)
      await again.close()
    })
    await act() // what is loaded stays
    await leavesNothing({ folder }, 'close()', act)
  })
}
