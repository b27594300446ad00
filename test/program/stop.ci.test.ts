/** How the program ends under load, and with answers that are read slowly or not at all. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { startProgram, type Program } from '../support/program.ts'
import { connectRaw, message } from '../support/raw.ts'
import { send } from '../support/service.ts'

const BODY = JSON.stringify({ password: 'clave', sistema: 'correo', usuario: 'ana' })
/** A stop with nothing in flight takes milliseconds; this is for a busy machine, and far below the bound of a stop. */
const PROMPT_MS = 5_000

const portOf = ({ url }: Program): number => Number(new URL(url).port)

async function entriesOf(program: Program): Promise<number> {
  const { status, json } = await send(program.url, 'GET', '/api/listPassword')
  return status === 404 ? 0 : json.length
}

/** Waits until it takes no more connections: that is how one sees that a stop has begun. */
async function refusesConnections(program: Program): Promise<void> {
  for (let isRefused = false; !isRefused;) {
    const socket = connect(portOf(program), '127.0.0.1')
    isRefused = await new Promise(resolve => {
      socket.once('connect', () => resolve(false)).once('error', () => resolve(true))
    })
    socket.destroy()
  }
}

describe('stops', { concurrency: 2 }, () => {
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

  test('who stops reading standard output, or closes standard error, holds up neither answer nor stop', async t => {
    const program = await startProgram(t, { flags: { 'access-log': 'on' } })
    program.child.stdout!.pause()
    program.child.stderr!.destroy()
    const client = await connectRaw(t, program.url)
    // A line is more than 150 bytes; together they are more than any pipe holds.
    for (let n = 0; n < 6_000; n++) {
      await client.send(message('GET', '/api/listPassword'))
      assert.equal((await client.answer()).status, 404)
    }
    const over = once(program.child, 'exit')
    const startMs = performance.now()
    program.child.kill('SIGTERM')
    assert.deepEqual(await over, [0, null])
    assert.ok(performance.now() - startMs < PROMPT_MS)
    program.child.stdout!.resume()
  })

  test('SIGTERM: an answer that is read slowly is sent whole, and then its connection is ended', async t => {
    const program = await startProgram(t)
    const writer = await connectRaw(t, program.url)
    // More than the buffers of both sides take, so that most of the list is not sent when the signal comes.
    const entries = 400
    const create = message('POST', '/api/createPassword',
      JSON.stringify({ password: 'x'.repeat(60_000), sistema: 's', usuario: 'u' }))
    for (let i = 0; i < entries; i++) {
      await writer.send(create)
      assert.equal((await writer.answer()).status, 200)
    }
    writer.destroy()
    const reader = connect(portOf(program), '127.0.0.1')
    t.after(() => { reader.destroy() })
    reader.pause()
    reader.write(message('GET', '/api/listPassword'))
    await once(reader, 'readable')
    program.child.kill('SIGTERM')
    await refusesConnections(program)

    const before = performance.now()
    const chunks: Buffer[] = []
    for await (const chunk of reader) chunks.push(chunk)
    const [head, body] = Buffer.concat(chunks).toString().split('\r\n\r\n')
    assert.match(head!, /^HTTP\/1\.1 200 /)
    const length = Number(/^Content-Length: (\d+)$/m.exec(head!)![1])
    assert.equal(Buffer.byteLength(body!), length, 'the answer is as long as it said')
    assert.equal(JSON.parse(body!).length, entries)
    assert.equal((await program.ended).code, 0)
    const tookMs = performance.now() - before
    assert.ok(tookMs < PROMPT_MS, `${tookMs.toFixed()} ms`)
  })
})
