/**
 * What embedders import: a service in their own process. Several may be open at once, each on a folder of its own. It
 * sets no signal handlers, never ends the process, and prints only to the log that it is given.
 */
import { setMaxListeners } from 'node:events'
import { Failure } from './errors.ts'
import { openService as open, type Service } from './service.ts'
import type { Log } from './log.ts'
import { readEmbedderSettings, type Options } from './settings.ts'

export { Failure, type FailureCode } from './errors.ts'
export type { Service } from './service.ts'
export type { Log } from './log.ts'
export type { Options } from './settings.ts'
export type { Issued, ListedToken, ListedUser, PublicUser } from './store/accounts.ts'
export type { Entry, EntryChanges, EntryFields } from './store/events.ts'

/** What a service is opened with besides its settings. */
export interface HostOptions {
  /** Gets the messages for the operator; without it there are none. */
  readonly log?: Log
  /** Closes the service when it is aborted. */
  readonly signal?: AbortSignal
  /** The path below which `handle` answers, such as `/vault`; empty: every path. */
  readonly prefix?: string
  /** Whether to refuse what did not come by HTTPS; as `NODE_ENV=production` does for the program. */
  readonly production?: boolean
}

const SILENT: Log = { info: () => {}, warn: () => {}, access: { write: () => {}, pendingBytes: () => 0 } }

/** Segments of what a path may hold (RFC 3986 §3.3): a request cannot have any other. */
const PREFIX = /^(\/([\w.~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+)*$/

function wrong(why: string): Failure { return new Failure('setting-invalid', why) }

/**
 * Opens a service on a folder (`dataDir`), or in memory (`journal: 'memory'`). Rejects with a `Failure`, having
 * released everything; with the signal's reason if that was aborted.
 */
export async function openService(options: Options & HostOptions = {}): Promise<Service> {
  if (typeof options !== 'object' || options === null) throw wrong('options must be an object')
  const { log: given = SILENT, signal, prefix = '', production = false, ...settings } = options
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) {
    throw wrong('prefix must be a path such as /vault, encoded as in a request')
  }
  if (typeof production !== 'boolean') throw wrong('production must be true or false')
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw wrong('signal must be an AbortSignal')
  const environment = readEmbedderSettings(settings, production)
  const { access } = given ?? {}
  const methods = {
    'log.info': given?.info, 'log.warn': given?.warn,
    ...environment.accessLog && { 'log.access.write': access?.write, 'log.access.pendingBytes': access?.pendingBytes }
  }
  for (const [name, method] of Object.entries(methods)) {
    if (typeof method !== 'function') throw wrong(`${name} must be a function`)
  }
  // `log` may be any object, so its methods are called on it.
  const log: Log = {
    info: line => given.info(line), warn: line => given.warn(line),
    progress: (what, share) => given.progress?.(what, share), access
  }
  signal?.throwIfAborted()
  const { store: _, ...service } = await open(environment, log, prefix)
  if (signal?.aborted === true) await service.close()
  signal?.throwIfAborted()
  const onAbort = (): void => void service.close().catch(error => log.warn(String(error)))
  if (signal !== undefined) {
    setMaxListeners(0, signal) // Node would warn of more than ten on the process's own standard error
    signal.addEventListener('abort', onAbort, { once: true })
  }
  const close = (): Promise<void> => {
    signal?.removeEventListener('abort', onAbort)
    return service.close()
  }
  return { ...service, close }
}
