/** The program killed without warning: what it has answered stands, and what it has not is whole or not there. */
import { strict as assert } from 'node:assert'
import type { PromiseWithChild } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { describe, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { Life } from '../support/life.ts'
import { launchProgram, runProgram, socketsIn, startProgram } from '../support/program.ts'
import { randomOf } from '../support/random.ts'
import { freshFolder, send } from '../support/service.ts'

const ROUNDS = Number(process.env['ROUNDS'] ?? 6)

async function list(url: string): Promise<string> { return (await send(url, 'GET', '/api/listPassword')).text }

/** Kills the program, or the operator's, at a moment of what they do. */
async function killedSomewhere(life: Life): Promise<void> {
  const { random } = life
  const when = (): Promise<void> => setTimeout(random.int(300))
  const operate = (): PromiseWithChild<unknown> =>
    life.admin(...random.pick([['key', 'rotate'], ['key', 'rewrite'], ['journal', 'compact']]))
  const isOperated = random.next() < 0.6
  if (isOperated && random.next() < 0.3) {
    await life.program.stop()
    const operator = operate()
    const ended = operator.catch(() => {})
    await when()
    operator.child.kill('SIGKILL')
    await ended
    return
  }
  const load = life.load({ clients: 16, ms: 10_000 })
  if (random.next() < 0.3) await operate()
  const ended = isOperated ? operate().catch(() => {}) : undefined
  await when()
  await life.program.kill()
  await ended
  await load
}

test('SIGKILL at any moment, again and again: nothing that was answered is lost, undone or doubled', async t => {
  const life = new Life(t, freshFolder(t), randomOf(t))
  for (let round = 0; round < ROUNDS; round++) {
    if (round % 3 === 2) {
      const starting = launchProgram(t, { flags: life.flags })
      await starting.printed(life.random.pick([/^data folder/m, /^journal/m, /^chain head/m]))
      await starting.kill()
    }
    assert.deepEqual(await life.start(), [])
    await killedSomewhere(life)
  }
  assert.deepEqual(await life.start(), [])
  t.diagnostic(`${life.known.acknowledged} changes known`)
  await life.admin('journal', 'verify')
  const before = await list(life.program.url)
  assert.equal((await life.program.stop()).code, 0)
  assert.deepEqual(await life.start(), [])
  assert.equal(await list(life.program.url), before)
  const { stderr } = await life.program.stop()
  assert.equal(stderr, 'warning: the rate limit is off\n', 'there is nothing to repair after a clean stop')
  const left = readdirSync(life.data).filter(name => !/^journal(\.jsonl\.torn-|-\d+-\d+\.jsonl$)/.test(name))
  assert.deepEqual(left.sort(), ['journal.jsonl', 'journal.key'])
})

describe('one folder', { concurrency: 2 }, () => {
  test('a folder that is served, also by a stopped process, is refused to others in one line that names its process', async t => {
    const first = await startProgram(t)
    const before = readdirSync(first.folder)
    for (const state of ['SIGSTOP', 'SIGCONT'] as const) {
      first.child.kill(state)
      const { code, stderr, stdout } = await runProgram(t, { flags: { data: first.folder } })
      assert.equal(code, 1)
      assert.equal(stderr,
        `error: another process has the lock of the data folder: ${first.folder} belongs to process ${first.pid}\n`)
      assert.doesNotMatch(stdout, /ready/)
      assert.deepEqual(readdirSync(first.folder), before)
    }
    assert.equal((await send(first.url, 'GET', '/api/listPassword')).status, 404)
  })

  for (const state of ['new', 'killed'] as const) {
    test(`of several that start at once on a ${state} folder at most one serves, the others say so`, async t => {
      const folder = freshFolder(t)
      const options = { flags: { data: folder } }
      if (state === 'killed') await (await startProgram(t, options)).kill()
      const started = Array.from({ length: 3 }, () => launchProgram(t, options))
      const isReady = await Promise.all(started.map(({ ready }) => ready))
      const serving = started.filter((_, i) => isReady[i])
      assert.ok(serving.length <= 1, `${serving.length} serve`)
      for (const [i, { ended }] of started.entries()) {
        if (isReady[i]) continue
        const { code, stderr } = await ended
        assert.equal(code, 1)
        assert.match(stderr, /^error: another process has the lock of the data folder: .* belongs to process \d+\n$/)
      }
      assert.equal(socketsIn(folder).length, serving.length)
      for (const program of serving) assert.equal((await program.stop()).code, 0)
      const next = await startProgram(t, options)
      assert.equal((await send(next.url, 'GET', '/api/listPassword')).status, 404)
    })
  }
})
