/** Instances that share a journal in etcd, in this process, and clients that record what they see. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import { ETCD_SETTINGS, type EtcdSettings } from '../../src/parts/etcd/etcd-settings.ts'
import { base64, callEtcd, pause, startCluster, startProxy, type LossyProxy } from './etcd.ts'
import { keyName, NO_HASH, referenceLine, writeKeys } from './journal.ts'
import { isLinearizable, type Operation } from './linearizable.ts'
import { freshFolder, send, startService, type Started } from './service.ts'

export const FIELDS = { password: 'first', sistema: 's', usuario: 'u' }

/** The flags of an instance on a cluster, with a folder of its own and the key given; makes the journal there. */
export async function flagsOf(t: TestContext, endpoints: string, secret: Buffer): Promise<Record<string, string>> {
  const data = freshFolder(t)
  writeKeys(data, secret)
  if (endpoints.startsWith('http:')) {
    const [url, key] = [endpoints.split(',')[0]!, base64('/pes.key')]
    const { kvs } = await callEtcd(url, '/v3/kv/range', { key })
    if (kvs === undefined) await callEtcd(url, '/v3/kv/put', { key, value: base64(keyName(secret)) })
  }
  return { data, 'journal': 'etcd', 'etcd-endpoints': endpoints, 'rate-limit': '0' }
}

export function settingsOf(endpoints: string, etcdPrefix: string): EtcdSettings {
  const rows = Object.entries(ETCD_SETTINGS).map(([name, { fallback }]) => [name, fallback])
  return { ...Object.fromEntries(rows), etcdEndpoints: [endpoints], etcdPrefix }
}

export async function startInstances(t: TestContext, endpoints: string, count: number): Promise<Started[]> {
  const secret = randomBytes(32)
  const started: Started[] = []
  for (let i = 0; i < count; i++) started.push(await startService(t, await flagsOf(t, endpoints, secret)))
  return started
}

/** Starts an instance at a member, and one behind a proxy that keeps the changes of others from it until it asks. */
export async function startPair(
  t: TestContext, flags: Record<string, string> = {}
): Promise<{ readonly proxy: LossyProxy, readonly near: Started, readonly behind: Started }> {
  const { members: [member] } = await startCluster(t)
  const proxy = await startProxy(t, member!.url)
  proxy.hidesChanges = true
  const secret = randomBytes(32)
  const near = await startService(t, { ...await flagsOf(t, member!.url, secret), ...flags })
  const behind = await startService(t, { ...await flagsOf(t, proxy.url, secret), ...flags })
  return { proxy, near, behind }
}

/** What another instance leaves in etcd, put there by hand: so whatever it waits for holds nothing up. */
export class Rival {
  readonly #url: string
  readonly #secret: Buffer

  constructor(url: string, secret: Buffer) { this.#url = url; this.#secret = secret }

  async count(): Promise<number> {
    return Number((await this.#range('/pes/', '/pes0', { count_only: true })).count ?? 0)
  }

  /** Puts a record that changes nothing after the newest one. */
  async write(timeMs: number = Date.now()): Promise<void> {
    for (;;) {
      const { kvs: [newest] = [] } = await this.#range('/pes/', '/pes0', { sort_order: 'DESCEND', limit: 1 })
      const last = newest === undefined ? undefined : JSON.parse(Buffer.from(newest.value, 'base64').toString())
      const seq = (last?.seq ?? 0) + 1
      const nonce = randomBytes(12)
      nonce[0]! |= 0x80
      const { text } = referenceLine({
        seq, time: new Date(timeMs).toISOString(), type: 'entries.disclosed', by: null, secret: this.#secret, nonce,
        json: JSON.stringify({ command: 'test', entries: 0 }), previousHash: last?.hash ?? NO_HASH
      })
      const key = base64(`/pes/${String(seq).padStart(16, '0')}`)
      const { succeeded } = await callEtcd(this.#url, '/v3/kv/txn', {
        compare: [{ target: 'CREATE', key, create_revision: '0' }],
        success: [{ request_put: { key, value: base64(text) } }]
      })
      if (succeeded === true) return
    }
  }

  /** Waits for a turn, and never takes it. */
  async takeTurn(): Promise<void> {
    await callEtcd(this.#url, '/v3/kv/put', { key: base64('/pes.turn/gone'), value: base64('300') })
  }

  /** Puts the marker again as it is: its revision is another then. */
  async touchMarker(): Promise<void> {
    const { kvs: [{ key, value }] } = await this.#range('/pes.key')
    await callEtcd(this.#url, '/v3/kv/put', { key, value })
  }

  #range(key: string, end?: string, more: object = {}): Promise<any> {
    const range = { key: base64(key), ...end !== undefined && { range_end: base64(end) }, ...more }
    return callEtcd(this.#url, '/v3/kv/range', range)
  }
}

export const create = ({ url }: { readonly url: string }): Promise<number> =>
  send(url, 'POST', '/api/createPassword', FIELDS).then(({ status }) => status)
export const list = ({ url }: { readonly url: string }): Promise<number> =>
  send(url, 'GET', '/api/listPassword').then(({ status }) => status)

export const faultOf = ({ service }: Started): string | undefined => service.store.journal.status().fault

export async function until(holds: () => boolean): Promise<void> {
  const endMs = performance.now() + 60_000
  while (!holds()) {
    if (performance.now() > endMs) throw new Error(`waited 60 s for ${holds}`)
    await pause(20)
  }
}

/** The names of the keys that sealed the records, in their order. */
export async function keysIn(url: string, prefix: string): Promise<string[]> {
  const range = { key: base64(`${prefix}/`), range_end: base64(`${prefix}0`) }
  const { kvs = [] } = await callEtcd(url, '/v3/kv/range', range)
  return kvs.map(({ value }: { value: string }) => JSON.parse(Buffer.from(value, 'base64').toString()).key)
}

export interface Seen {
  readonly histories: ReadonlyMap<number, Operation[]>
  /** The passwords of entries that were created, and whether that was acknowledged. */
  readonly created: ReadonlyMap<string, boolean>
  readonly counts: { acknowledged: number, unknown: number, read: number, unanswered: number }
}

/**
 * Runs clients at all instances for a time: each gets or updates one of the entries behind `first`, or creates one,
 * again and again.
 */
export async function runClients(
  urls: readonly string[], clientsEach: number, entries: number, forMs: number, pauseMs: number,
  first = 0
): Promise<Seen> {
  const histories = new Map(Array.from({ length: entries }, (_, i) => [first + i + 1, [] as Operation[]]))
  const created = new Map<string, boolean>()
  const counts = { acknowledged: 0, unknown: 0, read: 0, unanswered: 0 }
  const endMs = performance.now() + forMs
  const write = async (url: string, path: string, body: object): Promise<boolean> => {
    const status = await send(url, 'POST', path, body).then(({ status }) => status, () => 0)
    assert.ok([200, 500, 503, 0].includes(status), `a write was answered ${status}`)
    counts[status === 200 ? 'acknowledged' : 'unknown']++
    return status === 200
  }
  let serial = 0
  const client = async (url: string, n: number): Promise<void> => {
    while (performance.now() < endMs) {
      const id = first + 1 + (serial++ + n) % entries
      const history = histories.get(id)!
      const startMs = performance.now()
      const act = Math.random()
      if (act < 0.1) {
        const password = `created ${first} ${n}-${serial}`
        created.set(password, await write(url, '/api/createPassword', { ...FIELDS, password }))
      } else if (act < 0.5) {
        const value = `${n}-${serial}`
        const isMade = await write(url, `/api/updatePassword/${id}`, { password: value })
        history.push({ kind: 'write', value, startMs, endMs: isMade ? performance.now() : Infinity })
      } else {
        const answer = await send(url, 'GET', `/api/getPassword/${id}`).catch(() => undefined)
        assert.ok(answer === undefined || [200, 503].includes(answer.status), `a read was answered ${answer?.status}`)
        if (answer?.status !== 200) { counts.unanswered++; continue }
        history.push({ kind: 'read', value: answer.json.passwords.password, startMs, endMs: performance.now() })
        counts.read++
      }
      await pause(pauseMs * Math.random())
    }
  }
  await Promise.all(urls.flatMap((url, at) => Array.from({ length: clientsEach }, (_, i) => client(url, at * 100 + i))))
  return { histories, created, counts }
}

/** Holds the histories to what a single register would show. */
export function assertLinearizable({ histories }: Seen): void {
  for (const [id, history] of histories) {
    assert.ok(isLinearizable(FIELDS.password, history), `entry ${id}: ${JSON.stringify(history)}`)
  }
}

/** Holds what was created to what an instance lists: once, or, where it was not acknowledged, perhaps not at all. */
export async function assertCreatedOnce({ created }: Seen, url: string): Promise<void> {
  const { json } = await send(url, 'GET', '/api/listPassword')
  const listed = new Map<string, number>()
  for (const { password } of json as { password: string }[]) listed.set(password, (listed.get(password) ?? 0) + 1)
  for (const [password, isAcknowledged] of created) {
    const times = listed.get(password) ?? 0
    assert.ok(times === 1 || (times === 0 && !isAcknowledged),
      `${password}: acknowledged ${isAcknowledged}, there ${times} times`)
  }
}

export async function assertEqual(instances: readonly Started[]): Promise<void> {
  const lists = await Promise.all(instances.map(({ url }) => send(url, 'GET', '/api/listPassword')))
  for (const { status, json } of lists) {
    assert.equal(status, 200)
    assert.deepEqual(json, lists[0]!.json)
  }
  const heads = instances.map(({ service }) => service.store.journal.status())
  for (const { head, records, fault } of heads) {
    assert.deepEqual([head, records, fault], [heads[0]!.head, heads[0]!.records, undefined])
  }
}
