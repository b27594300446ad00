/** The keys of a journal in etcd, which several instances share: rotated, and the whole journal sealed anew. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { EtcdClient } from '../../src/etcd/client.ts'
import { EtcdLog } from '../../src/etcd/log.ts'
import { done, refused } from '../support/admin.ts'
import { base64, callEtcd, etcdMissing, pause, startCluster, startProxy } from '../support/etcd.ts'
import { assertEqual, create, faultOf, flagsOf, keysIn, list, startInstances, until } from '../support/instances.ts'
import { failure, KEY_FILE, keyName, readSecret } from '../support/journal.ts'
import { send, startService, type Started } from '../support/service.ts'

const NO_ETCD = etcdMissing()

const copyKeys = (from: Started, to: Started): void =>
  copyFileSync(join(from.folder, KEY_FILE), join(to.folder, KEY_FILE))

/** Creates entries until nobody wants more, or an instance refuses; gives how many were acknowledged. */
function write(instances: readonly Started[]): { readonly made: () => number, stop(): Promise<void> } {
  let made = 0
  let isOver = false
  const over = Promise.all(instances.map(async instance => {
    while (!isOver && await create(instance) === 200) made++
  }))
  return { made: () => made, stop: async () => { isOver = true; await over } }
}

test('a key is rotated in two runs; who has not been given it says so, and heals', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const [one, other] = await startInstances(t, endpoints, 2) as [Started, Started]
  const old = keyName(readSecret(one.folder))
  assert.equal(await create(one), 200)
  const told = await done(one.folder, 'key rotate')
  const fresh = keyName(readSecret(one.folder))
  assert.match(told, new RegExp(`^key ${fresh} is in .*journal.key, and does not seal yet\ncopy that file .* again\n$`))
  assert.equal(await create(one), 200)
  assert.equal(await done(one.folder, 'key rotate'), `key ${fresh} seals from now on\n`)

  const lacks = new RegExp(`${other.folder}/journal.key has no key ${fresh}`)
  await until(() => faultOf(other) !== undefined) // without being asked for anything
  assert.match(faultOf(other)!, lacks)
  assert.deepEqual([await list(other), await create(other)], [200, 500], 'nothing sealed with it stands yet')
  assert.equal(await create(one), 200)
  assert.deepEqual([await list(other), await create(other)], [503, 500])
  assert.match(faultOf(other)!, lacks)
  assert.match((await send(other.url, 'GET', '/healthz')).json.message, /at the moment/)
  const warned = new RegExp(`^the journal takes no changes at the moment: .*${fresh}.*$`)
  assert.match(other.warnings.slice(1).join('\n'), warned, 'once')
  await refused(other.folder, 'key rotate', 1, lacks)
  await assert.rejects(startService(t, flagsOf(t, endpoints, randomBytes(32))), failure('key-unknown'))

  copyKeys(one, other)
  await until(() => faultOf(other) === undefined)
  assert.deepEqual([await list(other), await create(other)], [200, 200])
  await assertEqual([one, other])
  assert.deepEqual(await keysIn(endpoints, '/pes'), [old, old, fresh, fresh])
})

test('once a rotation is answered no record is sealed with the old key', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const [one, other] = await startInstances(t, endpoints, 2) as [Started, Started]
  const old = keyName(readSecret(one.folder))
  const writers = write([one, one, other, other])
  await done(one.folder, 'key rotate')
  copyKeys(one, other)
  await done(other.folder, 'key rotate')
  const before = (await keysIn(endpoints, '/pes')).length
  await pause(200)
  await writers.stop()
  const keys = await keysIn(endpoints, '/pes')
  assert.ok(before > 0 && keys.length > before)
  assert.equal(keys.length, writers.made())
  assert.ok(keys.lastIndexOf(old) < before)
  assert.equal(keys.indexOf(keyName(readSecret(one.folder))), keys.lastIndexOf(old) + 1)
  const verified = await done(one.folder, `journal verify --journal etcd --etcd-endpoints ${endpoints}`)
  assert.match(verified, new RegExp(`^records ${keys.length}\n`))
})

test('a journal is sealed anew under writers: none is lost, and nothing is taken where it was', { skip: NO_ETCD },
  async t => {
    const { endpoints } = await startCluster(t)
    const [one, other] = await startInstances(t, endpoints, 2) as [Started, Started]
    const old = keyName(readSecret(one.folder))
    const inEtcd = ` --journal etcd --etcd-endpoints ${endpoints}`
    await done(one.folder, 'key rotate')
    await refused(one.folder, 'key rewrite --to-prefix /pes-2', 1, /newest key, [0-9a-f]{8}, does not seal yet/)
    copyKeys(one, other)
    const writers = write([one, other])
    while (writers.made() < 20) await pause(10)
    await done(one.folder, 'key rotate')
    await refused(one.folder, 'key rewrite', 2, /needs --to-prefix/)
    for (const to of ['/x/', '/pes/02', '/pes/-']) {
      await refused(one.folder, `key rewrite --to-prefix ${to}`, 2, /--to-prefix must be printable/)
    }
    await refused(one.folder, 'key rewrite --to-prefix /pes', 1, /\/pes holds a journal/)
    const printed = await done(one.folder, 'key rewrite --to-prefix /pes-2')
    await writers.stop()
    assert.match(printed, new RegExp('^head [0-9a-f]{64}\nthe journal is in /pes-2; set ETCD_PREFIX .*\n' +
      `then remove the old lines: etcdctl del /pes/0 /pes/1\nkey ${old} is no longer needed by this journal\n$`))

    for (const instance of [one, other]) {
      assert.deepEqual([await create(instance), await list(instance)], [500, 503])
      assert.match(faultOf(instance)!, /has moved to \/pes-2; set ETCD_PREFIX/)
      assert.match((await send(instance.url, 'GET', '/healthz')).json.message, /until a restart/)
      assert.equal(instance.warnings.filter(line => /until a restart: \/pes has moved/.test(line)).length, 1)
    }
    assert.doesNotMatch(one.warnings.join(), /at the moment/, 'whoever asked for the rewrite knows that changes wait')
    for (const command of [`journal backup ${one.folder}/copy.jsonl`, `journal copy --to file${inEtcd}`]) {
      await refused(one.folder, command, 1, /may not be the newest: \/pes has moved to \/pes-2/)
    }
    assert.equal((await keysIn(endpoints, '/pes')).length, writers.made())
    const moved = flagsOf(t, endpoints, readSecret(one.folder)) // without the old key
    await assert.rejects(startService(t, moved), failure('journal-moved', /\/pes-2/))
    const restarted = await startService(t, { ...moved, 'etcd-prefix': '/pes-2' })
    assert.equal((await send(restarted.url, 'GET', '/api/listPassword')).json.length, writers.made())
    assert.equal(await create(restarted), 200)
    const verified = await done(restarted.folder, `journal verify${inEtcd}`) // the prefix is the service's
    assert.match(verified, new RegExp(`^records ${writers.made() + 1}\n`))

    const proxy = await startProxy(t, endpoints)
    proxy.hidesChanges = true
    const late = await startService(t, { ...flagsOf(t, proxy.url, readSecret(one.folder)), 'etcd-prefix': '/pes-2' })
    const within = await done(restarted.folder, 'key rewrite --to-prefix /pes-2/3')
    const [, first, end] = /etcdctl del (\S+) (\S+)\n/.exec(within)!
    await callEtcd(endpoints, '/v3/kv/deleterange', { key: base64(first!), range_end: base64(end!) })
    assert.equal(await list(late), 503)
    assert.match(faultOf(late)!, /has moved to \/pes-2\/3/, 'and not that records are gone')
    await refused(late.folder, 'key rotate', 1, /has moved to/)
    assert.equal(late.warnings.filter(line => /has moved to/.test(line)).length, 1, 'once')
    const below = await startService(t, { ...flagsOf(t, endpoints, readSecret(one.folder)), 'etcd-prefix': '/pes-2/3' })
    assert.equal((await send(below.url, 'GET', '/api/listPassword')).json.length, writers.made() + 1)
  })

test('a copy that another one has taken over neither grows nor is moved to', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const client = new EtcdClient({ endpoints: [endpoints] })
  t.after(() => client.close())
  const [source, first, second] = ['/pes', '/pes-2', '/pes-2'].map(prefix => new EtcdLog(client, prefix)) as
    [EtcdLog, EtcdLog, EtcdLog]
  const marker = await source.agree('a', 1_000)
  const begun = await first.beginCopy('a', 1_000)
  const start = { seq: 0, revision: '0' }
  assert.equal((await first.append(start, begun!, ['line'], 1_000)).length, 1)
  const taken = await second.beginCopy('a', 1_000)
  assert.deepEqual(await first.append(start, begun!, ['line'], 1_000), [], 'what there was is gone')
  assert.equal(await source.moveTo(first, marker, begun!, 1_000), false)
  assert.equal(await source.moveTo(second, marker, taken!, 1_000), true)
  assert.equal(await source.moveTo(second, marker, taken!, 1_000), true, 'as when the answer was lost')
  assert.match((await source.agree('b', 1_000)).text, /^a moved \/pes-2 /)
  assert.equal((await second.agree('b', 1_000)).text, 'a')
  assert.equal(await first.beginCopy('a', 1_000), undefined, 'a journal is not taken for a copy')
})

test('of two that begin to move a journal one wins', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const client = new EtcdClient({ endpoints: [endpoints] })
  t.after(() => client.close())
  const [source, target] = ['/pes', '/pes-2'].map(prefix => new EtcdLog(client, prefix)) as [EtcdLog, EtcdLog]
  const marker = await source.agree('a', 1_000)
  const [one, two] = ['a moving /pes-2 one', 'a moving /pes-2 two'] as const
  const begun = await source.beginMove(target, marker, undefined, one, 1_000)
  assert.deepEqual(begun?.map(({ text }) => text), [one, 'a copying'])
  assert.equal(await source.beginMove(target, marker, undefined, two, 1_000), undefined)
  assert.deepEqual(await source.beginMove(target, marker, undefined, one, 1_000), begun, 'as when the answer was lost')
  assert.equal(await source.beginMove(target, begun![0], undefined, two, 1_000), undefined, 'a copy was begun there')
  const taken = await source.beginMove(target, ...begun!, two, 1_000)
  assert.equal(await source.moveTo(target, ...begun!, 1_000), false)
  assert.equal(await source.moveTo(target, ...taken!, 1_000), true)
  assert.equal(await source.moveTo(target, ...begun!, 1_000), false, 'the other one has moved it')
})

test('a watch tells of records and of the marker, not of what lies between', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const client = new EtcdClient({ endpoints: [endpoints] })
  t.after(() => client.close())
  const log = new EtcdLog(client, '/pes')
  const marker = await log.agree('a', 1_000)
  const taken: number[] = []
  void log.follow(marker.revision, records => { taken.push(records.length) }, new AbortController().signal).catch(() => {})
  const other = new EtcdLog(client, '/pes.new')
  const otherMarker = await other.agree('a', 1_000)
  const start = { seq: 0, revision: '0' }
  await other.append(start, otherMarker, ['line'], 1_000)
  await log.append(start, marker, ['line'], 1_000)
  await log.change(marker, 'b', 1_000)
  await until(() => taken.length >= 2)
  assert.deepEqual(taken, [1, 0])
})

test('a late answer to an append does not hide that the journal has moved', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  let answered = (): void => {}
  let hold: Promise<void> | undefined
  class Late extends EtcdClient {
    override async ask(...request: Parameters<EtcdClient['ask']>): Promise<any> {
      const held = hold
      const answer = await super.ask(...request)
      answered()
      await held
      return answer
    }
  }
  const client = new Late({ endpoints: [endpoints] })
  t.after(() => client.close())
  const [log, other] = [new EtcdLog(client, '/pes'), new EtcdLog(client, '/pes')]
  const start = { seq: 0, revision: '0' }
  const marker = await log.agree('a', 1_000)
  const moving = await other.change(marker, 'a moving /pes-2', 1_000)
  let release = (): void => {}
  hold = new Promise(resolve => { release = resolve })
  const isAnswered = new Promise<void>(resolve => { answered = resolve })
  const late = log.append(start, marker, ['line'], 1_000)
  await isAnswered
  hold = undefined
  await other.change(moving, 'a moved /pes-2', 1_000)
  await log.after(start, 1_000)
  release()
  assert.deepEqual(await late, [])
  assert.equal(log.marker?.state, 'moved')
})
