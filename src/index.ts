/**
 * What embedders import: a service in their own process. Several may be open at once, each on a folder of its own.
 * It sets no signal handlers, never ends the process, and says nothing but to the log that it is given.
 */
import { readOptions, type Options } from './config.ts'
import { Failure } from './errors.ts'
import { openService as open, type Service } from './service.ts'
import type { Log } from './serving.ts'

export type { Options } from './config.ts'
export { Failure, type FailureCode } from './errors.ts'
export type { Service } from './service.ts'
export type { Log } from './serving.ts'
export type { Issued, ListedToken, ListedUser, PublicUser } from './store/accounts.ts'
export type { Entry, EntryChanges, EntryFields } from './store/record.ts'

/** What a service is opened with besides its settings. */
export interface Surroundings {
  /** Takes what an operator should see; without it, nothing is said. */
  readonly log?: Log
  /** Closes the service when it is aborted. */
  readonly signal?: AbortSignal
  /** The path below which `handle` finds everything, such as `/vault`; empty: the whole server is its. */
  readonly prefix?: string
  /** Whether to refuse what did not come by HTTPS; as `NODE_ENV=production` does for the program. */
  readonly production?: boolean
}

const SILENT: Log = { info: () => {}, warn: () => {}, access: { write: () => {}, pendingBytes: () => 0 } }

/**
 * Opens a service on a folder (`dataDir`), or in memory (`journal: 'memory'`). Rejects with a `Failure`, holding
 * nothing; with the signal's reason if that is aborted by then.
 */
export async function openService(options: Options & Surroundings = {}): Promise<Service> {
  const { log = SILENT, signal, prefix = '', production = false, ...settings } = options
  if (!/^(\/[^/?#]+)*$/.test(prefix)) throw new Failure('setting-invalid', 'prefix must be a path such as /vault')
  signal?.throwIfAborted()
  const { store: _, ...service } = await open(readOptions(settings, production), log, prefix)
  if (signal?.aborted === true) await service.close()
  signal?.throwIfAborted()
  const onAbort = (): void => void service.close().catch(error => log.warn(String(error)))
  signal?.addEventListener('abort', onAbort, { once: true })
  const close = (): Promise<void> => {
    signal?.removeEventListener('abort', onAbort)
    return service.close()
  }
  return { ...service, close }
}
