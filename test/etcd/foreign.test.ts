/** Keys of others below the prefix, damaged ones, and an etcd that refuses: named, and over when they are. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { base64, callEtcd, etcdMissing, pause, startCluster } from '../support/etcd.ts'
import { create, faultOf, flagsOf, list, Rival, startInstances, until } from '../support/instances.ts'
import { readSecret } from '../support/journal.ts'
import { send, startService } from '../support/service.ts'

const NO_ETCD = etcdMissing()

const put = (url: string, key: string, value: string): Promise<unknown> =>
  callEtcd(url, '/v3/kv/put', { key: base64(key), value: base64(value) })
const remove = (url: string, key: string): Promise<unknown> => callEtcd(url, '/v3/kv/deleterange', { key: base64(key) })

test('a key that is no record is ignored, and named once, also at a start', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const [one] = await startInstances(t, endpoints, 1)
  assert.equal(await create(one!), 200)
  for (const key of ['/pes/0abc', '/pes/00000000000000025', '/pes/0']) await put(endpoints, key, 'x')
  for (let i = 0; i < 5; i++) assert.deepEqual([await create(one!), await list(one!)], [200, 200])
  const again = await startService(t, await flagsOf(t, endpoints, readSecret(one!.folder)))
  assert.deepEqual([await create(again), await list(again)], [200, 200])
  const named = one!.warnings.filter(line => /is not of this program/.test(line))
  assert.deepEqual(named.length, new Set(named).size)
  assert.ok(named.length >= 3, named.join('\n'))
})

for (const [what, key, seen] of [
  ['behind a gap', '/pes/0000000000000009', /record 3 is missing, others follow it/],
  ['at the next place', '/pes/0000000000000003', /record 3: it is not a line of a journal/]
] as const) {
  test(`a key that looks like a record, ${what}, stops all with a reason until it is gone`, { skip: NO_ETCD }, async t => {
    const { endpoints } = await startCluster(t)
    const [one, other] = await startInstances(t, endpoints, 2)
    for (let i = 0; i < 2; i++) assert.equal(await create(one!), 200)
    await put(endpoints, key, 'junk')
    await until(() => faultOf(other!) !== undefined)
    for (const instance of [one!, other!]) {
      assert.deepEqual([await list(instance), (await send(instance.url, 'GET', '/healthz')).status], [503, 503])
      assert.match(faultOf(instance)!, seen)
      assert.equal(instance.warnings.filter(line => seen.test(line)).length, 1)
    }
    await remove(endpoints, key)
    await until(() => faultOf(one!) === undefined && faultOf(other!) === undefined)
    for (const instance of [one!, other!]) assert.deepEqual([await create(instance), await list(instance)], [200, 200])
  })
}

for (const value of ['', 'junk', '0badcafe begun-not']) {
  test(`a marker that holds ${JSON.stringify(value)} is a reason in health, once in the log, and over when it is mended`,
    { skip: NO_ETCD }, async t => {
      const { endpoints } = await startCluster(t)
      const secret = randomBytes(32)
      const one = await startService(t, await flagsOf(t, endpoints, secret))
      assert.equal(await create(one), 200)
      const { kvs: [{ value: whole }] } = await callEtcd(endpoints, '/v3/kv/range', { key: base64('/pes.key') })
      await put(endpoints, '/pes.key', value)
      await until(() => faultOf(one) !== undefined)
      for (let i = 0; i < 5; i++) assert.deepEqual([await create(one), await list(one)], [500, 503])
      assert.match(faultOf(one)!, /what \/pes\.key holds in etcd is not this program's/)
      assert.match((await send(one.url, 'GET', '/healthz')).json.message, /at the moment/)
      const lines = one.warnings.filter(line => !/rate limit/.test(line))
      assert.equal(lines.length, 1, lines.join('\n'))
      await callEtcd(endpoints, '/v3/kv/put', { key: base64('/pes.key'), value: whole })
      await until(() => faultOf(one) === undefined)
      assert.deepEqual([await create(one), await list(one)], [200, 200])
    })
}

const SPOILING: readonly [what: string, spoil: (url: string, key: string) => Promise<unknown>][] = [
  ['deleted', remove], ['overwritten', (url, key) => put(url, key, '')]
]

for (const [what, spoil] of SPOILING) {
  test(`a record that is ${what} in the middle is noticed by who runs, until a restart`, { skip: NO_ETCD }, async t => {
    const { endpoints } = await startCluster(t)
    const [one, other] = await startInstances(t, endpoints, 2)
    for (let i = 0; i < 5; i++) assert.equal(await create(one!), 200)
    await spoil(endpoints, '/pes/0000000000000003')
    await until(() => faultOf(one!) !== undefined && faultOf(other!) !== undefined)
    for (const instance of [one!, other!]) {
      assert.match(faultOf(instance)!, /record 3 was deleted or overwritten in etcd; copy a backup to another prefix/)
      assert.deepEqual([await create(instance), await list(instance)], [500, 200])
      assert.match((await send(instance.url, 'GET', '/healthz')).json.message, /until a restart/)
    }
    assert.equal(await new Rival(endpoints, readSecret(one!.folder)).count(), what === 'deleted' ? 4 : 5)
  })
}

const NEWEST = '/pes/0000000000000002'
const DAMAGES: readonly [what: string, key: string, damage: (url: string) => Promise<unknown>, seen: RegExp][] = [
  ['the newest record is deleted', NEWEST, url => remove(url, NEWEST), /its newest record is no longer in etcd, or is another one/],
  ['the newest record is overwritten', NEWEST, url => put(url, NEWEST, 'junk'), /its newest record is no longer in etcd, or is another one/],
  ['the marker is deleted', '/pes.key', url => remove(url, '/pes.key'), /no journal: \/pes\.key is no longer in etcd: the journal was removed/]
]

for (const [what, key, damage, seen] of DAMAGES) {
  test(`that ${what} is noticed without a request, and over when what was there is there again`, { skip: NO_ETCD }, async t => {
    const { endpoints } = await startCluster(t)
    const instances = await startInstances(t, endpoints, 2)
    for (let i = 0; i < 2; i++) assert.equal(await create(instances[0]!), 200)
    const { kvs: [{ value: whole }] } = await callEtcd(endpoints, '/v3/kv/range', { key: base64(key) })
    await damage(endpoints)
    await until(() => instances.every(one => faultOf(one) !== undefined))
    for (const instance of instances) {
      assert.match(faultOf(instance)!, seen)
      assert.deepEqual([await create(instance), await list(instance)], [500, 503])
      assert.match((await send(instance.url, 'GET', '/healthz')).json.message, /at the moment/)
    }
    await callEtcd(endpoints, '/v3/kv/put', { key: base64(key), value: whole })
    await until(() => instances.every(one => faultOf(one) === undefined))
    for (const instance of instances) assert.deepEqual([await create(instance), await list(instance)], [200, 200])
  })
}

test('a clock that is ahead of this machine\'s is warned of', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const [one] = await startInstances(t, endpoints, 1)
  const rival = new Rival(endpoints, readSecret(one!.folder))
  await rival.write(Date.now() + 3_600_000)
  await rival.write(Date.now() + 3_600_000)
  assert.equal(await list(one!), 404)
  await pause(100)
  const warned = one!.warnings.filter(line => /3[56]\d\d s ahead of this machine's clock/.test(line))
  assert.equal(warned.length, 1, one!.warnings.join('\n'))
})
