/** The framing table: what is no request of HTTP and how it is refused, and what is a request, however it is put. */
import { Buffer } from 'node:buffer'
import { MAX_HEADER_BYTES } from '../../src/limits.ts'
import { chunked, message } from './raw.ts'

export const entry = '{"password":"p","sistema":"s","usuario":"u"}'
const size = entry.length.toString(16)
export const getOne: Buffer = message('GET', '/api/getPassword/1')
export const garbage = '\x16\x03\x01 not http\r\n\r\n'
export const connectRequest = 'CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n'

/** The bytes of a head of these lines. */
export function head(...lines: readonly string[]): Buffer { return Buffer.from([...lines, '', ''].join('\r\n'),
  'latin1') }

export const host = 'Host: 127.0.0.1'
export const json = 'Content-Type: application/json'
export const postHead = (...fields: readonly string[]): Buffer => head('POST /api/createPassword HTTP/1.1', ...fields)
/** All of it is answered by one refusal of HTTP's own, and the connection ends. */
export const refused: readonly (readonly [what: string, status: number, ...bytes: (string | Buffer)[]])[] = [
  ['a line that is no request', 400, garbage],
  ['a request without a version', 400, 'GET /api/getPassword/1\r\n\r\n'],
  ['an unknown version', 400, head('GET /api/getPassword/1 HTTP/1.2', host)],
  ['HTTP/0.9 with a version', 400, head('GET /api/getPassword/1 HTTP/0.9', host)],
  ['HTTP/2.0 as if it were 1.1', 400, head('GET /api/getPassword/1 HTTP/2.0', host)],
  ['the preface of HTTP/2', 400, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['an unknown method', 400, head('STEAL /api/getPassword/1 HTTP/1.1', host)],
  ['a target beyond ASCII', 400, head('GET /api/getPassword/\xb9 HTTP/1.1', host)],
  ['lines that end in a line feed alone', 400, `GET /api/getPassword/1 HTTP/1.1\n${host}\n\n`],
  ['a field without a colon', 400, head('GET /api/getPassword/1 HTTP/1.1', host, 'nonsense')],
  ['white space before a colon', 400, head('GET /api/getPassword/1 HTTP/1.1', 'Host : 127.0.0.1')],
  ['a folded field', 400, head('GET /api/getPassword/1 HTTP/1.1', host, 'A: b', ' c')],
  ['a NUL in a field', 400, head('GET /api/getPassword/1 HTTP/1.1', host, 'A: b\0c')],
  ['a bare carriage return in a field', 400, head('GET /api/getPassword/1 HTTP/1.1', host, 'A: b\rc')],
  ['no Host', 400, head('GET /api/getPassword/1 HTTP/1.1')],
  ['no Host in HTTP/1.0', 400, head('GET /api/getPassword/1 HTTP/1.0')],
  ['two Hosts', 400, head('GET /api/getPassword/1 HTTP/1.1', host, 'Host: localhost')],
  ['two Origins', 400, head('GET /api/getPassword/1 HTTP/1.1', host, 'Origin: null', 'Origin: http://127.0.0.1')],
  ['two content types', 400, postHead(host, json, 'Content-Type: text/plain', 'Content-Length: 2'), '{}'],
  ['an absolute target', 400, head('GET http://127.0.0.1/api/getPassword/1 HTTP/1.1', host)],
  ['an asterisk as target', 400, head('GET * HTTP/1.1', host)],
  ['two lengths', 400, postHead(host, json, 'Content-Length: 2', 'Content-Length: 3'), '{}'],
  ['the same length twice', 400, postHead(host, json, 'Content-Length: 2', 'Content-Length: 2'), '{}'],
  ['a list of lengths', 400, postHead(host, json, 'Content-Length: 2, 2'), '{}'],
  ['a length with a sign', 400, postHead(host, json, 'Content-Length: +2'), '{}'],
  ['a hexadecimal length', 400, postHead(host, json, 'Content-Length: 0x2'), '{}'],
  ['a length beyond 64 bits', 400, postHead(host, json, 'Content-Length: 99999999999999999999999'), '{}'],
  ['an empty length', 400, postHead(host, json, 'Content-Length:'), '{}'],
  ['a length and chunks', 400, postHead(host, json, 'Content-Length: 2', 'Transfer-Encoding: chunked'), '0\r\n\r\n'],
  ['chunks and a length', 400, postHead(host, json, 'Transfer-Encoding: chunked', 'Content-Length: 2'), '0\r\n\r\n'],
  ['chunks of something else', 400, postHead(host, json, 'Transfer-Encoding: gzip, chunked'), '0\r\n\r\n'],
  ['chunks twice', 400, postHead(host, json, 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'), '0\r\n\r\n'],
  ['a coding that does not end in chunks', 400, postHead(host, json, 'Transfer-Encoding: gzip'), '{}'],
  ['the coding that there is not', 400, postHead(host, json, 'Transfer-Encoding: identity'), '{}'],
  ['a coding like chunks', 400, postHead(host, json, 'Transfer-Encoding: xchunked'), '0\r\n\r\n'],
  ['chunks in HTTP/1.0', 400, head('POST /api/createPassword HTTP/1.0', host, json, 'Transfer-Encoding: chunked'),
    '0\r\n\r\n'],
  ['a chunk whose length is no number', 400, chunked('POST', '/api/createPassword', [entry]), 'zz\r\n'],
  ['a chunk that is longer than it said', 400, chunked('POST', '/api/createPassword', []), '2\r\n{}}\r\n0\r\n\r\n'],
  ['chunk extensions without end', 413, chunked('POST', '/api/createPassword', []),
    `2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`],
  ['a trailer that frames', 400, chunked('POST', '/api/createPassword', [entry]), '0\r\nContent-Length: 5\r\n\r\n'],
  ['trailers that are too large', 431, chunked('POST', '/api/createPassword', [entry]),
    `0\r\n${'a:b\r\n'.repeat(20_000)}\r\n`],
  ...['fffffffffffffffff', '1'.repeat(4_000), `0x${size}`, `-${size}`, ''].map(said =>
    [`a chunk whose size is ${said.slice(0, 20) || 'missing'}`, 400, chunked('POST', '/api/createPassword', []),
      `${said}\r\n${entry}\r\n0\r\n\r\n`] as const),
  ['chunks that end in a line feed alone', 400, chunked('POST', '/api/createPassword', []),
    `${size}\n${entry}\n0\n\n`],
  ['too many fields', 431, message('GET', '/api/getPassword/1', undefined, Array<string>(20_000).fill('a:b'))],
  ['a field that is too large', 431,
    head('GET /api/getPassword/1 HTTP/1.1', host, `A: ${'x'.repeat(MAX_HEADER_BYTES)}`)],
  ['a field that does not end', 431, `GET / HTTP/1.1\r\n${host}\r\nA: ${'x'.repeat(40 * MAX_HEADER_BYTES)}`],
  ['a target that is too large', 431, head(`GET /${'x'.repeat(MAX_HEADER_BYTES)} HTTP/1.1`, host)],
  ['another expectation', 417, postHead(host, json, 'Expect: 200-ok', 'Content-Length: 2'), '{}'],
  ['an empty expectation', 417, postHead(host, json, 'Expect: ', 'Content-Length: 2'), '{}'],
  ['two expectations', 400,
    postHead(host, json, 'Expect: 100-continue', 'Expect: 100-continue', 'Content-Length: 2'), '{}'],
  ['a tunnel', 405, connectRequest]
]
/** All of it is answered 200 with the entry 1; `connection` is what the answer says of the connection. */
export const accepted: readonly (readonly [what: string, connection: string, ...bytes: (string | Buffer)[]])[] = [
  ['HTTP/1.1', 'keep-alive', getOne],
  ['HTTP/1.1 that is to end', 'close', message('GET', '/api/getPassword/1', undefined, ['Connection: close'])],
  ['HTTP/1.0 with a Host', 'close', head('GET /api/getPassword/1 HTTP/1.0', host)],
  ['HTTP/1.0 that is to stay', 'keep-alive', head('GET /api/getPassword/1 HTTP/1.0', host, 'Connection: keep-alive')],
  ['empty lines before the request', 'keep-alive', '\r\n\r\n', getOne],
  ['a query', 'keep-alive', message('GET', '/api/getPassword/1?id=2/3&%zz')],
  ['an offer to upgrade', 'close',
    message('GET', '/api/getPassword/1', undefined, ['Connection: Upgrade', 'Upgrade: websocket'])],
  ['an offer to upgrade to HTTP/2', 'close', message('GET', '/api/getPassword/1', undefined,
    ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'])],
  ['an expectation without a body', 'close',
    message('GET', '/api/getPassword/1', undefined, ['Expect: 100-continue'])],
  ['a body that nobody asked for', 'keep-alive', message('GET', '/api/getPassword/1', '{"id":2}')]
]
