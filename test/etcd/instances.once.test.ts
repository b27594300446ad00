/** Several instances on one journal in etcd: what one acknowledges, all others show from then on. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { cpSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Failure } from '../../src/errors.ts'
import { openService } from '../../src/embedding/embedded-service.ts'
import { fillEtcd } from '../../src/parts/etcd/copy.ts'
import { admin, done, refused } from '../support/admin.ts'
import { base64, callEtcd, etcdMissing, fillUp, makeRoom, pause, startCluster, startProxy } from '../support/etcd.ts'
import { create, faultOf, FIELDS, flagsOf, list, settingsOf, startInstances, startPair,
  until } from '../support/instances.ts'
import { failure, keyName, readSecret, writeKeys } from '../support/journal.ts'
import { atEnd, freshFolder, send, startService, type Started } from '../support/service.ts'
import { createEntry, deleteEntry, restoreEntry, updateEntry } from '../../src/entries/entry-commands.ts'

const NO_ETCD = etcdMissing()

test('a full quota fails writes with 500, shows in health, and heals', { skip: NO_ETCD }, async t => {
  const quota = 4 * 1024 * 1024
  const { endpoints, members: [member] } = await startCluster(t, { args: ['--quota-backend-bytes', String(quota)] })
  const [one] = await startInstances(t, endpoints, 1)
  await send(one!.url, 'POST', '/api/createPassword', FIELDS)
  await fillUp(member!.url)
  const fullMs = Date.now()
  const refusal = await send(one!.url, 'POST', '/api/createPassword', FIELDS)
  assert.deepEqual([refusal.status, refusal.json.message], [500, 'Error creating password'])
  assert.match(one!.service.store.journal.status().fault!, /database space exceeded/)
  assert.match((await send(one!.url, 'GET', '/healthz')).json.message, /full: changes fail until there is room/)
  const { fullSince = 0 } = one!.service.store.journal.status()
  assert.ok(fullMs <= fullSince && fullSince <= Date.now())
  const started = await startService(t, await flagsOf(t, endpoints, readSecret(one!.folder)))
  for (const { url } of [one!, started]) {
    assert.equal((await send(url, 'GET', '/api/getPassword/1')).status, 200, 'reads go on, also of who starts now')
  }
  assert.equal((await send(one!.url, 'GET', '/healthz')).status, 503)
  await makeRoom(member!.url)
  await until(() => faultOf(one!) === undefined) // without a change: a load balancer sends none while health is 503
  assert.equal((await send(one!.url, 'GET', '/healthz')).status, 200)
  assert.equal((await send(one!.url, 'POST', '/api/createPassword', FIELDS)).status, 200)
  assert.equal(one!.service.store.journal.status().fault, undefined)
  const metrics = await (await fetch(`${one!.url}/metrics`)).text()
  assert.match(metrics, /^pes_journal_write_duration_seconds_count 3$/m)
  assert.match(metrics, /^pes_journal_write_errors_total 1$/m)
  const reported = one!.warnings.filter(line => /^the journal takes/.test(line))
  assert.deepEqual(reported.map(line => line.replace(/: .*space exceeded: .*alarm disarm\)/, '')), [
    'the journal takes no changes at the moment', 'the journal takes changes again'
  ])
})

test('a closed service asks etcd nothing more, also where it was asking whether changes are taken again', {
  skip: NO_ETCD
}, async t => {
  const { members: [member] } = await startCluster(t, { args: ['--quota-backend-bytes', String(4 * 1024 * 1024)] })
  const proxy = await startProxy(t, member!.url)
  const one = await startService(t, await flagsOf(t, proxy.url, randomBytes(32)))
  await fillUp(member!.url)
  const asked = new Promise<void>(resolve => {
    proxy.before = body => {
      if (!body.includes('"mod_revision":"0"')) return
      proxy.isCut = true
      resolve()
    }
  })
  assert.equal(await create(one), 500)
  await asked
  await pause(20) // by then it waits before it asks again
  await one.service.close()
  await pause(200) // what was on its way has come
  proxy.before = () => {}
  proxy.isCut = false
  const { requests } = proxy
  await pause(3_000)
  assert.equal(proxy.requests, requests)
})

test('a change that is larger than etcd takes fails alone', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const { url } = await startService(t, { ...await flagsOf(t, endpoints, randomBytes(32)),
    'max-body-bytes': '8000000' })
  const create = (bytes: number): Promise<number> =>
    send(url, 'POST', '/api/createPassword', { ...FIELDS, password: 'x'.repeat(bytes) }).then(({ status }) => status)
  const sizes = [900_000, 1, 2_000_000, 900_000, 2, 700_000]
  assert.deepEqual(await Promise.all(sizes.map(create)), [200, 200, 500, 200, 200, 200])
  const { json } = await send(url, 'GET', '/api/listPassword')
  assert.equal(json.length, 5)
})

test('a journal that was deleted from etcd is not begun again while instances have it open', {
  skip: NO_ETCD
}, async t => {
  const { endpoints, members: [member] } = await startCluster(t)
  const secret = randomBytes(32)
  const start = async (): Promise<Started> => startService(t, await flagsOf(t, endpoints, secret))
  const [one, other] = [await start(), await start()]
  await send(one.url, 'POST', '/api/createPassword', FIELDS)
  assert.equal((await send(other.url, 'GET', '/api/getPassword/1')).status, 200)
  const [key, range_end] = ['/pes/', '/pes0'].map(text => Buffer.from(text).toString('base64'))
  await callEtcd(member!.url, '/v3/kv/deleterange', { key, range_end })
  assert.equal((await send(one!.url, 'POST', '/api/createPassword', FIELDS)).status, 500)
  for (const tries of [1, 2]) assert.equal((await send(other!.url, 'GET', '/api/getPassword/1')).status, 503,
    `${tries}`)
  assert.match((await send(other!.url, 'GET', '/healthz')).json.message, /at the moment/)
  assert.match(one!.service.store.journal.status().fault!, /no longer in etcd/)
  assert.match(other!.warnings.join(),
    /takes no changes at the moment: the journal is damaged: \/pes: its newest record is no longer in etcd/)
  assert.equal((await callEtcd(member!.url, '/v3/kv/range', { key, range_end })).kvs, undefined,
    'nothing was put there')
  await assert.rejects(start(), failure('journal-damaged', /\/pes has no records in etcd, and its marker says that it/))
})

test('a prefix without a journal is refused, and named; init makes one, still empty after close and reopen', {
  skip: NO_ETCD
}, async t => {
  const { endpoints } = await startCluster(t)
  const flags: Record<string, string> = { ...await flagsOf(t, endpoints, randomBytes(32)), 'etcd-prefix': '/pse' }
  const why = /^there is no journal: etcd has no key \/pse\.key; if ETCD_PREFIX is right, the command init makes/
  await assert.rejects(startService(t, flags), failure('journal-missing', why))
  const at = `--journal etcd --etcd-endpoints ${endpoints} --etcd-prefix /pse`
  for (const words of ['journal verify', 'user add a@x --password-stdin']) {
    await refused(flags['data']!, `${words} ${at}`, 1, /etcd has no key \/pse\.key/, 'a long password')
  }
  for (const what of ['made, empty', 'found, 0 records']) {
    assert.match(await done(flags['data']!, `init ${at}`), new RegExp(`^journal +/pse \\(${what}\\)\n`))
  }
  for (const words of ['journal close', 'journal reopen']) await done(flags['data']!, `${words} ${at}`)
  const { url, service } = await startService(t, flags)
  assert.equal((await send(url, 'POST', '/api/createPassword', FIELDS)).status, 200)
  await service.close()
  await startService(t, flags)
})

test('a snapshot that is restored under a paused instance is noticed, even at the same revision', { skip: NO_ETCD },
  async t => {
    const { members: [member], ready } = await startCluster(t)
    const secret = randomBytes(32)
    const proxy = await startProxy(t, member!.url)
    proxy.hidesChanges = true
    const paused = await startService(t, await flagsOf(t, proxy.url, secret))
    const next = await flagsOf(t, member!.url, secret)
    assert.equal((await send(paused.url, 'POST', '/api/createPassword', FIELDS)).status, 200)
    await member!.stop('SIGTERM')
    cpSync(member!.folder, `${next['data']}/snapshot`, { recursive: true })
    member!.start()
    await ready()
    assert.equal((await send(paused.url, 'POST', '/api/createPassword', { ...FIELDS, password: 'lost' })).status, 200)
    const head = async (): Promise<[string, string]> => {
      const { header, kvs } = await callEtcd(member!.url, '/v3/kv/range', {
        key: base64('/pes/'), range_end: base64('/pes0'), sort_order: 'DESCEND', limit: 1
      })
      return [header.revision, kvs[0].mod_revision]
    }
    const before = await head()
    proxy.isCut = true
    await member!.stop('SIGTERM')
    rmSync(member!.folder, { recursive: true })
    cpSync(`${next['data']}/snapshot`, member!.folder, { recursive: true })
    member!.start()
    await ready()
    const other = await startService(t, next)
    assert.equal((await send(other.url, 'POST', '/api/createPassword', { ...FIELDS, password: 'kept' })).status, 200)
    const fork = await head()
    // Not the newest revision: where the first answer came late, the change was asked for again, which takes a turn.
    assert.equal(fork[1], before[1], 'the fork is where the lost record was')
    proxy.isCut = false
    assert.equal((await send(paused.url, 'GET', '/api/getPassword/2')).status, 503)
    assert.equal((await send(paused.url, 'POST', '/api/createPassword', FIELDS)).status, 500)
    assert.match(paused.service.store.journal.status().fault!, /no longer in etcd, or is another one/)
    assert.deepEqual(await head(), fork, 'nothing was put onto the fork')
    assert.equal((await send(other.url, 'GET', '/api/getPassword/2')).json.passwords.password, 'kept')
  })

test('what stands in an etcd emptied under an instance is told from its journal, and taken once it is that again', {
  skip: NO_ETCD
}, async t => {
  const { members: [member], ready } = await startCluster(t)
  const proxy = await startProxy(t, member!.url)
  const secret = randomBytes(32)
  const one = await startService(t, await flagsOf(t, proxy.url, secret))
  for (let i = 0; i < 3; i++) assert.equal(await create(one), 200)
  const { kvs: old } = await callEtcd(member!.url, '/v3/kv/range',
    { key: base64('/pes.key'), range_end: base64('/pes0') })
  await member!.stop('SIGTERM')
  rmSync(member!.folder, { recursive: true })
  member!.start()
  await ready()
  await callEtcd(member!.url, '/v3/kv/put', { key: base64('/pes.key'), value: base64(keyName(secret)) })
  const { kvs: [made] } = await callEtcd(member!.url, '/v3/kv/range', { key: base64('/pes.key') })
  assert.ok(Number(made.mod_revision) < Number(old[0].mod_revision))
  await until(() => /newest record is no longer in etcd, or is another one/.test(faultOf(one) ?? ''))
  const { requests } = proxy
  assert.deepEqual([await list(one), await create(one)], [503, 500])
  assert.ok(proxy.requests - requests < 30, `${proxy.requests - requests} requests`)
  const success = old.map(({ key, value }: { key: string, value: string }) => ({ request_put: { key, value } }))
  await callEtcd(member!.url, '/v3/kv/txn', { success })
  await until(() => faultOf(one) === undefined)
  // And once more, with another marker that has the same revision by chance.
  const marker = { key: base64('/pes.key'), value: base64(`${keyName(secret)} copied again`) }
  const { kvs: [{ mod_revision: revision }] } = await callEtcd(member!.url, '/v3/kv/range', { key: marker.key })
  await member!.stop('SIGTERM')
  rmSync(member!.folder, { recursive: true })
  member!.start()
  await ready()
  for (let at = 1; at < Number(revision) - 1; at++) await callEtcd(member!.url, '/v3/kv/put', { key: base64('x') })
  const copied = success.filter(({ request_put: { key } }: { request_put: { key: string } }) => key !== marker.key)
  const { header } = await callEtcd(member!.url, '/v3/kv/txn', { success: [...copied, { request_put: marker }] })
  assert.equal(header.revision, revision)
  let status = 0
  await until(() => { void list(one).then(found => { status = found }); return status === 200 })
})

test('a compaction and a restart do not break the watch off', { skip: NO_ETCD }, async t => {
  const { endpoints, members: [member], ready } = await startCluster(t)
  const [one, other] = await startInstances(t, endpoints, 2)
  const followed = async (entries: number): Promise<void> => { // nobody reads: the watch alone brings it
    const endMs = performance.now() + 20_000
    while (other!.service.store.state.entries.count < entries && performance.now() < endMs) await pause(20)
    assert.equal(other!.service.store.state.entries.count, entries)
  }
  for (let i = 1; i <= 3; i++) await send(one!.url, 'POST', '/api/createPassword', FIELDS)
  await followed(3)
  await member!.stop('SIGTERM')
  member!.start()
  await ready()
  assert.equal(await create(one!), 200)
  const { header } = await callEtcd(member!.url, '/v3/kv/range', { key: 'AA==' })
  await callEtcd(member!.url, '/v3/kv/compaction', { revision: header.revision })
  await followed(4)
})

test('a decision that comes to no change was made on the newest state', { skip: NO_ETCD }, async t => {
  const { near: one, behind: other } = await startPair(t)
  const { id } = await createEntry(one.service.store, FIELDS, null)
  assert.equal(await deleteEntry(other.service.store, id, null), true, 'the entry is known to it')
  await restoreEntry(one.service.store, id, null)
  assert.equal(await deleteEntry(other.service.store, id, null), true)
  assert.equal((await send(one.url, 'GET', '/api/listPassword')).status, 404, 'and was deleted again')
})

test('an embedder sees users, tokens and entries that another instance has just made, and changes them', {
  skip: NO_ETCD
}, async t => {
  const { members: [member] } = await startCluster(t)
  const proxy = await startProxy(t, member!.url)
  proxy.hidesChanges = true
  const flags = await flagsOf(t, member!.url, randomBytes(32))
  const one = await startService(t, { ...flags, auth: 'bearer' })
  await one.service.accounts!.addUser('ana@example.org', 'Ana', ['*'], 'a long password')
  const dataDir = freshFolder(t)
  writeKeys(dataDir, readSecret(one.folder))
  const { accounts, listPassword, getPassword, updatePassword, close } = await openService({
    dataDir, journal: 'etcd', etcdEndpoints: proxy.url, auth: 'bearer', page: false,
    log: { info: () => {}, warn: () => {} }
  })
  atEnd(t, close)
  await one.service.accounts!.addUser('bo@example.org', 'Bo', ['*'], 'a long password')
  assert.deepEqual((await accounts.users()).map(({ email }) => email), ['ana@example.org', 'bo@example.org'])
  await one.service.accounts!.issue('ana@example.org', undefined, undefined)
  const [{ id } = { id: '' }] = await accounts.tokens()
  assert.equal(await accounts.revokeToken({ id }), true)
  assert.deepEqual(await accounts.tokens(), [])
  assert.equal(await accounts.revokeToken({ id }), false)
  await createEntry(one.service.store, FIELDS, null)
  assert.equal((await listPassword()).length, 1)
  const made = await createEntry(one.service.store, FIELDS, null)
  assert.equal((await getPassword(made.id))?.id, made.id)
  const changed = await updateEntry(one.service.store, made.id, { password: 'other' }, null)
  assert.equal((await updatePassword(made.id, { usuario: 'v' }, { ifUnchanged: changed! }))?.password, 'other')
})

test('what one instance revokes, no other takes from then on', { skip: NO_ETCD }, async t => {
  const { proxy, near: one, behind: other } = await startPair(t, { auth: 'bearer' }) // the watch is not what tells it
  await one.service.accounts!.addUser('ana@example.org', 'Ana', ['*'], 'a long password')
  const users = await done(other.folder, `user list --journal etcd --etcd-endpoints ${proxy.url}`)
  assert.match(users, /ana@example\.org/, 'the operator is told what is true by now, too')
  const ask = (url: string, path: string, token: string, body?: object): Promise<number> =>
    fetch(`${url}/api/${path}`, {
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...body !== undefined && { method: 'POST', body: JSON.stringify(body) }
  }).then(({ status }) => status)
  for (const [path, body, known] of [
    ['listPassword', undefined, 404], ['createPassword', FIELDS, 200], ['updatePassword/1', { usuario: 'v' }, 200],
    ['listPassword', undefined, 200], ['deletePassword/1', {}, 200]
  ] as const) {
    const issued = await one.service.accounts!.issue('ana@example.org', undefined, undefined)
    assert.equal(await ask(other.url, path, issued!.token, body), known, `${path}: known at once`)
    await ask(one.url, 'logout', issued!.token, {})
    assert.equal(await ask(other.url, path, issued!.token, body), 401, `${path}: and refused at once`)
  }
})

test('a key that is not the one of the others is refused at the start, even of an empty journal', { skip: NO_ETCD },
  async t => {
    const { endpoints } = await startCluster(t)
    const first = await flagsOf(t, endpoints, randomBytes(32))
    const one = await startService(t, first)
    const start = async (): Promise<unknown> => startService(t, await flagsOf(t, endpoints, randomBytes(32)))
    await assert.rejects(start(), failure('key-unknown', /has no key [0-9a-f]{8}; copy the key file/))
    await send(one.url, 'POST', '/api/createPassword', FIELDS)
    await assert.rejects(start(), failure('key-unknown', /has no key [0-9a-f]{8}/))
    const keyless = { ...first, data: freshFolder(t) }
    await assert.rejects(startService(t, keyless), failure('key-missing'))
    await assert.rejects(startService(t, { ...first, data: freshFolder(t), 'etcd-endpoints': 'http://192.0.2.1:2379' }),
      error => error instanceof Failure && /ETCD_PLAIN_HTTP=on/.test(error.message))
  })

test('a journal grows from a folder into etcd and returns; commands work on either', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const folder = freshFolder(t)
  await done(folder, 'init')
  await done(folder, 'user add ana@example.org --password-stdin', 'a long password\n')
  const before = await startService(t, { data: folder })
  await Promise.all(Array.from({ length: 300 }, (_, i) =>
    createEntry(before.service.store, { ...FIELDS, password: `${i}` }, null)))
  await send(before.url, 'POST', '/api/deletePassword/7')
  const at = ` --etcd-endpoints ${endpoints}`
  await refused(folder, `journal copy --to etcd${at}`, 1, /stop it first/)
  await before.service.close()
  const verified = await done(folder, 'journal verify')
  assert.match(await done(folder, `journal copy --to etcd${at}`), /^\/pes: 303 records, head [0-9a-f]{64}\n$/)
  await refused(folder, `journal copy --to etcd${at}`, 1, /holds a journal/)
  const broken = function * (): Generator<string> {
    yield * whole.slice(0, 200)
    throw new Error('broken off')
  }
  const place = settingsOf(endpoints, '/broken')
  const whole = readFileSync(join(folder, 'journal.jsonl'), 'latin1').trimEnd().split('\n')
  const otherwise = (): Promise<void> => Promise.reject(new Error('reads otherwise'))
  rmSync(join(folder, 'journal.jsonl')) // as the README says; a start would name it
  const name = keyName(readSecret(folder))
  for (const [lines, why] of [[broken(), /broken off/], [whole, /reads otherwise/]] as const) {
    await assert.rejects(fillEtcd(place, name, lines, otherwise), why)
    await assert.rejects(startService(t, { ...await flagsOf(t, endpoints, readSecret(folder)),
      'etcd-prefix': '/broken' }),
      failure('journal-damaged', /\/broken: .* is incomplete/))
  }
  await fillEtcd(place, name, whole, async () => {})
  await assert.rejects(fillEtcd(place, '0badcafe', whole, otherwise),
    /^Error: \/broken holds a journal.* nothing was copied/)
  const again = await startService(t, { ...await flagsOf(t, endpoints, readSecret(folder)), 'etcd-prefix': '/broken' })
  assert.equal(again.service.store.journal.status().records, whole.length)
  const inEtcd = `${at} --journal etcd`
  assert.equal(await done(folder, `journal verify${inEtcd}`), verified)
  const instance = await startService(t, { data: folder, 'journal': 'etcd', 'etcd-endpoints': endpoints })
  assert.equal(await done(folder, `journal verify${inEtcd}`), verified, 'beside an instance')
  assert.equal((await send(instance.url, 'GET', '/api/listPassword')).json.length, 299)
  await done(folder, `entry restore 7${inEtcd}`)
  assert.equal((await send(instance.url, 'GET', '/api/listPassword')).json.length, 300)
  assert.match(await done(folder, `entry history 7 --reveal${inEtcd}`), /entry\.created.*"6"[^]*entry\.restored/)
  const back = freshFolder(t)
  writeKeys(back, readSecret(folder))
  const inOrder = await done(folder, `journal verify${inEtcd}`)
  await done(back, `journal close${inEtcd}`)
  assert.match((await admin(back, `journal backup ${join(back, 'journal.jsonl')}${inEtcd}`)).out, /^305 records/)
  assert.equal(await done(back, 'journal verify'), inOrder)
  const { code, error } = await admin(folder, `journal verify${inEtcd}`)
  assert.deepEqual([code, /\/pes is closed since/.test(error)], [1, true], error)
  await refused(back, 'journal copy --to file', 2, /--to must be etcd; from etcd into a file: journal close, then/)
  const after = await startService(t, { data: back })
  assert.equal((await send(after.url, 'GET', '/api/listPassword')).json.length, 300)
})
