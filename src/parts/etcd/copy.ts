/** The whole journal in etcd at once, for the operator: reading it, and moving one between a folder and etcd. */
import { disk } from '../../journal/files.ts'
import { Failure } from '../../errors.ts'
import type { EncodedEvent } from '../../journal/journal.ts'
import { readKeyFile } from '../../journal/keys.ts'
import { locationOf } from '../../journal/folder.ts'
import { isoTime } from '../../journal/line.ts'
import { readInSteps, type Recovered } from '../../journal/recover.ts'
import { counted } from '../../log.ts'
import { OperatorError, type Context } from '../command.ts'
import type { JournalSource } from '../../part.ts'
import { saveJournal } from '../saved-journal.ts'
import { etcdAccess, EtcdClient } from './etcd-client.ts'
import {
  ETCD_READ_TIMEOUT_MS, ETCD_WRITE_TIMEOUT_MS, MAX_ETCD_COMMIT_BYTES, MAX_ETCD_COMMIT_RECORDS
} from './etcd-limits.ts'
import { START } from './etcd-keys.ts'
import { EtcdLog } from './etcd-log.ts'
import type { EtcdSettings } from './etcd-settings.ts'
import { emptied, hadRecords, markerText, WAS_EMPTY, unusable, withoutMarker, type Marker } from './marker.ts'
import { Replica } from './replica.ts'

/** The journal from a folder into etcd, where no service runs on that folder. */
export async function copyToEtcd({ store, terminal }: Context): Promise<void> {
  // Where no process has the lock, asking takes it, and keeps it until the copy is made.
  const { path, keyFile, bytes, records, head } = await store.ask('status', {})
  if (!store.hasLock) {
    const why = 'what it changes meanwhile would be lost'
    throw new OperatorError(`the service runs on this folder, and ${why}; stop it first`)
  }
  const keys = readKeyFile(disk, keyFile)!
  const settings = store.settings as Context['store']['settings'] & EtcdSettings
  terminal.noteJournal({ path }, `, to ${settings.etcdPrefix} at ${settings.etcdEndpoints.join(', ')}`)
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
  const { etcdPrefix } = settings
  terminal.show({ path: etcdPrefix, records, head }, `${etcdPrefix}: ${records} records, head ${head}`)
}

/** The journal from etcd into a folder that has none; it is closed there, so that nothing is written after that. */
export async function copyToFile({ store, terminal }: Context): Promise<void> {
  const { path: target, keyFile } = locationOf(store.settings)
  if (disk.stat(target) !== undefined) throw new OperatorError(`${target} exists already`)
  const settings = store.settings as Context['store']['settings'] & EtcdSettings
  const { etcdPrefix: path, etcdEndpoints: endpoints } = settings
  terminal.noteJournal({ path, endpoints }, `, to ${target}`)
  await withLog(settings, async log => {
    const { marker: before } = await found(log)
    const fault = unusable(before, path)
    if (fault !== undefined) throw fault
    const word = `${isoTime(Date.now())}${before.state === 'empty' ? ` ${WAS_EMPTY}` : ''}`
    const isOpen = before.state !== 'closed'
    const shut = isOpen ? await change(log, before, markerText({ ...before, state: 'closed' }, word)) : before
    const more = async (): Promise<readonly EncodedEvent[]> => {
      if ((await found(log)).marker.revision !== shut.revision) throw changed(log)
      return []
    }
    try {
      const { records, head } = await saveJournal(store, target, { path, keyFile, bytes: 0, endpoints }, { more })
      terminal.show({ path: target, records, head, closed: path }, [
        `${target}: ${records} records, head ${head}`,
        `${path} is closed: what still runs there takes no changes; journal remove ends it, journal reopen opens it`
      ])
    } catch (error) {
      const how = 'still closed; journal reopen opens it'
      if (isOpen) await change(log, shut, before.text).catch(() => terminal.warn(`${path} may be ${how}`))
      throw error
    }
  })
}

/** Lets instances write again to a journal that a copy has closed. */
export async function reopen({ store, terminal }: Context): Promise<void> {
  const settings = store.settings as Context['store']['settings'] & EtcdSettings
  terminal.noteJournal({ path: settings.etcdPrefix, endpoints: settings.etcdEndpoints })
  await withLog(settings, async log => {
    const { state } = await reopenAt(log)
    terminal.show({ path: log.prefix, state }, `${log.prefix}: instances may write to it again`)
  })
}

async function reopenAt(log: EtcdLog): Promise<Marker> {
  const { marker, records } = await found(log)
  if (marker.state !== 'closed') throw new OperatorError(`${log.prefix} is not closed`)
  return change(log, marker, markerText({ ...marker, state: records > 0 ? 'begun' : 'empty' }))
}

/** Removes a journal that is no longer used, records and marker at once: the one named, whatever the settings say. */
export async function remove({ store, terminal, flags, positionals: [etcdPrefix = ''] }: Context): Promise<void> {
  const settings = { ...store.settings as Context['store']['settings'] & EtcdSettings, etcdPrefix }
  terminal.noteJournal({ path: etcdPrefix, endpoints: settings.etcdEndpoints })
  await withLog(settings, async log => {
    const { records, others } = await log.look(inTime(ETCD_READ_TIMEOUT_MS))
    const { marker } = log
    if (marker === undefined) throw withoutMarker(etcdPrefix, records, others)
    // Where an older version began to move a journal, this may be the only whole one.
    if (['damaged', 'moving'].includes(marker.state)) throw unusable(marker, etcdPrefix)!
    if (records > 0 && ['empty', 'begun', 'copied'].includes(marker.state)) {
      const how = 'journal copy --to file closes it, and keeps what it holds'
      throw new OperatorError(`${etcdPrefix} is in use, ${records} records; ${how}`)
    }
    if (others > 0) {
      const what = `${counted(others, 'key')} of another program`
      throw new OperatorError(`${etcdPrefix} also holds ${what}; remove those first`)
    }
    await terminal.confirm(`${etcdPrefix}: ${records} records are then gone for good.`, flags['yes'] === true)
    if (!await log.remove(marker, inTime(ETCD_WRITE_TIMEOUT_MS))) throw changed(log)
    terminal.show({ path: etcdPrefix, records }, `${etcdPrefix}: ${records} records removed`)
  })
}

/** What is there; rejects where no journal is, or its records are gone. */
async function found(log: EtcdLog): Promise<{ readonly marker: Marker, readonly records: number }> {
  const { records, others } = await log.look(inTime(ETCD_READ_TIMEOUT_MS))
  const { marker } = log
  if (marker === undefined) throw withoutMarker(log.prefix, records, others)
  if (records === 0 && hadRecords(marker)) throw emptied(log.prefix)
  return { marker, records }
}

async function change(log: EtcdLog, from: Marker, text: string): Promise<Marker> {
  const marker = await log.change(from, text, inTime(ETCD_WRITE_TIMEOUT_MS))
  if (marker?.text !== text) throw changed(log)
  return marker
}

function changed({ prefix }: EtcdLog): OperatorError {
  return new OperatorError(`${prefix} was changed meanwhile; look again`)
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
    for (let left = 1; left > 0 && replica.newest.seq < records;) {
      const page = await log.after(replica.newest, inTime(ETCD_READ_TIMEOUT_MS))
      if (page === undefined) throw new Failure('journal-damaged', `${etcdPrefix}: what was just read is gone`)
      replica.take(page.records.filter(({ seq }) => seq <= records))
      const { seq } = replica.newest
      if (seq < Math.min(page.records.at(-1)?.seq ?? 0, records)) {
        throw new Failure('journal-damaged', `${etcdPrefix}: record ${seq + 1} is missing, others follow it`)
      }
      left = page.left
      onProgress(seq / Math.max(1, Math.min(records, seq + left)))
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
    const copying = markerText({ key, state: 'copying' }, log.id)
    let begun = await log.change(undefined, copying, inTime(ETCD_WRITE_TIMEOUT_MS), { isEmpty: true })
    if (begun?.state === 'copying' && begun.text !== copying) {
      begun = await log.change(begun, copying, inTime(ETCD_WRITE_TIMEOUT_MS), { removes: true })
    }
    if (begun?.text !== copying) {
      const what = begun === undefined ? 'other keys' : 'a journal, or another copy is made there'
      throw new OperatorError(`${log.prefix} holds ${what}; nothing was copied. Name another ETCD_PREFIX`)
    }
    const isEmpty = await fill(log, begun, lines) === 0
    await verify()
    const whole = markerText({ key, state: isEmpty ? 'empty' : 'copied' }, isEmpty ? '' : log.id)
    if ((await log.change(begun, whole, inTime(ETCD_WRITE_TIMEOUT_MS)))?.text !== whole) throw taken(log)
  })
}

/** Puts lines where there are none; gives how many. Rejects with `journal-refused` where another copy does as well. */
async function fill(log: EtcdLog, begun: Marker, lines: Iterable<string>): Promise<number> {
  let newest = START
  for (const batch of batchesOf(lines)) {
    const { records } = await log.append(newest, begun, batch, inTime(ETCD_WRITE_TIMEOUT_MS))
    if (records[0]?.text !== batch[0]) throw taken(log) // all of them are there, or none is
    newest = { seq: newest.seq + batch.length, text: batch.at(-1)! }
  }
  return newest.seq
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
  return new Failure('journal-refused', `${prefix} was changed meanwhile, or another copy is made there`)
}

function inTime(ms: number): number { return performance.now() + ms }

async function withLog<T>(settings: EtcdSettings, act: (log: EtcdLog) => Promise<T>): Promise<T> {
  if (settings.etcdEndpoints.length === 0) throw new OperatorError('ETCD_ENDPOINTS must be set, as for the service')
  const client = new EtcdClient(etcdAccess(settings, disk))
  try {
    return await act(new EtcdLog(client, settings.etcdPrefix))
  } finally {
    client.close()
  }
}
