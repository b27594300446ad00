/**
 * A change is recorded once, whatever the way to etcd does to the messages of its attempts: they are held and arrive
 * later than others, or their answers get lost, while others write, wait for a turn, or change the marker.
 *
 * With ALL_STEPS=1 in the environment (`npm run test:etcd`) every kind of change meets every plan; without, creates do.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { importEntries } from '../support/rewrite.ts'
import { base64, callEtcd, etcdMissing, pause, startCluster, startProxy, type Hold,
  type Treatment } from '../support/etcd.ts'
import { FIELDS, flagsOf, Rival } from '../support/instances.ts'
import { startService, type Started } from '../support/service.ts'
import { createEntry, updateEntry } from '../../src/entries/entry-commands.ts'

const NO_ETCD = etcdMissing()
const ALL = process.env['ALL_STEPS'] === '1'

/** What happens to an attempt: what comes before it, and what becomes of its messages. */
const POINTS = {
  'held': ['', 'held'],
  'carried out, its answer lost': ['', 'answer lost'],
  'behind another\'s record': ['record', 'passed'],
  'behind another\'s record, its answer lost': ['record', 'answer lost'],
  'behind another\'s turn': ['turn', 'passed'],
  'under an older marker': ['marker', 'passed'],
  'under an older marker, its answer lost': ['marker', 'answer lost']
} as const

type Point = keyof typeof POINTS

/** Two attempts, and how many attempts later a held one arrives; never: once the change was answered. */
interface Plan {
  readonly points: readonly Point[]
  readonly arrivesAfter: number
}

const PLANS: readonly Plan[] = (Object.keys(POINTS) as Point[]).flatMap((first, _at, all) => all.flatMap(second =>
  (first === 'held' || second === 'held' ? [1, 2, Infinity] : [Infinity])
    .map(arrivesAfter => ({ points: [first, second], arrivesAfter }))))
const FEW = PLANS.filter(({ points: [, second], arrivesAfter }) => second === 'held' && arrivesAfter === 2)

/** Each makes a change that gives one record, and whether it was told so. */
const KINDS: { readonly [kind: string]: (one: Started, n: number) => Promise<boolean> } = {
  create: async ({ service }, n) => (await createEntry(service.store, { ...FIELDS, password: `${n}` }, null)).id > 0,
  update: async ({ service }, n) => (await updateEntry(service.store, 1, { password: `${n}` }, null)) !== undefined,
  import: async ({ service }, n) =>
    await importEntries(service.store, [1, 2].map(i => ({ ...FIELDS, password: `${n} ${i}`, status: 1 }))) > 0,
  token: async ({ service }) => (await service.accounts!.issue('ana@example.org', undefined, undefined)) !== undefined,
  user: async ({ service }, n) =>
    (await service.accounts!.addUser(`u${n}@example.org`, 'U', ['*'], 'a long password')) !== undefined
}

describe('a message that is held back or lost, at every point of an attempt', { concurrency: 2 }, () => {
  for (const [kind, make] of Object.entries(KINDS)) {
    test(`a change is made once, and its answer is true: ${kind}`, { skip: NO_ETCD }, async t => {
      const { members: [member] } = await startCluster(t)
      const proxy = await startProxy(t, member!.url)
      const secret = randomBytes(32)
      const one = await startService(t, { ...await flagsOf(t, proxy.url, secret), auth: 'bearer' })
      const other = await startService(t, { ...await flagsOf(t, member!.url, secret), auth: 'bearer' })
      await one.service.accounts!.addUser('ana@example.org', 'Ana', ['*'], 'a long password')
      await createEntry(one.service.store, FIELDS, null)
      const rival = new Rival(member!.url, secret)
      const told = { made: 0, failed: 0 }
      const plans = ALL || kind === 'create' ? PLANS : FEW
      for (const [n, { points, arrivesAfter }] of plans.entries()) {
        const before = await rival.count()
        const first = proxy.appends
        const written: Promise<void>[] = []
        const held: { readonly at: number, readonly release: () => Promise<void> }[] = []
        const releaseUpTo = async (at: number): Promise<void> => {
          for (const message of held.filter(message => message.at <= at)) await message.release()
        }
        const treated: Promise<Treatment>[] = []
        const treat = async (append: number, hold: Hold): Promise<Treatment> => {
          const at = append - first - 1
          await releaseUpTo(at - arrivesAfter)
          const [event, treatment] = POINTS[points[at]!] ?? ['', 'passed']
          if (event === 'record') {
            written.push(rival.write())
            await written.at(-1)
          }
          if (event === 'marker') await rival.touchMarker()
          if (event === 'turn') {
            await rival.takeTurn()
            written.push(pause(100).then(() => rival.write()))
          }
          if (treatment === 'held') held.push({ at, release: hold() })
          return treatment
        }
        proxy.treat = (append, hold) => {
          treated.push(treat(append, hold))
          return treated.at(-1)!
        }
        const isMade = await make(one, n).then(answer => { assert.ok(answer); return true }, () => false)
        proxy.treat = () => 'passed'
        // The change may be known to be made while the message after it is still on its way here.
        await Promise.all(treated)
        await Promise.all(written)
        await releaseUpTo(Infinity)
        const made = await rival.count() - before - written.length
        const what = `${points.join(', then ')}; arrives after ${arrivesAfter}`
        assert.ok(made === 1 || (made === 0 && !isMade), `${what}: told ${isMade ? 'made'
          : 'not made'}, recorded ${made} times`)
        told[isMade ? 'made' : 'failed']++
        await callEtcd(member!.url, '/v3/kv/deleterange',
          { key: base64('/pes.turn/'), range_end: base64('/pes.turn0') })
      }
      t.diagnostic(JSON.stringify(told))
      assert.ok(told.made > plans.length / 2)
      await createEntry(one.service.store, FIELDS, null)
      await createEntry(other.service.store, FIELDS, null)
      await assertEqualJournals([one, other])
    })
  }
})

async function assertEqualJournals(instances: readonly Started[]): Promise<void> {
  for (const { service } of instances) await service.store.journal.catchUp?.()
  const heads = instances.map(({ service }) => service.store.journal.status())
  for (const { head, records, fault } of heads) assert.deepEqual([head, records, fault],
    [heads[0]!.head, heads[0]!.records, undefined])
}
