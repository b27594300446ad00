/** What happens to those who share a journal in etcd while members of it, or answers on the way, are missing. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { Accounts } from '../../src/accounts/accounts.ts'
import { done, refused } from '../support/admin.ts'
import { etcdMissing, pause, startCluster, startProxy } from '../support/etcd.ts'
import { assertCreatedOnce, assertEqual, assertLinearizable, faultOf, FIELDS, flagsOf, runClients, startInstances,
  until } from '../support/instances.ts'
import { send, startService } from '../support/service.ts'

const NO_ETCD = etcdMissing()

// They mostly wait.
describe('an outage', { concurrency: true }, () => {
  test('members die, are stopped and lose their leader: the histories are linearizable', { skip: NO_ETCD }, async t => {
    const { endpoints, members } = await startCluster(t, { members: 3 })
    const instances = await startInstances(t, endpoints, 3)
    for (let i = 0; i < 3; i++) await send(instances[i]!.url, 'POST', '/api/createPassword', FIELDS)
    const clients = runClients(instances.map(({ url }) => url), 2, 3, 8_000, 60)
    await pause(500)
    members[0]!.pause() // all instances ask it first
    await pause(3_500)
    members[0]!.resume()
    await members[1]!.stop()
    await pause(1_500)
    members[1]!.start()
    await members[2]!.stop()
    await pause(500)
    members[2]!.start()
    const seen = await clients
    t.diagnostic(JSON.stringify(seen.counts))
    assert.ok(seen.counts.acknowledged > 5 && seen.counts.read > 5) // a loaded machine makes few
    assertLinearizable(seen)
    await assertEqual(instances)
    await assertCreatedOnce(seen, instances[0]!.url)
  })

  test('without a majority reads are 503, or stale where that is asked for; writes 500', { skip: NO_ETCD }, async t => {
    const { endpoints, members } = await startCluster(t, { members: 3 })
    const secret = randomBytes(32)
    const strict = await startService(t, await flagsOf(t, endpoints, secret))
    const stale = await startService(t, { ...await flagsOf(t, endpoints, secret), 'stale-reads': 'on' })
    await send(strict.url, 'POST', '/api/createPassword', FIELDS)
    await send(stale.url, 'GET', '/api/getPassword/1')
    await members[0]!.stop()
    members[1]!.pause()
    const beganMs = performance.now()
    const [read, made, changed, old] = await Promise.all([
      send(strict.url, 'GET', '/api/getPassword/1'), send(strict.url, 'POST', '/api/createPassword', FIELDS),
      send(strict.url, 'POST', '/api/updatePassword/1', { password: 'x' }), send(stale.url, 'GET', '/api/getPassword/1')
    ])
    assert.ok(performance.now() - beganMs < 14_000, 'within bounds')
    assert.deepEqual([read.status, read.headers.get('Retry-After')], [503, '1'])
    assert.deepEqual([made.status, made.json.message], [500, 'Error creating password'])
    assert.deepEqual([changed.status, changed.json.message], [500, 'Error updating password'])
    assert.deepEqual([old.status, old.json.passwords.password], [200, 'first'])
    const againMs = performance.now()
    assert.equal((await send(stale.url, 'GET', '/api/getPassword/1')).status, 200)
    assert.ok(performance.now() - againMs < 3_500, 'a stale read does not wait while it is known that etcd is gone')
    assert.match(strict.service.store.journal.status().fault!, /^the journal cannot be reached: /)
    const unasked = await Promise.all(['livez', 'healthz', 'openapi.json', 'metrics'].map(async path =>
      (await fetch(`${strict.url}/${path}`)).status))
    assert.deepEqual(unasked, [200, 503, 200, 200], 'what tells nothing of the journal needs no etcd')
    members[0]!.start()
    members[1]!.resume()
    while ((await send(strict.url, 'GET', '/api/getPassword/1')).status !== 200) await pause(50)
    assert.equal((await send(strict.url, 'POST', '/api/updatePassword/1', { password: 'y' })).status, 200)
    // until then it answers what it knows
    while (stale.service.store.journal.status().fault !== undefined) await pause(50)
    await assertEqual([strict, stale])
    for (const { warnings } of [strict, stale]) { // what was missing with the key file is said before
      const [began, ended, ...more] = warnings.filter(line => /^the journal takes/.test(line))
      assert.match(began!, /^the journal takes no changes at the moment: the journal cannot be reached: http:/)
      assert.deepEqual([ended, more], ['the journal takes changes again', []])
    }
  })

  test('in an outage STALE_READS answers tokens that are known, 503 to others, and no login or logout leaves a line', {
    skip: NO_ETCD
  }, async t => {
    const { members: [member] } = await startCluster(t)
    const proxy = await startProxy(t, member!.url)
    proxy.hidesChanges = true
    const secret = randomBytes(32)
    const one = await startService(t, { ...await flagsOf(t, member!.url, secret), auth: 'bearer' })
    const [email, password] = ['ana@example.org', 'a long password']
    await one.service.accounts!.addUser(email, 'Ana', ['*'], password)
    const issue = async (): Promise<string> => (await one.service.accounts!.issue(email, undefined, undefined))!.token
    const known = await issue()
    const stale = await startService(t, { ...await flagsOf(t, proxy.url, secret), auth: 'bearer', 'stale-reads': 'on' })
    const ask = async (path: string, token: string): Promise<number> =>
      (await fetch(`${stale.url}/api/${path}`, { method: path === 'logout' ? 'POST' : 'GET',
        headers: { Authorization: `Bearer ${token}` } })).status
    proxy.treat = () => 'request lost'
    assert.equal((await send(stale.url, 'POST', '/api/login', { email, password })).status, 500,
      'it may have been done')
    const fresh = await issue()
    proxy.isCut = true
    assert.deepEqual(await Promise.all([ask('listPassword', known), ask('listPassword', fresh), ask('logout', known)]),
      [404, 503, 500])
    proxy.isCut = false
    proxy.treat = () => 'passed'
    await until(() => faultOf(stale) === undefined)
    await done(one.folder, `journal close --etcd-endpoints ${member!.url}`)
    assert.equal((await send(stale.url, 'POST', '/api/login', { email, password })).status, 500)
    assert.deepEqual([await ask('logout', fresh), await ask('listPassword', fresh)], [500, 404])
    assert.deepEqual(stale.warnings.filter(line => /^request /.test(line)), [])
  })

  test('an outage is over once etcd answers any request', { skip: NO_ETCD }, async t => {
    const { members: [member] } = await startCluster(t)
    const deaf = await startProxy(t, member!.url)
    deaf.hidesChanges = true
    const proxy = await startProxy(t, member!.url)
    const secret = randomBytes(32)
    const other = await startService(t, await flagsOf(t, member!.url, secret))
    await send(other.url, 'POST', '/api/createPassword', FIELDS)
    const stale = await startService(t, { ...await flagsOf(t, deaf.url, secret), 'stale-reads': 'on' })
    const unasked = await startService(t, await flagsOf(t, proxy.url, secret))
    deaf.treat = proxy.treat = () => 'request lost'
    const failed = await Promise.all([stale, unasked].map(({ url }) =>
      send(url, 'POST', '/api/updatePassword/1', { password: 'x' })))
    assert.deepEqual(failed.map(({ status }) => status), [500, 500])
    for (const { service } of [stale, unasked]) assert.notEqual(service.store.journal.status().fault, undefined)
    assert.equal((await send(other.url, 'POST', '/api/updatePassword/1', { password: 'y' })).status, 200)
    // May be old still, but has etcd asked.
    while ((await send(stale.url, 'GET', '/api/getPassword/1')).json.passwords.password !== 'y') await pause(50)
    await until(() => [stale, unasked].every(one => faultOf(one) === undefined))
  })

  test('a command whose change may have been made is told so, and does not make it again', {
    skip: NO_ETCD
  }, async t => {
    const { members: [member] } = await startCluster(t)
    const proxy = await startProxy(t, member!.url)
    proxy.hidesChanges = true
    const one = await startService(t, await flagsOf(t, proxy.url, randomBytes(32)))
    await new Accounts(one.service.store).addUser('ana@example.org', 'Ana', [], 'a long password')
    // Nothing else may get through: a read, as when a silent watch begins anew, would find the change made.
    proxy.treat = () => { proxy.isCut = true; return 'answer lost' }
    await refused(one.folder, 'token issue ana@example.org', 1,
      /the journal cannot be reached: .* the change may have been made, or may still be: look \(journal show\) before/)
    proxy.treat = () => 'passed'
    proxy.isCut = false
    assert.equal((await done(one.folder, 'token list')).split('\n').length, 3, 'the header and one line')
  })
})
