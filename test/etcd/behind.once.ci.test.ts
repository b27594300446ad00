/** An instance that is far behind: it reads in long pages, within the bounds, and says how far it is. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import { fillEtcd } from '../../src/parts/etcd/copy.ts'
import { EtcdClient } from '../../src/parts/etcd/etcd-client.ts'
import { START } from '../../src/parts/etcd/etcd-keys.ts'
import { EtcdLog } from '../../src/parts/etcd/etcd-log.ts'
import { base64, callEtcd, etcdMissing, startCluster, startDelay, startProxy } from '../support/etcd.ts'
import { create, faultOf, FIELDS, flagsOf, list, settingsOf, until } from '../support/instances.ts'
import { keyName, referenceLines, writeKeys } from '../support/journal.ts'
import { freshFolder, send, startService } from '../support/service.ts'

const NO_ETCD = etcdMissing()
const RECORDS = 30_000

/** Makes a journal of that many records; gives the flags of an instance but for its way to etcd. */
async function filled(t: TestContext, url: string): Promise<Record<string, string>> {
  const secret = randomBytes(32)
  const data = freshFolder(t)
  writeKeys(data, secret)
  const writes = Array.from({ length: RECORDS }, (_, i) => [{ type: 'entry.created', data: { id: i + 1, ...FIELDS } }])
  await fillEtcd(settingsOf(url, '/pes'), keyName(secret), referenceLines(secret, writes), async () => {})
  return { data, 'journal': 'etcd', 'etcd-endpoints': url, 'rate-limit': '0' }
}

test(`${RECORDS} records are read at a start in few round trips`, { skip: NO_ETCD }, async t => {
  const { members: [member] } = await startCluster(t)
  const flags = await filled(t, member!.url)
  const proxy = await startProxy(t, member!.url)
  const beganMs = performance.now()
  const { service } = await startService(t, { ...flags, 'etcd-endpoints': proxy.url })
  assert.equal(service.store.state.entries.count, RECORDS)
  t.diagnostic(`${Math.round(performance.now() - beganMs)} ms, ${proxy.requests} requests`)
  assert.ok(proxy.requests < 40, `${proxy.requests} requests`) // 235 of 128 records each
})

test('a page is not made much longer because the records before it were short', { skip: NO_ETCD }, async t => {
  const { members: [member] } = await startCluster(t)
  const client = new EtcdClient({ endpoints: [member!.url] })
  t.after(() => client.close())
  const lines = Array.from({ length: 1_200 }, (_, i) => 'x'.repeat(i < 300 ? 300 : 30_000))
  await fillEtcd(settingsOf(member!.url, '/pes'), '0badcafe', lines, async () => {})
  const log = new EtcdLog(client, '/pes')
  const pages: number[] = []
  for (let newest = START; newest.seq < lines.length;) {
    const { records } = (await log.after(newest, performance.now() + 10_000))!
    pages.push(records.length)
    newest = records.at(-1)!
  }
  t.diagnostic(pages.join())
  assert.ok(pages.every((length, i) => length <= 2 * (pages[i - 1] ?? length)), pages.join())
})

test('who is far behind answers within the bounds, says how far it is, and gets there', { skip: NO_ETCD }, async t => {
  const { members: [member] } = await startCluster(t)
  const secret = randomBytes(32)
  const slow = await startDelay(t, member!.url, 400)
  const proxy = await startProxy(t, slow)
  proxy.hidesChanges = true
  const one = await startService(t, await flagsOf(t, member!.url, secret))
  const behind = await startService(t, { ...await flagsOf(t, member!.url, secret), 'etcd-endpoints': proxy.url })
  proxy.isCut = true
  const writes = Array.from({ length: RECORDS }, (_, i) => [{ type: 'entry.created', data: { id: i + 1, ...FIELDS } }])
  await one.service.close()
  await callEtcd(member!.url, '/v3/kv/deleterange', { key: base64('/pes.key') })
  await fillEtcd(settingsOf(member!.url, '/pes'), keyName(secret), referenceLines(secret, writes), async () => {})
  proxy.isCut = false
  const beganMs = performance.now()
  const health: string[] = []
  const probes = new Set<string>()
  const timer = setInterval(() => {
    health.push(faultOf(behind) ?? '')
    send(behind.url, 'GET', '/healthz').then(({ text }) => probes.add(text), () => {}) // the last one may come too late
  }, 100)
  const statuses = await Promise.all([list(behind), create(behind)].map(async answered =>
    [await answered, performance.now() - beganMs]))
  const [[read, readMs], [made, madeMs]] = statuses as [[number, number], [number, number]]
  t.diagnostic(`get ${read} after ${Math.round(readMs)} ms, create ${made} after ${Math.round(madeMs)} ms`)
  assert.ok(read === 503 && readMs < 7_500, `${read} ${readMs}`)
  assert.ok((made === 500 || made === 503) && madeMs < 11_000, `${made} ${madeMs}`)
  // On a slow machine both may be answered before it is known that the instance is behind.
  const wasBehind = (): boolean => health.some(line => line.includes('not all records of the journal are read yet'))
  await until(() => wasBehind() && faultOf(behind) === undefined)
  clearInterval(timer)
  const steps = health.flatMap(line =>
    new RegExp(`not all records of the journal are read yet: (\\d+) of ${RECORDS}`).exec(line)?.[1] ?? [])
  // A quick machine reads all of them in two pages: then there is one step to be seen.
  assert.ok(steps.some(step => 0 < Number(step) && Number(step) < RECORDS), [...new Set(health)].join('\n'))
  assert.ok([...probes].some(text => /is being read: \d+ % of what other instances wrote/.test(text)),
    [...probes].join('\n'))
  assert.equal((await send(behind.url, 'GET', `/api/getPassword/${RECORDS}`)).status, 200)
})
