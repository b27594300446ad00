/** How the program ends when it is told to: what is in flight is answered, and nothing is left behind. */
import { strict as assert } from 'node:assert'
import { once } from 'node:events'
import { describe, test, type TestContext } from 'node:test'
import { SHUTDOWN_TIMEOUT_MS } from '../../src/limits.ts'
import { launchProgram, socketsIn, startProgram, type Program } from '../support/program.ts'
import { connectRaw, exchange, message, type RawClient } from '../support/raw.ts'
import { freshFolder, send } from '../support/service.ts'

const ENTRY = { password: 'clave', sistema: 'correo', usuario: 'ana' }
const BODY = JSON.stringify(ENTRY)

/** A stop with nothing in flight takes milliseconds; this is for a machine with other things to do. */
const PROMPT_MS = 5_000

/** A connection that has had an answer and is kept for the next request. */
async function idle(t: TestContext, url: string): Promise<RawClient> {
  const client = await connectRaw(t, url)
  await client.send(message('GET', '/api/listPassword'))
  const answer = await client.answer()
  assert.notEqual(answer.headers['connection'], 'close')
  return client
}

/** A create whose head the service has read, and whose body it waits for. */
async function halfSent(t: TestContext, url: string): Promise<RawClient> {
  const client = await connectRaw(t, url)
  const whole = message('POST', '/api/createPassword', BODY, ['Expect: 100-continue'])
  await client.send(whole.subarray(0, whole.length - BODY.length))
  assert.equal((await client.answer()).status, 100)
  await client.send(BODY.slice(0, 10))
  return client
}

/**
 * What a client gets that comes now: nothing where it is refused, or was let go before anybody looked at it. The system
 * resets those that stood in its queue when the service stopped to listen.
 */
async function answersToNew(t: TestContext, url: string): Promise<readonly unknown[]> {
  try {
    return await exchange(t, url, message('GET', '/api/listPassword'))
  } catch (error) {
    assert.match((error as NodeJS.ErrnoException).code!, /^(ECONNREFUSED|ECONNRESET)$/)
    return []
  }
}

async function entriesOf(program: Program): Promise<number> {
  const { status, json } = await send(program.url, 'GET', '/api/listPassword')
  return status === 404 ? 0 : json.length
}

describe('signals', { concurrency: 3 }, () => {
  test('a client that never finishes its request is cut after the time that a stop may take', async t => {
    const folder = freshFolder(t)
    const program = await startProgram(t, { flags: { data: folder } })
    const client = await halfSent(t, program.url)
    const startMs = performance.now()
    const ended = program.stop()
    assert.equal((await ended).code, 0)
    const tookMs = performance.now() - startMs
    assert.ok(tookMs > SHUTDOWN_TIMEOUT_MS - 500 && tookMs < SHUTDOWN_TIMEOUT_MS + PROMPT_MS, `${tookMs} ms`)
    assert.deepEqual(await client.untilEnd(), [])
    assert.deepEqual(socketsIn(folder), [])
    assert.equal(await entriesOf(await startProgram(t, { flags: { data: folder } })), 0)
  })

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`${signal}: an idle program stops at once with exit code 0 and leaves no socket behind`, async t => {
      const program = await startProgram(t)
      assert.equal(socketsIn(program.folder).length, 1)
      const startMs = performance.now()
      const ended = await program.stop(signal)
      assert.ok(performance.now() - startMs < PROMPT_MS)
      assert.equal(ended.code, 0)
      assert.match(ended.stdout, /^ready\nstopped\n$/m)
      assert.equal(ended.stderr, 'warning: the rate limit is off\n')
      assert.deepEqual(socketsIn(program.folder), [])
    })

    test(`${signal}: a create whose body still comes is answered and kept, idle and new connections go`, async t => {
      const program = await startProgram(t)
      const keptAlive = [await idle(t, program.url), await idle(t, program.url)]
      const slow = await halfSent(t, program.url)
      program.child.kill(signal)
      for (const client of keptAlive) assert.deepEqual(await client.untilEnd(), [])
      assert.deepEqual(await answersToNew(t, program.url), [])
      await slow.send(BODY.slice(10))
      const answer = await slow.answer()
      assert.equal(answer.status, 200)
      assert.equal(answer.json.message, 'SE CREÓ UNA NUEVA CONTRASEÑA')
      assert.equal(answer.headers['connection']?.toLowerCase(), 'close')
      assert.deepEqual(await slow.untilEnd(), [])
      assert.equal((await program.ended).code, 0)
      assert.deepEqual(socketsIn(program.folder), [])
      const next = await startProgram(t, { flags: { data: program.folder } })
      const { json } = await send(next.url, 'GET', '/api/listPassword')
      assert.deepEqual(json, [{ id: 1, ...ENTRY, status: 1 }])
    })
  }

  test('a connection that has not sent a byte does not hold up the stop', async t => {
    const program = await startProgram(t)
    const silent = await connectRaw(t, program.url)
    await idle(t, program.url) // so that the service has accepted the one before
    const startMs = performance.now()
    assert.equal((await program.stop()).code, 0)
    assert.ok(performance.now() - startMs < PROMPT_MS, `${performance.now() - startMs} ms`)
    assert.deepEqual(await silent.untilEnd(), [])
  })

  test('SIGTERM under load: what was answered is stored, and what was stored was answered', async t => {
    const program = await startProgram(t)
    let answered = 0
    let isTold = false
    const work = async (): Promise<void> => {
      const client = await connectRaw(t, program.url)
      for (;;) {
        await client.send(message('POST', '/api/createPassword', BODY))
        const answer = await client.answer().catch(() => undefined)
        if (answer === undefined) { assert.ok(isTold, 'a connection ended before the signal'); return }
        assert.equal(answer.status, 200)
        if (++answered === 500) isTold = program.child.kill('SIGTERM')
        if (answer.headers['connection'] === 'close') { assert.deepEqual(await client.untilEnd(), []); return }
      }
    }
    await Promise.all(Array.from({ length: 24 }, work))
    const ended = await program.ended
    assert.equal(ended.code, 0, ended.stderr)
    const next = await startProgram(t, { flags: { data: program.folder } })
    assert.equal(await entriesOf(next), answered)
  })

  test('a signal that comes while the program starts ends it with exit code 0', async t => {
    const program = launchProgram(t)
    await program.printed(/^data folder/m)
    const ended = await program.stop()
    assert.equal(ended.code, 0)
    assert.match(ended.stdout, /^stopped$/m)
    assert.deepEqual(socketsIn(program.folder), [])
  })

  test('a stopped program leaves its port and its folder to the next one', async t => {
    const first = await startProgram(t)
    await idle(t, first.url)
    const { port } = new URL(first.url)
    await first.stop()
    const second = await startProgram(t, { flags: { data: first.folder, port } })
    assert.equal(second.url, first.url)
  })

  test('a reader that closes standard output and standard error costs lines, not the service', async t => {
    const program = await startProgram(t, { flags: { 'access-log': 'on' } })
    program.child.stdout!.destroy()
    program.child.stderr!.destroy()
    for (let n = 0; n < 50; n++) {
      assert.equal((await send(program.url, 'POST', '/api/createPassword', ENTRY)).status, 200)
    }
    assert.equal(await entriesOf(program), 50)
    const { code, signal } = await program.stop()
    assert.deepEqual({ code, signal }, { code: 0, signal: null })
    assert.deepEqual(socketsIn(program.folder), [])
  })

  test('a reader that stops reading standard output holds up neither an answer nor the stop', async t => {
    const program = await startProgram(t, { flags: { 'access-log': 'on' } })
    program.child.stdout!.pause()
    const client = await connectRaw(t, program.url)
    // A line is more than 150 bytes; together they are more than any pipe holds.
    for (let n = 0; n < 60; n++) {
      await client.send(...Array.from({ length: 100 }, () => message('GET', '/api/listPassword')))
      for (const answer of await client.answers(100)) assert.equal(answer.status, 404)
    }
    const over = once(program.child, 'exit')
    const startMs = performance.now()
    program.child.kill('SIGTERM')
    assert.deepEqual(await over, [0, null])
    assert.ok(performance.now() - startMs < PROMPT_MS)
    program.child.stdout!.resume()
  })
})
