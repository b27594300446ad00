/** The line that says at a start when compacting the journal is worth it. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { openService, type Options, type Service } from '../../src/index.ts'
import { done } from '../support/admin.ts'
import { atEnd, freshFolder } from '../support/service.ts'

const HINT = /^hint +.*node dist\/admin\.js journal compact/

/** Opens a service whose start takes so long by its clock to read the journal; gives its hints. */
async function opened(
  t: TestContext, dataDir: string, readMs: number, options: Options = {}
): Promise<{ service: Service, hints: string[], shares: number[] }> {
  let lateMs = 0
  const now = performance.now.bind(performance)
  const { mock } = t.mock.method(performance, 'now', () => now() + lateMs)
  const hints: string[] = []
  const shares: number[] = []
  const log = {
    info: (line: string) => { if (line.startsWith('hint')) hints.push(line) }, warn() {},
    progress: (_what: string, share: number) => {
      shares.push(share)
      if (share === 1) lateMs = readMs
    }
  }
  try {
    const service = await openService({ ...options, dataDir, log })
    atEnd(t, () => service.close())
    return { service, hints, shares }
  } finally {
    mock.restore()
  }
}

test('a long start with more than ten records an entry hints at compaction, until that was done', async t => {
  const folder = join(freshFolder(t), 'data')
  const first = await opened(t, folder, 1_100)
  await first.service.createPassword({ password: 'a', sistema: 'b', usuario: 'c' })
  for (let n = 1; n < 10; n++) await first.service.updatePassword(1, { password: String(n) })
  await first.service.close()
  const ten = await opened(t, folder, 1_100)
  await ten.service.updatePassword(1, { password: 'more' })
  await ten.service.close()
  assert.deepEqual([first.hints, ten.hints], [[], []], 'ten records an entry are not many')
  const short = await opened(t, folder, 0)
  await short.service.close()
  assert.deepEqual(short.hints, [], 'nor is a start long that is not')
  const long = await opened(t, folder, 1_100)
  await long.service.close()
  assert.equal(long.hints.length, 1)
  assert.match(long.hints[0]!, HINT)
  await done(folder, 'journal compact')
  assert.deepEqual((await opened(t, folder, 1_100)).hints, [])
})

