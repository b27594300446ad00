/** The composition: from settings to a service, for the program and for embedders. */
import { randomBytes } from 'node:crypto'
import { Closers } from './closers.ts'
import type { StorageSettings } from './core-settings.ts'
import { Failure, systemCode } from './errors.ts'
import { isLoopback } from './http/client.ts'
import { listen, type Listener, type ListenOptions } from './http/listener.ts'
import { RateLimit } from './http/rate-limit.ts'
import { HSTS } from './http/reply.ts'
import { pipelineOf, type Pipeline } from './http/request.ts'
import { Router, withAbility, type Route } from './http/route.ts'
import { entryRoutes } from './http/routes.ts'
import { sessionRoutes } from './http/session-routes.ts'
import { endOf, type Certificate } from './http/tls.ts'
import { disk, type Files } from './journal/files.ts'
import { locationOf, openFolder } from './journal/folder.ts'
import { openMemoryJournal, type DurableJournal } from './journal/journal.ts'
import type { Keyring } from './journal/keys.ts'
import type { Lock } from './journal/lock.ts'
import { SHUTDOWN_TIMEOUT_MS, TOKEN_SWEEP_MS } from './limits.ts'
import { counted, type Log, type Observer } from './log.ts'
import type { OpenPart } from './part.ts'
import { checkTransport, JOURNALS, PARTS, type ServiceSettings } from './settings.ts'
import { Accounts } from './store/accounts.ts'
import { markRecording } from './store/disclosure.ts'
import { State } from './store/state.ts'
import { Store, type JournalObserver } from './store/store.ts'

/** The open storage; lock and journal are undefined in memory. */
export interface Storage {
  readonly store: Store
  readonly journal: DurableJournal | undefined
  readonly lock: Lock | undefined
  readonly readMs: number
  /** Waits for queued changes first. */
  close(): Promise<void>
}

interface OpenOptions {
  readonly observers?: readonly JournalObserver[]
  /** Makes a missing journal, in production too, and even a shared journal. */
  readonly mayCreate?: boolean | undefined
  readonly files?: Files
  /** Instead of the key file's. */
  readonly keys?: Keyring | undefined
}

/** Rejects with a `Failure`, holding nothing. */
export async function openStorage(
  settings: StorageSettings & { readonly isProduction?: boolean }, log: Log,
  { observers, mayCreate, files = disk, keys }: OpenOptions = {}
): Promise<Storage> {
  const state = new State()
  if (settings.journal === 'memory') {
    log.warn('JOURNAL=memory keeps nothing beyond this process')
    const store = new Store(openMemoryJournal(Date.now, state.apply), state, observers)
    return { store, journal: undefined, lock: undefined, readMs: 0, close: () => store.close() }
  }
  const { folder, keyFile } = locationOf(settings)
  log.info(`data folder    ${folder}`)
  const options = {
    files, folder, keyFile, keys, mayCreate, mustExist: settings.isProduction === true, wallMs: Date.now,
    random: randomBytes, warn: log.warn, onProgress: (share: number) => log.progress?.('reading the journal', share)
  }
  const kind = JOURNALS[settings.journal]
  const beganMs = performance.now()
  const open = kind && (() => kind.open(settings as never, options, state.apply))
  const { journal, lock } = await openFolder(options, state.apply, open)
  const store = new Store(journal, state, observers)
  announceStorage(settings.journal, state, journal, folder, log)
  const close = async (): Promise<void> => {
    try {
      await store.close()
    } finally {
      await lock.release()
    }
  }
  return { store, journal, lock, readMs: performance.now() - beganMs, close }
}

/** An open service. Embedders get more: see `index.ts`. */
export interface OpenService {
  readonly store: Store
  readonly accounts: Accounts | undefined
  readonly pipeline: Pipeline
  /** Of the parts, for calls of an embedder, served or not. */
  routes(): Promise<readonly Route[]>
  listen(): Promise<string>
  close(): Promise<void>
}

/**
 * Opens a service that does not listen yet. `prefix` is an embedder's path: empty, or `/vault`. Rejects with a
 * `Failure`, holding nothing.
 */
export async function openService(
  settings: ServiceSettings, log: Log, prefix: string = '', opening: Pick<OpenOptions, 'mayCreate' | 'keys'> = {}
): Promise<OpenService> {
  const closers = new Closers()
  try {
    return await compose(settings, log, prefix, opening, closers)
  } catch (error) {
    await closers.close().catch(() => {}) // the first error says more
    throw error
  }
}

async function compose(
  settings: ServiceSettings, log: Log, prefix: string, opening: OpenOptions, closers: Closers
): Promise<OpenService> {
  const observers: Observer[] = [] // parts add theirs once the store is open
  const storage = await openStorage(settings, log, { ...opening, observers })
  closers.add(storage.close)
  const { store } = storage
  const { abilities, loginLimit, tokenTtlMinutes, tokensPerUser, tlsCert, tlsKey, trustProxy } = settings
  const accounts = settings.auth !== 'bearer' ? undefined
    : new Accounts(store, { abilities: abilities.values(), tokensPerUser, warn: log.warn })
  await markRecording(store, accounts !== undefined, log.warn)
  const rateLimit = settings.rateLimit === 0 ? undefined : new RateLimit(settings.rateLimit)
  let routes: readonly Route[] = entryRoutes(store, prefix, abilities.get('deletePassword'))
  const logins = { loginLimit, ttlMinutes: tokenTtlMinutes }
  if (accounts !== undefined) routes = [...routes, ...sessionRoutes(accounts, logins)]
  let listener: Listener | undefined
  const parts: OpenPart[] = []
  const context = {
    ...storage, settings, accounts, log, prefix, routes: () => routes,
    load: () => ({
      connections: listener?.connections() ?? 0, rateLimitClients: rateLimit?.clients ?? 0,
      lostLines: parts.reduce((sum, part) => sum + (part.lostLines?.() ?? 0), 0),
      certificateEndMs: tlsCert === undefined ? undefined : certificateEnd(tlsCert)
    })
  }
  for (const part of PARTS) {
    const open = await part.open?.(context) ?? {}
    closers.add(() => open.close?.())
    parts.push(open)
    if (open.observer !== undefined) observers.push(open.observer)
  }
  const certificate = tlsCert === undefined || tlsKey === undefined ? undefined
    : () => ({ cert: pemIn(tlsCert), key: pemIn(tlsKey) })
  routes = [...routes, ...parts.flatMap(part => part.routes ?? [])].map(route => withAbility(route, abilities))
  const headers = certificate ? HSTS : []
  const pipeline = pipelineOf({
    router: new Router(routes), rateLimit, limitsByUser: settings.rateLimitBy === 'user', trustedProxies: trustProxy,
    asksForHttps: settings.isProduction, guardedHosts: accounts === undefined ? settings.allowedHosts : undefined,
    corsOrigins: settings.corsOrigins.size === 0 ? undefined : settings.corsOrigins,
    authenticate: accounts && ((token, client) => accounts.session(token, client)),
    catchUp: store.journal.catchUp, commits: store,
    maxBodyBytes: settings.maxBodyBytes, headers, observers, warn: log.warn
  })
  closers.add(sweepTokens(store))
  const { begin, end } = listening(settings, pipeline, {
    certificate, trustedProxies: trustProxy, headers, log,
    onRefusal: (...refused) => { for (const one of observers) one.malformedRefused?.(...refused) }
  })
  closers.add(async () => { await Promise.all([pipeline.stop(SHUTDOWN_TIMEOUT_MS), end()]) })
  let closed: Promise<void> | undefined
  const announced = async (): Promise<string> => {
    listener = await begin()
    const { host } = settings
    const url = `http${certificate ? 's' : ''}://${host.includes(':') ? `[${host}]` : host}:${listener.port}`
    announce(settings, accounts, url, log)
    for (const { place } of parts) if (place !== undefined) log.info(`${place.name.padEnd(14)} ${url}${place.path}`)
    return url
  }
  const hosted = async (): Promise<readonly Route[]> =>
    (await Promise.all(parts.map(part => part.hosted?.() ?? []))).flat().map(route => withAbility(route, abilities))
  return { store, accounts, pipeline, routes: hosted, listen: announced, close: () => closed ??= closers.close() }
}

/** Undefined if the file is no certificate just now. */
function certificateEnd(path: string): number | undefined {
  try {
    return endOf(pemIn(path))
  } catch {
    return undefined
  }
}

/** Throws `certificate-invalid`. */
function pemIn(path: string): Certificate['cert'] {
  try {
    return disk.read(path)
  } catch (error) {
    throw new Failure('certificate-invalid', `${path}: ${systemCode(error)}`, { cause: error })
  }
}

function listening(
  settings: ServiceSettings, pipeline: Pipeline, options: ListenOptions
): { begin(): Promise<Listener>, end(): Promise<void> } {
  const refused = (why: string): Failure => new Failure('address-unusable', `the service ${why}`)
  let opening: Promise<Listener> | undefined
  const begin = async (): Promise<Listener> => {
    checkTransport(settings)
    if (pipeline.isStopping()) throw refused('is closed')
    if (opening !== undefined) throw refused('listens already')
    opening = listen(settings, pipeline, options)
    const listener = await opening.catch(error => {
      opening = undefined
      throw error
    })
    if (pipeline.isStopping()) throw refused('was closed meanwhile')
    return listener
  }
  const end = async (): Promise<void> => (await opening?.catch(() => undefined))?.close(SHUTDOWN_TIMEOUT_MS)
  return { begin, end }
}

function sweepTokens({ state }: Store): () => void {
  // A clock that runs ahead must not end tokens for good.
  const look = (): void => state.sweep(Math.min(Date.now(), Date.parse(state.recorded)))
  const timer = setInterval(look, TOKEN_SWEEP_MS).unref()
  return () => clearInterval(timer)
}

function announceStorage(
  kind: string, { entries: { count, active } }: State, journal: DurableJournal, folder: string, log: Log
): void {
  const { records, head } = journal.status()
  const { path, endpoints, isNew = false } = journal.location()
  if (isNew && endpoints === undefined) log.info(`new, empty store in ${folder}`)
  log.info(`journal        ${counted(records, 'record')}, ${counted(count, 'entry', 'entries')} (${active} active)`)
  log.info(`chain head     ${head}`)
  if (endpoints !== undefined) log.info(`${kind.padEnd(14)} ${path} at ${endpoints.join(', ')}`)
}

/** Warns if the service is open to more people than may be meant. */
function announce(settings: ServiceSettings, accounts: Accounts | undefined, url: string, log: Log): void {
  const { host, rateLimit, tlsCert, trustProxy, isProduction, tokenTtlMinutes } = settings
  const isOpen = accounts === undefined
  const isFar = host !== 'localhost' && !isLoopback(host)
  const far = `${host} is reachable from other machines, and`
  log.info(`address        ${url}`)
  log.info(isOpen ? 'configuration  open: anyone who reaches the address can read and change every entry'
    : `configuration  protected: ${counted(accounts.users().length, 'user')}, ` +
      counted(accounts.tokens().length, 'token'))
  const warnings: readonly (readonly [isSo: boolean, line: string])[] = [
    [rateLimit === 0, 'the rate limit is off'],
    [isOpen && trustProxy !== undefined,
      'whoever reaches the proxy can read and change every entry: AUTH=bearer asks for a password'],
    [!isOpen && isProduction && tokenTtlMinutes === undefined,
      'logins give tokens that never end; TOKEN_TTL_MINUTES=720 ends them after twelve hours'],
    [isFar && isOpen, `${far} this configuration asks for no password`],
    [isFar && tlsCert === undefined && trustProxy === undefined,
      `${far} without TLS_CERT anyone on the way can read everything`]
  ]
  for (const [isSo, line] of warnings) if (isSo) log.warn(line)
}
