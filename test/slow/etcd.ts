/**
 * A longer campaign against real etcd: `node --import tsx --test test/slow/etcd.ts`, MINUTES (default 2, for each
 * release that ETCD_NEWER names too) from the environment. Three members and three instances, one of them 10 ms away, clients at each; at random times members are
 * killed and started again, stopped and let go on, the leader too, the journal's history is compacted, and its key
 * rotated; an instance is closed and another one takes its place. Histories are held to linearizability in rounds. At
 * the end all are equal, the journal is re-encrypted in a file between two prefixes, and every change is still there.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { admin, done } from '../support/admin.ts'
import { callEtcd, NEWER_ETCDS, pause, startCluster, startDelay, versionOf } from '../support/etcd.ts'
import { assertCreatedOnce, assertEqual, assertLinearizable, FIELDS, flagsOf, runClients, type Seen } from '../support/instances.ts'
import { KEY_FILE } from '../support/journal.ts'
import { freshFolder, send, startService, type Started } from '../support/service.ts'

const MINUTES = Number(process.env['MINUTES'] ?? 2)
const ROUND_MS = 12_000
const ENTRIES = 4

for (const program of ['etcd', ...NEWER_ETCDS]) test(`${MINUTES} minutes of failing members, etcd ${versionOf(program)}`, async t => {
  const { endpoints, members } = await startCluster(t, { members: 3, program })
  const secret = randomBytes(32)
  const far = await Promise.all(members.map(({ url }) => startDelay(t, url, 5)))
  const ways = [endpoints, endpoints, far.join(',')]
  const places = await Promise.all(ways.map(way => flagsOf(t, way, secret)))
  const instances: Started[] = []
  for (const place of places) instances.push(await startService(t, place))
  const last: string[] = []
  const rounds: Seen[] = []
  const total = { acknowledged: 0, unknown: 0, read: 0, unanswered: 0 }
  const faults: { [what: string]: number } = {}
  const int = (n: number): number => Math.floor(Math.random() * n)
  const folders = places.map(({ data }) => data!) as [string, ...string[]]
  const rotate = async (): Promise<boolean> => {
    const { out } = await admin(folders[0], 'key rotate')
    for (const folder of folders.slice(1)) copyFileSync(join(folders[0], KEY_FILE), join(folder, KEY_FILE))
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
  for (const endMs = performance.now() + MINUTES * 60_000; performance.now() < endMs;) {
    for (let id = 1; id <= ENTRIES; id++) { // each round has entries of its own
      const { status } = await send(instances[0]!.url, 'POST', '/api/createPassword', FIELDS)
      assert.equal(status, 200)
    }
    const first = instances[0]!.service.store.state.entries.count - ENTRIES
    const clients = runClients(instances.map(({ url }) => url), 3, ENTRIES, ROUND_MS, 80, first)
    const roundEndMs = performance.now() + ROUND_MS - 3_000
    while (performance.now() < roundEndMs) {
      const member = members[int(3)]!
      const acts: { readonly [what: string]: () => Promise<void> } = {
        killed: async () => { await member.stop(); await pause(int(2_500)); member.start() },
        stopped: async () => { member.pause(); await pause(int(5_000)); member.resume() },
        ended: async () => { await member.stop('SIGTERM'); await pause(int(1_000)); member.start() },
        compacted: compact,
        majority: async () => {
          const other = members[(members.indexOf(member) + 1) % 3]!
          await Promise.all([member.stop(), other.stop()])
          await pause(int(1_500))
          member.start()
          other.start()
        },
        rotated: async () => { // either run may fail: whatever came to pass, all get the file
          member.pause()
          for (let runs = 0; runs < 2; runs++) await rotate()
          member.resume()
        }
      }
      const what = Object.keys(acts)[int(6)]!
      faults[what] = (faults[what] ?? 0) + 1
      await acts[what]!()
      await pause(int(1_500))
    }
    const seen = await clients
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
  for (const { service } of instances) await service.close()
  const back = freshFolder(t)
  copyFileSync(join(folders[0], KEY_FILE), join(back, KEY_FILE))
  const at = `--etcd-endpoints ${endpoints}`
  await done(back, `journal close ${at}`)
  await admin(back, `journal backup ${join(back, 'journal.jsonl')} --journal etcd ${at}`) // warns that it is closed
  for (const step of ['key rotate', 'key rewrite', `journal copy --to etcd ${at} --etcd-prefix /pes-2`]) await done(back, step)
  for (const [i, place] of places.entries()) {
    copyFileSync(join(back, KEY_FILE), join(folders[i]!, KEY_FILE))
    instances[i] = await startService(t, { ...place, 'etcd-prefix': '/pes-2' })
  }
  await assertEqual(instances)
  assert.deepEqual(await listed(), before)
  t.diagnostic(JSON.stringify({ rounds: last.length, ...total, ...faults }))
  assert.ok(total.acknowledged > 100)
  const report = await done(folders[0], `journal verify --journal etcd ${at} --etcd-prefix /pes-2`)
  assert.match(report, new RegExp(`^head +${instances[0]!.service.store.journal.status().head}$`, 'm'))
})
