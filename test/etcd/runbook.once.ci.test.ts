/** What the README has an operator do with a journal in etcd, walked right and walked wrong. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { admin, done, initialized, refused } from '../support/admin.ts'
import { base64, callEtcd, etcdMissing, fillUp, startCluster, startProxy } from '../support/etcd.ts'
import { create, faultOf, flagsOf, list, Rival, startInstances } from '../support/instances.ts'
import { failure, readSecret, writeKeys } from '../support/journal.ts'
import { freshFolder, send, startService } from '../support/service.ts'

const NO_ETCD = etcdMissing()

/** Copies the journal in etcd to where a folder's journal is; gives what is said of it. */
async function backup(folder: string, at: string): Promise<string> {
  const { code, out, error } = await admin(folder, `journal backup ${join(folder,
    'journal.jsonl')} --journal etcd ${at}`)
  assert.equal(code, 0, error)
  return out
}

describe('a journal in etcd is re-encrypted and moved', { concurrency: 2 }, () => {
  for (const isForgotten of [false, true]) {
    test(isForgotten ? 'with an instance forgotten, which loses nothing' : 'with all instances stopped',
      { skip: NO_ETCD },
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
        assert.match(await done(back, `journal close ${at}`), /^\/pes is closed: instances read, and take no changes\n/)
        assert.match(await backup(back, at), /^5 records, head [0-9a-f]{64}\n/)
        if (isForgotten) {
          assert.deepEqual([await create(two!), await list(two!)], [500, 200], 'what is not in the copy is refused')
          assert.match(faultOf(two!)!, /\/pes is closed since 2/)
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
        await assert.rejects(startService(t, { ...flags, data: one!.folder }),
          failure('journal-missing', /no key \/pes\.key/))
        const moved = await startService(t, { ...flags, 'etcd-prefix': '/pes-2' })
        assert.match(moved.warnings.join('\n'),
          /the service uses the journal \/pes-2 in etcd, and not .*journal\.jsonl\./)
        assert.equal((await send(moved.url, 'GET', '/api/listPassword')).text, listed)
        assert.equal(await create(moved), 200)
      })
  }
})

test('no journal is made or copied to a prefix that is not clean, and none is removed with what is not its own', {
  skip: NO_ETCD
}, async t => {
  const { endpoints } = await startCluster(t)
  const at = `--etcd-endpoints ${endpoints}`
  const put = (key: string): Promise<unknown> => callEtcd(endpoints, '/v3/kv/put',
    { key: base64(key), value: base64('theirs') })
  const [one] = await startInstances(t, endpoints, 1)
  for (let i = 0; i < 5; i++) assert.equal(await create(one!), 200)
  await one!.service.close()
  await put('/pes/0config')
  await done(one!.folder, `journal close ${at}`)
  await refused(one!.folder, `journal remove /pes --from etcd --yes ${at}`, 1,
    /\/pes lacks records, or has keys of another program among its 6/)
  await callEtcd(endpoints, '/v3/kv/deleterange', { key: base64('/pes/0config') })
  assert.equal(await done(one!.folder, `journal remove /pes --from etcd --yes ${at}`), '/pes: 5 records removed\n')

  await put('/other/0config')
  const why = /etcd has no key \/other\.key; but 1 keys where its records would be: .* if not, name another ETCD_PREFIX/
  await refused(one!.folder, `journal remove /other --from etcd --yes ${at}`, 1, why)
  await refused(one!.folder, `init --journal etcd --etcd-prefix /other ${at}`, 1, why)
  const folder = await initialized(t)
  await refused(folder, `journal copy --to etcd --etcd-prefix /other ${at}`, 1,
    /\/other holds other keys; nothing was copied/)
})

test('records whose marker is gone or damaged are removed by nobody', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const at = `--etcd-endpoints ${endpoints}`
  const [one] = await startInstances(t, endpoints, 1)
  for (let i = 0; i < 3; i++) assert.equal(await create(one!), 200)
  await one!.service.close()
  await callEtcd(endpoints, '/v3/kv/put', { key: base64('/pes.key'), value: base64('PRECIOUS') })
  await refused(one!.folder, `journal remove /pes --from etcd --yes ${at}`, 3,
    /the value of \/pes\.key in etcd is no marker/)
  await callEtcd(endpoints, '/v3/kv/deleterange', { key: base64('/pes.key') })
  await refused(one!.folder, `journal remove /pes --from etcd --yes ${at}`, 1,
    /no key \/pes\.key; but 3 keys where its records would be: if they are records, put the name/)
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
    assert.equal(error.split('\n')[0], expected, `${command}: ${error}`)
  }
  const isSet = '--journal etcd'
  for (const command of ['key rotate', 'key rewrite', 'journal compact', 'journal compact --drop-history']) {
    await says(one!.folder, `${command} ${isSet}`, shared)
  }
  await one!.service.close()
  await says(back, `journal close ${isSet}`, shared)
  await backup(back, `--etcd-endpoints ${endpoints}`)
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
  await refused(flags['data']!, `journal close ${at}`, 3, why)
  const { kvs: [{ value }] } = await callEtcd(endpoints, '/v3/kv/range', { key: base64('/pes.key') })
  assert.match(Buffer.from(value, 'base64').toString(), / begun$/)
  assert.equal(await done(flags['data']!, `journal remove /pes --from etcd --yes --etcd-endpoints ${endpoints}`),
    '/pes: 0 records removed\n')
  assert.match(await done(flags['data']!, `init ${at}`), /^journal \/pes \(made, empty\)/)
})

test('a closed journal is opened again as what it was: empty, or one whose records must be there', {
  skip: NO_ETCD
}, async t => {
  const { endpoints } = await startCluster(t)
  const flags = await flagsOf(t, endpoints, randomBytes(32))
  const data = flags['data']!
  const at = `--etcd-endpoints ${endpoints}`
  await done(data, `journal close ${at}`)
  assert.equal(await done(data, `journal reopen ${at}`), '/pes: instances may write to it again\n')
  await refused(data, `journal reopen ${at}`, 1, /\/pes is not closed/)
  const one = await startService(t, flags)
  assert.equal(await create(one), 200)
  await done(data, `journal close ${at}`)
  await refused(data, `journal close ${at}`, 1, /\/pes is closed already/)
  assert.deepEqual([await create(one), await list(one)], [500, 200])
  assert.match(faultOf(one)!, /is closed since/)
  const { code, error } = await admin(data, `journal verify --journal etcd ${at}`)
  assert.deepEqual([code, /the service takes no more changes: .*\/pes is closed since/.test(error)], [1, true], error)
  for (const _ of [1, 2]) await refused(data, `key rotate --journal etcd ${at}`, 1, /\/pes is closed since/)
  await refused(await initialized(t), `journal copy --to etcd ${at}`, 1,
    /^error: \/pes holds a journal, or another copy is made there; nothing was copied/)
  await done(data, `journal reopen ${at}`)
  assert.deepEqual([await create(one), faultOf(one)], [200, undefined])
  await one.service.close()
  await done(data, `journal close ${at}`)
  await callEtcd(endpoints, '/v3/kv/deleterange', { key: base64('/pes/'), range_end: base64('/pes0') })
  await refused(data, `journal reopen ${at}`, 3, /\/pes has no records in etcd, and its marker says that it had/)
  await assert.rejects(startService(t, flags), failure('journal-damaged', /and its marker says that it had/))
  const file = await initialized(t)
  await done(file, 'entry add --system s --user u --password-stdin', 'p')
  await done(file, `journal copy --to etcd --etcd-prefix /copied ${at}`)
  await callEtcd(endpoints, '/v3/kv/deleterange', { key: base64('/copied/'), range_end: base64('/copied0') })
  await assert.rejects(startService(t, { ...flags, data: file, 'etcd-prefix': '/copied' }),
    failure('journal-damaged', /and its marker says that it had/))
})

test('an etcd that is full is left by a backup, whose head lets the journal be removed', { skip: NO_ETCD }, async t => {
  const { endpoints, members: [member] } = await startCluster(t,
    { args: ['--quota-backend-bytes', String(4 * 1024 * 1024)] })
  const [one] = await startInstances(t, endpoints, 1)
  assert.equal(await create(one!), 200)
  const at = `--etcd-endpoints ${endpoints}`
  await fillUp(member!.url)
  await one!.service.close()
  await refused(one!.folder, `journal close ${at}`, 1, /space exceeded: compact and defragment it, or raise --quota/)
  const remove = `journal remove /pes --from etcd --yes ${at}`
  await refused(one!.folder, remove, 1,
    /\/pes is in use, 1 records, .* if etcd is full, make a backup and give its head/)
  await refused(one!.folder, `${remove} --head ${'0'.repeat(64)}`, 1,
    /does not end with a head given by --head; close it first/)
  const [, head] = /head ([0-9a-f]{64})/.exec(await backup(one!.folder, at))!
  assert.equal(await done(one!.folder, `${remove} --head ${head}`), '/pes: 1 records removed\n')
  const alone = await startService(t, { data: one!.folder })
  assert.equal(await list(alone), 200)
})

test('a command that a signal ends, or that etcd does not answer, says what it leaves behind, and may be repeated', {
  skip: NO_ETCD
}, async t => {
  const { endpoints } = await startCluster(t)
  const folder = await initialized(t)
  await done(folder, 'user add ana@example.org --password-stdin', 'a long password\n')
  const proxy = await startProxy(t, endpoints)
  const rows = [
    ['copy --to etcd', 'the copy may not be whole: then no instance takes it, and the same command starts it over'],
    ['close', '/pes may be closed, or not: journal verify says so, and the same command may be repeated'],
    ['reopen', '/pes may be open again, or not: journal verify says so, and the same command may be repeated'],
    ['remove /pes --from etcd --yes',
      '/pes may be removed, or not: journal verify says so, and the same command may be repeated']
  ] as const
  const isChange = (body: Buffer): boolean => /request_(put|delete_range)/.test(String(body))
  for (const [words, state] of rows) {
    if (words.startsWith('remove')) await done(folder, `journal close --etcd-endpoints ${endpoints}`)
    const reached = new Promise<void>(resolve => {
      proxy.before = body => {
        if (!isChange(body)) return
        resolve()
        return new Promise(() => {})
      }
    })
    const args = ['dist/admin.js', 'journal', ...words.split(' '), '--data', folder, '--etcd-endpoints', proxy.url]
    const child = spawn(process.execPath, args)
    const said = text(child.stderr)
    const exited = once(child, 'exit')
    await Promise.race([reached, exited.then(async () => assert.fail(`it asked for no change: ${await said}`))])
    child.kill('SIGINT')
    assert.deepEqual(await exited, [130, null])
    assert.match(await said, /ended by SIGINT: /)
    assert.ok((await said).includes(state), await said)
    proxy.before = body => { if (isChange(body)) proxy.isCut = true }
    const { code, error } = await admin(folder, `journal ${words} --etcd-endpoints ${proxy.url}`)
    assert.deepEqual([code, /cannot be reached: /.test(error)], [1, true], error)
    assert.ok(error.includes(`; ${state}`), error)
    proxy.isCut = false
    assert.match(await done(folder, `journal ${words} --etcd-endpoints ${endpoints}`), /^\/pes/)
  }
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
    assert.deepEqual([code, /ECONNRESET|socket hang up|stop it first|cut the connection|another version/.test(error)],
      [1, true], error)
  }
})

test('a command that needs etcd and is not told where it is says so, and changes nothing', async t => {
  const folder = await initialized(t)
  await refused(folder, 'journal copy --to etcd', 1, /ETCD_ENDPOINTS must be set/)
  for (const words of ['journal close', 'journal reopen', 'journal remove /pes --from etcd --yes']) {
    await refused(folder, words, 2, /JOURNAL=etcd needs ETCD_ENDPOINTS/)
  }
  await done(folder, 'journal verify')
})
