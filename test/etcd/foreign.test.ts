/** Keys of others below the prefix, damaged ones, and an etcd that refuses: named, and over when they are. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fillEtcd } from '../../src/parts/etcd/copy.ts'
import { admin } from '../support/admin.ts'
import { base64, callEtcd, etcdMissing, pause, startCluster, startProxy } from '../support/etcd.ts'
import { create, faultOf, FIELDS, flagsOf, list, Rival, settingsOf, startInstances, until } from '../support/instances.ts'
import { failure, keyName, readSecret, referenceLines } from '../support/journal.ts'
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

const record = (n: number): string => `/pes/${String(n).padStart(16, '0')}`
const RECORDS = 5
const [IS_MISSING, IS_NO_LINE] = [/record 6 is missing, others follow it/, /record 6: it is not a line of a journal/]
const IS_ANOTHER = /its newest record is no longer in etcd, or is another one/
const IS_NO_MARKER = /what \/pes\.key holds in etcd is not this program's/
const IS_GONE = /record 3 was deleted or overwritten in etcd; copy a backup to another prefix/

/** What stands at a key by then, undefined: nothing; what is said of it; and whether a restart alone helps. */
type Damage = readonly [what: string, key: string, value: string | undefined, seen: RegExp, isForGood?: true]
const DAMAGES: readonly Damage[] = [
  ['what looks like a record is put behind a gap', record(9), 'junk', IS_MISSING],
  ['what looks like a record is put at the next place', record(RECORDS + 1), 'junk', IS_NO_LINE],
  ['a record in the middle is deleted', record(3), undefined, IS_GONE, true],
  ['a record in the middle is overwritten', record(3), '', IS_GONE, true],
  ['the newest record is deleted', record(RECORDS), undefined, IS_ANOTHER],
  ['the newest record is overwritten', record(RECORDS), 'junk', IS_ANOTHER],
  ['the marker is deleted', '/pes.key', undefined, /no journal: \/pes\.key is no longer in etcd: .* was removed/],
  ...['', 'junk', '0badcafe begun-not'].map(value =>
    [`the marker is made ${JSON.stringify(value)}`, '/pes.key', value, IS_NO_MARKER] as const)
]

for (const [what, key, value, seen, isForGood = false] of DAMAGES) {
  const rest = isForGood ? 'until a restart' : 'until what was there is there again'
  test(`that ${what} is noticed without a request, told once, and stops writes ${rest}`, { skip: NO_ETCD }, async t => {
    const { endpoints } = await startCluster(t)
    const instances = await startInstances(t, endpoints, 2)
    for (let i = 0; i < RECORDS; i++) assert.equal(await create(instances[0]!), 200)
    const { kvs: [whole] = [] } = await callEtcd(endpoints, '/v3/kv/range', { key: base64(key) })
    await (value === undefined ? remove(endpoints, key) : put(endpoints, key, value))
    await until(() => instances.every(one => faultOf(one) !== undefined))
    for (const one of instances) {
      assert.match(faultOf(one)!, seen)
      assert.deepEqual([await create(one), await list(one)], [500, isForGood ? 200 : 503])
      const health = await send(one.url, 'GET', '/healthz')
      assert.equal(health.status, 503)
      assert.match(health.json.message, isForGood ? /until a restart/ : /at the moment/)
      assert.equal(one.warnings.filter(line => seen.test(line)).length, 1, one.warnings.join('\n'))
    }
    if (isForGood) {
      const left = await new Rival(endpoints, readSecret(instances[0]!.folder)).count()
      assert.equal(left, value === undefined ? RECORDS - 1 : RECORDS)
      return
    }
    if (whole === undefined) await remove(endpoints, key)
    else await callEtcd(endpoints, '/v3/kv/put', { key: base64(key), value: whole.value })
    await until(() => instances.every(one => faultOf(one) === undefined))
    for (const one of instances) assert.deepEqual([await create(one), await list(one)], [200, 200])
  })
}

test('a deletion is noticed also where etcd does not answer for a time whether the record is gone', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const proxy = await startProxy(t, endpoints)
  const one = await startService(t, await flagsOf(t, proxy.url, randomBytes(32)))
  for (let i = 0; i < 3; i++) assert.equal(await create(one), 200)
  let asked = 0
  proxy.before = body => {
    const isCheck = String(body) === JSON.stringify({ key: base64(record(2)) })
    return isCheck && ++asked <= 3 ? new Promise(() => {}) : undefined // as many as are made in the time for a read
  }
  await remove(endpoints, record(2))
  await until(() => /record 2 was deleted/.test(faultOf(one) ?? ''))
  assert.ok(asked > 3)
})

/** How many records there are, which are deleted, and how many keys of others come behind those. */
const GAPS = [[10, 9, 9, 0], [402, 129, 129, 0], [402, 101, 300, 120]] as const

for (const [records, first, last, others] of GAPS) {
  test(`a journal of ${records} records without ${first} to ${last} is refused by a start, verify and copy`, { skip: NO_ETCD },
    async t => {
      const { endpoints } = await startCluster(t)
      const secret = randomBytes(32)
      const flags = await flagsOf(t, endpoints, secret)
      await remove(endpoints, '/pes.key')
      const writes = Array.from({ length: records }, (_, i) => [{ type: 'entry.created', data: { id: i + 1, ...FIELDS } }])
      await fillEtcd(settingsOf(endpoints, '/pes'), keyName(secret), referenceLines(secret, writes), async () => {})
      await callEtcd(endpoints, '/v3/kv/deleterange', { key: base64(record(first)), range_end: base64(record(last + 1)) })
      for (let i = 0; i < others; i++) await put(endpoints, `${record(last)}x${i}`, 'theirs')
      const why = new RegExp(`record ${first} is missing, others follow it`)
      await assert.rejects(startService(t, flags), failure('journal-damaged', why))
      const folder = flags['data']!
      for (const command of ['verify --journal etcd', 'copy --to file']) {
        const { code, error } = await admin(folder, `journal ${command} --etcd-endpoints ${endpoints}`)
        assert.equal(code, 3, command)
        assert.match(error, why)
      }
      assert.equal(existsSync(join(folder, 'journal.jsonl')), false)
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
