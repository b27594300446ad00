/**
 * A longer campaign against real etcd: `node --import tsx --test test/campaigns/etcd.ts`, MINUTES (default 2, for each
 * release that ETCD_NEWER names too) from the environment. Three members and three instances, one of them 10 ms away,
 * one on a way that loses answers; clients at each. Two faults at a time: members are killed, ended, stopped, cut off,
 * answers get lost, the journal's history is compacted, its key rotated; an instance is closed and another one takes
 * its place. Histories are held to linearizability in rounds. Two more instances ask for tokens: none takes a revoked
 * one. A conditional change replaces the version that it names. At the end all are equal, the journal goes by a backup
 * and a copy to another prefix, re-encrypted, while a member fails, and every change is still there.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { disk } from '../../src/journal/files.ts'
import { readKeyFile } from '../../src/journal/keys.ts'
import { readEtcd } from '../../src/parts/etcd/copy.ts'
import { admin, done } from '../support/admin.ts'
import { callEtcd, NEWER_ETCDS, pause, startCluster, startDelay, startProxy, versionOf } from '../support/etcd.ts'
import {
  assertCreatedOnce, assertEqual, assertLinearizable, FIELDS, flagsOf, runClients, settingsOf, type Seen
} from '../support/instances.ts'
import { KEY_FILE } from '../support/journal.ts'
import { freshFolder, send, startService, type Started } from '../support/service.ts'

const MINUTES = Number(process.env['MINUTES'] ?? 2)
const ROUND_MS = 12_000
const ENTRIES = 6
const PAUSE_MS = 60
const int = (n: number): number => Math.floor(Math.random() * n)

/** A change that was to replace one version alone. */
interface Conditional { readonly id: number, readonly from: string, readonly to: string, readonly status: number }

let serial = 0

async function changeThatVersion(url: string, id: number): Promise<Conditional | undefined> {
  const found = await send(url, 'GET', `/api/getPassword/${id}`).catch(() => undefined)
  if (found?.status !== 200) return undefined
  const [from, to]: [string, string] = [found.json.passwords.password, `conditional ${serial++}`]
  await pause(int(PAUSE_MS))
  const headers = { 'Content-Type': 'application/json', 'If-Match': found.headers.get('ETag')! }
  const status = await fetch(`${url}/api/updatePassword/${id}`, {
    method: 'POST', headers, body: JSON.stringify({ password: to })
  }).then(async answer => { await answer.text(); return answer.status }, () => 0)
  return { id, from, to, status }
}

async function answerTo(token: string, url: string, path: string, method = 'GET'): Promise<number> {
  const answered = fetch(`${url}/api/${path}`, { method, headers: { Authorization: `Bearer ${token}` } })
  return answered.then(async answer => { await answer.text(); return answer.status }, () => 0)
}

/** Has a token issued by one instance, used by all, revoked by one, and refused by all from then on. */
async function liveOfToken(guarded: readonly Started[], asked: { used: number, revoked: number }): Promise<void> {
  const [one, other] = [guarded[int(2)]!, guarded[int(2)]!]
  const issued = await one.service.accounts!.issue('ana@example.org', undefined, undefined).catch(() => undefined)
  if (issued === undefined) return
  for (const { url } of guarded) {
    const status = await answerTo(issued.token, url, 'getPassword/1')
    assert.ok([200, 503, 0].includes(status), `a token that stands was answered ${status}`)
    asked.used++
  }
  if (await answerTo(issued.token, other.url, 'logout', 'POST') !== 200) return
  for (let tries = 0; tries < 3; tries++) {
    for (const { url } of guarded) {
      const status = await answerTo(issued.token, url, 'getPassword/1')
      assert.ok([401, 503, 0].includes(status), `a revoked token was answered ${status}`)
      asked.revoked++
    }
    await pause(int(PAUSE_MS))
  }
}

for (const program of ['etcd',
  ...NEWER_ETCDS]) test(`${MINUTES} minutes of failing members, etcd ${versionOf(program)}`, async t => {
  const { endpoints, members } = await startCluster(t, { members: 3, program })
  const secret = randomBytes(32)
  const far = await Promise.all(members.map(({ url }) => startDelay(t, url, 5)))
  const lossy = await Promise.all(members.map(({ url }) => startProxy(t, url)))
  const ways = [endpoints, lossy.map(({ url }) => url).join(','), far.join(',')]
  const places = await Promise.all(ways.map(way => flagsOf(t, way, secret)))
  const instances: Started[] = []
  for (const place of places) instances.push(await startService(t, place))
  const guarded: Started[] = []
  for (const way of ways.slice(1)) {
    guarded.push(await startService(t, { ...await flagsOf(t, way, secret), auth: 'bearer' }))
  }
  await guarded[0]!.service.accounts!.addUser('ana@example.org', 'Ana', ['*'], 'a long password')
  const last: string[] = []
  const rounds: Seen[] = []
  const conditional: Conditional[] = []
  const total = { acknowledged: 0, unknown: 0, read: 0, unanswered: 0 }
  const tokens = { used: 0, revoked: 0 }
  const faults: { [what: string]: number } = {}
  const folders = places.map(({ data }) => data!) as [string, ...string[]]
  const rotate = async (): Promise<boolean> => {
    const { out } = await admin(folders[0], 'key rotate')
    const others = [...folders.slice(1), ...guarded.map(({ folder }) => folder)]
    for (const folder of others) copyFileSync(join(folders[0], KEY_FILE), join(folder, KEY_FILE))
    return / seals from now on/.test(out)
  }
  const compact = async (): Promise<void> => {
    for (const { url } of members) {
      try {
        const { header: { revision } } = await callEtcd(url, '/v3/kv/range', { key: 'AA==', serializable: true })
        await callEtcd(url, '/v3/kv/compaction', { revision })
        return
      } catch {
        // The next member may answer.
      }
    }
  }
  /** Two at once meet members of their own. */
  const acts: { readonly [what: string]: (member: number) => Promise<void> } = {
    killed: async at => { await members[at]!.stop(); await pause(int(2_500)); members[at]!.start() },
    stopped: async at => { members[at]!.pause(); await pause(int(5_000)); members[at]!.resume() },
    ended: async at => { await members[at]!.stop('SIGTERM'); await pause(int(1_000)); members[at]!.start() },
    compacted: compact,
    cut: async at => { lossy[at]!.isCut = true; await pause(int(4_000)); lossy[at]!.isCut = false },
    answersLost: async at => {
      lossy[at]!.treat = () => int(2) === 0 ? 'answer lost' : 'request lost'
      await pause(int(4_000))
      lossy[at]!.treat = () => 'passed'
    },
    rotated: async at => { // either run may fail: whatever came to pass, all get the file
      members[at]!.pause()
      for (let runs = 0; runs < 2; runs++) await rotate()
      members[at]!.resume()
    }
  }
  const kinds = Object.keys(acts)
  const failTwice = async (): Promise<void> => {
    const [kind, at] = [int(kinds.length), int(3)]
    const both = [[kind, at], [(kind + 1 + int(kinds.length - 1)) % kinds.length, (at + 1 + int(2)) % 3]] as const
    await Promise.all(both.map(async ([kind, member]) => {
      const what = kinds[kind]!
      faults[what] = (faults[what] ?? 0) + 1
      await acts[what]!(member)
    }))
  }
  for (const endMs = performance.now() + MINUTES * 60_000; performance.now() < endMs;) {
    for (let id = 0; id <= ENTRIES; id++) { // each round has entries of its own, and one more for conditional changes
      const { status } = await send(instances[0]!.url, 'POST', '/api/createPassword', FIELDS)
      assert.equal(status, 200)
    }
    const first = instances[0]!.service.store.state.entries.count - ENTRIES
    const clients = runClients(instances.map(({ url }) => url), 3, ENTRIES, ROUND_MS, PAUSE_MS, first)
    const clientsEndMs = performance.now() + ROUND_MS
    const others = Promise.all([
      ...instances.map(async ({ url }) => {
        while (performance.now() < clientsEndMs) {
          const made = await changeThatVersion(url, first)
          if (made !== undefined) conditional.push(made)
          await pause(int(PAUSE_MS))
        }
      }),
      (async () => { while (performance.now() < clientsEndMs) await liveOfToken(guarded, tokens) })()
    ])
    others.catch(() => {}) // told below
    const roundEndMs = performance.now() + ROUND_MS - 3_000
    while (performance.now() < roundEndMs) {
      await failTwice()
      await pause(int(1_000))
    }
    const seen = await clients
    await others
    assertLinearizable(seen)
    rounds.push(seen)
    for (const what of Object.keys(total) as (keyof typeof total)[]) total[what] += seen.counts[what]
    const endOfOutageMs = performance.now() + 30_000
    while ((await send(instances[0]!.url, 'GET', '/api/getPassword/1')).status !== 200) {
      assert.ok(performance.now() < endOfOutageMs, 'etcd answers again')
    }
    await assertEqual(instances)
    last.push(instances[0]!.service.store.journal.status().head)
    const at = int(3)
    await instances[at]!.service.close()
    instances[at] = await startService(t, places[at]!)
    await assertEqual(instances)
  }
  const listed = async (): Promise<unknown> => (await send(instances[0]!.url, 'GET', '/api/listPassword')).json
  const before = await listed()
  for (const seen of rounds) await assertCreatedOnce(seen, instances[0]!.url)
  for (const { service } of [...instances, ...guarded]) await service.close()

  const versions = new Map<number, string[]>()
  await readEtcd({ ...settingsOf(endpoints, '/pes'), etcdEndpoints: endpoints.split(',') }, {
    keys: readKeyFile(disk, join(folders[0], KEY_FILE))!,
    apply: ({ type, data }) => {
      const { id, password } = data as { id: number, password?: string }
      if (/^entry\.(created|updated)$/.test(type)) versions.set(id, [...versions.get(id) ?? [], password!])
    }
  })
  const replaced = { made: 0, refused: 0, unknown: 0 }
  for (const { id, from, to, status } of conditional) {
    const chain = versions.get(id)!
    const at = chain.indexOf(to)
    const what = `${from}, then ${to}, answered ${status}: ${chain.slice(at - 1, at + 1)}`
    assert.equal(chain.lastIndexOf(to), at, what)
    if (at >= 0) assert.equal(chain[at - 1], from, what)
    assert.ok(status === 200 ? at >= 0 : status === 412 ? at < 0 : [500, 503, 0].includes(status), what)
    replaced[status === 200 ? 'made' : status === 412 ? 'refused' : 'unknown']++
  }

  t.diagnostic(JSON.stringify({ rounds: last.length, ...total, ...faults, tokens, conditional: replaced }))

  const back = freshFolder(t)
  copyFileSync(join(folders[0], KEY_FILE), join(back, KEY_FILE))
  const at = `--etcd-endpoints ${endpoints}`
  const copies = { isOver: false, failures: 0, repeated: 0 }
  /** As the README says: if a step was interrupted, repeat it. */
  const insist = async (step: string): Promise<void> => {
    for (;; copies.repeated++) {
      const { code, error } = await admin(back, step)
      if (code === 0 || /is closed already|holds a journal/.test(error)) return // the answer was lost
      assert.ok(/cannot be reached: /.test(error) && copies.repeated < 50, `${step}: ${error}`)
    }
  }
  const failing = (async () => {
    for (let n = 0; !copies.isOver; n = (n + 1) % 3, copies.failures++) {
      await acts[['killed', 'stopped'][int(2)]!]!(n)
      await pause(int(2_000))
    }
  })()
  try {
    await insist(`journal close ${at}`)
    await insist(`journal backup ${join(back, 'journal.jsonl')} --journal etcd ${at}`)
    for (const step of ['key rotate', 'key rewrite']) await done(back, step)
    await insist(`journal copy --to etcd ${at} --etcd-prefix /pes-2`)
  } finally {
    copies.isOver = true
    await failing
  }
  for (const [i, place] of places.entries()) {
    copyFileSync(join(back, KEY_FILE), join(folders[i]!, KEY_FILE))
    instances[i] = await startService(t, { ...place, 'etcd-prefix': '/pes-2' })
  }
  await assertEqual(instances)
  assert.deepEqual(await listed(), before)
  const { failures, repeated } = copies
  t.diagnostic(JSON.stringify({ records: instances[0]!.service.store.journal.status().records, failures, repeated }))
  assert.ok(total.acknowledged > 100 && replaced.made > 10 && tokens.revoked > 10)
  const report = await done(folders[0], `journal verify --journal etcd ${at} --etcd-prefix /pes-2`)
  assert.match(report, new RegExp(`^head +${instances[0]!.service.store.journal.status().head}$`, 'm'))
})
