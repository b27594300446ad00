/** An append goes to etcd with the marker that was read last, and is repeated when nobody knows what became of it. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { done } from '../support/admin.ts'
import { etcdMissing, startCluster, startProxy, type Treatment } from '../support/etcd.ts'
import { create, faultOf, flagsOf, list, Rival } from '../support/instances.ts'
import { startService } from '../support/service.ts'

const NO_ETCD = etcdMissing()

test('a change on its way while the journal is closed is not recorded', { skip: NO_ETCD }, async t => {
  const { endpoints, members: [member] } = await startCluster(t)
  const proxy = await startProxy(t, member!.url)
  const secret = randomBytes(32)
  const one = await startService(t, await flagsOf(t, proxy.url, secret))
  assert.equal(await create(one), 200)
  const elsewhere = await flagsOf(t, endpoints, secret)
  let closing: Promise<string> | undefined
  proxy.treat = async (): Promise<Treatment> => {
    // Each attempt waits for it: one that is given up may be followed by another.
    await (closing ??= done(elsewhere['data']!, `journal close --journal etcd --etcd-endpoints ${endpoints}`))
    return 'passed'
  }
  assert.equal(await create(one), 500)
  assert.ok(closing !== undefined)
  assert.match(faultOf(one)!, /\/pes is closed since 2/)
  assert.equal(await list(one), 200)
  assert.equal(await new Rival(member!.url, secret).count(), 1)
})

for (const [what, treatment, told] of [
  ['arrived, and whose answer is lost', 'answer lost', 200],
  ['never arrived', 'request lost', 200]
] as const) {
  test(`a change that ${what}, is sent again, recorded once, and answered ${told}`, { skip: NO_ETCD }, async t => {
    const { members: [member] } = await startCluster(t)
    const proxy = await startProxy(t, member!.url)
    const secret = randomBytes(32)
    const one = await startService(t, await flagsOf(t, proxy.url, secret))
    const rival = new Rival(member!.url, secret)
    for (const marker of ['as it was', 'put meanwhile']) {
      const before = await rival.count()
      let lost = 0
      proxy.treat = async (): Promise<Treatment> => {
        if (lost++ > 0) return 'passed'
        if (marker === 'put meanwhile') await rival.touchMarker()
        return treatment
      }
      assert.equal(await create(one), told, marker)
      assert.ok(lost > 1, `${lost} attempts`)
      assert.equal(await rival.count(), before + 1, marker)
    }
  })
}
