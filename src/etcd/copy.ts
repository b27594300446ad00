/** The whole journal in etcd at once, for the operator: reading it, and putting a copy of another one there. */
import { Failure } from '../errors.ts'
import type { Keyring } from '../journal/keys.ts'
import type { Apply, Recovered } from '../journal/recover.ts'
import {
  ETCD_READ_TIMEOUT_MS, ETCD_WRITE_TIMEOUT_MS, MAX_ETCD_COMMIT_BYTES, MAX_ETCD_COMMIT_RECORDS
} from '../limits.ts'
import { EtcdClient, type EtcdAccess } from './client.ts'
import { EtcdLog, type Position } from './log.ts'
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
  place: EtcdPlace, keys: Keyring, apply: Apply, records: number = Infinity,
  onProgress: (read: number) => void = () => {}
): Promise<Pick<Recovered, 'records' | 'head'>> {
  return withLog(place, async log => {
    const replica = new Replica(apply, keys, place.prefix)
    for (let isLast = false; !isLast && replica.position.seq < records;) {
      const page = await log.after(replica.position, ETCD_READ_TIMEOUT_MS)
      if (page === undefined) throw new Failure('journal-damaged', `${place.prefix}: what was just read is gone`)
      replica.take(page.records.filter(({ seq }) => seq <= records))
      isLast = page.isLast
      onProgress(replica.position.seq)
    }
    return { records: replica.position.seq, head: replica.head }
  })
}

/**
 * Puts the lines of a journal where none is yet; rejects with `journal-refused` where one is. No instance
 * takes what was put there before this resolves for a journal.
 */
export function fillEtcd(place: EtcdPlace, lines: Iterable<string>): Promise<void> {
  return withLog(place, async log => {
    let position: Position = { seq: 0, revision: '0' }
    const taken = (): Failure => new Failure('journal-refused', `${place.prefix} holds records of another journal`)
    const found = await log.after(position, ETCD_READ_TIMEOUT_MS)
    if (found?.records.length !== 0) throw taken()
    if (!await log.beginCopy(ETCD_WRITE_TIMEOUT_MS)) {
      throw new Failure('journal-refused', `instances have begun a journal in ${place.prefix}`)
    }
    let batch: string[] = []
    let bytes = 0
    const flush = async (): Promise<void> => {
      const stored = await log.append(position, batch, ETCD_WRITE_TIMEOUT_MS)
      if (batch.some((line, i) => stored[i]?.text !== line)) throw taken()
      position = stored[batch.length - 1]!
      batch = []
      bytes = 0
    }
    for (const line of lines) {
      if (batch.length === MAX_ETCD_COMMIT_RECORDS || bytes + line.length > MAX_ETCD_COMMIT_BYTES) {
        if (batch.length > 0) await flush()
      }
      batch.push(line)
      bytes += line.length
    }
    if (batch.length > 0) await flush()
    if (!await log.endCopy(ETCD_WRITE_TIMEOUT_MS)) {
      throw new Failure('journal-refused', `an instance was started on ${place.prefix} meanwhile`)
    }
  })
}

async function withLog<T>({ access, prefix }: EtcdPlace, act: (log: EtcdLog) => Promise<T>): Promise<T> {
  const client = new EtcdClient(access)
  try {
    return await act(new EtcdLog(client, prefix))
  } finally {
    client.close()
  }
}
