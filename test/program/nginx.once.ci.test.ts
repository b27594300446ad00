/** Company login behind nginx, with the blocks of the document as they are, and with mistakes in them. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { ANA, call, startProtected, tokenOf } from '../support/accounts.ts'
import { certificateFiles } from '../support/certificate.ts'
import { startProgram, until } from '../support/program.ts'
import type { RawAnswer } from '../support/raw.ts'
import { atEnd, freshFolder, within } from '../support/service.ts'

const NGINX = ['/usr/sbin/nginx', '/usr/bin/nginx', '/usr/local/sbin/nginx'].find(path => existsSync(path))
const NO_NGINX = NGINX === undefined && 'nginx is not installed'
const DOCUMENT = readFileSync(new URL('../../src/parts/operator/PROXIES.md', import.meta.url), 'utf8')
const BEA = 'bea@example.org'
const SAME = 'Sec-Fetch-Site: same-origin'

const BLOCKS = [...DOCUMENT.matchAll(/^```nginx\n([^]*?)^```$/gm)].map(([, block]) => block!)
const [BASE = '', HEADERS = '', ...KINDS] = BLOCKS
const LOGIN = /cat > \S+passwords-login\.conf << EOF\n([^]*?)^EOF$/m.exec(DOCUMENT)![1]!

/** What two programs answer that know whose browser it is: by a cookie, which is the address here. */
const WHO: { readonly [kind: string]: { readonly path: string, readonly header: string } } = {
  'oauth2-proxy': { path: '/oauth2/auth', header: 'X-Auth-Request-Email' },
  Authelia: { path: '/api/authz/auth-request', header: 'Remote-Email' }
}

const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const port = portOf(server)
  await new Promise(resolve => server.close(resolve))
  return port
}

interface Site {
  readonly url: string
  /** Whom the two programs were asked by: the heads that they got. */
  readonly asked: readonly IncomingMessage[]
  readonly token: string
  readonly secret: string
  readonly log: () => string
}

/** Locations that an operator may add, and that do one thing wrong. */
const MISTAKES = `
  location /raw/ { proxy_pass http://passwords/; proxy_set_header Host $host;
    proxy_set_header X-Forwarded-Proto $scheme; }
  location /half/ { auth_request AUTH; auth_request_set $company_email $upstream_http_HEADER;
    proxy_pass http://passwords/; proxy_set_header Host $host; proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header X-Company-Email $company_email; }
  location /other/ { proxy_pass http://passwords/; proxy_set_header Host $host;
    proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Proxy-Login-Secret "SECRET"; }
`

async function startSite(t: TestContext, kind: string): Promise<Site> {
  const folder = freshFolder(t)
  const secret = randomBytes(32).toString('base64')
  writeFileSync(join(folder, 'secret'), `${secret}\n`, { mode: 0o600 })
  const data = join(folder, 'data')
  let token = ''
  await within(async scope => {
    const started = await startProtected(scope, {}, { [ANA]: ['*'], [BEA]: ['*'] })
    token = await tokenOf(started)
    cpSync(started.folder, data, { recursive: true, filter: path => !path.endsWith('.sock') })
  })
  const service = await startProgram(t, {
    env: { NODE_ENV: 'production' },
    flags: {
      data, auth: 'bearer', page: 'on', 'trust-proxy': '127.0.0.1', 'token-ttl-minutes': '720', 'login-limit': '0',
      'proxy-login-header': 'X-Company-Email', 'proxy-login-secret-file': join(folder, 'secret')
    }
  })
  const { path, header } = WHO[kind]!
  const asked: IncomingMessage[] = []
  const who = createHttpServer((request, response) => {
    asked.push(request)
    const email = /session=(\S+)/.exec(request.headers.cookie ?? '')?.[1]
    if (request.url !== path) response.writeHead(200).end('sign in')
    else if (email === undefined) response.writeHead(401, { Location: 'https://auth.example/' }).end()
    else response.writeHead(202, { [header]: email }).end()
  }).listen(0, '127.0.0.1')
  await once(who, 'listening')
  atEnd(t, () => { who.close(); who.closeAllConnections() })
  const port = await freePort()
  const certificate = certificateFiles(folder)
  const auth = kind === 'Authelia' ? '/authelia' : '/oauth2/auth'
  const mistakes = MISTAKES.replace('AUTH', auth).replace('HEADER', header.toLowerCase().replaceAll('-', '_'))
    .replace('SECRET', secret)
  const site = BASE.replace(/^server \{\n {2}listen 80;[^]*?^\}\n/m, '')
    .replace(/^ {2}listen \[::\]:443.*\n/m, '').replace('listen 443 ssl http2', `listen 127.0.0.1:${port} ssl http2`)
    .replace(/(ssl_certificate +)\S+;/, `$1${certificate['tls-cert']};`)
    .replace(/(ssl_certificate_key +)\S+;/, `$1${certificate['tls-key']};`)
    .replace(/^ {2}location \/ \{[^]*?^ {2}\}\n/m, `${KINDS[Object.keys(WHO).indexOf(kind)]}${mistakes}`)
    .replace('127.0.0.1:3000', new URL(service.url).host)
    .replace(/127\.0\.0\.1:(4180|9091)/g, `127.0.0.1:${portOf(who)}`)
    .replaceAll('/etc/nginx/', `${folder}/`)
  writeFileSync(join(folder, 'passwords-headers.conf'), HEADERS)
  writeFileSync(join(folder, 'passwords-login.conf'),
    LOGIN.replace('$(cat /etc/password-entry-service.secret)', secret).replaceAll('\\$', '$'))
  mkdirSync(join(folder, 'temp'))
  const temps = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path ${folder}/temp;`)
  const user = process.getuid?.() === 0 ? 'user root;' : ''
  writeFileSync(join(folder, 'nginx.conf'), `${user} daemon off; master_process off; pid ${folder}/pid;
    error_log ${folder}/error.log; events {} http { access_log off; ${temps.join(' ')}\n${site}\n}`)
  const nginx = spawn(NGINX!, ['-c', join(folder, 'nginx.conf'), '-p', folder], { stdio: 'ignore' })
  const ended = once(nginx, 'exit')
  atEnd(t, async () => { nginx.kill(); await ended })
  const log = (): string => existsSync(join(folder, 'error.log')) ? readFileSync(join(folder, 'error.log'), 'utf8') : ''
  await until('nginx listens', () => {
    assert.equal(nginx.exitCode, null, log())
    return new Promise(resolve => {
      const socket = connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true) })
      socket.on('error', () => resolve(false))
    })
  })
  return { url: `https://127.0.0.1:${port}`, asked, token, secret, log: () => service.stderr }
}

for (const [kind, { header }] of Object.entries(WHO)) {
  test(`behind nginx with ${kind} only those are logged in whom it knows, as those, whatever a client writes`, {
    skip: NO_NGINX
  }, async t => {
    const { url, asked, token, secret, log } = await startSite(t, kind)
    const ask = (fields: readonly string[], path = '/api/proxyLogin', method = 'POST'): Promise<RawAnswer> =>
      call(t, url, method, path, { fields, ...method === 'POST' && { body: {} } })
    const ana = `Cookie: session=${ANA}`
    const own = await ask([SAME, ana])
    assert.equal(own.status, 200, own.text + log())
    assert.deepEqual([own.json.user.email, own.headers['strict-transport-security']], [ANA, 'max-age=31536000'])
    assert.equal((await ask([`Authorization: Bearer ${own.json.token}`], '/api/ownSessions', 'GET')).status, 200)
    assert.equal((await ask([`Authorization: Bearer ${token}`], '/api/listPassword', 'GET')).status, 404)
    assert.deepEqual([(await ask([], '/', 'GET')).status, (await ask([ana], '/', 'GET')).status], [302, 200])

    const spellings = ['X-Company-Email', 'x-company-email', 'X_Company_Email', 'X-Company_Email', header]
    for (const name of spellings) {
      const forged = [`${name}: ${BEA}`, `X-Proxy-Login-Secret: ${randomBytes(32).toString('base64')}`]
      for (const lines of [forged, [...forged, ...forged], [`${name}: ${BEA}, ${BEA}`], [`${name}:`]]) {
        const answer = await ask([SAME, ana, ...lines])
        assert.deepEqual([answer.status, answer.json?.user?.email], [200, ANA], lines.join())
        assert.equal((await ask([SAME, ...lines])).status, 401, `${lines.join()}, without a session`)
      }
      for (const path of [
        '/api/%70roxyLogin', '/api//proxyLogin', '/api/./proxyLogin', '/x/../api/proxyLogin', '/API/PROXYLOGIN',
        '/api/proxyLogin/', '/api/proxyLogin;', '/api/proxyLogin%00', '/raw/api/proxyLogin', '/half/api/proxyLogin'
      ]) {
        const { status } = await ask([SAME, ana, ...forged], path)
        assert.ok([400, 401, 404].includes(status), `${path}: ${status}`)
      }
    }
    for (const lines of [
      ['Sec-Fetch-Site: cross-site'], ['Sec-Fetch-Site: same-site'], [], ['Origin: https://x.example']
    ]) {
      assert.equal((await ask([ana, ...lines])).status, 401, `from another page: ${lines.join()}`)
    }
    assert.equal((await ask([SAME, 'Cookie: session=nobody@example.org'])).status, 401)
    assert.equal((await ask([SAME, 'Cookie: session=ana@example.org,bea@example.org'])).status, 401)
    // Not even the recipe could help whoever gives the secret away.
    assert.equal((await ask([SAME, `X-Company-Email: ${BEA}`], '/other/api/proxyLogin')).status, 200)
    assert.ok(asked.length > 20)
    for (const { rawHeaders } of asked) {
      assert.ok(!rawHeaders.join('\n').includes(secret), 'nobody else is shown the secret')
    }
    assert.ok(!log().includes(secret))
  })
}

test('the document has a block for each, and each removes both headers wherever it does not set them', () => {
  assert.equal(KINDS.length, Object.keys(WHO).length)
  for (const block of KINDS) {
    for (const [location] of block.matchAll(/^ {2}location [^]*?^ {2}\}$/gm)) {
      if (!location.includes('proxy_pass http://passwords')) continue
      const sets = location.includes('passwords-login.conf')
      const removes = ['X-Proxy-Login-Secret', 'X-Company-Email']
        .map(name => location.includes(`proxy_set_header ${name} "";`))
      assert.deepEqual(removes, [!sets, !sets], location)
    }
  }
})
