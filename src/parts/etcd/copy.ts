/** The whole journal in etcd at once, for the operator: reading it, and moving one between a folder and etcd. */
import { disk } from '../../disk/files.ts'
import { Failure } from '../../errors.ts'
import { readKeyFile } from '../../journal/keys.ts'
import { locationOf } from '../../journal/open-file.ts'
import { readInSteps, type Recovered } from '../../journal/recover.ts'
import { OperatorError, type Context } from '../command.ts'
import type { JournalSource } from '../part.ts'
import { saveJournal } from '../saved-journal.ts'
import { etcdAccess, EtcdClient } from './etcd-client.ts'
import {
  ETCD_READ_TIMEOUT_MS, ETCD_WRITE_TIMEOUT_MS, MAX_ETCD_COMMIT_BYTES, MAX_ETCD_COMMIT_RECORDS
} from './etcd-limits.ts'
import { EtcdLog, START, type Marker } from './etcd-log.ts'
import type { EtcdSettings } from './etcd-settings.ts'
import { Replica } from './replica.ts'

/** The journal from a folder into etcd, where no service runs on that folder. */
export async function copyToEtcd({ store, terminal }: Context): Promise<void> {
  if (await store.look() !== undefined) {
    const why = 'what it changes meanwhile would be lost'
    throw new OperatorError(`the service runs on this folder, and ${why}; stop it first`)
  }
  // Asked for and not just looked at: this takes the lock, and keeps it until the copy is made.
  const { path, keyFile, bytes, records, head } = await store.ask('GET', '/operator/status')
  const keys = readKeyFile(disk, keyFile)!
  const settings = store.settings as Context['store']['settings'] & EtcdSettings
  const lines = function * (): Generator<string, void, void> {
    let read: string[] = []
    for (const { goodBytes } of readInSteps(disk, path, keys, (_record, text) => { read.push(text) }, bytes)) {
      terminal.progress('copying', goodBytes / bytes)
      yield * read
      read = []
    }
  }
  try {
    await fillEtcd(settings, keys.newest.name, lines(), async () => {
      const made = await readEtcd(settings, { keys, apply: () => {} })
      if (made.records !== records || made.head !== head) throw new OperatorError('the copy differs from the journal')
    })
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    throw new OperatorError(`${error.message}; the copy is not whole, and the folder is as it was`)
  } finally {
    terminal.progress('', 1)
  }
  report(terminal, settings.etcdPrefix, records, head)
}

/** The journal from etcd into a folder that has none. */
export async function copyToFile({ store, terminal }: Context): Promise<void> {
  const { path: target } = locationOf(store.settings)
  const { records, head } = await saveJournal(store, target, await store.status())
  report(terminal, target, records, head)
}

function report(terminal: Context['terminal'], path: string, records: number, head: string): void {
  terminal.show({ path, records, head }, `${path}: ${records} records, head ${head}`)
}

/**
 * Reads the journal at the prefix that the service has reported, or else that of the settings, verifying each record,
 * and hands on the first `records`, or all. Rejects as `openEtcdJournal` does.
 */
export function readEtcd(
  settings: EtcdSettings, from: Pick<JournalSource, 'keys' | 'apply'> & Partial<JournalSource>
): Promise<Pick<Recovered, 'records' | 'head'>> {
  const { path: etcdPrefix = settings.etcdPrefix, keys, apply, records = Infinity, onProgress = () => {} } = from
  return withLog({ ...settings, etcdPrefix }, async log => {
    const replica = new Replica(apply, keys, etcdPrefix)
    for (let isLast = false; !isLast && replica.newest.seq < records;) {
      const page = await log.after(replica.newest, ETCD_READ_TIMEOUT_MS)
      if (page === undefined) throw new Failure('journal-damaged', `${etcdPrefix}: what was just read is gone`)
      replica.take(page.records.filter(({ seq }) => seq <= records))
      isLast = page.isLast
      onProgress(replica.newest.seq / records)
    }
    return { records: replica.newest.seq, head: replica.head }
  })
}

/**
 * Puts the lines of a journal, sealed with `key` from then on, where none is yet; rejects with `journal-refused` where
 * one is, or another copy is made. No instance takes what was put there for a journal before `verify` has resolved.
 */
export function fillEtcd(
  settings: EtcdSettings, key: string, lines: Iterable<string>, verify: () => Promise<void>
): Promise<void> {
  return withLog(settings, async log => {
    // No other copy has this text. What an incomplete one has left is removed, and a journal is left as it is.
    const copying = `${key} copying ${log.id}`
    let begun = await log.change(undefined, copying, ETCD_WRITE_TIMEOUT_MS, { isEmpty: true })
    if (begun?.state === 'copying' && begun.text !== copying) {
      begun = await log.change(begun, copying, ETCD_WRITE_TIMEOUT_MS, { removes: true })
    }
    if (begun?.text !== copying) throw taken(log)
    await fill(log, begun, lines)
    await verify()
    const whole = `${key} copied ${log.id}`
    if ((await log.change(begun, whole, ETCD_WRITE_TIMEOUT_MS))?.text !== whole) throw taken(log)
  })
}

/** Puts lines where there are none; rejects with `journal-refused` where another copy does as well. */
async function fill(log: EtcdLog, begun: Marker, lines: Iterable<string>): Promise<void> {
  let newest = START
  for (const batch of batchesOf(lines)) {
    const { records } = await log.append(newest, begun, batch, ETCD_WRITE_TIMEOUT_MS)
    if (records[0]?.text !== batch[0]) throw taken(log) // all of them are there, or none is
    newest = { seq: newest.seq + batch.length, text: batch.at(-1)! }
  }
}

function * batchesOf(lines: Iterable<string>): Generator<readonly string[], void, void> {
  let batch: string[] = []
  let bytes = 0
  for (const line of lines) {
    const isFull = batch.length === MAX_ETCD_COMMIT_RECORDS || bytes + line.length > MAX_ETCD_COMMIT_BYTES
    if (isFull && batch.length > 0) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(line)
    bytes += line.length
  }
  if (batch.length > 0) yield batch
}

function taken({ prefix }: EtcdLog): Failure {
  return new Failure('journal-refused', `${prefix} holds a journal, or another copy is made there`)
}

async function withLog<T>(settings: EtcdSettings, act: (log: EtcdLog) => Promise<T>): Promise<T> {
  if (settings.etcdEndpoints.length === 0) throw new OperatorError('ETCD_ENDPOINTS must be set, as for the service')
  const client = new EtcdClient(etcdAccess(settings, disk))
  try {
    return await act(new EtcdLog(client, settings.etcdPrefix))
  } finally {
    client.close()
  }
}
