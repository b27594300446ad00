/** The composition: from settings to a service. It knows no signals and never ends the process. */
import { entryRoutes, sessionRoutes } from './http/routes.ts'
import { RateLimit } from './http/rate-limit.ts'
import { pipelineOf, type Pipeline } from './http/request.ts'
import { routerOf, withAbility, type Route } from './http/route.ts'
import { nowMs } from './clock.ts'
import { Closers } from './closers.ts'
import { disk } from './journal/files.ts'
import { Failure } from './errors.ts'
import { isLoopback } from './http/client.ts'
import { listen, type Listener, type ListenOptions } from './http/listener.ts'
import type { FollowedCertificate } from './http/tls.ts'
import { HSTS_MAX_AGE_SECONDS, SHUTDOWN_TIMEOUT_MS, TOKEN_SWEEP_MS } from './limits.ts'
import { counted, type Log, type Observer } from './log.ts'
import type { OpenPart, PartContext } from './part.ts'
import { checkTransport, JOURNALS, PARTS, type ServiceSettings } from './settings.ts'
import { openStorage } from './storage.ts'
import type { Accounts } from './store/accounts.ts'
import type { Store } from './store/store.ts'

/** An open service. Embedders get more: see `index.ts`. */
export interface OpenService {
  readonly store: Store
  /** Users and tokens, in the protected configuration. */
  readonly accounts: Accounts | undefined
  /** Answers requests. */
  readonly pipeline: Pipeline
  listen(): Promise<string>
  close(): Promise<void>
}

/**
 * Opens a service, which does not listen yet. `prefix` is the path below which an embedder serves it: empty, or
 * `/vault`; with `mayCreate` a missing journal is made, in production too. Rejects with a `Failure`, having released
 * everything.
 */
export async function openService(
  settings: ServiceSettings, log: Log, prefix: string = '', mayCreate: boolean = false
): Promise<OpenService> {
  const closers = new Closers()
  try {
    return await compose(settings, log, prefix, mayCreate, closers)
  } catch (error) {
    await closers.close().catch(() => {}) // why it did not open says more
    throw error
  }
}

async function compose(
  settings: ServiceSettings, log: Log, prefix: string, mayCreate: boolean, closers: Closers
): Promise<OpenService> {
  const observers: Observer[] = [] // those of parts, which are opened with the store
  const storage = await openStorage(settings, JOURNALS, log, { observers, mayCreate })
  closers.add(storage.close)
  const { store, journal, lock, readMs } = storage
  const rateLimit = limitOf(settings.rateLimit)
  const stopping = new AbortController()
  const { accounts, routes: ofSession } = await openSession(settings, store, log)
  let routes: readonly Route[] = [...entryRoutes(store, prefix), ...ofSession]
  let listener: Listener | undefined
  const parts = await openParts({
    settings, store, accounts, journal, lock, readMs, log, prefix, stopping: stopping.signal, routes: () => routes,
    load: () => ({ connections: listener?.connections() ?? 0, rateLimitClients: rateLimit?.clients ?? 0 })
  }, closers)
  const certificate = await openCertificate(settings, log, closers)
  for (const { observer } of parts) if (observer !== undefined) observers.push(observer)
  routes = [...routes, ...parts.flatMap(part => part.routes ?? [])]
    .map(route => withAbility(route, settings.abilities))
  const headers = certificate ? ['Strict-Transport-Security', `max-age=${HSTS_MAX_AGE_SECONDS}`] : []
  const pipeline = pipelineOf({
    ...optionsOf(settings, accounts),
    router: routerOf(routes), rateLimit, catchUp: store.journal.catchUp, headers, observers, warn: log.warn
  })
  closers.add(sweepTokens(store))
  const { begin, end } = listening(settings, pipeline, certificate, {
    trustedProxies: settings.trustProxy, headers, warn: log.warn,
    onRefusal: (...refused) => { for (const one of observers) one.malformedRefused?.(...refused) }
  })
  closers.add(async () => { await Promise.all([pipeline.stop(SHUTDOWN_TIMEOUT_MS), end()]) })
  closers.add(() => stopping.abort(new Failure('journal-closed', 'the service stops'))) // requests may wait for this
  let closed: Promise<void> | undefined
  return {
    store,
    accounts,
    pipeline,
    listen: async () => {
      listener = await begin()
      const url = urlOf(settings, listener)
      announce(settings, accounts, url, log)
      for (const { place } of parts) {
        if (place !== undefined) log.info(`${place.name.padEnd(14)} ${url}${place.path}`)
      }
      return url
    },
    close: () => closed ??= closers.close()
  }
}

/** What the settings say of the way of a request. */
function optionsOf(settings: ServiceSettings, accounts: Accounts | undefined) {
  return {
    limitsByUser: settings.rateLimitBy === 'user',
    trustedProxies: settings.trustProxy,
    asksForHttps: settings.isProduction,
    guardedHosts: accounts === undefined ? settings.allowedHosts : undefined,
    corsOrigins: settings.corsOrigins.size === 0 ? undefined : settings.corsOrigins,
    authenticate: accounts && ((token: string) => accounts.session(token)),
    maxBodyBytes: settings.maxBodyBytes
  }
}

/** Users, tokens, and the routes of a session, in the protected configuration. */
async function openSession(
  { auth, abilities, loginLimit, tokenTtlMinutes: ttlMinutes, tokensPerUser }: ServiceSettings, store: Store, log: Log
): Promise<{ readonly accounts: Accounts | undefined, readonly routes: readonly Route[] }> {
  if (auth !== 'bearer') return { accounts: undefined, routes: [] }
  const { Accounts } = await import('./store/accounts.ts')
  const accounts = new Accounts(store, { abilities: abilities.values(), tokensPerUser, warn: log.warn })
  return { accounts, routes: sessionRoutes(accounts, loginLimit, ttlMinutes) }
}

async function openParts(context: PartContext<object>, closers: Closers): Promise<OpenPart[]> {
  const opened: OpenPart[] = []
  for (const part of PARTS) {
    const open = await part.open?.(context) ?? {}
    opened.push(open)
    closers.add(() => open.close?.())
  }
  return opened
}

async function openCertificate(
  { tlsCert, tlsKey }: ServiceSettings, log: Log, closers: Closers
): Promise<FollowedCertificate | undefined> {
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  const { followCertificate } = await import('./http/tls.ts')
  const opened = followCertificate(disk, tlsCert, tlsKey, log)
  closers.add(opened.close)
  return opened
}

/** Forgets expired tokens now and then; gives what ends that. */
function sweepTokens({ state }: Store): () => void {
  // As in a compaction: a clock that runs ahead ends no token for good.
  const look = (): void => state.sweep(Math.min(Date.now(), Date.parse(state.recorded)))
  const timer = setInterval(look, TOKEN_SWEEP_MS).unref()
  return () => clearInterval(timer)
}

/** Gives what begins to listen, once, and what ends that. */
function listening(
  settings: ServiceSettings, pipeline: Pipeline, certificate: FollowedCertificate | undefined, options: ListenOptions
): { begin(): Promise<Listener>, end(): Promise<void> } {
  let opening: Promise<Listener> | undefined
  const begin = async (): Promise<Listener> => {
    checkTransport(settings)
    if (pipeline.isStopping()) throw new Failure('address-unusable', 'the service is closed')
    if (opening !== undefined) throw new Failure('address-unusable', 'the service listens already')
    const { host, port } = settings
    opening = listen({ host, port }, pipeline, { ...options, certificate: certificate?.read() })
    const listener = await opening.catch(error => {
      opening = undefined
      throw error
    })
    if (pipeline.isStopping()) throw new Failure('address-unusable', 'the service was closed meanwhile')
    certificate?.follow(renewed => listener.renew?.(renewed))
    return listener
  }
  const end = async (): Promise<void> => {
    const listener = await opening?.catch(() => undefined)
    await listener?.close(SHUTDOWN_TIMEOUT_MS)
  }
  return { begin, end }
}

function urlOf({ host, tlsCert }: ServiceSettings, { port }: Listener): string {
  return `${tlsCert === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

function limitOf(requests: number): RateLimit | undefined {
  return requests === 0 ? undefined : new RateLimit(requests, nowMs)
}

function announce(settings: ServiceSettings, accounts: Accounts | undefined, url: string, log: Log): void {
  const { host, rateLimit, tlsCert, trustProxy, isProduction, tokenTtlMinutes } = settings
  log.info(`address        ${url}`)
  log.info(accounts === undefined
    ? 'configuration  open: anyone who reaches the address can read and change every entry'
    : `configuration  protected: ${counted(accounts.users().length, 'user')}, ` +
      counted(accounts.tokens().length, 'token'))
  if (rateLimit === 0) log.warn('the rate limit is off')
  if (accounts === undefined && trustProxy !== undefined) {
    log.warn('whoever reaches the proxy can read and change every entry: AUTH=bearer asks for a password')
  }
  if (accounts !== undefined && isProduction && tokenTtlMinutes === undefined) {
    log.warn('logins give tokens that never end; TOKEN_TTL_MINUTES=720 ends them after twelve hours')
  }
  if (host === 'localhost' || isLoopback(host)) return
  if (accounts === undefined) {
    log.warn(`${host} is reachable from other machines, and this configuration asks for no password`)
  }
  if (tlsCert === undefined && trustProxy === undefined) {
    log.warn(`${host} is reachable from other machines, and without TLS_CERT anyone on the way can read everything`)
  }
}
