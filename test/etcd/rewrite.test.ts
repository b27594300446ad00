/** What a rewrite of the journal in etcd leaves that fails, is killed, or meets another one. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import { EtcdClient } from '../../src/etcd/client.ts'
import { EtcdLog } from '../../src/etcd/log.ts'
import { rewriteEtcd } from '../../src/etcd/rewrite.ts'
import { Failure } from '../../src/errors.ts'
import type { DurableJournal } from '../../src/journal/journal.ts'
import { keyring } from '../../src/journal/keys.ts'
import { admin, refused } from '../support/admin.ts'
import {
  base64, callEtcd, etcdMissing, fillUp, makeRoom, pause, startCluster, startProxy, type Treatment
} from '../support/etcd.ts'
import { create, faultOf, FIELDS, flagsOf, keysIn, list, startInstances, until } from '../support/instances.ts'
import { failure } from '../support/journal.ts'
import { startProgram } from '../support/program.ts'
import { send, startService, type Started } from '../support/service.ts'

const NO_ETCD = etcdMissing()

test('a rewrite that fails is undone; one that is killed is finished by the next', { skip: NO_ETCD }, async t => {
  const { members: [member] } = await startCluster(t)
  const proxy = await startProxy(t, member!.url)
  const secret = randomBytes(32)
  const other = await startService(t, flagsOf(t, member!.url, secret))
  await Promise.all(Array.from({ length: 400 }, () => other.service.store.createEntry(FIELDS, null)))
  const program = await startProgram(t, { flags: flagsOf(t, proxy.url, secret) })

  proxy.treat = async (n): Promise<Treatment> => { // the first one begins the copy
    if (n === 3) await callEtcd(member!.url, '/v3/kv/put', { key: base64('/pes-2.key'), value: base64('a copying') })
    return 'passed'
  }
  await refused(program.folder, 'key rewrite --to-prefix /pes-2', 1, /another copy is made there/)
  assert.deepEqual([await create(other), faultOf(other)], [200, undefined])

  const first = proxy.appends
  proxy.treat = async (n): Promise<Treatment> => {
    if (n === first + 3) await program.kill()
    return 'passed'
  }
  assert.equal((await admin(program.folder, 'key rewrite --to-prefix /pes-2')).code, 1)
  assert.deepEqual([await create(other), await list(other)], [500, 200])
  assert.match(faultOf(other)!, /\/pes is being sealed anew in \/pes-2; if that was broken off, run key rewrite/)
  const moved = { ...flagsOf(t, member!.url, secret), 'etcd-prefix': '/pes-2' }
  await assert.rejects(startService(t, moved), failure('journal-damaged', /\/pes-2: a copy into it is not finished/))
  const late = await startService(t, flagsOf(t, member!.url, secret))
  await until(() => late.warnings.length > 1)
  assert.match(late.warnings.at(-1)!, /no changes at the moment: the journal is moved: \/pes is being sealed anew/, 'who starts now says so as well')
  await late.service.close()
  await other.service.close() // nobody runs: the command opens the journal by itself
  proxy.treat = n => n % 2 === 0 ? 'answer lost' : 'passed'
  const again = `key rewrite --to-prefix /pes-2 --journal etcd --etcd-endpoints ${proxy.url}`
  assert.equal((await admin(other.folder, again)).code, 0)
  assert.equal((await keysIn(member!.url, '/pes-2')).length, 401)
  const restarted = await startService(t, moved)
  assert.equal((await send(restarted.url, 'GET', '/api/listPassword')).json.length, 401)
})

const KEYS = keyring([randomBytes(32)])

/** Rewrites an empty journal, and loses what it is told to. */
class Rewriting extends EtcdClient {
  readonly source = new EtcdLog(this, '/pes')
  readonly target = new EtcdLog(this, '/pes-2')
  readonly closing = new AbortController()
  /** A part of what the request puts whose answer is lost; empty: none. */
  lost = ''
  /** Whether etcd does not get it either, before it is released. */
  isLate = false
  isCutOff = false
  release = async (): Promise<void> => {}

  constructor(t: TestContext, endpoint: string) {
    super({ endpoints: [endpoint] })
    t.after(() => { this.closing.abort(); this.close() })
  }

  override async ask(...request: Parameters<EtcdClient['ask']>): Promise<any> {
    const away = new Failure('journal-unreachable', 'lost')
    if (this.isCutOff) throw away
    const puts = JSON.stringify(request[1]).matchAll(/"value":"([^"]*)"/g)
    const isLost = this.lost !== '' && [...puts].some(([, value]) => atob(value!).includes(this.lost))
    if (!isLost) return super.ask(...request)
    if (this.isLate) this.release = async () => { await super.ask(...request) }
    else await super.ask(...request)
    this.lost = ''
    throw away
  }

  async rewrite(): Promise<void> {
    const marker = await this.source.agree(KEYS.newest.name, 1_000)
    await rewriteEtcd({
      source: this.source, target: this.target, marker, keys: KEYS, records: 0, nonce: () => randomBytes(12),
      onProgress: () => {}, signal: this.closing.signal
    })
  }

  /** What both markers say. */
  async says(): Promise<(string | undefined)[]> {
    const markers = await Promise.all([this.source, this.target].map(log => log.look(1_000)))
    return markers.map(marker => marker?.text.replace(KEYS.newest.name, 'a'))
  }
}

test('a rewrite whose answer is lost leaves no fence, now or later', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const cases = [
    [' moving ', false, ['a', 'a copying']], [' moving ', true, ['a', 'a copying']], [' moved ', true, ['a', 'a copying']]
  ] as const
  const client = new Rewriting(t, endpoints)
  for (const [lost, isLate, left] of cases) {
    Object.assign(client, { lost, isLate })
    await assert.rejects(client.rewrite(), failure('journal-unreachable'))
    assert.deepEqual(await client.says(), left, `${lost}, ${isLate}`)
    await client.release()
    assert.deepEqual(await client.says(), left, `${lost}, ${isLate}, later`)
  }
  Object.assign(client, { lost: ' moved ', isLate: false })
  await assert.rejects(client.rewrite(), failure('journal-unreachable'))
  const [here, there] = await client.says()
  assert.match(here!, /^a moved \/pes-2 /, 'what has moved is not taken back')
  assert.equal(there, 'a')
})

test('a fence that could not be taken back is taken back once etcd answers', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const client = new Rewriting(t, endpoints)
  const observer = new Rewriting(t, endpoints)
  client.target.append = client.target.after = async () => {
    client.isCutOff = true
    throw new Failure('journal-unreachable', 'lost')
  }
  await assert.rejects(client.rewrite(), failure('journal-unreachable'))
  await pause(1_200)
  assert.match((await observer.says())[0]!, /^a moving /)
  client.isCutOff = false
  let says: (string | undefined)[] = []
  const timer = setInterval(() => void observer.says().then(found => { says = found }), 50)
  await until(() => says[0] === 'a')
  clearInterval(timer)
  assert.deepEqual(says, ['a', 'a copying'])
})

test('a rewrite that fills etcd up warns, and lets changes go on once there is room', { skip: NO_ETCD }, async t => {
  const { members: [member] } = await startCluster(t, { args: ['--quota-backend-bytes', String(4 * 1024 * 1024)] })
  const proxy = await startProxy(t, member!.url)
  const [one, other] = await startInstances(t, proxy.url, 2) as [Started, Started]
  assert.equal(await create(one), 200)
  const begun = proxy.appends + 1
  proxy.treat = async (n): Promise<Treatment> => {
    if (n === begun + 1) await fillUp(member!.url)
    return 'passed'
  }
  await refused(one.folder, 'key rewrite --to-prefix /pes-2', 1, /space exceeded/)
  await until(() => one.warnings.length > 1)
  assert.match(one.warnings.slice(1).join('\n'),
    /^the journal takes no changes at the moment: the journal is moved: \/pes is being sealed anew in \/pes-2; if .*$/)
  assert.deepEqual([await create(one), await list(one)], [500, 200])
  await makeRoom(member!.url)
  await until(() => faultOf(one) === undefined && faultOf(other) === undefined)
  assert.deepEqual([await create(other), await create(one)], [200, 200])
})

test('of rewrites to the same place one succeeds, and who has lost is told', { skip: NO_ETCD }, async t => {
  const { endpoints } = await startCluster(t)
  const [one, other] = await startInstances(t, endpoints, 2) as [Started, Started]
  await Promise.all(Array.from({ length: 300 }, () => create(one)))
  const rewrite = ({ service }: Started): Promise<unknown> =>
    (service.store.journal as DurableJournal).rewrite(() => {}, '/pes-2')
  const ended = await Promise.allSettled([rewrite(one), rewrite(one), rewrite(other)])
  const failures = ended.flatMap(result => result.status === 'rejected' ? [String(result.reason.message)] : [])
  assert.equal(failures.length, 2, failures.join('\n'))
  assert.match(failures.join('\n'), /\/pes is being sealed anew already/)
  for (const instance of [one, other]) {
    assert.equal(await list(instance), 503)
    assert.match(faultOf(instance)!, /has moved to \/pes-2/)
  }
  assert.equal((await keysIn(endpoints, '/pes-2')).length, 300)
})
