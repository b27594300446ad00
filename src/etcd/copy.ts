/** The whole journal in etcd at once, for the operator: reading it, and putting a copy of another one there. */
import { Failure } from '../errors.ts'
import type { KeyFinder } from '../journal/keys.ts'
import type { Apply, Recovered } from '../journal/recover.ts'
import {
  ETCD_READ_TIMEOUT_MS, ETCD_WRITE_TIMEOUT_MS, MAX_ETCD_COMMIT_BYTES, MAX_ETCD_COMMIT_RECORDS
} from '../limits.ts'
import { EtcdClient, type EtcdAccess } from './client.ts'
import { EtcdLog, type Marker, type Position } from './log.ts'
import { Replica } from './replica.ts'

/** Where a journal is, or is to be. */
export interface EtcdPlace {
  readonly access: EtcdAccess
  readonly prefix: string
}

/**
 * Reads the first `records` records, or, where that is undefined, all that are there, verifying each, and hands them
 * on. `onProgress` gets how many have been read. Rejects as `EtcdJournal.ready` does.
 */
export function readEtcd(
  place: EtcdPlace, keys: KeyFinder, apply: Apply, records: number = Infinity,
  onProgress: (read: number) => void = () => {}
): Promise<Pick<Recovered, 'records' | 'head'>> {
  return withLog(place, async log => {
    const replica = new Replica(apply, keys, place.prefix)
    for await (const read of readInPages(log, replica, records)) onProgress(read)
    return { records: replica.position.seq, head: replica.head }
  })
}

/** Has a replica take what follows in a log, up to a number of records; gives after each page how many it has. */
export async function * readInPages(
  log: EtcdLog, replica: Replica, records: number = Infinity
): AsyncGenerator<number, void, void> {
  for (let isLast = false; !isLast && replica.position.seq < records;) {
    const page = await log.after(replica.position, ETCD_READ_TIMEOUT_MS)
    if (page === undefined) throw new Failure('journal-damaged', `${log.prefix}: what was just read is gone`)
    replica.take(page.records.filter(({ seq }) => seq <= records))
    isLast = page.isLast
    yield replica.position.seq
  }
}

/**
 * Puts the lines of a journal, sealed with `key` from then on, where none is yet; rejects with `journal-refused` where
 * one is. No instance takes what was put there for a journal before `verify` has resolved.
 */
export function fillEtcd(
  place: EtcdPlace, key: string, lines: Iterable<string>, verify: () => Promise<void>
): Promise<void> {
  return withLog(place, async log => {
    const begun = await log.beginCopy(key, ETCD_WRITE_TIMEOUT_MS)
    if (begun === undefined) throw taken(place.prefix)
    await fill(log, begun, lines)
    await verify()
    if ((await log.change(begun, key, ETCD_WRITE_TIMEOUT_MS))?.text !== key) throw taken(place.prefix)
  })
}

/** Puts lines where there are none; rejects with `journal-refused` where somebody else does as well. */
export async function fill(
  log: EtcdLog, begun: Marker, lines: Iterable<string> | AsyncIterable<string>
): Promise<void> {
  let position: Position = { seq: 0, revision: '0' }
  let batch: string[] = []
  let bytes = 0
  const flush = async (): Promise<void> => {
    const stored = await log.append(position, begun, batch, ETCD_WRITE_TIMEOUT_MS)
    if (batch.some((line, i) => stored[i]?.text !== line)) throw taken(log.prefix)
    position = stored[batch.length - 1]!
    batch = []
    bytes = 0
  }
  for await (const line of lines) {
    if (batch.length === MAX_ETCD_COMMIT_RECORDS || bytes + line.length > MAX_ETCD_COMMIT_BYTES) {
      if (batch.length > 0) await flush()
    }
    batch.push(line)
    bytes += line.length
  }
  if (batch.length > 0) await flush()
}

/** Why no copy can be put at a prefix. */
export function taken(prefix: string): Failure {
  return new Failure('journal-refused', `${prefix} holds a journal, or another copy is made there`)
}

async function withLog<T>({ access, prefix }: EtcdPlace, act: (log: EtcdLog) => Promise<T>): Promise<T> {
  const client = new EtcdClient(access)
  try {
    return await act(new EtcdLog(client, prefix))
  } finally {
    client.close()
  }
}
