/** HTTPS (contract §5.9): a certificate, its renewal under load, and what production asks for. */
import assert from 'node:assert/strict'
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { connect as connectPlain } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { connect, getCiphers, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { openService } from '../../src/embedding/embedded-service.ts'
import { TLS_CHECK_MS } from '../../src/limits.ts'
import { call } from '../support/accounts.ts'
import { certificate, certificateFiles } from '../support/certificate.ts'
import { runProgram, soon, startProgram, until } from '../support/program.ts'
import { initialized } from '../support/admin.ts'
import { message, RawClient, type RawAnswer } from '../support/raw.ts'
import { freshFolder, startService, type Started } from '../support/service.ts'

/** A file takes another's content in one step. */
function replace(file: string, by: string): void {
  copyFileSync(by, `${file}.new`)
  renameSync(`${file}.new`, file)
}

interface Pair {
  readonly cert: string
  readonly key: string
}

function makePair(folder: string, name: string): Pair {
  const { 'tls-cert': cert, 'tls-key': key } = certificateFiles(folder, name)
  return { cert, key }
}

/** A service on a pair of its own, which starts as the pair called `first`. */
async function startSecure(
  t: TestContext, flags: Record<string, string> = {}
): Promise<{ readonly started: Started, readonly live: Pair, readonly folder: string }> {
  const folder = freshFolder(t)
  const [first, live] = [makePair(folder, 'first'), makePair(folder, 'live')]
  replace(live.cert, first.cert)
  replace(live.key, first.key)
  const started = await startService(t, { 'tls-cert': live.cert, 'tls-key': live.key, ...flags })
  return { started, live, folder }
}

const portOf = (url: string): number => Number(new URL(url).port)

/** Shakes hands; rejects with the error of a handshake that fails. */
async function shakeHands(t: TestContext, url: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port: portOf(url), rejectUnauthorized: false, ...options })
  t.after(() => { socket.destroy() })
  await soon(once(socket, 'secureConnect'), () => 'a handshake')
  return socket
}

/** The name on the certificate that a new connection is shown. */
async function shownName(t: TestContext, url: string): Promise<string> {
  const socket = await shakeHands(t, url)
  const name = socket.getPeerCertificate().subject.CN
  socket.destroy()
  return name
}

const notRenewed = (started: Started): number =>
  started.warnings.filter(line => line.startsWith('the certificate was not renewed, the old one stays: ')).length
const renewed = (started: Started): number =>
  started.info.filter(line => line === 'the certificate was renewed').length

async function ask(t: TestContext, url: string, method: string, path: string, body?: string): Promise<RawAnswer> {
  const client = new RawClient(await shakeHands(t, url))
  await client.send(message(method, path, body))
  const answer = await client.answer()
  client.destroy()
  return answer
}

test('§5.9 production with TLS_CERT and TLS_KEY serves the operations by HTTPS', async t => {
  const flags = { ...certificateFiles(freshFolder(t)), data: await initialized(t) }
  writeFileSync(flags['tls-key'], `# was ENCRYPTED once\n${readFileSync(flags['tls-key'], 'utf8')}`)
  const { url } = await startProgram(t, { flags, env: { NODE_ENV: 'production', AUTH: 'none' } })
  assert.match(url, /^https:\/\/127\.0\.0\.1:\d+$/)
  await shakeHands(t, url, { ca: readFileSync(flags['tls-cert']), rejectUnauthorized: true })
  const entry = '{"password":"p","sistema":"s","usuario":"u"}'
  assert.equal((await ask(t, url, 'POST', '/api/createPassword', entry)).status, 200)
  const one = await ask(t, url, 'GET', '/api/getPassword/1')
  assert.equal(one.text, '{"passwords":{"id":1,"password":"p","sistema":"s","usuario":"u","status":1},"status":200}')
})

test('the versions of TLS: 1.3 and 1.2 are spoken, 1.1 and 1.0 refused by the server', async t => {
  const { started: { url } } = await startSecure(t)
  for (const version of ['TLSv1.3', 'TLSv1.2'] as const) {
    const socket = await shakeHands(t, url, { minVersion: version, maxVersion: version })
    assert.equal(socket.getProtocol(), version)
    socket.destroy()
  }
  for (const version of ['TLSv1.1', 'TLSv1'] as const) {
    const options = { minVersion: version, maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' }
    await assert.rejects(shakeHands(t, url, options), { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' }, version)
  }
})

async function suitesSpoken(t: TestContext, url: string, suites: readonly string[]): Promise<readonly string[]> {
  const spoken: string[] = []
  for (const suite of suites) {
    const options = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2', ciphers: `${suite}:@SECLEVEL=0` } as const
    const socket = await shakeHands(t, url, options).catch(() => undefined)
    if (socket === undefined) continue
    spoken.push(socket.getCipher().name)
    socket.destroy()
  }
  return spoken
}

test('of TLS 1.2 only suites are spoken that encrypt and authenticate in one, with ephemeral keys', async t => {
  const suites = getCiphers().map(name => name.toUpperCase()).filter(name => !name.startsWith('TLS_'))
  const { started, live, folder } = await startSecure(t)
  const spoken = await suitesSpoken(t, started.url, suites)
  t.diagnostic(`${spoken.join(', ')}, of ${suites.length}`)
  assert.ok(suites.length > 40 && suites.some(name => /^ECDHE-(RSA|ECDSA)-AES128-SHA256$/.test(name)))
  assert.ok(spoken.length >= 3)
  assert.deepEqual(spoken.filter(name => !/^ECDHE-(RSA|ECDSA)-(AES(128|256)-GCM-SHA(256|384)|CHACHA20-POLY1305)$/
    .test(name)), [])
  const next = makePair(folder, 'second')
  replace(live.key, next.key)
  replace(live.cert, next.cert)
  await until('the renewal', () => renewed(started) > 0)
  assert.deepEqual(await suitesSpoken(t, started.url, suites), spoken, 'with a renewed certificate too')
})

test('who speaks no TLS is let go at once and gets nothing, and others are served on', async t => {
  const { started } = await startSecure(t)
  const noHandshake = Buffer.from([0x16, 3, 1, 0, 4, 0xff, 0, 0, 0])
  for (const bytes of [message('GET', '/api/listPassword'), noHandshake, Buffer.alloc(600, 'x')]) {
    const socket = connectPlain({ host: '127.0.0.1', port: portOf(started.url) })
    t.after(() => { socket.destroy() })
    let received = ''
    socket.on('error', () => {}).on('data', part => { received += part.toString('latin1') })
    socket.write(bytes)
    const startMs = performance.now()
    await soon(once(socket, 'close'), () => `the end after ${bytes.toString('latin1')}`)
    assert.ok(performance.now() - startMs < 5_000, 'not only by a timeout')
    assert.ok(!received.includes('passwords'))
  }
  assert.equal((await ask(t, started.url, 'GET', '/api/listPassword')).status, 404)
  assert.deepEqual(started.warnings.filter(line => line.includes('failed')), [])
})

test('a new pair is taken over under load: no connection is dropped, no request fails, new ones see it', async t => {
  const { started, live, folder } = await startSecure(t)
  const next = makePair(folder, 'second')
  const sockets = await Promise.all(Array.from({ length: 8 }, () => shakeHands(t, started.url)))
  let answers = 0
  let isOver = false
  const load = Promise.all(sockets.map(async socket => {
    for (let own = 1; !isOver || own < 3; own++) {
      socket.write(message('GET', '/api/listPassword'))
      const [received] = await soon(once(socket, 'data'), () => `the answer to request ${own} of a connection`)
      assert.match(String(received), /^HTTP\/1\.1 404 [^]*\}$/)
      answers++
    }
  }))
  load.catch(() => {})
  await until('load', () => answers > 100)
  replace(live.key, next.key)
  replace(live.cert, next.cert)
  await until('the renewal', () => renewed(started) > 0)
  const before = answers
  assert.equal(await shownName(t, started.url), 'second')
  await until('more load', () => answers > before + 100)
  isOver = true
  await load
  for (const socket of sockets) {
    assert.equal(socket.getPeerCertificate().subject.CN, 'first', 'an open connection keeps what it was opened with')
  }
  const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
  await assert.rejects(shakeHands(t, started.url, old), { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' })
})

test('a pair that is replaced before an embedded service listens is what it listens with', async t => {
  const folder = freshFolder(t)
  const [live, second] = [makePair(folder, 'live'), makePair(folder, 'second')]
  const options = { journal: 'memory', port: 0, tlsCert: live.cert, tlsKey: live.key }
  const service = await openService(options)
  t.after(() => service.close())
  replace(live.key, second.key)
  replace(live.cert, second.cert)
  assert.equal(await shownName(t, await service.listen()), 'second')
})

/** Of another kind than those of the certificates; one of RSA takes a third of a second to make. */
const otherKey = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }) as string

const BREAKS: { readonly [what: string]: (live: Pair, next: Pair) => void } = {
  'is no certificate': live => writeFileSync(live.cert, 'no certificate'),
  'is empty': live => writeFileSync(live.key, ''),
  'is gone': live => rmSync(live.cert),
  'does not fit, being changed first,': (live, next) => replace(live.cert, next.cert),
  'is a key of another kind': live => writeFileSync(live.key, otherKey())
}

for (const [what, damage] of Object.entries(BREAKS)) {
  test(`a new pair of which a file ${what} is reported once, the old stays, and a good one is taken over`, async t => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { started, live, folder } = await startSecure(t)
    const next = makePair(folder, 'second')
    damage(live, next)
    for (let n = 0; n < 2; n++) t.mock.timers.tick(TLS_CHECK_MS)
    assert.equal(notRenewed(started), 1)
    assert.ok(!started.warnings.join('\n').includes('PRIVATE KEY'))
    assert.equal(await shownName(t, started.url), 'first')
    replace(live.key, next.key)
    replace(live.cert, next.cert)
    for (let n = 0; n < 2; n++) t.mock.timers.tick(TLS_CHECK_MS)
    assert.equal(renewed(started), 1)
    assert.equal(await shownName(t, started.url), 'second')
  })
}

test('a file that goes, comes back as it was, and goes again is reported twice', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { started, live, folder } = await startSecure(t)
  for (let n = 1; n <= 2; n++) {
    rmSync(live.cert)
    t.mock.timers.tick(TLS_CHECK_MS)
    assert.equal(started.warnings.filter(line => line.endsWith(`: ${live.cert}: ENOENT`)).length, n)
    replace(live.cert, join(folder, 'first.crt'))
    t.mock.timers.tick(TLS_CHECK_MS)
  }
  assert.equal(await shownName(t, started.url), 'first')
})

test('a start with a pair that is missing, broken or does not fit is refused in one line', async t => {
  const folder = freshFolder(t)
  const [one, two] = [makePair(folder, 'one'), makePair(folder, 'two')]
  const garbage = join(folder, 'garbage')
  writeFileSync(garbage, 'garbage')
  const other = join(folder, 'other')
  writeFileSync(other, otherKey())
  for (const type of ['pkcs8', 'sec1'] as const) { // the two forms of a key that has a passphrase
    const key = join(folder, type)
    writeFileSync(key, createPrivateKey(readFileSync(one.key)).export({ type, format: 'pem', cipher: 'aes-128-cbc',
      passphrase: 'p' }))
    const { code, stderr } = await runProgram(t, { flags: { 'tls-cert': one.cert, 'tls-key': key } })
    assert.equal(code, 1)
    assert.match(stderr, /^error: the certificate or its key is not valid: TLS_KEY: [^\n]+\n$/)
  }
  const wrong = [[one.cert, two.key], [one.cert, other], [garbage, one.key], [one.cert, garbage],
    [join(folder, 'none'), one.key]]
  await Promise.all(wrong.map(async ([cert, key]) => {
    const ended = await runProgram(t, { flags: { 'tls-cert': cert!, 'tls-key': key! } })
    assert.equal(ended.code, 1)
    assert.match(ended.stderr,
      /^error: the certificate or its key is not valid: (\S+\/none|TLS_CERT or TLS_KEY|TLS_CERT|TLS_KEY): .+\n$/m)
    assert.ok(!/^ready$/m.test(ended.stdout))
    assert.ok(!ended.stderr.includes('PRIVATE KEY') && !/\n +at /.test(ended.stderr))
  }))
})

test('a certificate or key that is swapped, empty or DER is refused by the name of its setting', async t => {
  const folder = freshFolder(t)
  const { cert, key } = makePair(folder, 'one')
  const [empty, der] = [join(folder, 'empty'), join(folder, 'der')]
  writeFileSync(empty, '')
  writeFileSync(der, createPrivateKey(readFileSync(key)).export({ type: 'pkcs8', format: 'der' }))
  const wrong = [[key, cert, 'CERT'], [cert, cert, 'KEY'], [empty, key, 'CERT'], [cert, empty, 'KEY'],
    [cert, der, 'KEY']] as const
  await Promise.all(wrong.map(async ([cert, key, name]) => {
    const { code, stderr } = await runProgram(t, { flags: { 'tls-cert': cert, 'tls-key': key } })
    const line = new RegExp(`^error: the certificate or its key is not valid: TLS_${name}: [^\\n]+$`, 'm')
    assert.deepEqual([code, line.test(stderr)], [1, true], stderr)
  }))
})

test('a certificate that has ended is warned of, and a metric says when one ends', async t => {
  const { folder, started } = await startSecure(t, { metrics: 'public' })
  assert.deepEqual(started.warnings.filter(line => line.includes('has ended')), [])
  const body = await new Promise<string>((resolve, reject) => {
    get(`${started.url}/metrics`, { rejectUnauthorized: false }, response => { resolve(text(response)) }).on('error',
      reject)
  })
  assert.match(body, new RegExp(`^pes_certificate_end_seconds ${Date.UTC(2049, 11, 31, 23, 59, 59) / 1000}$`, 'm'))
  const old = certificate('old', undefined, '250102000000Z')
  const files = { 'tls-cert': join(folder, 'old.crt'), 'tls-key': join(folder, 'old.pem') }
  writeFileSync(files['tls-cert'], old.cert)
  writeFileSync(files['tls-key'], old.key)
  const { warnings } = await startService(t, files)
  assert.ok(warnings.includes('the certificate in TLS_CERT has ended on 2025-01-02T00:00:00.000Z'), warnings.join('\n'))
})

test('browsers are told to keep to HTTPS on every answer that went out by it, and on no other', async t => {
  const told = async (url: string, localAddress: string, fields: readonly string[]): Promise<(string | undefined)[]> =>
    Promise.all(['/', '/api/listPassword', '/nowhere', '/healthz'].map(async path =>
      (await call(t, url, 'GET', path, { localAddress, fields })).headers['strict-transport-security']))
  const all = (value: string | undefined): (string | undefined)[] => Array(4).fill(value)
  const flags = { 'trust-proxy': '127.0.0.2', auth: 'bearer', data: await initialized(t) }
  const production = await startProgram(t, { flags, env: { NODE_ENV: 'production' } })
  const YEAR = 'max-age=31536000'
  for (const [localAddress, fields, value] of [
    ['127.0.0.2', ['X-Forwarded-Proto: https'], YEAR], ['127.0.0.2', ['X-Forwarded-Proto: HTTPS'], YEAR],
    ['127.0.0.2', ['X-Forwarded-Proto: http'], undefined], ['127.0.0.2', [], undefined],
    ['127.0.0.1', ['X-Forwarded-Proto: https'], undefined], ['127.0.0.1', [], undefined]
  ] as const) {
    assert.deepEqual(await told(production.url, localAddress, fields), all(value), `${localAddress} ${fields.join()}`)
  }
  await production.stop()
  const local = await startProgram(t, { flags })
  assert.deepEqual(await told(local.url, '127.0.0.2', ['X-Forwarded-Proto: https']), all(undefined))
  const { started } = await startSecure(t, { page: 'on' })
  assert.deepEqual(await told(started.url, '127.0.0.1', []), all(YEAR))
})

test('§5.9 production behind a proxy: only what reached the proxy by HTTPS is answered', async t => {
  const flags = { 'trust-proxy': '127.0.0.2', auth: 'bearer', 'rate-limit': '5', data: await initialized(t) }
  const { url } = await startProgram(t, { flags, env: { NODE_ENV: 'production' } })
  const proxy = '127.0.0.2'
  const cases: readonly (readonly [string, readonly string[], number])[] = [
    [proxy, ['X-Forwarded-Proto: https', 'X-Forwarded-For: 203.0.113.1'], 401],
    [proxy, ['X-Forwarded-Proto: HTTPS'], 401],
    [proxy, [], 403],
    [proxy, ['X-Forwarded-Proto: http'], 403],
    [proxy, ['X-Forwarded-Proto: '], 403],
    [proxy, ['X-Forwarded-Proto: httpsx'], 403],
    [proxy, ['X-Forwarded-Proto: http, https'], 403],
    [proxy, ['X-Forwarded-Proto: https', 'X-Forwarded-Proto: http'], 400],
    ['127.0.0.1', [], 403],
    ['127.0.0.1', ['X-Forwarded-Proto: https'], 403],
    ['127.0.0.1', ['X-Forwarded-Proto: https', 'X-Forwarded-For: 127.0.0.2'], 403]
  ]
  for (const [localAddress, fields, status] of cases) {
    const answer = await call(t, url, 'GET', '/api/listPassword', { localAddress, fields })
    assert.equal(answer.status, status, `${localAddress} ${fields.join()}`)
    if (status !== 403) continue
    assert.equal(answer.text, '{"message":"This service is reached by HTTPS only.","status":403}')
  }
  const body = { email: 'a@b', password: 'x' }
  assert.equal((await call(t, url, 'POST', '/api/login', { body })).status, 403, 'nor is a password taken')
  assert.equal((await call(t, url, 'GET', '/healthz')).status, 200, 'who watches from this machine needs no HTTPS')
  const fields = ['X-Forwarded-For: 203.0.113.7']
  assert.equal((await call(t, url, 'GET', '/healthz', { localAddress: proxy, fields })).status, 403)
})
