/** What a failure is answered (http/reply.ts), and that a request is recorded once, whatever fails on the way. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failureReply } from '../../src/http/reply.ts'
import { pipelineOf } from '../../src/http/pipeline.ts'
import { Router, type Route } from '../../src/http/router.ts'
import { Failure, type FailureCode } from '../../src/errors.ts'
import { listen } from '../../src/http/listener.ts'
import { MAX_BODY_BYTES } from '../../src/limits.ts'
import { answered } from '../support/pipeline.ts'
import { atEnd } from '../support/service.ts'

const STORING = 'Error creating password'

test('a failure is answered by its code; that of a route which stores by the route\'s own text', () => {
  const rows: readonly (readonly [code: FailureCode, route: number | undefined, storing: number])[] = [
    ['entry-changed', 412, 412], ['entry-too-large', 413, 413], ['queue-full', 503, 503], ['journal-busy', 503, 503],
    ['hashes-busy', 503, 503], ['session-changed', 503, 503], ['journal-closed', 503, 503],
    ['journal-unreachable', 503, 500], ['write-failed', undefined, 500], ['journal-failed', undefined, 500]
  ]
  for (const [code, route, storing] of rows) {
    const error = new Failure(code, 'why')
    assert.equal(failureReply(error, undefined)?.status, route, code)
    assert.equal(failureReply(error, STORING)?.status, storing, code)
    if (storing === 500) assert.match(JSON.stringify(failureReply(error, STORING)), new RegExp(STORING), code)
  }
  assert.equal(failureReply(new Error('a broken invariant'), STORING), undefined)
})

test('a request that cannot learn what others have written is answered 503', async () => {
  for (const [code, status] of [['journal-failed', 503], ['journal-unreachable', 503],
    ['entry-too-large', 413]] as const) {
    const catchUp = (): Promise<void> => Promise.reject(new Failure(code, 'why'))
    assert.equal((await answered({ catchUp, guardedHosts: new Set() }, { host: 'localhost' })).status, status, code)
  }
})

test('a request has one line and is counted once, also if its handler throws, or nobody can be answered', async t => {
  const found = { lines: [] as number[], warnings: [] as string[] }
  let throws = ''
  const router = new Router([{
    operation: 'thing', method: 'GET', path: '/api/thing', description: '', tag: '', summary: '', answers: {},
    handle: () => {
      if (throws === 'handler') throw new Error('a broken handler')
      return { status: 200, body: '{}' }
    }
  } as unknown as Route])
  const pipeline = pipelineOf({
    router, maxBodyBytes: MAX_BODY_BYTES, guardedHosts: new Set(),
    observers: [{ requestEnded: ({ status }) => { found.lines.push(status) } }],
    warn: line => { found.warnings.push(line) }
  })
  const listener = await listen({ host: '127.0.0.1', port: 0 }, (request, response) => {
    if (throws === 'gone') request.socket.destroy()
    if (throws === 'middleware') response.writeHead = () => { throw new Error('broken middleware') }
    pipeline(request, response)
  })
  atEnd(t, () => listener.close(0))
  const ask = (): Promise<number> => fetch(`http://127.0.0.1:${listener.port}/api/thing`)
    .then(async answer => { await answer.arrayBuffer(); return answer.status }, () => 0)
  assert.equal(await ask(), 200)
  assert.deepEqual(found, { lines: [200], warnings: [] })
  throws = 'handler'
  assert.equal(await ask(), 500)
  assert.deepEqual([found.lines, found.warnings.length], [[200, 500], 1])
  throws = 'middleware'
  assert.equal(await ask(), 0)
  assert.deepEqual([found.lines, found.warnings.length], [[200, 500, 500], 2])
  throws = 'gone'
  await ask()
  const rest = found.lines.slice(3) // fetch may have tried twice
  assert.ok(rest.length > 0 && rest.every(status => status === 499), rest.join())
  assert.equal(found.warnings.length, 2)
})
