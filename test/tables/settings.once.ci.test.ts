/**
 * Every setting has an effect in the program as it is built: for each, two values and what a look from outside shows of
 * each. And what limits a login has to hold in every configuration: with which key, over what, behind whom.
 */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { SETTINGS } from '../../src/settings.ts'
import { ANA, call, PASSWORD, startProtected, tokenOf, type CallOptions } from '../support/accounts.ts'
import { certificate, certificateFiles } from '../support/certificate.ts'
import { runProgram, startProgram, type Program } from '../support/program.ts'
import { atEnd, freshFolder, within, type Scope } from '../support/service.ts'

type Flags = Record<string, string>

/** A folder with a user, and tokens of that user: one that may do everything, and one that may only list. */
interface Seed { readonly folder: string, readonly token: string, readonly reader: string }

interface Look {
  readonly t: Scope
  readonly program: Program
  readonly seed: Seed
  /** The status of a request. */
  readonly ask: (method: string, path: string, options?: CallOptions) => Promise<number>
}

interface Row {
  /** What is looked at, as a text. */
  readonly shows: (look: Look) => Promise<unknown> | unknown
  /** Flags, and what is shown with them. */
  readonly cases: readonly (readonly [flags: Flags | ((t: Scope, seed: Seed) => Promise<Flags> | Flags),
    shown: unknown])[]
}

const LOGIN = { email: ANA, password: PASSWORD }
const ENTRY = { password: 'p', sistema: 's', usuario: 'u' }
const wrong = { body: { email: ANA, password: 'wrong' } }
const protectedBy = { auth: 'bearer' }
const forwarded = (client: string): CallOptions => ({ fields: [`X-Forwarded-For: ${client}`] })
const from = (localAddress: string): CallOptions => ({ localAddress })
const times = async (count: number, ask: (n: number) => Promise<number>): Promise<string> => {
  const statuses: number[] = []
  for (let n = 0; n < count; n++) statuses.push(await ask(n))
  return statuses.join(' ')
}
const freePort = async (): Promise<string> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return String(port)
}
const PROXY_SECRET = 'u2Nf0c1xWq9sLr7Ek4Vb8TzYh3Jd6Mp5Ga'
const byProxy = (t: Scope, secret: string = PROXY_SECRET): Flags => {
  const file = join(freshFolder(t), 'secret')
  writeFileSync(file, secret, { mode: 0o600 })
  return {
    ...protectedBy, 'trust-proxy': '127.0.0.1', 'token-ttl-minutes': '1', 'proxy-login-header': 'Remote-Email',
    'proxy-login-secret-file': file
  }
}
let port = ''
let keyFile = ''

const ROWS: { readonly [setting: string]: Row } = {
  host: { shows: ({ program }) => new URL(program.url).hostname,
    cases: [[{}, '127.0.0.1'], [{ host: '::1' }, '[::1]'], [{ host: '127.0.0.7' }, '127.0.0.7']] },
  port: { shows: ({ program }) => new URL(program.url).port === port,
    cases: [[{}, false], [async () => ({ port: port = await freePort() }), true]] },
  dataDir: { shows: ({ seed }) => existsSync(join(seed.folder, '..', 'other', 'journal.jsonl')), cases: [
    [{}, false], [(_t, { folder }) => ({ data: join(folder, '..', 'other') }), true]] },
  keyFile: { shows: () => existsSync(keyFile), cases: [[{}, false],
    [t => ({ data: freshFolder(t), 'key-file': keyFile = join(freshFolder(t), 'keys') }), true]] },
  rateLimit: { shows: ({ ask }) => times(3, () => ask('GET', '/api/getPassword/9')),
    cases: [[{ 'rate-limit': '2' }, '404 404 429'], [{ 'rate-limit': '0' }, '404 404 404']] },
  rateLimitBy: { shows: ({ ask, seed: { token, reader } }) =>
    times(3, n => ask('GET', '/api/getPassword/9', { token: n === 1 ? reader : token, ...from(`127.0.0.${n + 2}`) })),
      cases: [
    [{ ...protectedBy, 'rate-limit': '2' }, '404 404 404'],
    [{ ...protectedBy, 'rate-limit': '2', 'rate-limit-by': 'user' }, '404 404 429']] },
  loginLimit: { shows: ({ ask }) => times(3, () => ask('POST', '/api/login', wrong)), cases: [
    [{ ...protectedBy, 'login-limit': '2' }, '401 401 429'], [{ ...protectedBy, 'login-limit': '0' }, '401 401 401']] },
  auth: { shows: ({ ask }) => ask('GET', '/api/listPassword'), cases: [[{}, 404], [protectedBy, 401]] },
  tokenTtlMinutes: {
    shows: async ({ t, program, ask }) => {
      const { json: { token } } = await call(t, program.url, 'POST', '/api/login', { body: LOGIN })
      await new Promise(resolve => setTimeout(resolve, 100))
      return ask('GET', '/api/listPassword', { token })
    },
    cases: [[protectedBy, 404], [{ ...protectedBy, 'token-ttl-minutes': '0.0001' }, 401]]
  },
  tokensPerUser: {
    shows: async ({ t, program, ask }) => {
      const { json: { token } } = await call(t, program.url, 'POST', '/api/login', { body: LOGIN })
      await call(t, program.url, 'POST', '/api/login', { body: LOGIN })
      return ask('GET', '/api/listPassword', { token })
    },
    cases: [[protectedBy, 404], [{ ...protectedBy, 'tokens-per-user': '1' }, 401]]
  },
  abilities: { shows: ({ ask, seed: { reader } }) => ask('POST', '/api/createPassword', { body: ENTRY, token: reader }),
    cases: [
    [protectedBy, 403], [{ ...protectedBy, abilities: 'createPassword=any' }, 200]] },
  corsOrigins: { shows: ({ ask }) => ask('GET', '/api/listPassword', { fields: ['Origin: https://app.example'] }),
    cases: [
    [{}, 403], [{ 'cors-origins': 'https://app.example' }, 404]] },
  allowedHosts: { shows: ({ ask }) => ask('GET', '/api/listPassword', { fields: ['Host: vault.example'] }),
    cases: [[{}, 403], [{ 'allowed-hosts': 'vault.example' }, 404]] },
  trustProxy: { shows: ({ ask }) => times(3, n => ask('GET', '/api/getPassword/9', forwarded(`192.0.2.${n}`))), cases: [
    [{ 'rate-limit': '2' }, '404 404 429'], [{ 'rate-limit': '2', 'trust-proxy': '127.0.0.1' }, '404 404 404']] },
  tlsCert: { shows: ({ program }) => new URL(program.url).protocol,
    cases: [[{}, 'http:'], [t => certificateFiles(freshFolder(t)), 'https:']] },
  tlsKey: { shows: ({ ask }) => ask('GET', '/api/listPassword'),
    cases: [[t => certificateFiles(freshFolder(t)), 404]] },
  maxBodyBytes: { shows: ({ ask }) => ask('POST', '/api/createPassword', { body: ENTRY }),
    cases: [[{}, 200], [{ 'max-body-bytes': '20' }, 413]] },
  accessLog: {
    shows: async ({ program, ask }) => {
      await ask('GET', '/api/listPassword')
      return /^\{"time":.*"route":"listPassword"/m.test((await program.stop()).stdout)
    },
    cases: [[{}, false], [{ 'access-log': 'on' }, true]]
  },
  journal: { shows: async ({ ask, program }) => { await ask('POST', '/api/createPassword',
    { body: ENTRY }); return existsSync(join(program.folder, 'journal.jsonl')) }, cases: [
    [t => ({ data: freshFolder(t) }), true], [t => ({ data: freshFolder(t), journal: 'memory' }), false]] },
  extraRoutes: { shows: ({ ask }) => times(2, n => ask('GET', n === 0 ? '/api/historyPassword/1'
    : '/api/deletedPasswords')), cases: [
    [{ page: 'off' }, '404 404'], [{ page: 'off', 'extra-routes': 'on' }, '404 200'], [{ page: 'on' }, '404 200']] },
  health: { shows: ({ ask }) => times(2, n => ask('GET', '/healthz', n === 0 ? {} : forwarded('192.0.2.1'))), cases: [
    [{ 'trust-proxy': '127.0.0.1' }, '200 403'], [{ 'trust-proxy': '127.0.0.1', health: 'public' }, '200 200'],
    [{ health: 'off' }, '404 404']] },
  metrics: { shows: ({ ask }) => times(2, n => ask('GET', '/metrics', n === 0 ? {} : forwarded('192.0.2.1'))), cases: [
    [{ 'trust-proxy': '127.0.0.1' }, '200 403'], [{ 'trust-proxy': '127.0.0.1', metrics: 'public' }, '200 200'],
    [{ metrics: 'off' }, '404 404']] },
  proxyLoginHeader: { shows: ({ ask }) => times(2, n => ask('POST', '/api/proxyLogin', { fields: [
    'Sec-Fetch-Site: same-origin', `X-Proxy-Login-Secret: ${PROXY_SECRET}`,
    `Remote-${n === 0 ? 'Email' : 'Mail'}: ${ANA}`
  ] })), cases: [
    [{}, '404 404'], [t => ({ ...byProxy(t), 'proxy-login-header': 'Remote-Email' }), '200 401'],
    [t => ({ ...byProxy(t), 'proxy-login-header': 'Remote-Mail' }), '401 200']] },
  proxyLoginSecretFile: { shows: ({ ask }) => ask('POST', '/api/proxyLogin', { fields: [
    'Sec-Fetch-Site: same-origin', `X-Proxy-Login-Secret: ${PROXY_SECRET}`, `Remote-Email: ${ANA}`
  ] }), cases: [[t => byProxy(t), 200], [t => byProxy(t, `${PROXY_SECRET}x`), 401]] },
  page: { shows: ({ ask }) => ask('GET', '/'), cases: [[{}, 200], [{ page: 'off' }, 404]] }
}
/** A folder of a test's own with the user and the tokens. */
async function seedOf(t: Scope): Promise<Seed> {
  const folder = join(freshFolder(t), 'data')
  let [token, reader] = ['', '']
  await within(async scope => {
    const started = await startProtected(scope)
    token = await tokenOf(started)
    reader = await tokenOf(started, ANA, ['password:read'])
    cpSync(started.folder, folder, { recursive: true, filter: path => !path.endsWith('.sock') })
  })
  return { folder, token, reader }
}

async function look(t: Scope, seed: Seed, flags: Flags, env: Flags = {}): Promise<Look> {
  const program = await startProgram(t, { flags: { page: undefined, data: seed.folder, ...flags }, env })
  return { t, program, seed, ask: async (method, path, options) =>
    (await call(t, program.url, method, path, options)).status }
}

/** Stands for etcd: notes who asks for what; refuses it, or shows an empty journal until it is away. */
interface Etcd { readonly origin: string, readonly asked: readonly Question[], isAway: boolean }
interface Question { readonly path: string, readonly body: any, readonly client: string | undefined }

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const OWN = certificate('localhost')

async function standIn(t: Scope, seed: Seed, isTls: boolean, isOpen: boolean): Promise<Etcd> {
  const asked: Question[] = []
  const key = Buffer.from(readFileSync(join(seed.folder, 'journal.key'), 'latin1').trim(), 'hex')
  const marker = { key: base64('/pes.key'), value: base64(hash('sha256', key, 'hex').slice(0, 8)), mod_revision: '1',
    create_revision: '1' }
  const empty = { header: { revision: '1' }, succeeded: true,
    responses: [{ response_range: { kvs: [marker] } }, { response_range: {} }] }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request)
    const { subject } = (request.socket as TLSSocket).getPeerCertificate?.() ?? {}
    asked.push({ path: request.url!, body: JSON.parse(body), client: subject?.CN })
    if (etcd.isAway) return void response.writeHead(503).end()
    if (request.url === '/v3/watch') return // no news
    if (isOpen) return void response.end(JSON.stringify(empty))
    response.writeHead(400).end(JSON.stringify({ code: 3, message: 'refused' }))
  }
  const server = isTls ? createTlsServer({ ...OWN, requestCert: true, rejectUnauthorized: false }) : createHttpServer()
  server.on('request', (request, response) => void answer(request, response)).listen(0, '127.0.0.1')
  atEnd(t, () => { server.closeAllConnections(); server.close() })
  await once(server, 'listening')
  const etcd = { origin: `http${isTls ? 's' : ''}://localhost:${(server.address() as AddressInfo).port}`, asked,
    isAway: false }
  return etcd
}

/** What a start on such an etcd, which refuses it, shows in its first question, with two sets of flags. */
interface EtcdRow {
  readonly isTls?: boolean
  readonly shows: (first: Question | undefined) => unknown
  readonly cases: readonly (readonly [flags: (t: Scope, origin: string) => Flags, shown: unknown])[]
}
const fileOf = (t: Scope, text: string): string => {
  const path = join(freshFolder(t), 'file')
  writeFileSync(path, text)
  return path
}
const userBy = (password: string): EtcdRow['cases'][number] =>
  [t => ({ 'etcd-user': 'pes', 'etcd-password-file': fileOf(t, `${password}\n`) }), { name: 'pes', password }]
const asUser: EtcdRow = { shows: first => first?.path === '/v3/auth/authenticate' && first.body,
  cases: [[() => ({}), false], userBy('one'), userBy('two')] }
const withCertificate: EtcdRow = { isTls: true, shows: first => first?.client, cases: [
  [t => ({ 'etcd-ca': fileOf(t, OWN.cert) }), undefined],
  [t => { const { cert, key } = certificate('pes-1'); return { 'etcd-ca': fileOf(t, OWN.cert),
    'etcd-cert': fileOf(t, cert), 'etcd-key': fileOf(t, key) } }, 'pes-1']] }
const isAsked: EtcdRow['shows'] = first => first !== undefined
const ETCD_ROWS: { readonly [setting: string]: EtcdRow } = {
  etcdEndpoints: { shows: isAsked, cases: [[() => ({}), true],
    [() => ({ 'etcd-endpoints': 'http://localhost:1' }), false]] },
  etcdPrefix: { shows: first => Buffer.from(first?.body.success[0].request_range.key, 'base64').toString(), cases: [
    [() => ({}), '/pes.key'], [() => ({ 'etcd-prefix': '/other' }), '/other.key']] },
  etcdUser: asUser, etcdPasswordFile: asUser,
  etcdCa: { isTls: true, shows: isAsked, cases: [[() => ({}), false],
    [t => ({ 'etcd-ca': fileOf(t, OWN.cert) }), true]] },
  etcdCert: withCertificate, etcdKey: withCertificate,
  etcdPlainHttp: { shows: isAsked, cases: [
    [(_t, origin) => ({ 'etcd-endpoints': origin.replace('localhost', '0.0.0.0') }), false],
    [(_t, origin) => ({ 'etcd-endpoints': origin.replace('localhost', '0.0.0.0'), 'etcd-plain-http': 'on' }), true]] }
}

test('the tables know every setting', () =>
  assert.deepEqual([...Object.keys(ROWS), ...Object.keys(ETCD_ROWS), 'staleReads'].sort(),
    Object.keys(SETTINGS).sort()))

describe('every setting for etcd has an effect', { concurrency: 3 }, () => {
  for (const [setting, { isTls = false, shows, cases }] of Object.entries(ETCD_ROWS)) {
    test(setting, async t => {
      const seed = await seedOf(t)
      for (const [flagsOf, shown] of cases) {
        await within(async scope => {
          const { origin, asked } = await standIn(scope, seed, isTls, false)
          const flags = { data: seed.folder, journal: 'etcd', 'etcd-endpoints': origin, ...flagsOf(scope, origin) }
          const { code } = await runProgram(scope, { flags })
          assert.ok(code === 1 || code === 2)
          assert.deepEqual(shows(asked[0]), shown, JSON.stringify(flags))
        })
      }
    })
  }

  test('staleReads', async t => {
    const seed = await seedOf(t)
    for (const [stale, status] of [['off', 503], ['on', 404]] as const) {
      await within(async scope => {
        const etcd = await standIn(scope, seed, false, true)
        const { ask } = await look(scope, seed, { journal: 'etcd', 'etcd-endpoints': etcd.origin,
          'stale-reads': stale })
        assert.equal(await ask('GET', '/api/listPassword'), 404)
        etcd.isAway = true
        assert.equal(await ask('GET', '/api/listPassword'), status, stale)
      })
    }
  })
})

describe('every setting has an effect', { concurrency: 3 }, () => {
  for (const [setting, { shows, cases }] of Object.entries(ROWS)) {
    test(setting, async t => {
      const seed = await seedOf(t)
      for (const [given, shown] of cases) {
        await within(async scope => {
          const flags = typeof given === 'function' ? await given(t, seed) : given
          assert.deepEqual(await shows(await look(scope, seed, flags)), shown, JSON.stringify(flags))
        })
      }
    })
  }
})

/** Who guesses: from one address, with whatever else changes with each attempt. */
const GUESSERS: { readonly [how: string]: (n: number, seed: Seed) => CallOptions } = {
  'without a token': () => ({}),
  'with a token': (_n, { token }) => ({ token }),
  'with another token each time': (n, { token, reader }) => ({ token: [token, reader, 'pes_none'][n % 3] }),
  'with an address that it makes up': n => forwarded(`192.0.2.${n}`),
  'for another user each time': n => ({ body: { email: `u${n}@example.org`, password: 'wrong' } })
}
const OVER: { readonly [what: string]: (t: Scope) => Flags } = {
  TCP: () => ({}), TLS: t => certificateFiles(freshFolder(t)), IPv6: () => ({ host: '::1' }), 'a proxy elsewhere': () =>
    ({ 'trust-proxy': '192.0.2.9' })
}
describe('guessing a login is limited', { concurrency: 3 }, () => {
  for (const [over, flagsOf] of Object.entries(OVER)) {
    for (const by of ['ip', 'user']) {
      test(`over ${over}, with RATE_LIMIT_BY=${by}, however it is done`, async t => {
        const seed = await seedOf(t)
        // Over the others only who it is comes by another way.
        for (const [how, optionsOf] of Object.entries(GUESSERS).filter(([how]) => over === 'TCP' ||
          how.includes('each time') || how.includes('makes up'))) {
          await within(async scope => {
            const { ask } = await look(scope, seed, { ...protectedBy, 'login-limit': '3', 'rate-limit': '1000',
              'rate-limit-by': by, ...flagsOf(scope) })
            assert.equal(await times(5, n => ask('POST', '/api/login', { ...wrong, ...optionsOf(n, seed) })),
              '401 401 401 429 429', how)
          })
        }
      })
    }
  }
  test('behind a trusted proxy, by the address that it names', async t => {
    const { ask } = await look(t, await seedOf(t), { ...protectedBy, 'login-limit': '2', 'trust-proxy': '127.0.0.1' })
    assert.equal(await times(6, n => ask('POST', '/api/login', { ...wrong, ...forwarded(`192.0.2.${n % 2}`) })),
      '401 401 401 401 429 429')
  })
})

test('a setting is read from its variable as well: the whole of them at once', async t => {
  const seed = await seedOf(t)
  const { url, stop } = await startProgram(t, { args: [], env: {
    PORT: '0', DATA_DIR: seed.folder, AUTH: 'bearer', RATE_LIMIT: '7', PAGE: 'off', MAX_BODY_BYTES: '20',
    METRICS: 'off', ACCESS_LOG: 'on'
  } })
  const { status, headers } = await call(t, url, 'POST', '/api/createPassword', { body: ENTRY, token: seed.token })
  assert.deepEqual([status, headers['x-ratelimit-limit']], [413, '7'])
  assert.equal((await call(t, url, 'GET', '/')).status, 404)
  assert.match((await stop()).stdout, /"route":"createPassword"/)
  assert.match(readFileSync(join(seed.folder, 'journal.jsonl'), 'utf8'), /^\{/)
})
