/** How the program ends when it is told to: what is in flight is answered, nothing is left behind or holds it up. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { admin } from '../support/admin.ts'
import { launchProgram, programWithin, socketsIn, startProgram, until, type Program } from '../support/program.ts'
import { connectRaw, exchange, message, type RawClient } from '../support/raw.ts'
import { freshFolder, send } from '../support/service.ts'

const ENTRY = { password: 'clave', sistema: 'correo', usuario: 'ana' }
const BODY = JSON.stringify(ENTRY)

/** A stop with nothing in flight takes milliseconds; this is for a busy machine, and far below the bound of a stop. */
const PROMPT_MS = 5_000

const portOf = ({ url }: Program): number => Number(new URL(url).port)

/**
 * Stops a program, which must end at once, with 0 or by SIGHUP, and leave no socket behind; gives what it has written.
 */
async function stopsAtOnce(program: Program, signal?: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): Promise<string> {
  const startMs = performance.now()
  const { code, signal: endedBy, stdout } = await program.stop(signal)
  assert.ok(performance.now() - startMs < PROMPT_MS, `${performance.now() - startMs} ms`)
  const how = signal === 'SIGHUP' ? [null, signal] : [0, null]
  assert.deepEqual([code, endedBy, socketsIn(program.folder)], [...how, []])
  return stdout
}

test('the signal of Node\'s debugger does nothing, and what the program makes is its owner\'s alone', async t => {
  const service = await startProgram(t)
  assert.match(readFileSync(`/proc/${service.pid}/status`, 'utf8'), /^Umask:\s+0077$/m)
  process.kill(service.pid, 'SIGUSR1')
  for (let n = 0; n < 50; n++) assert.equal((await send(service.url, 'GET', '/healthz')).status, 200)
  assert.doesNotMatch((await service.stop()).stderr, /Debugger/)
})

test('a stop that cannot remove its socket, as on a disk that fails, says so in a line and ends with 0', async t => {
  const program = await startProgram(t)
  const socket = join(program.folder, socketsIn(program.folder)[0]!)
  rmSync(socket)
  mkdirSync(socket)
  const { code, stderr } = await program.stop()
  assert.deepEqual([code, /^ +at /m.test(stderr)], [0, false], stderr)
  assert.match(stderr, /^warning: the stop has left something behind: [^\n]*held-[^\n]+\.sock: E[A-Z]+; [^\n]+$/m)
})

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

describe('stops', { concurrency: 2 }, () => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    test(`${signal}: an idle program stops at once and leaves its port and its folder to the next one`, async t => {
      const first = await startProgram(t)
      assert.equal(socketsIn(first.folder).length, 1)
      await idle(t, first.url)
      assert.match(await stopsAtOnce(first, signal), /^ready\nchain head .*, at the stop\nstopped\n$/m)
      assert.equal(first.stderr, 'warning: the rate limit is off\n')
      const second = await startProgram(t, { flags: { data: first.folder, port: String(portOf(first)) } })
      assert.equal(second.url, first.url)
    })
  }

  // npm passes on to the program a signal that the terminal has given to both: Ctrl-C on `npm start` comes twice.
  test('SIGINT, also twice: a create whose body comes is answered and kept, idle and new connections go', async t => {
    const program = await startProgram(t)
    const keptAlive = [await idle(t, program.url), await idle(t, program.url)]
    const slow = await halfSent(t, program.url)
    program.child.kill('SIGINT')
    for (const client of keptAlive) assert.deepEqual(await client.untilEnd(), [])
    assert.deepEqual(await answersToNew(t, program.url), [])
    program.child.kill('SIGINT')
    program.child.kill('SIGTERM')
    await slow.send(BODY.slice(10))
    const answer = await slow.answer()
    assert.deepEqual([answer.status, answer.json.message], [200, 'SE CREÓ UNA NUEVA CONTRASEÑA'])
    assert.equal(answer.headers['connection']?.toLowerCase(), 'close')
    assert.deepEqual(await slow.untilEnd(), [])
    const { code, signal: killedBy } = await program.ended
    assert.deepEqual([code, killedBy, socketsIn(program.folder)], [0, null, []])
    const next = await startProgram(t, { flags: { data: program.folder } })
    const { json } = await send(next.url, 'GET', '/api/listPassword')
    assert.deepEqual(json, [{ id: 1, ...ENTRY, status: 1 }])
  })

  test('a program that gets a signal while it starts never says that it is ready after it stopped', async t => {
    const data = freshFolder(t)
    // Each takes the start a moment to find out that nobody is behind it; meanwhile the signal arrives.
    for (let i = 0; i < 300; i++) writeFileSync(join(data, `held-1-${i.toString(16)}.sock`), '')
    const program = launchProgram(t, { flags: { data } })
    await program.printed(/^data folder/)
    const { code, stdout } = await program.stop('SIGTERM')
    assert.equal(code, 0)
    assert.ok(stdout.endsWith('\nstopped\n'), stdout)
  })

  test('an operator\'s command waits for a service that stops behind a slow client, and is carried out', async t => {
    const program = await startProgram(t, { command: programWithin(t, { SHUTDOWN_TIMEOUT_MS: 7_000 }) })
    await halfSent(t, program.url)
    const stopped = program.stop()
    await until('it has been told to stop', async () => await fetch(program.url).then(() => false, () => true))
    const { code, error } = await admin(program.folder, 'user list --json')
    assert.deepEqual([code, error], [0, ''])
    assert.equal((await stopped).code, 0)
  })
})
