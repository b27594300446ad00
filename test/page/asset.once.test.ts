/** The page's files as HTTP serves them: codings, ETags, headers, and the setting that switches them off. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { readdirSync, readFileSync } from 'node:fs'
import test, { type TestContext } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { Asset } from '../../src/parts/page/asset.ts'
import type { Head } from '../../src/http/head.ts'
import { disk } from '../../src/journal/files.ts'
import { pageRoutes } from '../../src/parts/page/page-routes.ts'
import { startProtected } from '../support/accounts.ts'
import { joined } from '../support/patterns.ts'
import { ask, connectRaw, message, type RawAnswer } from '../support/raw.ts'
import { startService } from '../support/service.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'

const WEB = new URL('../../dist/parts/page/browser/', import.meta.url)
/** As they are served: without their layout; one style sheet of two, without its comments. */
const STYLES = ['page.css', 'dialog.css']
const textIn = (name: string): string => String(readFileSync(new URL(name, WEB)))
function servedAs(name: string): Buffer {
  if (!/\.(js|css)$/.test(name)) return readFileSync(new URL(name, WEB))
  const text = (name === 'style.css' ? STYLES.map(textIn).join('') : textIn(name))
    .replace(/^\s+/gm, '').replace(/([;{},])\n/g, '$1')
  return Buffer.from(name !== 'style.css' ? text
    : text.replace(/\/\*[^]*?\*\/\s*/g, '').replace(/([:;{},]) /g, '$1'))
}
const BYTES = Buffer.from('text '.repeat(100))
const KIND = { type: 'text/plain', cache: 'no-cache' }
const asset = new Asset(BYTES, KIND, ['X-More', 'yes'])

function answer(acceptEncoding?: string, ifNoneMatch?: string): { status: number, coding: string, tag: string } {
  const head = { method: 'GET', path: '/', 'accept-encoding': acceptEncoding, 'if-none-match': ifNoneMatch } as Head
  const { status, headers = [] } = asset.reply(head)
  const field = (name: string): string => headers[headers.indexOf(name) + 1] ?? ''
  return { status, coding: headers.includes('Content-Encoding') ? field('Content-Encoding') : 'identity',
    tag: field('ETag') }
}

const CODINGS: readonly (readonly [accept: string | undefined, coding: string])[] = [
  [undefined, 'identity'], ['', 'identity'], ['gzip, deflate, br, zstd', 'br'], ['gzip, deflate', 'gzip'],
  ['GZIP', 'gzip'], ['br;q=0.5, gzip;q=0.8', 'br'], ['br;q=0.8;x=1,gzip ; q=0.8', 'br'], ['br;q=0, gzip', 'gzip'],
  ['br;q=0, gzip;q=0.000', 'identity'], ['*', 'br'], ['*;q=0', 'identity'], ['*;q=0.1, br;q=0', 'gzip'],
  ['gzip;q=0.3, identity;q=0.7', 'gzip'], ['identity;q=0, gzip;q=0.1', 'gzip'], ['identity;q=0', 'identity'],
  ['gzip;q=0.001', 'gzip'], ['br;q=x, gzip', 'gzip'], ['br;q=x', 'identity'], ['zstd, deflate', 'identity'],
  [',,;q=1', 'identity'], [`${','.repeat(15_000)}gzip`, 'identity']
]

for (const [accept, coding] of CODINGS) {
  test(`Accept-Encoding ${accept ?? 'absent'} gets ${coding}`, () => assert.equal(answer(accept).coding, coding))
}

test('each coding has a strong ETag of its own, and only that one is not sent again', () => {
  const tags = ['br', 'gzip', 'identity'].map(coding => answer(coding).tag)
  assert.equal(new Set(tags).size, 3)
  for (const tag of tags) assert.match(tag, /^"[\x21\x23-\x7e]+"$/)
  const [br = '', gzip = ''] = tags
  assert.deepEqual(answer('br', br), { status: 304, coding: 'identity', tag: br })
  for (const match of [`W/${br}`, `"x", ${br} ,"y"`, '*']) assert.equal(answer('br', match).status, 304, match)
  for (const match of [gzip, '"x"', br.slice(1), '']) assert.equal(answer('br', match).status, 200, match)
})

test('another content has other ETags', () => {
  const other = new Asset(Buffer.from('other'), KIND, []).reply({ method: 'GET', path: '/' })
  assert.ok(!other.headers!.includes(answer().tag))
})

const POLICY = joined(/^default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; /,
  /manifest-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; /,
  /require-trusted-types-for 'script'; trusted-types 'none'$/)

function assertProtected({ headers }: RawAnswer): void {
  assert.match(headers['content-security-policy'] ?? '', POLICY)
  assert.equal(headers['x-frame-options'], 'DENY')
  assert.equal(headers['referrer-policy'], 'no-referrer')
  assert.equal(headers['x-content-type-options'], 'nosniff')
  assert.equal(headers['cross-origin-opener-policy'], 'same-origin')
  assert.equal(headers['cross-origin-resource-policy'], 'same-origin')
  assert.match(headers['permissions-policy'] ?? '', /camera=\(\)/)
  assert.equal(headers['vary'], 'Accept-Encoding')
}

/** The paths of the page's files, as the page itself names them. */
async function pathsOf(t: TestContext, url: string): Promise<ReadonlyMap<string, string>> {
  const page = (await ask(t, url, message('GET', '/'))).text
  const place = /"(web\/[0-9a-f]{16}\/)/.exec(page)![1]!
  return new Map([...readdirSync(WEB).filter(name => !/\.(d\.ts|css)$/.test(name)), 'style.css']
    .map(name => [name, name === 'page.html' ? '/' : name.endsWith('.txt') ? `/web/${name}` : `/${place}${name}`]))
}

test('page files are served as built, in each coding; those with a hash in the path are kept for good', async t => {
  const { url } = await startService(t, { page: 'on' })
  const types: Record<string, string> = {
    html: 'text/html; charset=utf-8', css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8',
    txt: 'text/plain; charset=utf-8', svg: 'image/svg+xml', png: 'image/png', webmanifest: 'application/manifest+json'
  }
  const client = await connectRaw(t, url)
  const paths = await pathsOf(t, url)
  assert.ok(paths.has('page.html') && paths.has('main.js'))
  for (const [name, path] of paths) {
    const bytes = servedAs(name)
    for (const [coding, decode] of [['br', brotliDecompressSync], ['gzip', gunzipSync], ['', Buffer.from]] as const) {
      if (coding === '' && name.endsWith('.png')) continue // the client of this test reads texts
      await client.send(message('GET', path, undefined, [`Accept-Encoding: ${coding}`]))
      const answer = await client.answer()
      assert.equal(answer.status, 200, path)
      assert.equal(answer.headers['content-type'], types[name.split('.').at(-1)!])
      assert.equal(answer.headers['content-encoding'], coding === '' ? undefined : coding)
      const isKept = !/\.(html|txt)$/.test(name)
      assert.equal(answer.headers['cache-control'], isKept ? 'public, max-age=31536000, immutable' : 'no-cache', name)
      if (name !== 'page.html') assert.ok(bytes.equals(decode(answer.body)), `${path} ${coding}`)
      assertProtected(answer)
    }
  }
})

test('no script has a text of several lines, which would lose its indentation', () => {
  for (const name of readdirSync(WEB).filter(name => name.endsWith('.js'))) {
    const inText = textIn(name).split('\n').filter(line => (line.match(/`/g) ?? []).length % 2 === 1)
    assert.deepEqual(inText, [], name)
  }
})

/** What is asked for only when it is needed. */
const LATER = /^(words-..|common)\.txt$|\.(svg|png|webmanifest)$/
/** A browser asks for one of the two languages, of which this one is longer. */
const OTHER_LANGUAGE = 'texts-en.js'

test('a first look asks for at most 31 files, which weigh at most 61 kB as a browser gets them', async t => {
  const { url } = await startService(t, { page: 'on' })
  const paths = [...await pathsOf(t, url)].filter(([name]) => !LATER.test(name) && name !== OTHER_LANGUAGE)
    .map(([, path]) => path)
  let bytes = 0
  for (const path of paths) bytes += (await ask(t, url,
    message('GET', path, undefined, ['Accept-Encoding: br']))).body.length
  t.diagnostic(`${paths.length} files, ${bytes} bytes`)
  assert.ok(paths.length <= 31 && bytes <= 61 * 1024, `${paths.length} files, ${bytes} bytes`)
})


test('every module is asked for at once, named by the page; the first asks for the texts of one language', async t => {
  const { url } = await startService(t, { page: 'on' })
  const found = new Set<string>()
  const follow = (name: string): void => {
    if (found.has(name)) return
    found.add(name)
    const text = String(readFileSync(new URL(name, WEB)))
    if (name === 'first.js') assert.equal(text.match(/\bimport\(['"]\.\/texts-..\.js['"]\)/g)?.length, 2)
    else assert.doesNotMatch(text, /\bimport\(/, `${name} imports nothing later`)
    for (const [, next] of text.matchAll(/^(?:import|export) .*?from ['"]\.\/([\w-]+\.js)['"]/gms)) follow(next!)
  }
  follow('main.js')
  const page = (await ask(t, url, message('GET', '/'))).text
  const link = /(?:modulepreload" href|script type="module" src)="web\/[0-9a-f]{16}\/([\w-]+\.js)"/g
  const named = [...page.matchAll(link)].map(([, name]) => name!)
  assert.deepEqual(named.sort(), [...found].sort())
  assert.deepEqual(readdirSync(WEB).filter(name => name.endsWith('.js') && !name.startsWith('texts-')).sort(),
    [...found].sort(), 'and there are no others')
})

test('what the client has already is answered 304 without a body; HEAD is as GET', async t => {
  const { url } = await startService(t, { page: 'on' })
  const get = await ask(t, url, message('GET', '/?lang=es', undefined, ['Accept-Encoding: gzip']))
  const head = await ask(t, url, message('HEAD', '/', undefined, ['Accept-Encoding: gzip']))
  const { date: _getDate, ...of } = get.headers
  const { date: _headDate, ...same } = head.headers
  assert.deepEqual(same, of)
  // Two fields are one list.
  const fields = ['Accept-Encoding: gzip', 'If-None-Match: "x"', `If-None-Match: ${get.headers['etag']}`]
  const again = await ask(t, url, message('GET', '/', undefined, fields))
  assert.deepEqual([again.status, again.body.length, again.headers['etag']], [304, 0, get.headers['etag']])
  assertProtected(again)
  assert.equal((await ask(t, url, message('POST', '/', '{}'))).headers['allow'], 'GET, HEAD, OPTIONS')
  for (const path of ['/web', '/web/', '/web/page.html', '/web/main.js', '/web/0123456789abcdef/main.js',
    '/web/../server.js', '/web/%6dain.js', '/web/api.d.ts']) {
    assert.equal((await ask(t, url, message('GET', path))).status, 404, path)
  }
})

test('the page does not count against the rate limit', async t => {
  const { url } = await startService(t, { 'page': 'on', 'rate-limit': '1' })
  for (let i = 0; i < 3; i++) {
    const { status, headers } = await ask(t, url, message('GET', '/'))
    assert.deepEqual([status, headers['x-ratelimit-limit']], [200, undefined])
  }
  assert.equal((await ask(t, url, message('GET', '/api/listPassword'))).headers['x-ratelimit-remaining'], '0')
})

/** What the page says that it may offer. */
async function servedBy(t: TestContext, url: string): Promise<any> {
  const said = /<meta name="served" content="([^"]*)">/.exec((await ask(t, url, message('GET', '/'))).text)![1]!
  return JSON.parse(said.replaceAll('&quot;', '"'))
}

test('the page is there without a token, but not under a foreign name', async t => {
  const locked = await startProtected(t, { page: 'on' })
  assert.equal((await ask(t, locked.url, message('GET', '/'))).status, 200)
  assert.equal((await ask(t, locked.url, message('GET', '/api/listPassword'))).status, 401)
  const { operations, hasUsers } = await servedBy(t, locked.url)
  assert.equal(hasUsers, true)
  const asks = (ability: string): readonly string[] => ['*', ability]
  const expected: Record<string, unknown> = {
    listEntries: ['*', 'password:read', 'entry:list'], getPassword: asks('password:read'),
    createPassword: asks('password:create'),
    updatePassword: asks('password:update'), deletePassword: asks('password:delete'), login: null, logout: null,
    deletedPasswords: asks('password:deleted'), restorePassword: asks('password:restore'),
    oneTimeCode: asks('password:read')
  }
  for (const [operation, abilities] of Object.entries(expected)) assert.deepEqual(operations[operation], abilities,
    operation)
  assert.equal(operations['historyPassword'], undefined, 'what is not served is not offered')
  const empty = await startService(t, { page: 'on', auth: 'bearer' })
  assert.equal((await servedBy(t, empty.url)).hasUsers, false)
  await empty.service.accounts!.addUser('ana@example.org', 'Ana', ['*'], 'correct horse battery staple')
  assert.equal((await servedBy(t, empty.url)).hasUsers, true)
  const open = await startService(t, { page: 'on' })
  for (const path of ['/', '/web/common.txt']) {
    assert.equal((await ask(t, open.url, message('GET', path, undefined, ['Host: evil.example']))).status, 403, path)
  }
})

test('PAGE=off: there is no page', async t => {
  const { url } = await startService(t, { page: 'off' })
  for (const path of ['/', '/web/common.txt']) {
    assert.equal((await ask(t, url, message('GET', path))).text, '{"message":"Not Found","status":404}', path)
  }
})

test('a page that is not there whole is refused, and what serves without it is named', () => {
  const list = (): never => { throw Object.assign(new Error(), { code: 'ENOENT' }) }
  assert.throws(() => pageRoutes({ ...disk, list }, () => [], () => true), {
    code: 'page-unusable',
    message: /ENOENT; a bundle .*browser beside it; PAGE=off, or the option page: false, serves without it$/
  })
})

test('with the page, deleted entries can be had back; histories if asked for; own passwords with a login', async t => {
  const statuses = async (url: string, token?: string): Promise<readonly number[]> => {
    const fields = token === undefined ? [] : [`Authorization: Bearer ${token}`]
    const paths = [['GET', 'deletedPasswords'], ['POST', 'restorePassword/1'], ['GET', 'historyPassword/1'],
      ['POST', 'changeOwnPassword']] as const
    const answers = []
    for (const [method, path] of paths) {
      answers.push((await ask(t, url, message(method, `/api/${path}`, method === 'POST' ? '{}' : undefined,
        fields))).status)
    }
    return answers
  }
  const create = (url: string, token?: string): Promise<RawAnswer> => ask(t, url, message('POST', '/api/createPassword',
    JSON.stringify({ sistema: 's', usuario: 'u', password: 'p' }), token === undefined ? []
      : [`Authorization: Bearer ${token}`]))
  for (const [page, extra, expected] of [
    ['on', 'off', [200, 200, 404, 404]], ['off', 'off', [404, 404, 404, 404]], ['on', 'on', [200, 200, 200, 404]]
  ] as const) {
    const { url } = await startService(t, { page, 'extra-routes': extra, journal: 'file' })
    await create(url)
    assert.deepEqual(await statuses(url), expected, `page ${page}, extra routes ${extra}`)
  }
  // With abilities of their own.
  const { url, service } = await startProtected(t, { page: 'on' },
    { 'eva@example.org': ['password:read', 'password:delete', 'password:restore'] })
  const { token } = (await service.accounts!.issue('eva@example.org', undefined, undefined))!
  await createEntry(service.store, { sistema: 's', usuario: 'u', password: 'p' }, null)
  assert.deepEqual(await statuses(url, token), [403, 200, 404, 403])
  assert.deepEqual(await statuses(url), [401, 401, 404, 401])
})
