/** A whole journal in etcd, for the operator: read, fill, close, remove. */
import { disk } from '../../journal/files.ts'
import { Failure } from '../../errors.ts'
import { readKeyFile } from '../../journal/keys.ts'
import { isoTime } from '../../journal/line.ts'
import { readInSteps, type Recovered } from '../../journal/recover.ts'
import { OperatorError, type Context } from '../commands/command.ts'
import type { JournalSource } from '../../part.ts'
import { etcdAccess, EtcdClient } from './etcd-client.ts'
import {
  ETCD_READ_TIMEOUT_MS,
  ETCD_WRITE_TIMEOUT_MS,
  MAX_ETCD_COMMIT_BYTES,
  MAX_ETCD_COMMIT_RECORDS
} from './etcd-limits.ts'
import { START, type Stored } from './etcd-keys.ts'
import { EtcdLog } from './etcd-log.ts'
import type { EtcdSettings } from './etcd-settings.ts'
import {
  emptied,
  hadRecords,
  markerText,
  WAS_EMPTY,
  unusable,
  withoutMarker,
  type Marker
} from './marker.ts'
import { Replica } from './replica.ts'

export async function copyToEtcd({ store, terminal }: Context): Promise<void> {
  // The question takes a free lock, and this process keeps it until the copy is made.
  const { path, keyFile, bytes, records, head } = await store.ask('status', {})
  if (!store.hasLock) {
    const why = 'what it changes meanwhile would be lost'
    throw new OperatorError(`the service runs on this folder, and ${why}; stop it first`)
  }
  const keys = readKeyFile(disk, keyFile)!
  const settings = settingsOf(store)
  const { etcdPrefix } = settings
  terminal.noteJournal({ path }, `, to ${etcdPrefix} at ${settings.etcdEndpoints.join(', ')}`)
  const lines = function* (): Generator<string, void, void> {
    let read: string[] = []
    for (const { goodBytes } of readInSteps(
      disk,
      path,
      keys,
      (_record, text) => {
        read.push(text)
      },
      bytes
    )) {
      terminal.progress('copying', goodBytes / bytes)
      yield* read
      read = []
    }
  }
  // Nobody appends to the file: this process has the lock.
  const left =
    'the copy may not be whole: then no instance takes it, and the same command starts it over'
  await terminal
    .saying(`${etcdPrefix}: ${left}`, async () => {
      await fillEtcd(settings, keys.newest.name, lines(), async () => {
        const made = await readEtcd(settings, { keys, apply: () => {} })
        if (made.records !== records || made.head !== head)
          throw new OperatorError('the copy differs from the journal')
      })
    })
    .catch(error => {
      throw error instanceof Failure ? new OperatorError(`${error.message}; ${left}`) : error
    })
    .finally(() => terminal.progress('', 1))
  terminal.show(
    { path: etcdPrefix, records, head },
    `${etcdPrefix}: ${records} records, head ${head}`
  )
}

export async function close({ store, terminal }: Context): Promise<void> {
  await withJournal(store, terminal, async (log, marker) => {
    if (marker.state === 'closed') throw new OperatorError(`${log.prefix} is closed already`)
    const word = `${isoTime(Date.now())}${marker.state === 'empty' ? ` ${WAS_EMPTY}` : ''}`
    // Every append requires the marker that it has read, so none comes after this change.
    const { state } = await change(
      log,
      terminal,
      marker,
      markerText({ ...marker, state: 'closed' }, word),
      'closed'
    )
    terminal.show({ path: log.prefix, state }, [
      `${log.prefix} is closed: instances read, and take no changes`,
      'journal backup copies it, journal reopen opens it, journal remove ends it'
    ])
  })
}

export async function reopen({ store, terminal }: Context): Promise<void> {
  await withJournal(store, terminal, async (log, marker) => {
    if (marker.state !== 'closed') throw new OperatorError(`${log.prefix} is not closed`)
    // Not `empty` if it had records: then losing them all would look like a new journal.
    const text = markerText({ ...marker, state: hadRecords(marker) ? 'begun' : 'empty' })
    const { state } = await change(log, terminal, marker, text, 'open again')
    terminal.show({ path: log.prefix, state }, `${log.prefix}: instances may write to it again`)
  })
}

/** The settings do not choose the journal. */
export async function remove({
  store,
  terminal,
  flags,
  positionals: [etcdPrefix = '']
}: Context): Promise<void> {
  const settings = { ...settingsOf(store), etcdPrefix }
  terminal.noteJournal({ path: etcdPrefix, endpoints: settings.etcdEndpoints })
  await withLog(settings, async log => {
    const keys = await log.look(inTime(ETCD_READ_TIMEOUT_MS))
    const { marker } = log
    if (marker === undefined) throw withoutMarker(etcdPrefix, keys)
    if (marker.state === 'damaged') throw unusable(marker, etcdPrefix)!
    const newest = keys === 0 ? START : await log.record(keys, inTime(ETCD_READ_TIMEOUT_MS))
    if (newest === undefined) {
      const how =
        `look at them (etcdctl get ${etcdPrefix} --prefix --keys-only), ` +
        'and remove them by hand'
      throw new OperatorError(
        `${etcdPrefix} lacks records, or has keys of another program among its ${keys}; ${how}`
      )
    }
    // No instance writes to a closed journal or an unfinished copy. Any other must be the very one
    // that was backed up.
    const isInUse = keys > 0 && ['empty', 'begun', 'copied'].includes(marker.state)
    if (isInUse && !newest.text.endsWith(`"hash":"${String(flags['head'])}"}`)) {
      const how =
        'does not end with a head given by --head; close it first (journal close); ' +
        'if etcd is full, make a backup and give its head by --head'
      throw new OperatorError(`${etcdPrefix} is in use, ${keys} records, and ${how}`)
    }
    await terminal.confirm(
      `${etcdPrefix}: this permanently deletes its ${keys} records.`,
      flags['yes'] === true
    )
    const act = (): Promise<boolean> => log.remove(marker, newest, inTime(ETCD_WRITE_TIMEOUT_MS))
    if (!(await answered(log, terminal, 'removed', act))) throw changed(log)
    terminal.show({ path: etcdPrefix, records: keys }, `${etcdPrefix}: ${keys} records removed`)
  })
}

async function withJournal(
  store: Context['store'],
  terminal: Context['terminal'],
  act: (log: EtcdLog, marker: Marker) => Promise<void>
): Promise<void> {
  const settings = settingsOf(store)
  terminal.noteJournal({ path: settings.etcdPrefix, endpoints: settings.etcdEndpoints })
  await withLog(settings, async log => {
    const keys = await log.look(inTime(ETCD_READ_TIMEOUT_MS))
    const { marker, prefix } = log
    if (marker === undefined) throw withoutMarker(prefix, keys)
    if (keys === 0 && hadRecords(marker)) throw emptied(prefix)
    const fault = unusable(marker, prefix)
    if (fault !== undefined) throw fault
    await act(log, marker)
  })
}

async function change(
  log: EtcdLog,
  terminal: Context['terminal'],
  from: Marker,
  text: string,
  becomes: string
): Promise<Marker> {
  const act = (): Promise<Marker | undefined> =>
    log.change(from, text, inTime(ETCD_WRITE_TIMEOUT_MS))
  const marker = await answered(log, terminal, becomes, act)
  if (marker?.text !== text) throw changed(log)
  return marker
}

/** If a change has no answer, says that it may have been made. */
function answered<T>(
  { prefix }: EtcdLog,
  terminal: Context['terminal'],
  becomes: string,
  act: () => Promise<T>
): Promise<T> {
  const mayBe =
    `${prefix} may be ${becomes}, or not: journal verify says so, and the same command may ` +
    'be repeated'
  return terminal.saying(mayBe, act).catch(error => {
    if (!(error instanceof Failure) || error.code !== 'journal-unreachable') throw error
    throw new OperatorError(`${error.message}; ${mayBe}`)
  })
}

function changed({ prefix }: EtcdLog): OperatorError {
  return new OperatorError(
    `${prefix} was changed meanwhile, or another copy is made there; look again`
  )
}

/** Verifies the first `records`, or all. Rejects as `openEtcdJournal` does. */
export function readEtcd(
  settings: EtcdSettings,
  from: Pick<JournalSource, 'keys' | 'apply'> & Partial<JournalSource>
): Promise<Pick<Recovered, 'records' | 'head'>> {
  const {
    path: etcdPrefix = settings.etcdPrefix,
    keys,
    apply,
    records = Infinity,
    onProgress = () => {}
  } = from
  return withLog({ ...settings, etcdPrefix }, async log => {
    const replica = new Replica(apply, keys, etcdPrefix)
    for (let left = 1; left > 0 && replica.newest.seq < records;) {
      const page = await log.after(replica.newest, inTime(ETCD_READ_TIMEOUT_MS))
      replica.take(page.records.filter(({ seq }) => seq <= records))
      left = page.left
      const { seq } = replica.newest
      onProgress(seq / Math.max(1, Math.min(records, seq + left)))
    }
    return { records: replica.newest.seq, head: replica.head }
  })
}

/**
 * Instances refuse the copy until `verify` has resolved. Rejects with `OperatorError` if the prefix
 * is in use, or another copy interferes.
 */
export function fillEtcd(
  settings: EtcdSettings,
  key: string,
  lines: Iterable<string>,
  verify: () => Promise<void>
): Promise<void> {
  return withLog(settings, async log => {
    // No other copy has this text. An incomplete copy is replaced, a journal left alone.
    const copying = markerText({ key, state: 'copying' }, log.id)
    let marker = await log.change(undefined, copying, inTime(ETCD_WRITE_TIMEOUT_MS), {
      isEmpty: true
    })
    if (marker?.state === 'copying' && marker.text !== copying) {
      marker = await log.change(marker, copying, inTime(ETCD_WRITE_TIMEOUT_MS), { removes: true })
    }
    if (marker?.text !== copying) {
      const what = marker === undefined ? 'other keys' : 'a journal, or another copy is made there'
      throw new OperatorError(
        `${log.prefix} holds ${what}; nothing was copied. Name another ETCD_PREFIX`
      )
    }
    const isEmpty = (await fill(log, marker, lines)) === 0
    await verify() // before the word that lets instances in
    const whole = markerText({ key, state: isEmpty ? 'empty' : 'copied' }, isEmpty ? '' : log.id)
    if ((await log.change(marker, whole, inTime(ETCD_WRITE_TIMEOUT_MS)))?.text !== whole)
      throw changed(log)
  })
}

async function fill(log: EtcdLog, marker: Marker, lines: Iterable<string>): Promise<number> {
  let newest: Stored = START
  for (const batch of batchesOf(lines)) {
    const { records } = await log.append(newest, marker, batch, inTime(ETCD_WRITE_TIMEOUT_MS))
    // Made now, or by an earlier attempt: what is there must be this copy's.
    if (records[0]?.text !== batch[0]) throw changed(log) // etcd takes all of a batch or none
    newest = { seq: newest.seq + batch.length, text: batch.at(-1)! }
  }
  return newest.seq
}

function* batchesOf(lines: Iterable<string>): Generator<readonly string[], void, void> {
  let batch: string[] = []
  let bytes = 0
  for (const line of lines) {
    const isFull =
      batch.length === MAX_ETCD_COMMIT_RECORDS || bytes + line.length > MAX_ETCD_COMMIT_BYTES
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

function inTime(ms: number): number {
  return performance.now() + ms
}

function settingsOf({ settings }: Context['store']): EtcdSettings {
  return settings as Context['store']['settings'] & EtcdSettings
}

async function withLog<T>(settings: EtcdSettings, act: (log: EtcdLog) => Promise<T>): Promise<T> {
  if (settings.etcdEndpoints.length === 0)
    throw new OperatorError('ETCD_ENDPOINTS must be set, as for the service')
  const client = new EtcdClient(etcdAccess(settings, disk))
  try {
    return await act(new EtcdLog(client, settings.etcdPrefix))
  } finally {
    client.close()
  }
}
