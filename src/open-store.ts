/** Opening a store: its journal, in the place that the settings name, and the operator's way to it. */
import { randomBytes, randomInt } from 'node:crypto'
import { join, resolve } from 'node:path'
import { operatorRoutes } from './api/operator.ts'
import { createPipeline } from './api/pipeline.ts'
import { routerOf } from './api/route.ts'
import { Failure } from './errors.ts'
import { Gate } from './http/gate.ts'
import { localDoor } from './http/local.ts'
import { openFileJournal } from './journal/file.ts'
import { disk } from './journal/files.ts'
import type { Fold, JournalOptions, DurableJournal, WriteWatch } from './journal/journal.ts'
import { readKeyFile } from './journal/keys.ts'
import { holdFolder } from './journal/lock.ts'
import { openMemoryJournal } from './journal/memory.ts'
import { MAX_IMPORT_BYTES, SHUTDOWN_TIMEOUT_MS } from './limits.ts'
import { etcdAccess, type PlaceSettings } from './place.ts'
import type { Log } from './serving.ts'
import { PasswordHasher } from './store/password.ts'
import { Store } from './store/store.ts'

/** A store that is open. */
export interface OpenStore {
  readonly store: Store
  /** Waits for what was queued, closes the journal, lets go of the folder. */
  close(): Promise<void>
}

/** Opens a store, and the operator's door to it, but serves nobody else. Rejects with a `Failure`, holding nothing. */
export async function openStore(settings: PlaceSettings, log: Log, onWrite?: WriteWatch): Promise<OpenStore> {
  const accounts = {
    hasher: new PasswordHasher(randomBytes), operatorHasher: new PasswordHasher(randomBytes), random: randomBytes,
    wallMs: Date.now
  }
  if (settings.journal === 'memory') {
    log.warn('JOURNAL=memory keeps nothing beyond this process')
    const store = new Store(fold => openMemoryJournal(fold, Date.now), accounts)
    return { store, close: () => store.close() }
  }
  const folder = resolve(settings.dataDir)
  const keyFile = resolve(settings.keyFile ?? join(folder, 'journal.key'))
  log.info(`data folder    ${folder}`)
  const operator = new Gate()
  const door = localDoor(operator.take)
  const hold = await holdFolder(disk, folder, door, process.pid, randomInt)
  try {
    let journal: DurableJournal | undefined
    const sources = { wallMs: Date.now, random: randomBytes, warn: log.warn, onWrite }
    const openEtcd = settings.journal === 'etcd' ? await inEtcd(settings, keyFile, sources) : undefined
    const store = new Store(fold => journal = openEtcd?.(fold) ?? openFileJournal({
      ...sources, files: disk, folder, keyFile, fold, onProgress: share => log.progress?.('reading the journal', share)
    }), accounts)
    await journal!.ready?.()
    const { records, head } = store.journal.health()
    log.info(`journal        ${records} records, ${store.entryCount} entries (${store.activeCount} active)`)
    log.info(`chain head     ${head}`)
    const { path, endpoints } = journal!.location()
    if (endpoints !== undefined) log.info(`etcd           ${path} at ${endpoints.join(', ')}`)
    operator.open(createPipeline({
      router: routerOf(operatorRoutes(store, journal!)), maxBodyBytes: MAX_IMPORT_BYTES, tellsFailures: true,
      current: store.journal.current, isStopping: () => false,
      nowMs: () => performance.now(), warn: log.warn
    }))
    const close = async (): Promise<void> => {
      await operator.close(SHUTDOWN_TIMEOUT_MS)
      try {
        await store.close()
      } finally {
        await hold.release()
      }
    }
    return { store, close }
  } catch (error) {
    await hold.release()
    throw error
  }
}

/** Makes a journal in etcd, of which nothing is loaded unless it is asked for. */
async function inEtcd(
  settings: PlaceSettings, keyFile: string, sources: Omit<JournalOptions, 'keyFile' | 'fold'>
): Promise<(fold: Fold) => DurableJournal> {
  const keys = readKeyFile(disk, keyFile)
  if (keys === undefined) {
    throw new Failure('key-missing', `${keyFile}; the instances share one, which admin.js init --journal file makes`)
  }
  const access = etcdAccess(settings, disk)
  const { EtcdJournal } = await import('./etcd/journal.ts')
  const { etcdPrefix: prefix, staleReads } = settings
  return fold => new EtcdJournal({ ...sources, files: disk, access, prefix, keys, keyFile, staleReads, fold })
}
