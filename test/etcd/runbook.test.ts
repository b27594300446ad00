/** What the README has an operator do with a journal in etcd, walked right and walked wrong. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { admin, done, initialized, refused } from '../support/admin.ts'
import { base64, callEtcd, etcdMissing, startCluster, startProxy } from '../support/etcd.ts'
import { create, faultOf, flagsOf, list, Rival, startInstances, until } from '../support/instances.ts'
import { failure, readSecret, writeKeys } from '../support/journal.ts'
import { freshFolder, send, startService } from '../support/service.ts'

const NO_ETCD = etcdMissing()

describe('a journal in etcd is re-encrypted and moved', { concurrency: 2 }, () => {
  for (const isForgotten of [false, true]) {
    test(isForgotten ? 'with an instance forgotten, which loses nothing' : 'with all instances stopped', { skip: NO_ETCD },
      async t => {
        const { endpoints } = await startCluster(t)
        const at = `--etcd-endpoints ${endpoints}`
        const [one, two] = await startInstances(t, endpoints, 2)
        for (let i = 0; i < 5; i++) assert.equal(await create(two!), 200)
        const listed = (await send(two!.url, 'GET', '/api/listPassword')).text
        await one!.service.close()
        if (!isForgotten) await two!.service.close()
        const back = freshFolder(t)
        writeKeys(back, readSecret(one!.folder))
        const copied = await done(back, `journal copy --to file ${at}`)
        assert.match(copied, /journal\.jsonl: 5 records, head [0-9a-f]{64}\n\/pes is closed: what still runs there takes/)
        if (isForgotten) {
          assert.deepEqual([await create(two!), await list(two!)], [500, 200], 'what is not in the copy is refused')
          assert.match(faultOf(two!)!, /\/pes is closed: it was copied to a file at 2/)
          await refused(two!.folder, 'key rotate', 1, /is closed/)
          await two!.service.close() // and a supervisor starts it again
          const again = await startService(t, { ...await flagsOf(t, endpoints, readSecret(one!.folder)) })
          assert.deepEqual([await create(again), await list(again)], [500, 200])
          assert.equal((await send(again.url, 'GET', '/healthz')).status, 503)
        }
        for (const step of ['key rotate', 'key rewrite', `journal copy --to etcd ${at} --etcd-prefix /pes-2`]) {
          await done(back, step)
        }
        await refused(back, `journal remove /pes-2 --from etcd --yes ${at}`, 1, /\/pes-2 is in use, 7 records/)
        await refused(back, `journal remove /pes-3 --from etcd --yes ${at}`, 1, /etcd has no key \/pes-3\.key/)
        assert.equal(await done(back, `journal remove /pes --from etcd --yes ${at}`), '/pes: 5 records removed\n')
        const { kvs } = await callEtcd(endpoints, '/v3/kv/range', { key: base64('/pes.'), range_end: base64('/pes1') })
        assert.equal(kvs, undefined)
        const flags: Record<string, string> = { 'data': back, 'journal': 'etcd', 'etcd-endpoints': endpoints }
        await assert.rejects(startService(t, { ...flags, data: one!.folder }), failure('journal-missing', /no key \/pes\.key/))
        const moved = await startService(t, { ...flags, 'etcd-prefix': '/pes-2' })
        assert.match(moved.warnings.join('\n'), /journal\.jsonl is not the journal that is used, which is \/pes-2 in etcd/)
        assert.equal((await send(moved.url, 'GET', '/api/listPassword')).text, listed)
        assert.equal(await create(moved), 200)
      })
  }
})

test('keys of another program among the records are left out of every count, and removed by nobody', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const at = `--etcd-endpoints ${endpoints}`
  const put = (key: string): Promise<unknown> => callEtcd(endpoints, '/v3/kv/put', { key: base64(key), value: base64('theirs') })
  const theirs = ['/pes.turn/abc', '/pes/0000000000000000x', '/pes/0000000000000003x', '/pes/0000000000000004x', '/pes/0config']
  const [one] = await startInstances(t, endpoints, 1)
  for (let i = 0; i < 5; i++) assert.equal(await create(one!), 200)
  for (const key of theirs) await put(key)
  await one!.service.close()
  const back = freshFolder(t)
  writeKeys(back, readSecret(one!.folder))
  assert.match(await done(back, `journal copy --to file ${at}`), /journal\.jsonl: 5 records, head/)
  await refused(back, `journal remove /pes --from etcd --yes ${at}`, 1, /\/pes also holds 5 keys of another program; remove those first/)
  for (const key of theirs) await callEtcd(endpoints, '/v3/kv/deleterange', { key: base64(key) })
  assert.equal(await done(back, `journal remove /pes --from etcd --yes ${at}`), '/pes: 5 records removed\n')

  for (const key of ['/other/0config', '/other/0000000000000000-lease', '/other.turn/abc']) await put(key)
  const why = /etcd has no key \/other\.key; but keys of another program where a journal would be; name another ETCD_PREFIX/
  await refused(back, `journal remove /other --from etcd --yes ${at}`, 1, why)
  await refused(back, `init --journal etcd --etcd-prefix /other ${at}`, 1, why)
  const { count } = await callEtcd(endpoints, '/v3/kv/range', { key: base64('/other'), range_end: base64('/othes') })
  assert.equal(count, '3')
})

test('records whose marker is gone or damaged are removed by nobody', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const at = `--etcd-endpoints ${endpoints}`
  const [one] = await startInstances(t, endpoints, 1)
  for (let i = 0; i < 3; i++) assert.equal(await create(one!), 200)
  await one!.service.close()
  await callEtcd(endpoints, '/v3/kv/put', { key: base64('/pes.key'), value: base64('PRECIOUS') })
  await refused(one!.folder, `journal remove /pes --from etcd --yes ${at}`, 3, /what \/pes\.key holds in etcd is not this program's/)
  await callEtcd(endpoints, '/v3/kv/deleterange', { key: base64('/pes.key') })
  await refused(one!.folder, `journal remove /pes --from etcd --yes ${at}`, 1, /no key \/pes\.key; but 3 records; put the name/)
  assert.equal(await new Rival(endpoints, readSecret(one!.folder)).count(), 3)
})

test('what acts on a journal as a whole says first on which, also where it is refused', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const [one] = await startInstances(t, endpoints, 1)
  assert.equal(await create(one!), 200)
  const back = freshFolder(t)
  writeKeys(back, readSecret(one!.folder))
  const path = join(back, 'journal.jsonl')
  const shared = `journal /pes at ${endpoints}`
  const says = async (folder: string, command: string, expected: string): Promise<void> => {
    const { error } = await admin(folder, `${command} --etcd-endpoints ${endpoints}`)
    assert.equal(error.split('\n')[0], expected, command)
  }
  const isSet = '--journal etcd'
  for (const command of ['key rotate', 'key rewrite', 'journal compact', 'journal compact --drop-history']) {
    await says(one!.folder, `${command} ${isSet}`, shared)
  }
  await one!.service.close()
  await says(back, `journal copy --to file ${isSet}`, `${shared}, to ${path}`)
  await says(back, `journal reopen ${isSet}`, shared)
  await says(back, 'key rotate --journal file', `journal ${path}`)
  await says(back, 'key rewrite --journal file', `journal ${path}`)
  await says(back, 'journal compact --journal file', `journal ${path}`)
  await says(back, `journal copy --to etcd --etcd-prefix /pes-2 ${isSet}`, `journal ${path}, to /pes-2 at ${endpoints}`)
  await says(back, `journal remove /pes --from etcd --yes ${isSet} --etcd-prefix /pes-2`, shared)
})

test('records that are gone while the marker is left are no empty journal', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const flags = await flagsOf(t, endpoints, randomBytes(32))
  const one = await startService(t, flags)
  assert.equal(await create(one), 200)
  await one.service.close()
  await callEtcd(endpoints, '/v3/kv/deleterange', { key: base64('/pes/'), range_end: base64('/pes0') })
  const why = /\/pes has no records in etcd, and its marker says that it had; copy a backup to another ETCD_PREFIX/
  await assert.rejects(startService(t, flags), failure('journal-damaged', why))
  const at = `--journal etcd --etcd-endpoints ${endpoints}`
  await refused(flags['data']!, `init ${at}`, 3, why)
  const back = freshFolder(t)
  await refused(back, `journal copy --to file ${at}`, 3, why)
  assert.equal(existsSync(join(back, 'journal.jsonl')), false)
  const { kvs: [{ value }] } = await callEtcd(endpoints, '/v3/kv/range', { key: base64('/pes.key') })
  assert.match(Buffer.from(value, 'base64').toString(), / begun$/, 'what was refused has closed nothing')
  assert.equal(await done(flags['data']!, `journal remove /pes --from etcd --yes --etcd-endpoints ${endpoints}`), '/pes: 0 records removed\n')
  assert.match(await done(flags['data']!, `init ${at}`), /^journal \/pes \(made, empty\)/)
})

test('a closed journal is opened again as what it was: empty, or one whose records must be there', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const flags = await flagsOf(t, endpoints, randomBytes(32))
  const at = `--journal etcd --etcd-endpoints ${endpoints}`
  const [data, other] = [flags['data']!, freshFolder(t)]
  for (const folder of [data, other]) writeKeys(folder, readSecret(data))
  await done(data, `init ${at}`)
  await done(other, `journal copy --to file ${at}`)
  await done(other, `journal reopen ${at}`)
  const one = await startService(t, flags)
  assert.equal(await create(one), 200)
  await one.service.close()
  rmSync(join(other, 'journal.jsonl'))
  await done(other, `journal copy --to file ${at}`)
  await callEtcd(endpoints, '/v3/kv/deleterange', { key: base64('/pes/'), range_end: base64('/pes0') })
  await refused(other, `journal reopen ${at}`, 3, /\/pes has no records in etcd, and its marker says that it had/)
  await assert.rejects(startService(t, flags), failure('journal-damaged', /and its marker says that it had/))
})

test('a journal that a copy has closed is opened again, and so it is where the copy fails', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const [one] = await startInstances(t, endpoints, 1)
  assert.equal(await create(one!), 200)
  const at = `--etcd-endpoints ${endpoints}`
  const back = freshFolder(t)
  writeKeys(back, randomBytes(32))
  await refused(back, `journal copy --to file ${at}`, 3, /needs key/)
  assert.equal(await create(one!), 200, 'a copy that failed leaves it open')
  writeFileSync(join(back, 'journal.jsonl'), '')
  await refused(back, `journal copy --to file ${at}`, 1, /journal\.jsonl exists already/)
  assert.equal(await create(one!), 200)
  const other = freshFolder(t)
  writeKeys(other, readSecret(one!.folder))
  await done(other, `journal copy --to file ${at}`)
  await until(() => faultOf(one!) !== undefined)
  assert.equal(await create(one!), 500)
  for (const _ of [1, 2]) await refused(one!.folder, `key rotate --journal etcd ${at}`, 1, /\/pes is closed: it was copied to a file/)
  await refused(other, `journal copy --to etcd ${at}`, 1, /^error: \/pes holds a journal, or another copy is made there; nothing was copied/)
  assert.equal(await done(other, `journal reopen ${at}`), '/pes: instances may write to it again\n')
  await until(() => faultOf(one!) === undefined)
  assert.equal(await create(one!), 200)
  await refused(other, `journal reopen ${at}`, 1, /\/pes is not closed/)
})

test('a copy of a journal that is opened again meanwhile is none', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const [one] = await startInstances(t, endpoints, 1)
  assert.equal(await create(one!), 200)
  const proxy = await startProxy(t, endpoints)
  let opening: Promise<void> | undefined
  proxy.before = async body => {
    if (!body.includes('count_only') || !body.includes('"failure"')) return // it reads the records
    // Once, and also for who asks again because that takes its time.
    await (opening ??= (async () => {
      await done(freshFolder(t), `journal reopen --etcd-endpoints ${endpoints}`)
      assert.equal(await create(one!), 200)
    })())
  }
  const back = freshFolder(t)
  writeKeys(back, readSecret(one!.folder))
  await refused(back, `journal copy --to file --etcd-endpoints ${proxy.url}`, 1, /\/pes was changed meanwhile; look again/)
  await opening
  assert.notEqual(opening, undefined)
  assert.equal(existsSync(join(back, 'journal.jsonl')), false)
  assert.equal(await create(one!), 200)
})

test('nothing is copied beside a service, also where that has cut off the first request', async t => {
  const folder = await initialized(t)
  const [path, keyFile] = [join(folder, 'journal.jsonl'), join(folder, 'journal.key')]
  let asked = 0
  const service = createServer((request, response) => {
    if (++asked === 1) request.socket.destroy()
    else response.end(JSON.stringify({ pid: 1, path, keyFile, bytes: statSync(path).size, records: 1, head: '' }))
  })
  await once(service.listen(join(folder, 'held-1-aa.sock')), 'listening')
  t.after(() => service.close())
  for (let tries = 1; tries <= 2; tries++) {
    const { code, error } = await admin(folder, 'journal copy --to etcd')
    assert.deepEqual([code, /ECONNRESET|socket hang up|stop it first|cut the connection|another version/.test(error)], [1, true], error)
  }
})

test('a command that needs etcd and is not told where it is says so, and changes nothing', async t => {
  const folder = await initialized(t)
  await refused(folder, 'journal copy --to etcd', 1, /ETCD_ENDPOINTS must be set/)
  for (const words of ['journal copy --to file', 'journal reopen', 'journal remove /pes --from etcd --yes']) {
    await refused(folder, words, 2, /JOURNAL=etcd needs ETCD_ENDPOINTS/)
  }
  await done(folder, 'journal verify')
})
