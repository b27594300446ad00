/**
 * Who was told which password, on the built program: a life that takes each step, then random ones. `LIVES_S=n` goes on
 * for n seconds.
 */
import { test, type TestContext } from 'node:test'
import { etcdMissing, startCluster } from '../support/etcd.ts'
import { seedFromEnv } from '../support/random.ts'
import { mountMissing } from '../support/system.ts'
import { live, type How } from './knowers-lives.ts'

const LIVES_MS = 1000 * Number(process.env['LIVES_S'] ?? 10)

async function lives(t: TestContext, how: How): Promise<void> {
  const first = seedFromEnv()
  t.diagnostic(`SEED=${first}`)
  for (const [n, began] = [{ lives: 0 }, performance.now()]; n.lives === 0 ||
    performance.now() - began < LIVES_MS; n.lives++) {
    const seed = first + n.lives
    await live(seed, { ...how, takesAll: n.lives === 0 }).catch((error: Error) => {
      error.message = `SEED=${seed}: ${error.message}`
      throw error
    })
  }
}

test('in random lives who has a password is named, or reads are said to be unrecorded, and nobody else',
  t => lives(t, {}))

test('the same holds on a disk that is full at times', { skip: mountMissing() }, t => lives(t, { isSmall: true }))

test('the same holds for two instances on etcd', { skip: etcdMissing() }, async t => {
  const { members: [member] } = await startCluster(t)
  await lives(t, { etcd: member! })
})
