/** HTTP as bytes: what is sent here no well-behaved client would send, or not in these pieces. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import {
  MAX_BODY_BYTES, MAX_DRAIN_BYTES, MAX_HEADER_BYTES, MAX_HEADER_FIELDS, MAX_SMALL_PIECES, SMALL_PIECE_BYTES
} from '../../src/limits.ts'
import {
  accepted, connectRequest, entry, garbage, getOne, head, host, json, postHead, refused
} from '../support/framings.ts'
import { ask, chunk, chunked, connectRaw, exchange, message, type RawAnswer } from '../support/raw.ts'
import { startService, type Started } from '../support/service.ts'
import { createEntry, updateEntry } from '../../src/entries/entry-commands.ts'

const entryOne = '{"passwords":{"id":1,"password":"p","sistema":"s","usuario":"u","status":1},"status":200}'
const created = '{"message":"SE CREÓ UNA NUEVA CONTRASEÑA","status":200}'
const create = message('POST', '/api/createPassword', entry)

const TEXTS: { readonly [status: number]: string } = {
  400: 'Bad Request', 404: 'Not Found', 405: 'Method Not Allowed', 413: 'Payload Too Large',
  417: 'Expectation Failed', 431: 'Request Header Fields Too Large'
}

async function withEntry(t: TestContext, flags: Record<string, string> = {}): Promise<Started> {
  const started = await startService(t, flags)
  await createEntry(started.service.store, { password: 'p', sistema: 's', usuario: 'u' }, null)
  return started
}

function statuses(answers: readonly RawAnswer[]): number[] { return answers.map(({ status }) => status) }

/** An answer of HTTP's own, that ends the connection. */
function assertRefusal(answer: RawAnswer | undefined, status: number, what: string): void {
  assert.equal(answer?.text, `{"message":"${TEXTS[status]}","status":${status}}`, what)
  assert.equal(answer.status, status, what)
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8', what)
  assert.equal(answer.headers['x-content-type-options'], 'nosniff', what)
  assert.equal(answer.headers['cache-control'], 'no-store', what)
  assert.equal(answer.headers['connection'], 'close', what)
}

test('what is no request, or a proxy could read in another way, is refused once, and the connection ends', async t => {
  const { url, service } = await withEntry(t)
  for (const [what, status, ...bytes] of refused) {
    await t.test(`${what}: ${status}`, async t => {
      const answers = await exchange(t, url, ...bytes)
      assertRefusal(answers[0], status, what)
      assert.deepEqual(statuses(answers), [status])
      // RFC 9110 §15.5.6
      assert.equal('allow' in answers[0]!.headers, status === 405)
      assert.equal(service.store.state.entries.count, 1, 'nothing was created')
    })
  }
})

test('the largest head that is taken is taken', async t => {
  const { url } = await withEntry(t)
  const room = MAX_HEADER_BYTES - getOne.length - 'A: \r\n'.length
  for (const [length, status] of [[room - 200, 200], [room + 200, 431]] as const) {
    const request = message('GET', '/api/getPassword/1', undefined, [`A: ${'x'.repeat(length)}`])
    assert.equal((await ask(t, url, request)).status, status)
  }
})

test('a client that asks for a tunnel and is gone leaves the service alive', async t => {
  const { url } = await withEntry(t)
  const { hostname, port } = new URL(url)
  for (let i = 0; i < 50; i++) {
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    await new Promise(resolve => socket.write(connectRequest, resolve))
    socket.resetAndDestroy()
    await once(socket, 'close')
  }
  assert.equal((await ask(t, url, getOne)).status, 200)
})

test('what is a request is answered, however it is put', async t => {
  const { url } = await withEntry(t)
  for (const [what, connection, ...bytes] of accepted) {
    await t.test(what, async t => {
      const client = await connectRaw(t, url)
      await client.send(...bytes)
      const { status, text, headers } = await client.answer()
      assert.deepEqual([status, text, headers['connection']], [200, entryOne, connection])
      if (connection === 'close') { assert.deepEqual(await client.untilEnd(), []); return }
      await client.send(getOne)
      assert.equal((await client.answer()).text, entryOne, 'the next request on the connection')
    })
  }
})

test('a body in chunks is read, whatever its pieces, sizes, extensions and trailers', async t => {
  const { url, service } = await startService(t)
  const bytes = Buffer.from('{"password":"ñ€😀","sistema":"s","usuario":"u"}')
  const length = bytes.length.toString(16)
  const last = '0\r\n\r\n'
  const bodies: readonly (readonly (string | Buffer)[])[] = [
    [...[...bytes].map(byte => chunk(Buffer.of(byte))), last],
    [...[...bytes].flatMap(byte => ['1;x\r\n', Buffer.of(byte), '\r\n']), last],
    [chunk(bytes), '0\r\nHost: evil.example\r\nA: b\r\n\r\n'],
    [chunk(bytes), `0\r\n${'a:b\r\n'.repeat(30)}\r\n`],
    [`${length};a="b";c=d\r\n`, bytes, '\r\n000;e\r\n\r\n'],
    [`${length.padStart(60, '0')}\r\n`, bytes, `\r\n${last}`],
    [`${length.toUpperCase()}\r\n`, bytes, `\r\n${last}`]
  ]
  for (const [i, body] of bodies.entries()) {
    const client = await connectRaw(t, url)
    await client.send(postHead(host, json, 'transfer-encoding: CHUNKED'), ...body)
    assert.equal((await client.answer()).text, created)
    assert.equal(service.store.state.entries.get(i + 1)?.password, 'ñ€😀')
  }
})

test('reads that come together are answered in their order, and what is sent again after the end as well', async t => {
  const { url, service } = await startService(t)
  for (let i = 0; i < 100; i++) await createEntry(service.store, { password: `p${i}`, sistema: 's', usuario: 'u' },
    null)
  const ids = Array.from({ length: 400 }, (_, i) => 1 + i * 37 % 120)
  const gets = ids.map(id => `GET /api/getPassword/${id} HTTP/1.1\r\nHost:[::1]\r\n\r\n`)
  const answers: RawAnswer[] = []
  let connections = 0
  for (; answers.length < ids.length; connections++) {
    const client = await connectRaw(t, url)
    await client.send(...gets.slice(answers.length))
    for (let last: RawAnswer | undefined; last?.headers['connection'] !== 'close' && answers.length < ids.length;) {
      last = await client.answer()
      answers.push(last)
    }
    client.destroy()
  }
  t.diagnostic(`${connections} connections`)
  assert.deepEqual(answers.map(({ json }) => json.passwords?.id ?? json.status), ids.map(id => id <= 100 ? id : 404))
})

// RFC 9112 §9.3.2, §9.6
test('what comes before a change is answered is not carried out: the answer ends the connection', async t => {
  const { url, service } = await startService(t)
  for (const next of [create, message('POST', '/api/deletePassword/1'), getOne]) {
    const before = service.store.state.entries.count
    const answers = await exchange(t, url, create, next)
    assert.deepEqual(answers.map(({ text, headers }) => [text, headers['connection']]), [[created, 'close']])
    assert.equal(service.store.state.entries.count, before + 1)
    assert.equal(service.store.state.entries.get(1)?.status, 1)
  }
})

for (const [status, refusal] of [[400, garbage], [405, connectRequest]] as const) {
  test(`a ${status} behind a read is answered after it; behind what waits for an answer, that is the last`, async t => {
    const { url, service } = await withEntry(t)
    const [first, second, ...rest] = await exchange(t, url, getOne, refusal)
    assert.deepEqual([first?.text, rest], [entryOne, []])
    assertRefusal(second, status, `the ${status}`)
    const answers = await exchange(t, url, getOne, getOne, getOne, refusal)
    assert.deepEqual(answers.map(({ text, headers }) => [text, headers['connection']]),
      [[entryOne, 'keep-alive'], [entryOne, 'close']])
    const [only, ...others] = await exchange(t, url, create, refusal)
    assert.deepEqual([only?.text, only?.headers['connection'], others], [created, 'close', []])
    assert.equal(service.store.state.entries.count, 2)
  })
}

test('a broken body is answered 400; one that is refused anyway has no other answer', async t => {
  const { url, service } = await startService(t)
  const answers = await exchange(t, url, chunked('POST', '/api/createPassword', [entry]), 'zz\r\n')
  assertRefusal(answers[0], 400, 'the broken body')
  assert.equal(answers.length, 1)
  assert.equal(service.store.state.entries.count, 0)
  assert.deepEqual(statuses(await exchange(t, url, chunked('POST', '/api/nope', ['a']), 'zz\r\n')), [404])
})

test('a broken body that is not needed: the one answer says what was done', async t => {
  const { url, service } = await withEntry(t)
  const answers = await exchange(t, url, chunked('POST', '/api/deletePassword/1', ['a']), 'zz\r\n')
  await updateEntry(service.store, 1, {}, null) // waits its turn behind the delete
  assert.equal(answers.length, 1)
  assert.equal(answers[0]?.status === 200, service.store.state.entries.get(1)?.status === 0, answers[0]?.line)
})

// RFC 9112 §9.6: a server that answers with `close` must not process any further request on that connection. What
// follows a request that two readers understand in two ways may be a request to only one of them.
test('what follows a request that ends its connection is not carried out', async t => {
  const { url, service } = await withEntry(t)
  for (const first of [
    message('GET', '/api/getPassword/1', undefined, [host, 'Host: localhost']),
    Buffer.concat([postHead(host, json, 'Transfer-Encoding: gzip, chunked'), chunk('')]),
    head('GET http://127.0.0.1/ HTTP/1.1', host), chunked('POST', '/api/nope', ['']),
    message('GET', '/api/getPassword/1', undefined, ['Connection: close']),
    message('GET', '/api/getPassword/1', undefined, ['Connection: Upgrade', 'Upgrade: websocket']),
    message('POST', '/api/updatePassword/1', '{}', ['Connection: Upgrade', 'Upgrade: h2c']),
    // Node 20 reads on behind an offer to upgrade whose body was not read.
    message('POST', '/api/updatePassword/1', '{}', ['Upgrade: h2c', 'Content-Type: text/plain'])
  ]) {
    const client = await connectRaw(t, url)
    await client.send(first, create)
    assert.equal((await client.answer()).headers['connection'], 'close')
    await client.send(create)
    await client.untilEnd().catch(() => {}) // a reset ends it as well
    await updateEntry(service.store, 1, {}, null) // waits its turn behind whatever was begun
    assert.equal(service.store.state.entries.count, 1, first.toString())
  }
})

test('the most fields that are taken all count, and one more is answered 431, wherever it stands', async t => {
  const { url, service } = await startService(t)
  const list = (...fields: readonly string[]): Promise<RawAnswer> =>
    ask(t, url, message('GET', '/api/listPassword', undefined, fields))
  for (let count = MAX_HEADER_FIELDS - 40; count <= MAX_HEADER_FIELDS; count++) {
    const many = Array<string>(count - 2).fill('a:')
    const origin = await list(...many, 'Origin: http://evil.example')
    assert.equal(origin.status, 403, `${count} fields`)
  }
  for (const count of [MAX_HEADER_FIELDS + 1, 128, 129, 131, 132, 133, 160, 161, 200, 1_000, 2_500]) {
    const many = Array<string>(count - 1).fill('a:')
    const answers = await exchange(t, url, message('GET', '/api/listPassword', undefined, many), create)
    assertRefusal(answers[0], 431, `${count} fields`)
    assert.equal(answers.length, 1)
  }
  assert.equal(service.store.state.entries.count, 0, 'nothing behind them was carried out')
})

test('a body in many small chunks is refused once that is seen, whether it is needed or not', async t => {
  const { url, service } = await withEntry(t)
  const small = Buffer.concat(Array<Buffer>(MAX_SMALL_PIECES + 50).fill(chunk('x')))
  for (const [target, status] of [['/api/createPassword', 400], ['/api/nope', 404]] as const) {
    const [answer, ...others] = await exchange(t, url, chunked('POST', target, []), small)
    assert.deepEqual([answer?.status, answer?.headers['connection'], others], [status, 'close', []])
    if (status === 400) {
      assert.equal(answer?.text,
        '{"message":"The body comes in too many small chunks: send larger ones.","status":400}')
    }
  }
  const spaces = Array<Buffer>(MAX_SMALL_PIECES - 1).fill(chunk(' '))
  const taken = await ask(t, url, Buffer.concat([chunked('POST', '/api/createPassword', [entry]), ...spaces,
    chunk('')]))
  assert.equal(taken.text, created)
  const large = Array<Buffer>(4 * MAX_SMALL_PIECES).fill(chunk(' '.repeat(SMALL_PIECE_BYTES + 1)))
  const body = Buffer.concat([chunked('POST', '/api/createPassword', [entry]), ...large.slice(0, 900), chunk('')])
  assert.equal((await ask(t, url, body)).text, created)
  assert.equal(service.store.state.entries.count, 3)
})

test('a content type has at most one charset, without white space around its sign, and that is UTF-8', async t => {
  const { url } = await startService(t)
  for (const [type, status] of [
    ['application/json;charset=utf-8', 200], ['Application/JSON ; Charset="UTF-8"', 200], ['application/json;', 200],
    ['application/json; a=b; charset=utf-8', 200], ['application/json; charset=utf8', 200],
    ['application/json; charset="UTF8"', 200], ['application/json; a="b;charset=latin1"', 415],
    ['application/json; charset= utf-8', 415], ['application/json; charset =utf-8', 415],
    ['application/json; charset = utf-8', 415], ['application/json; charset="utf-8', 415],
    ['application/json; charset=utf-8; charset=utf-8', 415], ['application/json; charset="u\\tf-8"', 415],
    ['application/json charset=utf-8', 415], ['application/jsonp', 415],
    [`application/json${'; '.repeat(7_000)}x`, 200], ['application/json; charset=utf-16', 415]
  ] as const) {
    const { status: found } = await ask(t, url, message('POST', '/api/createPassword', entry,
      [`Content-Type: ${type}`]))
    assert.equal(found, status, type)
  }
  const identity = message('POST', '/api/createPassword', entry, ['Content-Encoding: Identity'])
  assert.equal((await ask(t, url, identity)).status, 200)
})

test('a body of exactly the limit, which MAX_BODY_BYTES sets, is taken, and one byte more is not', async t => {
  const { url, service } = await startService(t)
  const bodyOf = (bytes: number): string => entry + ' '.repeat(bytes - entry.length)
  assert.equal((await ask(t, url, message('POST', '/api/createPassword', bodyOf(MAX_BODY_BYTES)))).text, created)
  assert.equal((await ask(t, url, chunked('POST', '/api/createPassword', [bodyOf(MAX_BODY_BYTES), '']))).text, created)
  const byLength = await ask(t, url, message('POST', '/api/createPassword', bodyOf(MAX_BODY_BYTES + 1)))
  const byChunks = await ask(t, url, chunked('POST', '/api/createPassword', [bodyOf(MAX_BODY_BYTES), ' ', '']))
  for (const answer of [byLength, byChunks]) {
    assert.deepEqual([answer.status, answer.text], [413, '{"message":"Payload Too Large","status":413}'])
  }
  for (const length of [MAX_BODY_BYTES + 1, MAX_DRAIN_BYTES + 1, Number.MAX_SAFE_INTEGER]) {
    const early = await ask(t, url, postHead(host, json, `Content-Length: ${length}`))
    assert.equal(early.status, 413, 'by its length it is answered before it comes')
  }
  assert.equal(service.store.state.entries.count, 2)
  const { url: other } = await startService(t, { 'max-body-bytes': String(entry.length) })
  assert.equal((await ask(t, other, create)).status, 200)
  assert.equal((await ask(t, other, message('POST', '/api/createPassword', `${entry} `))).status, 413)
})

test('a body that is a little too large costs the client no new connection', async t => {
  const { url } = await withEntry(t)
  const client = await connectRaw(t, url)
  await client.send(message('POST', '/api/createPassword', 'x'.repeat(MAX_DRAIN_BYTES)), getOne)
  assert.deepEqual(statuses(await client.answers(2)), [413, 200])
})

test('a client that ends its side in the middle of a body that was refused is let go', async t => {
  const { url } = await startService(t)
  const client = await connectRaw(t, url, { allowHalfOpen: true })
  await client.send(postHead(host, json, `Content-Length: ${MAX_BODY_BYTES + 1}`), 'x')
  assert.equal((await client.answer()).status, 413)
  client.finish()
  assert.deepEqual(await client.untilEnd(), [])
})

for (const [what, first] of [
  ['a length', postHead(host, json, `Content-Length: ${64 * MAX_DRAIN_BYTES}`)],
  ['chunks', chunked('POST', '/api/createPassword', [])]
] as const) {
  const piece = chunk('x'.repeat(0x8000))

  test(`a client that first sends a megabyte by ${what}, and then looks, finds the 413`, async t => {
    const { url } = await startService(t)
    const client = await connectRaw(t, url)
    await client.send(first)
    for (let bytes = 0; bytes < MAX_DRAIN_BYTES - MAX_BODY_BYTES; bytes += piece.length) await client.send(piece)
    assert.equal((await client.answer()).status, 413)
    assert.equal(client.wasReset, false)
    client.destroy()
  })

  test(`a client that sends by ${what} without end finds the 413, and is then cut off`, async t => {
    const { url } = await startService(t)
    const client = await connectRaw(t, url, { allowHalfOpen: true })
    await client.send(first)
    for (let i = 0; i < 2_000 && !client.wasReset; i++) await client.send(piece)
    const answer = await client.answer()
    assertRefusal(answer, 413, what)
    assert.equal(client.wasReset, true)
  })
}

const expecting = (target: string, ...fields: readonly string[]): Buffer =>
  head(`POST ${target} HTTP/1.1`, host, 'Expect: 100-continue', ...fields)

test('a client that waits for leave to send gets it after the answers it is owed, as often as it asks', async t => {
  const { url, service } = await startService(t)
  const client = await connectRaw(t, url)
  await client.send(create)
  assert.equal((await client.answer()).text, created)
  for (let id = 2; id <= 4; id++) {
    if (id === 2) await client.send(getOne)
    await client.send(expecting('/api/createPassword', json, `Content-Length: ${entry.length}`))
    if (id === 2) assert.equal((await client.answer()).text, entryOne)
    const leave = await client.answer()
    assert.deepEqual([leave.line, Object.keys(leave.headers)], ['HTTP/1.1 100 Continue', []])
    await client.send(entry)
    const { status, text } = await client.answer()
    assert.deepEqual([status, text], [200, created])
    assert.equal(service.store.state.entries.count, id)
  }
  // RFC 9110 §10.1.1: a client of HTTP/1.0 gets none.
  const fields = [host, json, 'Expect: 100-continue', `Content-Length: ${entry.length}`]
  const answers = await exchange(t, url, head('POST /api/createPassword HTTP/1.0', ...fields), entry)
  assert.deepEqual(statuses(answers), [200])
})

test('a client that waits for leave is refused before it sends, and its connection ends', async t => {
  const { url, service } = await startService(t, { 'rate-limit': '4' })
  const length = `Content-Length: ${entry.length}`
  const cases = [
    [413, '/api/createPassword', json, `Content-Length: ${MAX_BODY_BYTES + 1}`],
    [415, '/api/createPassword', 'Content-Type: text/plain', length],
    [404, '/api/updatePassword/1', json, length],
    [404, '/api/nope', json, length],
    [429, '/api/createPassword', json, length]
  ] as const
  const clients = []
  for (const [status, target, ...fields] of cases) {
    const client = await connectRaw(t, url)
    await client.send(expecting(target, ...fields))
    const answer = await client.answer()
    assert.deepEqual([answer.status, answer.headers['connection']], [status, 'close'], target)
    clients.push(client)
  }
  for (const client of clients) assert.deepEqual(await client.untilEnd(), [])
  assert.equal(service.store.state.entries.count, 0)
})

test('a client that was refused and sends all the same has its answer, and what it sends is no request', async t => {
  const { url, service } = await startService(t)
  const length = `Content-Length: ${create.length}`
  const answers = await exchange(t, url, expecting('/api/createPassword', 'Content-Type: text/plain', length), create)
  assert.deepEqual(statuses(answers), [415])
  assert.equal(service.store.state.entries.count, 0)
})

test('a client that expects leave, and is answered without it, is not told that its connection stays', async t => {
  const { url } = await withEntry(t)
  const fields = [json, `Content-Length: ${entry.length}`]
  for (const [status, target, ...more] of [
    [200, '/api/deletePassword/1'], [412, '/api/deletePassword/1', 'If-Match: "x"'], [404, '/api/deletePassword/9'],
    [400, '/api/deletePassword/1', ...Array.from({ length: 2 }, () => host)]
  ] as const) {
    const [answer, ...others] = await exchange(t, url, expecting(target, ...fields, ...more), entry)
    assert.deepEqual([answer?.status, answer?.headers['connection'], answer?.headers['keep-alive'], others],
      [status, 'close', undefined, []])
  }
})

test('OPTIONS * lists the methods of the server (RFC 9110 §9.3.7)', async t => {
  const { url } = await startService(t)
  const { status, headers } = await ask(t, url, head('OPTIONS * HTTP/1.1', host))
  assert.deepEqual([status, headers['allow']], [204, 'GET, HEAD, POST, OPTIONS'])
})

test('the answer to a request with a long unread body comes whole', async t => {
  const { url } = await withEntry(t, { page: 'on' })
  const [list] = await exchange(t, url, chunked('GET', '/api/listPassword', ['x']), chunk(''))
  assert.equal(list?.text, '[{"id":1,"password":"p","sistema":"s","usuario":"u","status":1}]')
  const [page] = await exchange(t, url, chunked('GET', '/', ['x']), chunk(''))
  assert.match(page!.text, /<\/html>\s*$/)
})
