/** What is sent to both programs: tables, and generators from a seed. */
import { Buffer } from 'node:buffer'
import { accepted, connectRequest, garbage, getOne, head, host, refused } from '../../support/framings.ts'
import { mutate } from '../../support/mutations.ts'
import type { Random } from '../../support/random.ts'
import { chunk, chunked, message } from '../../support/raw.ts'

/**
 * What goes over one connection. `{{tag 3}}`, `{{old 3}}` and `{{token}}` in a head stand for what a program itself has
 * said: the last tag of an entry, the one before it, and the token of its last login.
 */
export interface Script {
  /** By which differences are grouped. */
  readonly kind: string
  readonly pieces: readonly (string | Buffer)[]
  /** Each request's method and path as far as they are known, in their order: how many answers are waited for. */
  readonly requests: readonly string[]
  /** Waits for an answer, which may be `100 Continue`, before the second piece. */
  readonly awaitsLeave?: boolean
  /** Ends its own side behind the bytes. */
  readonly halfCloses?: boolean
  readonly from?: string
}

export interface Sort {
  /** Fields of which a request may have some: `Authorization` and what else means something here. */
  readonly fields: readonly string[]
  readonly paths?: readonly string[]
  readonly maxBody?: number
}

const ENTRY = { password: 'p', sistema: 's', usuario: 'u' }
const METHODS = ['GET', 'HEAD', 'POST', 'OPTIONS', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'QUERY', 'get',
  'STEAL']
const ROUTES = [
  '/api/listPassword', '/api/getPassword/{id}', '/api/createPassword', '/api/updatePassword/{id}',
  '/api/deletePassword/{id}', '/api/login', '/api/logout', '/api/deletedPasswords', '/api/deletedPasswords/{id}',
  '/api/restorePassword/{id}', '/api/historyPassword/{id}', '/api/changeOwnPassword', '/api/listEntries',
  '/api/whoKnows/{id}', '/api/formerPassword/{id}/1', '/api/formerNotes/{id}/1', '/api/oneTimeCode/{id}',
  '/api/ownSessions', '/api/endOwnSessions', '/api/proxyLogin'
]
const TAKES_BODY = /(create|update|delete|restore|change)\w*Password|log(in|out)|endOwn|proxyLogin/
const OTHER_PATHS = [
  '/', '/web/', '/web/nope.js', '/web/common.txt', '/web/../api/listPassword', '/healthz', '/livez', '/metrics',
  '/openapi.json',
  '/api',
  '/api/', '/api/nope', '/nope', '//', '//api/listPassword', '/API/listPassword', '/api/listPassword/',
  '/api/getPassword', '/api/getPassword/', '/api/getPassword/1/2', '/api/list%50assword', '/apis', '*',
  '/api/listPassword?a=1', '/api/listPassword#a', '/api/getPassword/1?id=2', '/operator/status', '/favicon.ico'
]
const IDS = [
  '1', '2', '3', '4', '5', '6', '7', '8', '20', '30', '31', '40', '999999', '0', '-1', '01', '1.0', '1e0', '+1', 'abc',
  '%31', '%zz', '%00', '%F1', '1%20', '9007199254740991', '9007199254740993', '99999999999999999999', '１', '__proto__',
  'x'.repeat(500)
]
const FIELDS = [
  'Accept: application/json', 'Accept: text/html', 'Accept-Encoding: gzip, br', 'Connection: close',
  'Connection: keep-alive', 'Cookie: a=b', 'X-Operator: ana', 'Upgrade: h2c', 'Connection: Upgrade', 'TE: trailers',
  'If-None-Match: *', 'If-None-Match: "a"', 'If-None-Match: {{tag 1}}', 'Range: bytes=0-1',
  'X-Http-Method-Override: DELETE',
  'Referer: http://evil.example/',
  ...['*', '"a"', '{{tag 1}}', '{{old 1}}', '{{tag 2}}, "b"', '"b",{{old 2}}', 'W/{{tag 1}}', '', '"a', '"a",*',
    '"a b"']
    .map(tags => `If-Match: ${tags}`),
  ...['http://127.0.0.1', 'https://127.0.0.1', 'null', 'http://evil.example', 'https://app.example',
    'https://APP.example', '']
    .map(origin => `Origin: ${origin}`),
  ...['cross-site', 'same-site', 'same-origin', 'none', 'odd'].map(site => `Sec-Fetch-Site: ${site}`),
  ...['localhost', 'LOCALHOST:1', '[::1]', '[::1]:80', '127.0.0.1:99999', 'evil.example', 'vault.example',
    'vault.example:443',
    '', 'a b', '127.1', '0x7f.1', '127.0.0.1.', '[::ffff:127.0.0.1]'].map(name => `Host: ${name}`),
  ...['10.0.0.1', '10.0.0.1, 127.0.0.1', 'unknown', '::1', '', '[2001:db8::1]:80', '10.0.0.1:99'].map(who =>
    `X-Forwarded-For: ${who}`),
  ...['https', 'http', 'HTTPS', 'https, http'].map(scheme => `X-Forwarded-Proto: ${scheme}`),
  'Forwarded: for=10.0.0.1', 'Via: 1.1 proxy', 'X-Real-IP: 10.0.0.1', 'X-Forwarded-Host: vault.example',
  'Access-Control-Request-Method: POST', 'Access-Control-Request-Headers: if-match', 'Authorization: Bearer pes_nobody',
  'Authorization: Basic YTpi', 'Authorization: bearer', 'Expect: 100-continue', 'Expect: nothing', 'A: b',
  `B: ${'x'.repeat(3_000)}`
]
const TYPES = [
  'application/json', 'application/json; charset=utf-8', 'application/json;charset="UTF-8"', 'text/plain', '',
  'application/json; charset=latin1', 'APPLICATION/JSON', 'application/jsonp', 'application/json, text/plain',
  'multipart/form-data'
]
const VALUES = [
  '"p"', '""', '" "', '"ñ€😀"', '"\\ud800"', '"\\u0000"', '"\\n\\t\\"\\\\"', '"<script>"', '1', '-0.5e3', 'true',
  'null', '[]', '{}',
  '["a"]', '"a', '01', '1.', '.5', '+1', '1e', '"\t"', '"\\x"', '"\\u12"', "'a'", 'NaN', '"\u2028"', '"\u00ff"'
]
const BODIES: readonly (string | Buffer)[] = [
  '', ' ', '{}', '[]', 'null', '1', '"a"', '{', '}', '{"a"}', '{"a":1,}', '{,}', '{"a":1 "b":2}', '[1,2',
  '{"password":"p"}',
  '\ufeff{}', '{}x', '{} {}', '/**/{}', '{"password":"p","password":"q"}', '{"__proto__":{"password":"p"}}',
  '{"constructor":1}',
  ...[62, 63, 64, 65, 66].map(depth => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`),
  ...[63, 64, 65].map(depth => '{"a":'.repeat(depth) + '1' + '}'.repeat(depth)),
  Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), Buffer.from([0x7b, 0x22, 0xc3, 0x22, 0x3a, 0x31, 0x7d]),
  Buffer.from('{"password":"\xed\xa0\x80"}', 'latin1'), Buffer.from('{}', 'utf16le'), '{\r\n"password":\n\n1}',
  `{${Array.from({ length: 10_001 }, (_, i) => `"${i.toString(36)}":1`).join()}}`, '{"999":1}',
  `[${'1,'.repeat(2_000)}1]`
]
const OWN_BODIES = [
  '{"password":"wrong","newPassword":"another long sentence"}', '{"password":"a","newPassword":"short"}',
  '{"password":"a","newPassword":"password password"}', '{"session":"others"}', '{"session":"nobody"}', '{"session":1}'
]
const EMAILS = ['ana@example.org', 'ANA@example.org', 'leo@example.org', 'nobody@example.org', 'ana', '',
  `${'a'.repeat(260)}@b.c`]

const text = (value: unknown): string => JSON.stringify(value)

function body(random: Random, maxBody: number): string | Buffer {
  const dice = random.next()
  if (dice < 0.3) return text({ ...ENTRY, password: `p${random.int(1e9)}`,
    usuario: random.pick(['u', 'ñ'.repeat(200), '😀']) })
  if (dice < 0.45) return text({ [random.pick(Object.keys(ENTRY))]: `v${random.int(1e9)}` })
  if (dice < 0.7) {
    const names = [...Object.keys(ENTRY), 'url', 'notas', 'id', 'status', 'x', '__proto__'].filter(() =>
      random.next() < 0.45)
    return `{${names.map(name => `"${name}":${random.pick(VALUES)}`).join()}}`
  }
  if (dice < 0.85) return random.pick(BODIES)
  if (dice < 0.9) return text({ ...ENTRY, sistema: 'x'.repeat(Math.max(0, maxBody - 45 + random.int(30))) })
  return mutate(Buffer.from(text({ ...ENTRY, password: `m${random.int(1e9)}` })), random,
    BODIES.map(one => Buffer.from(one)))
}

function path(random: Random, { paths = [] }: Sort): string {
  const all = random.next() < 0.85 ? [...ROUTES, ...ROUTES.slice(0, 5), ...paths] : OTHER_PATHS
  const id = random.next() < 0.7 ? String(1 + random.int(45)) : random.pick(IDS)
  return random.pick(all).replace('{id}', Buffer.from(id).toString('latin1'))
}

function some(random: Random, sort: Sort): string[] {
  const own = random.next() < 0.85 && sort.fields.length > 0 ? [random.pick(sort.fields)] : []
  if (random.next() < 0.4) return own
  return [...own, ...Array.from({ length: 1 + random.int(3) }, () => random.pick(FIELDS))]
}

/** One request, most of them with a body where the route takes one; not where it has to follow others. */
function request(random: Random, sort: Sort): { bytes: Buffer, line: string } {
  const target = path(random, sort)
  const isPost = TAKES_BODY.test(target)
  const method = random.next() < 0.85 ? (isPost ? 'POST' : 'GET') : random.pick(METHODS)
  const fields = some(random, sort)
  const hasBody = isPost ? random.next() < 0.85 : random.next() < 0.05
  if (!hasBody) return { bytes: message(method, target, undefined, fields), line: `${method} ${target}` }
  const bytes = /log(in|out)/.test(target)
    ? text({ email: random.pick(EMAILS), password: random.pick(['wrong', '', 'correct horse battery staple']) })
    : /Own/.test(target) ? random.pick(OWN_BODIES) : body(random, sort.maxBody ?? 65_536)
  if (random.next() < 0.15) fields.push(`Content-Type: ${random.pick(TYPES)}`)
  if (random.next() < 0.03) fields.push(`Content-Encoding: ${random.pick(['gzip', 'identity', 'br'])}`)
  return { bytes: message(method, target, bytes, fields), line: `${method} ${target}` }
}

const plain = (kind: string, line: string, ...pieces: (string | Buffer)[]): Script =>
  ({ kind, pieces, requests: [line] })

/** The scripts of the tables, each once. */
export function* tables(sort: Sort): Generator<Script> {
  const own = sort.fields.slice(0, 1)
  for (const [what, , ...bytes] of refused) yield plain(`framing: ${what}`, 'GET ?', ...bytes)
  for (const [what, , ...bytes] of accepted) yield plain(`framing: ${what}`, 'GET /api/getPassword/1', ...bytes)
  for (const method of METHODS) {
    for (const one of [...ROUTES, ...OTHER_PATHS, ...sort.paths ?? []]) {
      const target = one.replace('{id}', '2')
      if (/deletePassword|logout/.test(target) && method === 'POST') continue
      for (const fields of [own, [...own, 'Origin: https://app.example'],
        [...own, 'Origin: https://app.example', 'Access-Control-Request-Method: POST']]) {
        yield plain(`route: ${method} ${one}`, `${method} ${target}`, message(method, target, undefined, fields))
      }
    }
  }
  for (const id of IDS) {
    for (const route of ROUTES.filter(one => one.includes('{id}'))) {
      const [target, method] = [route.replace('{id}', Buffer.from(id).toString('latin1')),
        /get|deletedP|history|whoKnows|former|oneTime/.test(route) ? 'GET' : 'POST']
      yield plain(`id: ${route}`, `${method} ${target}`, message(method, target, undefined, own))
    }
  }
  for (const field of FIELDS) {
    for (const line of ['GET /api/getPassword/1', 'GET /api/listPassword', 'POST /api/updatePassword/1', 'GET /healthz',
      'GET /']) {
      const [method = '', target = ''] = line.split(' ')
      yield plain(`field: ${field.slice(0, 40)}`, line,
        message(method, target, method === 'POST' ? '{"usuario":"f"}' : undefined, [...own, field]))
    }
  }
  for (const one of BODIES) for (const target of ['/api/createPassword', '/api/updatePassword/2', '/api/login']) {
    yield plain(`body: ${String(one).slice(0, 30)}`, `POST ${target}`, message('POST', target, one, own))
  }
  for (const value of VALUES) for (const target of ['/api/createPassword', '/api/updatePassword/2']) {
    yield plain(`value: ${value}`, `POST ${target}`, message('POST', target,
      `{"password":"p","sistema":"s","usuario":${value}}`, own))
  }
  // Alone, so that they change nothing that an older version has, too.
  for (const value of [...VALUES, '"a,b"', '"JBSWY3DPEHPK3PXP"', '"otpauth://totp/a?secret=JBSWY3DPEHPK3PXP"']) {
    for (const name of ['url', 'notas', 'grupo', 'otp']) {
      yield plain(`value of ${name}: ${value}`, 'POST /api/updatePassword/3', message('POST', '/api/updatePassword/3',
        `{"${name}":${value}}`, own))
    }
  }
  for (const target of ['/api/listPassword', '/api/listEntries', '/api/getPassword/3', '/api/oneTimeCode/3',
    '/api/historyPassword/3', '/api/deletedPasswords', '/api/whoKnows/3']) {
    yield plain(`after values: ${target}`, `GET ${target}`, message('GET', target, undefined, own))
  }
  for (const one of OWN_BODIES) for (const target of ['/api/changeOwnPassword', '/api/endOwnSessions']) {
    for (const fields of [own, ['Authorization: Bearer {{token}}'], []]) {
      yield plain(`own: ${target} ${one}`, `POST ${target}`, message('POST', target, one, fields))
    }
  }
  for (const type of TYPES) {
    yield plain(`type: ${type}`, 'POST /api/updatePassword/2',
      message('POST', '/api/updatePassword/2', '{}', [...own, `Content-Type: ${type}`]))
  }
  for (const target of ['/api/createPassword', '/api/updatePassword/1', '/api/updatePassword/999', '/nope']) {
    const [first, ...rest] = [head(`POST ${target} HTTP/1.1`, host, ...own, 'Content-Type: application/json',
      'Expect: 100-continue', 'Content-Length: 17'), '{"sistema":"abc"}']
    yield { kind: `expectation: ${target}`, pieces: [first!, ...rest], requests: [`POST ${target}`], awaitsLeave: true }
  }
  for (const [from, to] of [[-1, 200], [0, 200], [1, 413]] as const) {
    const bytes = ' '.repeat(Math.max(0, (sort.maxBody ?? 65_536) + from - 2)) + '{}'
    yield plain(`length: ${to}`, 'POST /api/updatePassword/2', message('POST', '/api/updatePassword/2', bytes, own))
    yield plain(`length in chunks: ${to}`, 'POST /api/updatePassword/2',
      head('POST /api/updatePassword/2 HTTP/1.1', host, ...own,
      'Content-Type: application/json', 'Transfer-Encoding: chunked'), chunk(bytes), chunk(''))
  }
}

/** A script by chance. */
export function script(random: Random, sort: Sort): Script {
  const dice = random.next()
  const { bytes, line } = request(random, sort)
  const kind = line.replace(/\/[^/]*$/, last => /^\/(\d|%|x{9})/.test(last) ? '/{id}' : last).slice(0, 60)
  if (dice < 0.55) return plain(kind, line, bytes)
  if (dice < 0.62) {
    const at = random.int(bytes.length)
    return plain(`in two pieces: ${kind}`, line, bytes.subarray(0, at), bytes.subarray(at))
  }
  if (dice < 0.7) return { kind: `half-closed: ${kind}`, pieces: [bytes], requests: [line], halfCloses: true }
  if (dice < 0.78) {
    const more = Array.from({ length: 1 + random.int(4) }, () => request(random, sort))
    return { kind: 'pipelined', pieces: [Buffer.concat([bytes, ...more.map(one => one.bytes)])],
      requests: [line, ...more.map(one => one.line)], halfCloses: true }
  }
  if (dice < 0.86) {
    const content = Buffer.from(body(random, sort.maxBody ?? 65_536))
    const chunks: (string | Buffer)[] = []
    const size = Math.max(1 + random.int(100), content.length / 200)
    for (let at = 0; at < content.length; at += size) chunks.push(content.subarray(at, at + size))
    const target = random.pick(['/api/createPassword', '/api/updatePassword/3'])
    const begun = chunked('POST', target, []).toString('latin1').replace('\r\n\r\n',
      `\r\n${some(random, sort).map(one => `${one}\r\n`).join('')}\r\n`)
    return plain(`in chunks: POST ${target}`, `POST ${target}`, Buffer.from(begun, 'latin1'),
      ...chunks.filter(one => one.length > 0).map(chunk), chunk(''))
  }
  if (dice < 0.9) {
    return { kind: 'If-Match', requests: ['GET /api/getPassword/1', 'POST /api/updatePassword/1'].slice(1), pieces: [
      message('POST', '/api/updatePassword/1', `{"sistema":"t${random.int(1e9)}"}`,
        [...sort.fields.slice(0, 1), `If-Match: ${random.pick(['{{tag 1}}', '{{old 1}}', '*', '"x"'])}`])] }
  }
  const others = [getOne, Buffer.from(garbage), Buffer.from(connectRequest), bytes]
  return { kind: 'mutated', pieces: [mutate(bytes, random, others)], requests: Array<string>(9).fill('? ?'),
    halfCloses: true }
}
