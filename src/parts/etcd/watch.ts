import { Failure } from '../../errors.ts'
import type { EtcdClient } from './etcd-client.ts'
import type { Keys, KeyValue, Stored, Turn } from './etcd-keys.ts'

export interface WatchedChange {
  readonly records: readonly Stored[]
  readonly turns: readonly Turn[]
  readonly ended: readonly string[]
  readonly hasMarker: boolean
}

/**
 * Begins behind `revision`, which the reader has seen. Rejects if the watch fails, with
 * `journal-refused` if etcd's user may not watch these keys.
 */
export function follow(
  client: EtcdClient,
  keys: Keys,
  revision: string,
  take: (change: WatchedChange) => void,
  signal: AbortSignal
): Promise<void> {
  const create_request = {
    key: keys.marker,
    range_end: keys.end,
    start_revision: String(BigInt(revision) + 1n),
    fragment: true
  }
  return client.follow(
    '/v3/watch',
    { create_request },
    ({ result, error }) => {
      if (result === undefined || result.canceled === true) {
        const why = result?.cancel_reason ?? error?.message ?? 'the watch was ended'
        throw /permission denied/i.test(why) ? new Failure('journal-refused', why) : new Error(why)
      }
      const events: readonly { readonly type?: string; readonly kv: KeyValue }[] =
        result.events ?? []
      const put = events.filter(({ type }) => type === undefined).map(({ kv }) => kv)
      const gone = events.filter(({ type }) => type === 'DELETE').map(({ kv }) => kv)
      const hasMarker = events.some(({ kv }) => kv.key === keys.marker)
      take({
        records: keys.recordsIn(put),
        turns: keys.turnsIn(put),
        ended: gone.map(({ key }) => key),
        hasMarker
      })
    },
    signal
  )
}
