/** The storage: the data folder with its lock, the journal, and the store on it. */
import { randomBytes } from 'node:crypto'
import type { StorageSettings } from './core-settings.ts'
import { disk, type Files } from './journal/files.ts'
import { locationOf, openFolder } from './journal/folder.ts'
import { openMemoryJournal, type DurableJournal } from './journal/journal.ts'
import type { Keyring } from './journal/keys.ts'
import type { Lock } from './journal/lock.ts'
import { counted, type Log } from './log.ts'
import { JOURNALS } from './settings.ts'
import { emptyState } from './slices.ts'
import type { State } from './store/state.ts'
import { Store } from './store/store.ts'

/** `lock` and `journal` are undefined in memory. */
export interface Storage {
  readonly store: Store
  readonly journal: DurableJournal | undefined
  readonly lock: Lock | undefined
  readonly readMs: number
  /** Waits for queued changes first. */
  close(): Promise<void>
}

export interface OpenOptions {
  /** Makes a missing journal, in production too, and even a shared journal. */
  readonly mayCreate?: boolean | undefined
  readonly files?: Files
  /** Instead of the key file's. */
  readonly keys?: Keyring | undefined
}

/** Rejects with a `Failure`, holding nothing. */
export async function openStorage(
  settings: StorageSettings & { readonly isProduction?: boolean },
  log: Log,
  { mayCreate, files = disk, keys }: OpenOptions = {}
): Promise<Storage> {
  const state = emptyState()
  if (settings.journal === 'memory') {
    log.warn('JOURNAL=memory keeps nothing beyond this process')
    const store = new Store(openMemoryJournal(Date.now, state.apply), state)
    return { store, journal: undefined, lock: undefined, readMs: 0, close: () => store.close() }
  }
  const { folder, keyFile } = locationOf(settings)
  log.info(`data folder    ${folder}`)
  const options = {
    files,
    folder,
    keyFile,
    keys,
    mayCreate,
    mustExist: settings.isProduction === true,
    wallMs: Date.now,
    random: randomBytes,
    warn: log.warn,
    onProgress: (share: number) => log.progress?.('reading the journal', share)
  }
  const kind = JOURNALS[settings.journal]
  const beganMs = performance.now()
  const open = kind && (() => kind.open(settings as never, options, state.apply))
  const { journal, lock } = await openFolder(options, state.apply, open)
  const store = new Store(journal, state)
  announceStorage(settings.journal, state, journal, folder, log)
  const close = async (): Promise<void> => {
    try {
      await store.close()
      if (journal.location().endpoints === undefined)
        log.info(`chain head     ${journal.status().head}, at the stop`)
    } finally {
      await lock.release()
    }
  }
  return { store, journal, lock, readMs: performance.now() - beganMs, close }
}

function announceStorage(
  kind: string,
  { entries: { count, active } }: State,
  journal: DurableJournal,
  folder: string,
  log: Log
): void {
  const { records, head } = journal.status()
  const { path, endpoints, isNew = false } = journal.location()
  if (isNew && endpoints === undefined) log.info(`new, empty store in ${folder}`)
  log.info(
    `journal        ${counted(records, 'record')}, ${counted(count, 'entry', 'entries')} ` +
      `(${active} active)`
  )
  log.info(`chain head     ${head}`)
  if (endpoints !== undefined) log.info(`${kind.padEnd(14)} ${path} at ${endpoints.join(', ')}`)
}
