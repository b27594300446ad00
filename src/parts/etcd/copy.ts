/** The whole journal in etcd at once, for the operator: reading it, and putting a copy of another one there. */
import { Failure } from '../../errors.ts'
import type { KeyFinder } from '../../journal/keys.ts'
import type { OnLine, Recovered } from '../../journal/recover.ts'
import { EtcdClient, type EtcdAccess } from './etcd-client.ts'
import {
  ETCD_READ_TIMEOUT_MS, ETCD_WRITE_TIMEOUT_MS, MAX_ETCD_COMMIT_BYTES, MAX_ETCD_COMMIT_RECORDS
} from './etcd-limits.ts'
import { EtcdLog, type Marker } from './etcd-log.ts'
import { positionOf, Replica, START } from './replica.ts'

/** Where a journal is, or is to be. */
export interface EtcdPlace {
  readonly access: EtcdAccess
  readonly prefix: string
}

/**
 * Reads the first `records` records, or, where that is undefined, all that are there, verifying each, and hands them
 * on. `onProgress` gets how many have been read. Rejects as `openEtcdJournal` does.
 */
export function readEtcd(
  place: EtcdPlace, keys: KeyFinder, apply: OnLine, records: number = Infinity,
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
 * Puts the lines of a journal, sealed with `key` from then on, where none is yet; rejects with `journal-refused` where
 * one is, or another copy is made. No instance takes what was put there for a journal before `verify` has resolved.
 */
export function fillEtcd(
  place: EtcdPlace, key: string, lines: Iterable<string>, verify: () => Promise<void>
): Promise<void> {
  return withLog(place, async log => {
    const begun = await beginCopy(log, key)
    if (begun === undefined) throw taken(place.prefix)
    await fill(log, begun, lines)
    await verify()
    const whole = `${key} copied ${log.id}`
    if ((await log.change(begun, whole, ETCD_WRITE_TIMEOUT_MS))?.text !== whole) throw taken(place.prefix)
  })
}

/**
 * Says that a copy is put here, by a text that no other copy has, and removes what an incomplete one has left; gives
 * undefined where there is a journal, having changed nothing.
 */
async function beginCopy(log: EtcdLog, key: string): Promise<Marker | undefined> {
  const text = `${key} copying ${log.id}`
  const found = await log.change(undefined, text, ETCD_WRITE_TIMEOUT_MS, { isEmpty: true })
  if (found?.text === text) return found
  if (found?.state !== 'copying') return undefined
  const begun = await log.change(found, text, ETCD_WRITE_TIMEOUT_MS, { removes: true })
  return begun?.text === text ? begun : undefined
}

/** Puts lines where there are none; rejects with `journal-refused` where another copy does as well. */
async function fill(log: EtcdLog, begun: Marker, lines: Iterable<string>): Promise<void> {
  let position = START
  let batch: string[] = []
  let bytes = 0
  const flush = async (): Promise<void> => {
    const { records } = await log.append(position, begun, batch, ETCD_WRITE_TIMEOUT_MS)
    if (records[0]?.text !== batch[0]) throw taken(log.prefix) // all of them are there, or none is
    position = positionOf({ seq: position.seq + batch.length, text: batch.at(-1)! })
    batch = []
    bytes = 0
  }
  for (const line of lines) {
    const isFull = batch.length === MAX_ETCD_COMMIT_RECORDS || bytes + line.length > MAX_ETCD_COMMIT_BYTES
    if (isFull && batch.length > 0) await flush()
    batch.push(line)
    bytes += line.length
  }
  if (batch.length > 0) await flush()
}

function taken(prefix: string): Failure {
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
