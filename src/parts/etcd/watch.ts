/** The watch on the keys of a journal in etcd. */
import { MissedChanges, type EtcdClient } from './etcd-client.ts'
import { isFirst, type Keys, type KeyValue, type Stored, type Turn } from './etcd-keys.ts'

/** What a watch has brought. */
export interface Change {
  readonly records: readonly Stored[]
  readonly marker: boolean
  /** Turns that were taken, and the keys of those that have ended. */
  readonly turns: readonly Turn[]
  readonly ended: readonly string[]
  /** The first record that was deleted, or put over another; infinite: none. */
  readonly spoilt: number
  /** The revision up to which all changes were brought; undefined where there was none. */
  readonly revision: string | undefined
}

/** Hands on what is put and deleted after a revision, in order, until the watch ends; rejects where it fails. */
export function follow(
  client: EtcdClient, keys: Keys, revision: string, take: (change: Change) => void, signal: AbortSignal
): Promise<void> {
  const create_request = {
    key: keys.marker, range_end: keys.end, start_revision: String(BigInt(revision) + 1n), fragment: true
  }
  return client.follow('/v3/watch', { create_request }, ({ result, error }) => {
    const { compact_revision: compacted = '0' } = result ?? {} // with it etcd gives no reason
    if (compacted !== '0') throw new MissedChanges(`etcd was compacted up to ${compacted}`)
    if (result === undefined || result.canceled === true) {
      throw new Error(result?.cancel_reason ?? error?.message ?? 'the watch was ended')
    }
    const events: readonly { readonly type?: string, readonly kv: KeyValue }[] = result.events ?? []
    const put = events.filter(({ type }) => type === undefined).map(({ kv }) => kv)
    const gone = events.filter(({ type }) => type === 'DELETE').map(({ kv }) => kv)
    take({
      records: keys.recordsIn(put), turns: keys.turnsIn(put), ended: gone.map(({ key }) => key),
      marker: events.some(({ kv }) => kv.key === keys.marker),
      spoilt: keys.recordsIn([...gone, ...put.filter(kv => !isFirst(kv))])
        .reduce((least, { seq }) => Math.min(least, seq), Infinity),
      revision: result.fragment === true ? before(events.at(-1)!.kv) : events.at(-1)?.kv.mod_revision
    })
  }, signal)
}

/** The revision before a change. */
function before({ mod_revision }: KeyValue): string { return String(BigInt(mod_revision) - 1n) }
