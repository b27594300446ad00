/** Progress for every instance that reaches a majority, however far away it is and whatever the others do. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test, type TestContext } from 'node:test'
import { base64, callEtcd, etcdMissing, pause, startCluster, startDelay, startProxy } from '../support/etcd.ts'
import { assertEqual, create, FIELDS, flagsOf, startInstances } from '../support/instances.ts'
import { atEnd, startService, type Started } from '../support/service.ts'
import { createEntry, updateEntry } from '../../src/entries/entry-commands.ts'

const NO_ETCD = etcdMissing()

/** Has clients create entries one after another, all the time, until the test is over. */
function keepBusy(t: TestContext, instances: readonly Started[]): void {
  let isOver = false
  const over = Promise.all(instances.map(async instance => {
    while (!isOver) assert.equal(await create(instance), 200)
  }))
  atEnd(t, async () => { isOver = true; await over })
}

/** Does something again and again; gives how long each took, ascending. */
async function timed(count: number, act: () => Promise<void>): Promise<number[]> {
  const took: number[] = []
  for (let i = 0; i < count; i++) {
    const beganMs = performance.now()
    await act()
    took.push(Math.round(performance.now() - beganMs))
  }
  return took.sort((a, b) => a - b)
}

describe('an instance that is farther away than the others', () => {
  for (const [roundTripMs, near] of [[10, 2], [60, 2]] as const) {
    test(`${roundTripMs} ms from etcd, it writes beside ${near} busy ones`, { skip: NO_ETCD }, async t => {
      const { members: [member] } = await startCluster(t)
      const secret = randomBytes(32)
      const far = await startDelay(t, member!.url, roundTripMs / 2)
      const one = await startService(t, { ...await flagsOf(t, far, secret), auth: 'bearer' })
      const accounts = one.service.accounts!
      await accounts.addUser('ana@example.org', 'Ana', ['*'], 'a long password')
      const issued = await accounts.issue('ana@example.org', undefined, undefined)
      const headers = { Authorization: `Bearer ${issued!.token}` }
      const others = []
      for (let i = 0; i < near; i++) others.push(await startService(t, await flagsOf(t, member!.url, secret)))
      keepBusy(t, [...others, ...others])
      await pause(100)
      const creates = await timed(10, async () => { await createEntry(one.service.store, FIELDS, null) })
      const nothing = await timed(10, async () => { await updateEntry(one.service.store, 1, {}, null) })
      t.diagnostic(`creates ${creates.join()}, what changes nothing ${nothing.join()} ms`)
      assert.ok(creates[8]! < 2_500 && nothing[8]! < 2_500) // a change that starves is refused after five seconds
      assert.equal((await fetch(`${one.url}/api/logout`, { method: 'POST', headers })).status, 200)
      assert.equal((await fetch(`${one.url}/api/listPassword`, { headers })).status, 401)
    })
  }
})

test('four instances that write without a pause ask etcd about twice for each change', { skip: NO_ETCD }, async t => {
  const { members: [member] } = await startCluster(t)
  const secret = randomBytes(32)
  const proxies = await Promise.all(Array.from({ length: 4 }, () => startProxy(t, member!.url)))
  const instances: Started[] = []
  for (const { url } of proxies) {
    instances.push(await startService(t, { ...await flagsOf(t, member!.url, secret), 'etcd-endpoints': url }))
  }
  const requests = (): number => proxies.reduce((sum, { requests }) => sum + requests, 0)
  const shares: number[] = []
  for (let round = 0; round < 4; round++) {
    const before = requests()
    await Promise.all(instances.map(instance => timed(25, async () => assert.equal(await create(instance), 200))))
    shares.push((requests() - before) / 100)
  }
  t.diagnostic(`requests for each change: ${shares.join()}`)
  assert.ok(Math.min(...shares) < 3, shares.join())
})

const TURNS = { key: base64('/pes.turn/'), range_end: base64('/pes.turn0') }

test('turns that are not taken delay the others once, all at the same time, and not for long', {
  skip: NO_ETCD
}, async t => {
  const { endpoints, members: [member] } = await startCluster(t)
  const [one, other] = await startInstances(t, endpoints, 2) as [Started, Started]
  const turns = async (): Promise<any> => (await callEtcd(member!.url, '/v3/kv/range', TURNS)).kvs
  for (const waitMs of ['100', '999999999']) {
    for (let i = 0; i < 20; i++) {
      await callEtcd(member!.url, '/v3/kv/put', { key: base64(`/pes.turn/gone${i}`), value: base64(waitMs) })
    }
    const beganMs = performance.now()
    assert.deepEqual(await Promise.all([create(one), create(other)]), [200, 200])
    assert.ok(performance.now() - beganMs < 4_500)
    for (const endMs = performance.now() + 10_000; await turns() !== undefined &&
      performance.now() < endMs;) await pause(50)
    assert.equal(await turns(), undefined, 'no turn is left')
  }
  await assertEqual([one, other])
})

test('turns that are taken again and again are not waited for for ever, and fail no change', {
  skip: NO_ETCD
}, async t => {
  const { endpoints, members: [member] } = await startCluster(t)
  const [one] = await startInstances(t, endpoints, 1) as [Started]
  let isOver = false
  const over = Promise.all(Array.from({ length: 5 }, async (_, i) => {
    const turn = { key: base64(`/pes.turn/${String(i).repeat(16)}`), value: base64('900') }
    for (; !isOver; await pause(50)) await callEtcd(member!.url, '/v3/kv/put', turn)
  }))
  atEnd(t, async () => { isOver = true; await over })
  await pause(200)
  for (let i = 0; i < 3; i++) assert.equal(await create(one), 200)
})
