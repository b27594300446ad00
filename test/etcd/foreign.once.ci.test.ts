/** Keys of others below the prefix, and damaged ones: named, and over when they are. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fillEtcd } from '../../src/parts/etcd/copy.ts'
import { admin } from '../support/admin.ts'
import { base64, callEtcd, etcdMissing, startCluster } from '../support/etcd.ts'
import { create, faultOf, FIELDS, flagsOf, list, settingsOf, startInstances, until } from '../support/instances.ts'
import { failure, keyName, readSecret, referenceLines } from '../support/journal.ts'
import { send, startService, type Started } from '../support/service.ts'

const NO_ETCD = etcdMissing()

const put = (url: string, key: string, value: string): Promise<unknown> =>
  callEtcd(url, '/v3/kv/put', { key: base64(key), value: base64(value) })
const remove = (url: string, key: string): Promise<unknown> => callEtcd(url, '/v3/kv/deleterange', { key: base64(key) })

const record = (n: number): string => `/pes/${String(n).padStart(16, '0')}`

test('a start refuses keys among the records; those behind them are named once, and ignored', {
  skip: NO_ETCD
}, async t => {
  const { endpoints } = await startCluster(t)
  const [one] = await startInstances(t, endpoints, 1)
  const start = async (): Promise<Started> => startService(t, await flagsOf(t, endpoints, readSecret(one!.folder)))
  for (let i = 0; i < 3; i++) assert.equal(await create(one!), 200)
  for (const key of ['/pes/0abc', '/pes.turn/word']) await put(endpoints, key, 'x')
  for (const each of [one!, await start()]) {
    for (let i = 0; i < 3; i++) assert.deepEqual([await create(each), await list(each)], [200, 200])
    const named = each.warnings.filter(line => /are not of this program, and are ignored/.test(line))
    assert.deepEqual(named.map(line => line.replace(/^.*: /, '')), ['"/pes/0abc"'])
  }
  await put(endpoints, `${record(2)}x`, 'x')
  assert.deepEqual([await create(one!), await list(one!)], [200, 200], 'an instance that runs goes on')
  const why = /\/pes: keys of another program are among the records, 1; remove them/
  await assert.rejects(start(), failure('journal-damaged', why))
  await remove(endpoints, `${record(2)}x`)
  assert.equal(await create(await start()), 200)
})

const RECORDS = 5
const [IS_MISSING, IS_NO_LINE] = [/record 6 is missing, others follow it/, /record 6: it is not a line of a journal/]
const IS_ANOTHER = /its newest record is no longer in etcd, or is another one/
const IS_NO_MARKER = /the value of \/pes\.key in etcd is no marker: "/

/** What stands at a key by then, undefined: nothing; and what is said of it. */
type Damage = readonly [what: string, key: string, value: string | undefined, seen: RegExp]
const DAMAGES: readonly Damage[] = [
  ['what looks like a record is put behind a gap', record(9), 'junk', IS_MISSING],
  ['what looks like a record is put at the next place', record(RECORDS + 1), 'junk', IS_NO_LINE],
  ['the newest record is deleted', record(RECORDS), undefined, IS_ANOTHER],
  ['the newest record is overwritten', record(RECORDS), 'junk', IS_ANOTHER],
  ['the marker is deleted', '/pes.key', undefined, /no journal: \/pes\.key is no longer in etcd: .* was removed/],
  ...['', 'junk', '0badcafe begun-not', '0badcafe moved /pes-2 7'].map(value =>
    [`the marker is made ${JSON.stringify(value)}`, '/pes.key', value, IS_NO_MARKER] as const)
]

for (const [what, key, value, seen] of DAMAGES) {
  test(`that ${what} is told once, and stops reads and writes until what was there is there again`, {
    skip: NO_ETCD
  }, async t => {
    const { endpoints } = await startCluster(t)
    const instances = await startInstances(t, endpoints, 2)
    for (let i = 0; i < RECORDS; i++) assert.equal(await create(instances[0]!), 200)
    const { kvs: [whole] = [] } = await callEtcd(endpoints, '/v3/kv/range', { key: base64(key) })
    await (value === undefined ? remove(endpoints, key) : put(endpoints, key, value))
    for (const one of instances) await until(() => { void list(one); return faultOf(one) !== undefined })
    for (const one of instances) {
      assert.match(faultOf(one)!, seen)
      assert.deepEqual([await create(one), await list(one)], [500, 503])
      const health = await send(one.url, 'GET', '/healthz')
      assert.deepEqual([health.status, /at the moment/.test(health.json.message)], [503, true])
      assert.equal(one.warnings.filter(line => seen.test(line)).length, 1, one.warnings.join('\n'))
    }
    if (whole === undefined) await remove(endpoints, key)
    else await callEtcd(endpoints, '/v3/kv/put', { key: base64(key), value: whole.value })
    await until(() => instances.every(one => faultOf(one) === undefined))
    for (const one of instances) assert.deepEqual([await create(one), await list(one)], [200, 200])
  })
}

/** How many records there are, which are deleted, and how many keys of others come behind those. */
const GAPS = [[10, 9, 9, 0], [402, 129, 129, 0], [402, 101, 300, 120]] as const

for (const [records, first, last, others] of GAPS) {
  test(`a journal of ${records} records without ${first} to ${last} is refused by a start, verify and copy`,
    { skip: NO_ETCD },
    async t => {
      const { endpoints } = await startCluster(t)
      const secret = randomBytes(32)
      const flags = await flagsOf(t, endpoints, secret)
      await remove(endpoints, '/pes.key')
      const writes = Array.from({ length: records }, (_,
        i) => [{ type: 'entry.created', data: { id: i + 1, ...FIELDS } }])
      await fillEtcd(settingsOf(endpoints, '/pes'), keyName(secret), referenceLines(secret, writes), async () => {})
      await callEtcd(endpoints, '/v3/kv/deleterange', { key: base64(record(first)),
        range_end: base64(record(last + 1)) })
      for (let i = 0; i < others; i++) await put(endpoints, `${record(last)}x${i}`, 'theirs')
      const why = new RegExp(`record ${first} is missing, others follow it`)
      await assert.rejects(startService(t, flags), failure('journal-damaged', why))
      const folder = flags['data']!
      for (const command of ['verify', `backup ${join(folder, 'copy')}`]) {
        const { code, error } = await admin(folder, `journal ${command} --journal etcd --etcd-endpoints ${endpoints}`)
        assert.equal(code, 3, command)
        assert.match(error, why)
      }
      assert.equal(existsSync(join(folder, 'copy')), false)
    })
}
