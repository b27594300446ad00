/** Opening what is stored: the lock on the data folder, the journal, and the store that is read from it. */
import { randomBytes, randomInt } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import { nowMs } from './clock.ts'
import { Closers } from './closers.ts'
import type { StorageSettings } from './core-settings.ts'
import { isFull } from './journal/durable.ts'
import { disk, fileFault, type Files } from './journal/files.ts'
import { lockFolder, type UnixSockets, type FolderLock } from './journal/lock.ts'
import { Failure, systemCode } from './errors.ts'
import { RequestGate } from './http/request-gate.ts'
import { localSockets } from './http/local-socket.ts'
import type { FileJournalOptions } from './journal/file-journal.ts'
import type { DurableJournal } from './journal/journal.ts'
import { JOURNAL_FILE, locationOf, missing, openFileJournal } from './journal/open-file.ts'
import { LOCK_CHECK_MS, SHUTDOWN_TIMEOUT_MS } from './limits.ts'
import { counted, type Log } from './log.ts'
import type { Part } from './part.ts'
import { State } from './store/state.ts'
import { Store, type JournalObserver } from './store/store.ts'

export interface Storage {
  readonly store: Store
  /** Undefined for one in memory. */
  readonly journal: DurableJournal | undefined
  /** How long the start took to read it. */
  readonly readMs: number
  /** In front of the lock socket, which only the folder's owner can open; undefined without one. */
  readonly gate: RequestGate | undefined
  /** Waits for what was queued, closes the journal, releases the lock. */
  close(): Promise<void>
}

/** Where the journal is, and whether this is production. */
type StoreSettings = StorageSettings & { readonly isProduction?: boolean }

type Journals = NonNullable<Part['journals']>

/** How a store is opened; with `mayCreate` a missing journal is made, even one that others share. */
interface OpenStorageOptions {
  readonly observers?: readonly JournalObserver[]
  readonly mayCreate?: boolean | undefined
  /** Whether a journal on a disk too full for the lock is opened all the same, for reading. */
  readonly mayOnlyRead?: boolean
  readonly files?: Files
}

/** Opens a store; `journals` are those that parts offer. Rejects with a `Failure`, holding nothing. */
export async function openStorage(
  settings: StoreSettings, journals: Journals, log: Log, options: OpenStorageOptions = {}
): Promise<Storage> {
  if (settings.journal === 'memory') return openInMemory(log, options)
  const { files = disk, mayCreate } = options
  const { folder, path } = locationOf(settings)
  log.info(`data folder    ${folder}`)
  const mustExist = settings.isProduction === true && mayCreate !== true
  const closers = new Closers()
  try {
    if (mustExist && settings.journal === 'file' && files.stat(folder) === undefined) {
      throw missing(path, true)
    }
    const gate = new RequestGate()
    const locked = await lockForWriting(settings, folder, gate, log, options, closers)
    const { store, journal, readMs } = await openJournal(settings, journals, log, options, { ...locked, mustExist })
    closers.add(() => store.close())
    closers.add(() => gate.close(SHUTDOWN_TIMEOUT_MS))
    return { store, journal, readMs, gate, close: () => closers.close() }
  } catch (error) {
    await closers.close().catch(() => {}) // why it did not open says more
    if (error instanceof Failure) throw error
    throw new Failure('folder-unusable', fileFault(files, error, folder), { cause: error })
  }
}

async function openInMemory(log: Log, { observers }: OpenStorageOptions): Promise<Storage> {
  const { openMemoryJournal } = await import('./journal/memory-journal.ts')
  log.warn('JOURNAL=memory keeps nothing beyond this process')
  const state = new State()
  const store = new Store(openMemoryJournal(Date.now, state.apply), state, observers)
  return { store, journal: undefined, readMs: 0, gate: undefined, close: () => store.close() }
}

/** What a journal learns of its lock: itself, or why there is none; then the journal is only read. */
type Locked = Pick<FileJournalOptions, 'lock' | 'unlocked'>

/** Takes the lock, and looks now and then whether it is still held, and takes it again. */
async function lockForWriting(
  settings: StoreSettings, folder: string, gate: RequestGate, log: Log,
  { files = disk, mayOnlyRead = false }: OpenStorageOptions, closers: Closers
): Promise<Locked> {
  try {
    const lock = await lockJournal(files, folder, localSockets(gate.handle), log.warn)
    closers.add(() => lock.release())
    const timer = setInterval(() => void lock.keep().catch(() => {}), LOCK_CHECK_MS).unref() // it has said why
    closers.add(() => clearInterval(timer))
    return { lock }
  } catch (error) {
    const { cause } = error as Failure
    if (!mayOnlyRead || settings.journal !== 'file' || !isFull(cause)) throw error
    return { unlocked: `${folder} has no room for a lock (${systemCode(cause)})` }
  }
}

async function openJournal(
  settings: StoreSettings, journals: Journals, log: Log, { observers, mayCreate, files = disk }: OpenStorageOptions,
  locked: Locked & { readonly mustExist: boolean }
): Promise<Pick<Storage, 'store' | 'readMs'> & { readonly journal: DurableJournal }> {
  const { folder, keyFile } = locationOf(settings)
  const onProgress = (share: number): void => log.progress?.('reading the journal', share)
  const options = { keyFile, wallMs: Date.now, random: randomBytes, warn: log.warn, mayCreate, onProgress }
  const state = new State()
  const beganMs = nowMs()
  const journal: DurableJournal = await journals[settings.journal]?.open(settings, options, state.apply) ??
    await openFileJournal({ ...options, ...locked, files, folder }, state.apply)
  const readMs = nowMs() - beganMs
  const store = new Store(journal, state, observers)
  const { records, head } = journal.status()
  const { path, endpoints, isNew = false } = journal.location()
  if (isNew && endpoints === undefined) log.info(`new, empty store in ${folder}`)
  const entries = counted(state.entries.count, 'entry', 'entries')
  log.info(`journal        ${counted(records, 'record')}, ${entries} (${state.entries.active} active)`)
  log.info(`chain head     ${head}`)
  if (endpoints !== undefined) log.info(`${settings.journal.padEnd(14)} ${path} at ${endpoints.join(', ')}`)
  return { store, journal, readMs }
}

/**
 * Locks the folder and, where the journal is a link, what it leads to. Refuses what is no regular file: a device would
 * be taken for an empty journal, and what has been written there is not kept.
 */
export async function lockJournal(
  files: Files, folder: string, sockets: UnixSockets, warn: Log['warn'] = () => {}
): Promise<FolderLock> {
  const lock = (where: string, prefix?: string): Promise<FolderLock> =>
    lockFolder(files, where, sockets, process.pid, randomInt, { warn, ...prefix !== undefined && { prefix } })
  const own = await lock(folder)
  try {
    const journal = join(folder, JOURNAL_FILE)
    const path = files.real(journal)
    const found = files.stat(path)
    if (found?.isFile === false) {
      const why = `${journal} leads to no regular file; put the journal there, or a link to it`
      throw new Failure('folder-unusable', why)
    }
    const [where, name] = [dirname(path), basename(path)]
    // A `journal.jsonl` elsewhere is locked by its folder; of files with other names a folder may hold several.
    const isLink = where !== files.real(folder) || name !== JOURNAL_FILE
    if (!isLink || found === undefined) return own
    return bothOf(own, await lock(where, name === JOURNAL_FILE ? '' : `${name}.`))
  } catch (error) {
    await own.release()
    throw error
  }
}

function bothOf(one: FolderLock, other: FolderLock): FolderLock {
  const closers = new Closers()
  closers.add(one.release)
  closers.add(other.release)
  return {
    isHeld: () => one.isHeld() && other.isHeld(),
    keep: async () => { await one.keep(); await other.keep() },
    fault: () => one.fault() ?? other.fault(),
    release: () => closers.close()
  }
}
