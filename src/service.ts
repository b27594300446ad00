/** The composition: from settings to a service. It knows no signals and never ends the process. */
import { randomUUID } from 'node:crypto'
import { entryRoutes } from './api/entry-routes.ts'
import { createPipeline } from './api/request.ts'
import { routerOf, type Route } from './api/route.ts'
import { nowMs } from './clock.ts'
import { Closers } from './closers.ts'
import { disk } from './disk/files.ts'
import { Failure } from './errors.ts'
import type { AccessLog } from './http/access-log.ts'
import { isLoopback } from './http/address.ts'
import type { FollowedCertificate } from './http/certificate.ts'
import { RequestGate } from './http/request-gate.ts'
import { listen, type Handle, type Listener } from './http/listener.ts'
import { RateLimit } from './http/rate-limit.ts'
import { HSTS_MAX_AGE_SECONDS, SHUTDOWN_TIMEOUT_MS, TOKEN_SWEEP_MS } from './limits.ts'
import type { Log, Observer } from './log.ts'
import type { OpenPart } from './parts/part.ts'
import { checkTransport, JOURNALS, PARTS, type ServiceSettings } from './settings.ts'
import { openStorage } from './storage.ts'
import type { Accounts } from './store/accounts.ts'
import { sweep } from './store/session.ts'
import type { Store } from './store/store.ts'

/** An open service. Embedders get more: see `index.ts`. */
export interface OpenService {
  readonly store: Store
  /** Users and tokens, in the protected configuration. */
  readonly accounts: Accounts | undefined
  /** Answers requests until it closes. */
  readonly gate: RequestGate
  listen(): Promise<string>
  close(): Promise<void>
}

/**
 * Opens a service, which does not listen yet. `prefix` is the path below which an embedder serves it: empty, or
 * `/vault`. Rejects with a `Failure`, having released everything.
 */
export async function openService(settings: ServiceSettings, log: Log, prefix: string = ''): Promise<OpenService> {
  const closers = new Closers()
  try {
    return await compose(settings, log, prefix, closers)
  } catch (error) {
    await closers.close().catch(() => {}) // why it did not open says more
    throw error
  }
}

async function compose(
  settings: ServiceSettings, log: Log, prefix: string, closers: Closers
): Promise<OpenService> {
  const { host, port, tlsCert, tlsKey, trustProxy } = settings
  const observers: Observer[] = []
  const storage = await openStorage(settings, JOURNALS, log, { observers, mayOnlyRead: true })
  closers.add(storage.close)
  const { store, journal, readMs } = storage
  const rateLimit = limitOf(settings.rateLimit)
  let routes: readonly Route[] = entryRoutes(store, prefix)
  const opened: OpenPart[] = []
  const stopping = new AbortController()
  let accounts: Accounts | undefined
  let listener: Listener | undefined
  let certificate: FollowedCertificate | undefined
  let accessLog: AccessLog | undefined
  if (settings.auth === 'bearer') {
    const [{ Accounts }, { sessionRoutes }] =
      await Promise.all([import('./store/accounts.ts'), import('./api/login-routes.ts')])
    const { abilities, loginLimit, tokenTtlMinutes: ttlMinutes } = settings
    accounts = new Accounts(store, { abilities: abilities.values() })
    routes = [...routes, ...sessionRoutes({ accounts, loginLimit: limitOf(loginLimit), ttlMinutes })]
  }
  for (const part of PARTS) {
    const open = await part.open?.({
      settings, store, accounts, journal, readMs, log, prefix, stopping: stopping.signal, routes: () => routes,
      load: () => ({ connections: listener?.connections() ?? 0, rateLimitClients: rateLimit?.clients ?? 0 })
    }) ?? {}
    opened.push(open)
    closers.add(() => open.close?.())
  }
  if (settings.accessLog) {
    const { createAccessLog } = await import('./http/access-log.ts')
    accessLog = createAccessLog(log.access!, Date.now)
    closers.add(accessLog.close)
  }
  if (tlsCert !== undefined && tlsKey !== undefined) {
    const { openCertificate } = await import('./http/certificate.ts')
    certificate = openCertificate(disk, tlsCert, tlsKey, log)
    closers.add(certificate.close)
  }
  for (const { observer } of opened) if (observer !== undefined) observers.push(observer)
  routes = [...routes, ...opened.flatMap(part => part.routes ?? [])]
    .map(route => ({ ...route, ability: settings.abilities.get(route.operation) }))
  storage.serveLocally(opened.flatMap(({ localRoutes = [] }) => localRoutes))

  const gate = new RequestGate()
  const handle: Handle = createPipeline({
    router: routerOf(routes),
    rateLimit,
    limitsByUser: settings.rateLimitBy === 'user',
    trustedProxies: trustProxy,
    asksForHttps: settings.isProduction,
    guardedHosts: accounts === undefined ? settings.allowedHosts : undefined,
    corsOrigins: settings.corsOrigins.size === 0 ? undefined : settings.corsOrigins,
    readBarrier: store.journal.readBarrier,
    authenticate: accounts && (token => accounts.session(token)),
    maxBodyBytes: settings.maxBodyBytes,
    headers: certificate ? ['Strict-Transport-Security', `max-age=${HSTS_MAX_AGE_SECONDS}`] : [],
    isStopping: gate.isClosed,
    nowMs,
    observers,
    log: accessLog?.log,
    warn: log.warn
  })
  gate.open(handle)
  const beganMs = Date.now() - nowMs()
  // A wall clock that was set ahead ends no token: what is forgotten here, a compaction would not keep.
  const sweeping = setInterval(() => {
    sweep(store.state, Math.min(Date.now(), beganMs + nowMs()))
  }, TOKEN_SWEEP_MS).unref()
  closers.add(() => clearInterval(sweeping))

  let opening: Promise<Listener> | undefined
  let closed: Promise<void> | undefined
  closers.add(async () => {
    const listenerClosed = opening?.then(listener => listener.close(SHUTDOWN_TIMEOUT_MS), () => {})
    await Promise.all([gate.close(SHUTDOWN_TIMEOUT_MS), listenerClosed])
  })
  // Requests may wait for what this ends.
  closers.add(() => stopping.abort(new Failure('journal-closed', 'the service stops')))
  return {
    store,
    accounts,
    gate,
    listen: async () => {
      checkTransport(settings)
      if (gate.isClosed()) throw new Failure('address-unusable', 'the service is closed')
      if (opening !== undefined) throw new Failure('address-unusable', 'the service listens already')
      opening = listen({ host, port }, handle, {
        certificate: certificate?.current, trustedProxies: trustProxy, warn: log.warn,
        onRefusal: (address, status) => {
          for (const one of observers) one.malformedRefused?.(status)
          accessLog?.refused(address, status, randomUUID())
        }
      })
      const listening = listener = await opening.catch(error => {
        opening = undefined
        throw error
      })
      if (gate.isClosed()) throw new Failure('address-unusable', 'the service was closed meanwhile')
      certificate?.onChange(renewed => listening.renew(renewed))
      const url = `${certificate ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${listening.port}`
      announce(settings, accounts, url, log)
      return url
    },
    close: () => closed ??= closers.close()
  }
}

function limitOf(requests: number): RateLimit | undefined {
  return requests === 0 ? undefined : new RateLimit(requests, nowMs)
}

function announce(settings: ServiceSettings, accounts: Accounts | undefined, url: string, log: Log): void {
  const { host, rateLimit, tlsCert, trustProxy } = settings
  log.info(`address        ${url}`)
  log.info(accounts === undefined
    ? 'configuration  open: anyone who reaches the address can read and change every entry'
    : `configuration  protected: ${accounts.users().length} users, ${accounts.tokens().length} tokens`)
  if (rateLimit === 0) log.warn('the rate limit is off')
  if (host === 'localhost' || isLoopback(host)) return
  if (accounts === undefined) {
    log.warn(`${host} is reachable from other machines, and this configuration asks for no password`)
  }
  if (tlsCert === undefined && trustProxy === undefined) {
    log.warn(`${host} is reachable from other machines, and without TLS_CERT anyone on the way can read everything`)
  }
}
