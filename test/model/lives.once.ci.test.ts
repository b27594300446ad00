/**
 * The whole service against a plain model of it, in random lives: one that takes each step, then random ones. A seed
 * that fails fails again with `SEED=n`; `LIVES_S=n` goes on for as many seconds, `npm run test:model` for hours.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { etcdMissing, startCluster } from '../support/etcd.ts'
import { seedFromEnv } from '../support/random.ts'
import { mountMissing } from '../support/system.ts'
import { failing } from './lives.ts'
import type { Store } from './world.ts'

const LIVES_MS = 1000 * Number(process.env['LIVES_S'] ?? 10)
const SHORTEN_MS = 60_000

async function lives(t: TestContext, store: Store): Promise<void> {
  const etcd = store === 'etcd' ? (await startCluster(t)).members[0] : undefined
  const first = seedFromEnv()
  t.diagnostic(`SEED=${first}`)
  for await (const { seed, defect, program } of failing({ store, first, ms: LIVES_MS, etcd, shortenMs: SHORTEN_MS,
    beginsWithAll: true })) {
    assert.fail(`SEED=${seed}: ${defect.stack}\nnpm run test:model -- '${JSON.stringify(program)}'`)
  }
}

test('in random lives the service keeps what it acknowledged, refuses what it must and says why, and names who knows ' +
  'a password, or says that reads were not recorded, and nobody else', t => lives(t, 'file'))

test('the same holds on a disk that is full at times', { skip: mountMissing() }, t => lives(t, 'small'))

test('the same holds for two instances on etcd', { skip: etcdMissing() }, t => lives(t, 'etcd'))
