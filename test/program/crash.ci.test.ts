/** One folder and programs that would serve it: one does, also after a kill. What a kill may lose is the model's. */
import { strict as assert } from 'node:assert'
import { readdirSync } from 'node:fs'
import { describe, test } from 'node:test'
import { launchProgram, runProgram, socketsIn, startProgram } from '../support/program.ts'
import { freshFolder, send } from '../support/service.ts'

describe('one folder', { concurrency: 2 }, () => {
  test('a folder that is served, also by a stopped process, is refused in one line that names the process', async t => {
    const first = await startProgram(t)
    const before = readdirSync(first.folder)
    for (const state of ['SIGSTOP', 'SIGCONT'] as const) {
      first.child.kill(state)
      const { code, stderr, stdout } = await runProgram(t, { flags: { data: first.folder } })
      assert.equal(code, 1)
      assert.equal(stderr,
        `error: the lock of the data folder cannot be had: ${first.folder} belongs to process ${first.pid}\n`)
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
        assert.match(stderr, /^error: the lock of the data folder cannot be had: .* belongs to process \d+\n$/)
      }
      assert.equal(socketsIn(folder).length, serving.length)
      for (const program of serving) assert.equal((await program.stop()).code, 0)
      const next = await startProgram(t, options)
      assert.equal((await send(next.url, 'GET', '/api/listPassword')).status, 404)
    })
  }
})
