/** The keys of a journal in etcd, which several instances share, its marker, and what happens when that changes. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fillEtcd } from '../../src/parts/etcd/copy.ts'
import { EtcdClient } from '../../src/parts/etcd/etcd-client.ts'
import { START } from '../../src/parts/etcd/etcd-keys.ts'
import { EtcdLog } from '../../src/parts/etcd/etcd-log.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'
import { admin, done, refused } from '../support/admin.ts'
import { base64, callEtcd, etcdMissing, pause, startCluster, startProxy } from '../support/etcd.ts'
import {
  assertEqual, create, faultOf, flagsOf, keysIn, list, settingsOf, startInstances, startPair, until
} from '../support/instances.ts'
import { failure, KEY_FILE, keyName, readSecret, writeKeys } from '../support/journal.ts'
import { freshFolder, send, startService, type Started } from '../support/service.ts'

const NO_ETCD = etcdMissing()

const soonMs = (): number => performance.now() + 20_000

const copyKeys = (from: Started, to: Started): void =>
  copyFileSync(join(from.folder, KEY_FILE), join(to.folder, KEY_FILE))

/** Creates entries until nobody wants more, each of which must be acknowledged; gives how many there were. */
function write(instances: readonly Started[]): { readonly made: () => number, stop(): Promise<void> } {
  let made = 0
  let isOver = false
  const over = Promise.all(instances.map(async instance => {
    for (; !isOver; made++) assert.equal(await create(instance), 200)
  }))
  over.catch(() => {}) // as `stop` says
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
  assert.match(await done(one.folder, 'key rotate'),
    new RegExp(`^key ${fresh} seals from now on\ncopy .* again to where you keep it\n$`))

  const lacks = new RegExp(`${other.folder}/journal.key has no key ${fresh}`)
  await until(() => faultOf(other) !== undefined) // without being asked for anything
  assert.match(faultOf(other)!, lacks)
  assert.deepEqual([await list(other), await create(other)], [200, 500], 'nothing sealed with it stands yet')
  const backup = (name: string): string => `journal backup ${join(other.folder,
    name)} --journal etcd --etcd-endpoints ${endpoints}`
  assert.match(await done(other.folder, backup('whole.jsonl')), /^2 records/)
  assert.equal(await create(one), 200)
  assert.deepEqual([await list(other), await create(other)], [503, 500])
  await refused(other.folder, backup('old.jsonl'), 1, /the newest records may be missing here: .* has no key/)
  assert.match(faultOf(other)!, lacks)
  assert.match((await send(other.url, 'GET', '/healthz')).json.message, /at the moment/)
  const warned = new RegExp(`^the journal takes no changes at the moment: .*${fresh}.*$`)
  assert.match(other.warnings.slice(1).join('\n'), warned, 'once')
  await refused(other.folder, 'key rotate', 3, lacks)
  await assert.rejects(startService(t, await flagsOf(t, endpoints, randomBytes(32))), failure('key-unknown'))

  copyKeys(one, other)
  await until(() => faultOf(other) === undefined)
  assert.deepEqual([await list(other), await create(other)], [200, 200])
  await assertEqual([one, other])
  assert.deepEqual(await keysIn(endpoints, '/pes'), [old, old, fresh, fresh])
  const flags = await flagsOf(t, endpoints, randomBytes(32))
  copyFileSync(join(one.folder, KEY_FILE), join(flags['data']!, KEY_FILE))
  const next = await startService(t, flags)
  const tags = await Promise.all([one, other, next].map(async ({ url }) =>
    (await send(url, 'GET', '/api/getPassword/1')).headers.get('ETag')))
  assert.equal(new Set(tags).size, 1, 'all give the same tag, also an instance that starts after the rotation')
})

test('all instances give the same tags if the key was rotated before the first record', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const [one, other] = await startInstances(t, endpoints, 2) as [Started, Started]
  await list(one) // an answer before there is any record
  for (let run = 0; run < 2; run++) {
    await done(one.folder, 'key rotate')
    copyKeys(one, other)
  }
  assert.equal(await create(one), 200)
  const flags = await flagsOf(t, endpoints, randomBytes(32))
  copyFileSync(join(one.folder, KEY_FILE), join(flags['data']!, KEY_FILE))
  const next = await startService(t, flags)
  const tags = await Promise.all([one, other, next].map(async ({ url }) =>
    (await send(url, 'GET', '/api/getPassword/1')).headers.get('ETag')))
  assert.ok(tags[0] !== null && new Set(tags).size === 1, tags.join())
})

test('an instance whose watch brings nothing goes on after two rotations, once its file has the keys', {
  skip: NO_ETCD
}, async t => {
  const { proxy, near, behind } = await startPair(t)
  const names = [keyName(readSecret(near.folder))]
  assert.deepEqual([await create(near), await create(behind)], [200, 200])
  for (let rotation = 0; rotation < 2; rotation++) {
    for (const _ of ['made', 'seals']) await done(near.folder, 'key rotate')
    names.push(keyName(readSecret(near.folder)))
    assert.equal(await create(near), 200)
  }
  const lacks = new RegExp(`journal\\.key has no key ${names[1]}`)
  assert.deepEqual([await list(behind), await create(behind)], [503, 500])
  assert.match(faultOf(behind)!, lacks)
  await refused(behind.folder, 'key rotate', 3, lacks)
  copyKeys(near, behind)
  assert.deepEqual([await create(behind), await list(behind), faultOf(behind)], [200, 200, undefined])
  for (const _ of ['made', 'seals']) await done(behind.folder, 'key rotate')
  names.push(keyName(readSecret(behind.folder)))
  copyKeys(behind, near)
  assert.deepEqual([await create(behind), await create(near)], [200, 200])
  const [first, second, third, fourth] = names
  assert.deepEqual(await keysIn(proxy.url, '/pes'), [first, first, second, third, third, fourth, fourth])
})

test('a rotation that gets no answer says that the key may seal by now', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const folder = (await flagsOf(t, endpoints, randomBytes(32)))['data']!
  const proxy = await startProxy(t, endpoints)
  const rotate = (url: string): string => `key rotate --journal etcd --etcd-endpoints ${url}`
  await done(folder, rotate(endpoints))
  const fresh = keyName(readSecret(folder))
  proxy.before = body => { if (body.includes('request_put')) proxy.isCut = true }
  await refused(folder, rotate(proxy.url), 1,
    new RegExp(`key ${fresh} may seal by now: etcdctl get /pes\\.key names the key`))
  assert.match(await done(folder, rotate(endpoints)), new RegExp(`^key ${fresh} seals from now on`))
})

test('of two rotations at once to different keys the second says that it came second', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const secret = randomBytes(32)
  const folders = await Promise.all([1, 2].map(async () => (await flagsOf(t, endpoints, secret))['data']!))
  const proxy = await startProxy(t, endpoints)
  const rotate = (url: string): string => `key rotate --journal etcd --etcd-endpoints ${url}`
  for (const folder of folders) await done(folder, rotate(endpoints))
  const [one, other] = folders as [string, string]
  let isFirst = true
  proxy.before = async body => {
    if (!body.includes('request_put') || !isFirst) return
    isFirst = false
    await done(one, rotate(endpoints))
  }
  const { code, error } = await admin(other, rotate(proxy.url))
  assert.equal(code, 1)
  assert.match(error, /^error: .*: another rotation came first; compare the key files, then try again$/m)
})

test('a key file that loses a key refuses changes until it has it again, and reads go on', {
  skip: NO_ETCD
}, async t => {
  const { endpoints } = await startCluster(t)
  const [one] = await startInstances(t, endpoints, 1) as [Started]
  const path = join(one.folder, KEY_FILE)
  assert.equal(await create(one), 200)
  for (const _ of [1, 2]) await done(one.folder, 'key rotate')
  assert.equal(await create(one), 200)
  const whole = readFileSync(path, 'latin1')
  const [old, fresh] = whole.split('\n')
  for (const [left, lacks] of [[undefined, fresh], [old, fresh], [fresh, old], ['0'.repeat(64), fresh]] as const) {
    if (left === undefined) rmSync(path)
    else writeFileSync(path, `${left}\n`, { mode: 0o600 })
    assert.deepEqual([await create(one), await list(one)], [500, 200], `with ${left}`)
    assert.match(faultOf(one)!, new RegExp(`journal\\.key no longer holds .*${keyName(Buffer.from(lacks!, 'hex'))}`))
    writeFileSync(path, whole, { mode: 0o600 })
    assert.deepEqual([faultOf(one), await create(one)], [undefined, 200])
  }
})

test('a rotation fails no change, and once it is answered no record is sealed with the old key', {
  skip: NO_ETCD
}, async t => {
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

test('a journal is re-encrypted and compacted in a file between prefixes: no old key and no purged entry is left', {
  skip: NO_ETCD
}, async t => {
  const { endpoints } = await startCluster(t)
  const [one, two] = await startInstances(t, endpoints, 2) as [Started, Started]
  const old = keyName(readSecret(one.folder))
  for (let i = 0; i < 3; i++) assert.equal(await create(one), 200)
  for (let i = 0; i < 9; i++) await send(one.url, 'POST', '/api/updatePassword/1', { password: `SECRET-${i}` })
  const at = `--journal etcd --etcd-endpoints ${endpoints}`
  await done(one.folder, `entry purge 1 --yes ${at}`)
  for (const { url } of [one, two]) assert.equal((await send(url, 'GET', '/api/getPassword/1')).status, 404)
  await refused(one.folder, 'key rewrite', 1, /not written again where it is; stop all instances, copy it to a file/)
  await refused(one.folder, `journal compact ${at}`, 1,
    /not written again where it is; stop all instances, copy it to a file/)
  for (const { service } of [one, two]) await service.close()

  const back = freshFolder(t)
  writeKeys(back, readSecret(one.folder))
  await done(back, `journal close ${at}`)
  await admin(back, `journal backup ${join(back, 'journal.jsonl')} ${at}`) // warns that it is closed
  for (const step of ['key rotate', 'key rewrite', 'journal compact',
    `journal copy --to etcd --etcd-endpoints ${endpoints} --etcd-prefix /pes-2`]) await done(back, step)
  rmSync(join(back, 'journal.jsonl'))
  const keys = await keysIn(endpoints, '/pes-2')
  assert.ok(keys.length < 8 && !keys.includes(old), keys.join())
  assert.doesNotMatch(await done(back, `journal show --reveal ${at} --etcd-prefix /pes-2`), /SECRET/)
})

test('a prefix that version 1.0.0 has moved is refused, and it is said where to', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const flags = await flagsOf(t, endpoints, randomBytes(32))
  const text = `${keyName(readSecret(flags['data']!))} moved /pes-2 7`
  await callEtcd(endpoints, '/v3/kv/put', { key: base64('/pes.key'), value: base64(text) })
  await assert.rejects(startService(t, flags), failure('journal-damaged',
    /moved \/pes-2 7"; if version 1\.0\.0 has moved the journal/))
  await refused(flags['data']!, `journal remove /pes --from etcd --yes --etcd-endpoints ${endpoints}`, 3,
    /is no marker/)
})

test('of copies made at once one becomes the journal, and the others are refused', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const place = settingsOf(endpoints, '/pes')
  const lines = Array.from({ length: 300 }, (_, i) => `line ${i}`)
  for (let round = 0; round < 5; round++) {
    const made = await Promise.allSettled(Array.from({ length: 3 }, (_, n) =>
      fillEtcd(place, 'a', lines.map(line => `${line} of ${n}`), async () => { await pause(5) })))
    const winners = made.flatMap(({ status }, n) => status === 'fulfilled' ? [n] : [])
    const failures = made.flatMap(result => result.status === 'rejected' ? [result.reason] : [])
    assert.equal(winners.length, 1, failures.join('\n'))
    for (const why of failures) assert.match(String(why),
      /\/pes (holds a journal, or|was changed meanwhile, or) another copy is made there/)
    const { kvs } = await callEtcd(endpoints, '/v3/kv/range', { key: base64('/pes/'), range_end: base64('/pes0') })
    const found = kvs.map(({ value }: { value: string }) => Buffer.from(value, 'base64').toString())
    assert.deepEqual(found, lines.map(line => `${line} of ${winners[0]}`))
    await callEtcd(endpoints, '/v3/kv/deleterange', { key: base64('/pes'), range_end: base64('/pet') })
  }
})

test('a copy that does not verify is no journal', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const verify = async (): Promise<void> => { await pause(5); throw new Error('it differs') }
  await assert.rejects(fillEtcd(settingsOf(endpoints, '/pes'), 'a', ['line'], verify), /it differs/)
  const { kvs: [{ value }] } = await callEtcd(endpoints, '/v3/kv/range', { key: base64('/pes.key') })
  assert.match(Buffer.from(value, 'base64').toString(), /^a copying /)
})

test('what was begun under a marker is not appended once another copy has put its own there', {
  skip: NO_ETCD
}, async t => {
  const { endpoints } = await startCluster(t)
  const client = new EtcdClient({ endpoints: [endpoints] })
  t.after(() => client.close())
  const [one, other] = [new EtcdLog(client, '/pes'), new EtcdLog(client, '/pes')]
  const begun = (await one.change(undefined, 'a copying one', soonMs()))!
  await other.change(begun, 'a copying other', soonMs())
  for (const _ of ['which reads the marker', 'which has read it']) {
    assert.deepEqual((await one.append(START, begun, ['line of one'], soonMs())).records, [])
  }
  assert.equal(await other.look(soonMs()), 0)
})

test('a watch reports records and the marker, not keys between them', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const client = new EtcdClient({ endpoints: [endpoints] })
  t.after(() => client.close())
  const log = new EtcdLog(client, '/pes')
  const marker = (await log.change(undefined, 'a', soonMs()))!
  const taken: (number | 'marker')[] = []
  void log.follow(marker.revision, ({ records, hasMarker }) => {
    // both come in one message where the watch begins late
    taken.push(records.length, ...hasMarker ? ['marker' as const] : [])
  }, new AbortController().signal).catch(() => {})
  const other = new EtcdLog(client, '/pes.new')
  const otherMarker = (await other.change(undefined, 'a', soonMs()))!
  await other.append(START, otherMarker, ['line'], soonMs())
  await log.append(START, marker, ['line'], soonMs())
  await log.change(marker, 'b', soonMs())
  await until(() => taken.filter(one => one === 'marker').length > 0)
  assert.deepEqual(taken.filter(one => one !== 0), [1, 'marker'])
})

test('a marker of a lower revision is read again: an etcd from a snapshot counts anew', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const client = new EtcdClient({ endpoints: [endpoints] })
  t.after(() => client.close())
  const log = new EtcdLog(client, '/pes')
  const marker = (await log.change(undefined, '0123abcd', soonMs()))!
  log.marker = { ...marker, revision: String(Number(marker.revision) + 1_000) }
  assert.deepEqual((await log.after(START, performance.now() + 3_000)).records, [])
  assert.deepEqual(log.marker, marker)
})

test('a journal is removed by its newest record and marker: another one that came meanwhile keeps all of it', {
  skip: NO_ETCD
}, async t => {
  const { endpoints } = await startCluster(t)
  const client = new EtcdClient({ endpoints: [endpoints] })
  t.after(() => client.close())
  const log = new EtcdLog(client, '/pes')
  await log.change(undefined, 'a', soonMs())
  const records = [{ seq: 1, text: 'the first line' }, { seq: 2, text: 'another line' }] as const
  await log.append(START, log.marker!, records.map(({ text }) => text), soonMs())
  assert.deepEqual([await log.remove(log.marker!, records[0], soonMs()), await log.look(soonMs())], [false, 2])
  const before = log.marker!
  await log.change(before, 'b', soonMs())
  assert.deepEqual([await log.remove(before, records[1], soonMs()), await log.look(soonMs())], [false, 2])
  assert.deepEqual([await log.remove(log.marker!, records[1], soonMs()), await log.look(soonMs())], [true, 0])
})

test('a batch whose answer is lost is there as a whole once it is acknowledged', { skip: NO_ETCD }, async t => {
  const { members: [member] } = await startCluster(t)
  const proxy = await startProxy(t, member!.url)
  proxy.hidesChanges = true // the watch would bring it
  const { service: { store } } = await startService(t, await flagsOf(t, proxy.url, randomBytes(32)))
  proxy.treat = append => append === 1 ? 'answer lost' : 'passed'
  const made = await Promise.all(Array.from({ length: 100 }, async () => {
    const { id } = await createEntry(store, { password: 'p', sistema: 's', usuario: 'u' }, null)
    return store.state.entries.has(id)
  }))
  assert.deepEqual([proxy.appends, made.filter(isThere => !isThere).length], [2, 0])
})
