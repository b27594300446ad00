/** Opening what is stored: the lock on the data folder, the journal, and the store that is read from it. */
import { randomBytes } from 'node:crypto'
import { nowMs } from './clock.ts'
import { Closers } from './closers.ts'
import type { StorageSettings } from './core-settings.ts'
import { disk, type Files } from './journal/files.ts'
import { locationOf, openFolder } from './journal/folder.ts'
import type { DurableJournal } from './journal/journal.ts'
import { lockFolder, type Lock } from './journal/lock.ts'
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
  /** That of the data folder, on whose socket a part may serve; undefined without a folder. */
  readonly lock: Lock | undefined
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
  readonly files?: Files
}

/** Opens a store; `journals` are those that parts offer. Rejects with a `Failure`, holding nothing. */
export async function openStorage(
  settings: StoreSettings, journals: Journals, log: Log, { observers, mayCreate, files = disk }: OpenStorageOptions = {}
): Promise<Storage> {
  const state = new State()
  if (settings.journal === 'memory') {
    const { openMemoryJournal } = await import('./journal/memory-journal.ts')
    log.warn('JOURNAL=memory keeps nothing beyond this process')
    const store = new Store(openMemoryJournal(Date.now, state.apply), state, observers)
    return { store, journal: undefined, readMs: 0, lock: undefined, close: () => store.close() }
  }
  const { folder, keyFile } = locationOf(settings)
  log.info(`data folder    ${folder}`)
  const onProgress = (share: number): void => log.progress?.('reading the journal', share)
  const options = {
    files, folder, keyFile, wallMs: Date.now, random: randomBytes, warn: log.warn, mayCreate, onProgress,
    mustExist: settings.isProduction === true
  }
  const kind = journals[settings.journal]
  const beganMs = nowMs()
  const { journal, lock } = kind === undefined ? await openFolder(options, state.apply)
    : await openLocked(files, folder, () => kind.open(settings, options, state.apply))
  const readMs = nowMs() - beganMs
  const store = new Store(journal, state, observers)
  const closers = new Closers()
  closers.add(lock.release)
  closers.add(() => store.close())
  report(settings, state, journal, folder, log)
  return { store, journal, readMs, lock, close: () => closers.close() }
}

/** Opens a journal that a part offers, behind the lock of the data folder. */
async function openLocked(
  files: Files, folder: string, open: () => Promise<DurableJournal>
): Promise<{ readonly journal: DurableJournal, readonly lock: Lock }> {
  const lock = await lockFolder(files, folder)
  try {
    return { journal: await open(), lock }
  } catch (error) {
    await lock.release().catch(() => {}) // why it does not open says more
    throw error
  }
}

function report(
  { journal: kind }: StoreSettings, { entries: { count, active } }: State, journal: DurableJournal, folder: string,
  log: Log
): void {
  const { records, head } = journal.status()
  const { path, endpoints, isNew = false } = journal.location()
  if (isNew && endpoints === undefined) log.info(`new, empty store in ${folder}`)
  const entries = counted(count, 'entry', 'entries')
  log.info(`journal        ${counted(records, 'record')}, ${entries} (${active} active)`)
  log.info(`chain head     ${head}`)
  if (endpoints !== undefined) log.info(`${kind.padEnd(14)} ${path} at ${endpoints.join(', ')}`)
}
