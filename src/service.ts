/** The composition: from settings to a service that listens. It knows no signals and never ends the process. */
import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import { join, resolve } from 'node:path'
import { entryRoutes } from './api/entries.ts'
import { healthRoutes } from './api/health.ts'
import { Metrics } from './api/metrics.ts'
import { openapiRoute } from './api/openapi.ts'
import { operatorRoutes } from './api/operator.ts'
import { createPipeline } from './api/pipeline.ts'
import type { Route } from './api/route.ts'
import { sessionRoutes } from './api/session.ts'
import { openCertificate } from './certificate.ts'
import type { Environment, Settings } from './config.ts'
import { createAccessLog, refusalRecord, type Sink } from './http/access-log.ts'
import { isLoopback } from './http/address.ts'
import { listen, type Answer } from './http/listener.ts'
import { localDoor } from './http/local.ts'
import { RateLimit } from './http/rate-limit.ts'
import { sendReply, statusReply } from './http/reply.ts'
import { Router } from './http/router.ts'
import { openFileJournal, type FileJournal } from './journal/file.ts'
import { disk, type Files } from './journal/files.ts'
import { holdFolder } from './journal/lock.ts'
import { measuredFiles } from './journal/measured.ts'
import { openMemoryJournal } from './journal/memory.ts'
import { HSTS_MAX_AGE_SECONDS, MAX_IMPORT_BYTES, SHUTDOWN_TIMEOUT_MS, TOKEN_SWEEP_MS } from './limits.ts'
import type { Metric } from './metrics/exposition.ts'
import { pageRoutes } from './page.ts'
import { PasswordHasher } from './store/password.ts'
import { Store } from './store/store.ts'

/** Takes the lines that an operator should see, and those of the access log. */
export interface Log {
  info(line: string): void
  warn(line: string): void
  /** Takes how much of some long work is done, 0 to 1. */
  progress?(what: string, share: number): void
  readonly access: Sink
}

/** A store that is open. */
export interface OpenStore {
  readonly store: Store
  /** Waits for what was queued, closes the journal, lets go of the folder. */
  close(): Promise<void>
}

/** A running service. */
export interface Service extends OpenStore {
  /** Where it listens. */
  readonly url: string
}

const CLOCKS = { wallMs: Date.now, nowMs: () => performance.now() }

/** Where a store is. */
export type StoreSettings = Pick<Settings, 'dataDir' | 'keyFile' | 'journal'>

/** Opens a store and listens; closing answers what is in flight first. Rejects with a `Failure`, holding nothing. */
export async function openService(settings: Environment, log: Log): Promise<Service> {
  const metrics = new Metrics()
  const files = measuredFiles(disk, CLOCKS.nowMs, (ms, isWhole) => metrics.countWrite(ms, isWhole))
  const opened = await openStore(settings, log, files)
  try {
    const { url, close } = await listenOn(settings, opened.store, log, metrics)
    return { store: opened.store, url, close: async () => { await close(); await opened.close() } }
  } catch (error) {
    await opened.close()
    throw error
  }
}

/** Opens a store, and the operator's door to it, but serves nobody else. Rejects with a `Failure`, holding nothing. */
export async function openStore(settings: StoreSettings, log: Log, files: Files = disk): Promise<OpenStore> {
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
  const operator = new OperatorDoor()
  const door = localDoor(operator.answer)
  const hold = await holdFolder(files, folder, door, process.pid, randomInt)
  try {
    let journal: FileJournal | undefined
    const store = new Store(fold => journal = openFileJournal({
      files, folder, keyFile, fold, wallMs: Date.now, random: randomBytes, warn: log.warn,
      onProgress: share => log.progress?.('reading the journal', share)
    }), accounts)
    const { records, head } = store.journal.health()
    log.info(`journal        ${records} records, ${store.entries} entries (${store.activeEntries} active)`)
    log.info(`chain head     ${head}`)
    operator.open(createPipeline({
      router: routerOf(operatorRoutes(store, journal!)), maxBodyBytes: MAX_IMPORT_BYTES, tellsFailures: true,
      isStopping: () => false, warn: log.warn
    }))
    const close = async (): Promise<void> => {
      await operator.close()
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

/** Answers the operator while the store is open, and 503 before and after: the folder is held for longer than that. */
class OperatorDoor {
  #pipeline: Answer | undefined
  #inFlight = 0
  #onIdle: (() => void) | undefined

  readonly answer: Answer = (request, response, done) => {
    if (this.#pipeline === undefined) {
      sendReply(response, statusReply(503, ['Retry-After', '1']), [], true)
      return done()
    }
    this.#inFlight++
    this.#pipeline(request, response, () => {
      done()
      if (--this.#inFlight === 0) this.#onIdle?.()
    })
  }

  open(pipeline: Answer): void { this.#pipeline = pipeline }

  /** Takes nothing more, and waits for what is in flight, but not for ever. */
  close(): Promise<void> {
    this.#pipeline = undefined
    if (this.#inFlight === 0) return Promise.resolve()
    return new Promise(resolve => {
      const timer = setTimeout(resolve, SHUTDOWN_TIMEOUT_MS)
      this.#onIdle = () => { clearTimeout(timer); resolve() }
    })
  }
}

async function listenOn(
  settings: Environment, store: Store, log: Log, metrics: Metrics
): Promise<{ readonly url: string, close(): Promise<void> }> {
  const { host, port, corsOrigins, isProduction, tlsCert, tlsKey } = settings
  const isProtected = settings.auth === 'bearer'
  const isTls = tlsCert !== undefined && tlsKey !== undefined
  const scheme = isTls ? 'https' : 'http'
  const { accounts } = store
  let isStopping = false
  const accessLog = settings.accessLog ? createAccessLog(log.access) : undefined
  const rateLimit = limitOf(settings.rateLimit)
  const measure = (): readonly Metric[] =>
    metrics.all({ store, rateLimitClients: rateLimit?.clients ?? 0, connections: listener.connections() })
  const served = routes(settings, store, measure)
  const asksForHttps = isProduction && !isTls
  const description = openapiRoute(served, { isProtected, asksForHttps, isLimited: rateLimit !== undefined })
  const answer = createPipeline({
    router: routerOf([...served, description]),
    rateLimit,
    limitsByUser: settings.rateLimitBy === 'user',
    trustedProxies: settings.trustProxy,
    asksForHttps,
    guard: isProtected ? undefined : { scheme, hosts: settings.allowedHosts },
    corsOrigins: corsOrigins.size === 0 ? undefined : corsOrigins,
    authenticate: isProtected ? token => accounts.session(token) : undefined,
    maxBodyBytes: settings.maxBodyBytes,
    headers: isTls ? ['Strict-Transport-Security', `max-age=${HSTS_MAX_AGE_SECONDS}`] : [],
    isStopping: () => isStopping,
    accessLog: accessLog && { log: accessLog.log, clocks: CLOCKS },
    meter: { nowMs: CLOCKS.nowMs, count: (operation, status, ms) => metrics.countRequest(operation, status, ms) },
    warn: log.warn
  })
  const certificate = isTls ? openCertificate(disk, tlsCert, tlsKey, log) : undefined
  const listener = await listen({ host, port }, answer, {
    certificate: certificate?.current, trustedProxies: settings.trustProxy, warn: log.warn,
    onRefusal: (address, status) => {
      metrics.countMalformed(status)
      accessLog?.log(refusalRecord(address, status, CLOCKS.wallMs(), randomUUID()))
    }
  }).catch(error => {
    certificate?.close()
    throw error
  })
  certificate?.onChange(renewed => listener.renew(renewed))
  const sweeping = setInterval(() => accounts.sweep(), TOKEN_SWEEP_MS).unref()
  const unwatch = metrics.watchEventLoop(CLOCKS.nowMs)
  const url = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${listener.port}`
  announce(settings, store, url, log)
  return {
    url,
    close: async () => {
      isStopping = true
      clearInterval(sweeping)
      unwatch()
      certificate?.close()
      await listener.close(SHUTDOWN_TIMEOUT_MS)
      accessLog?.close()
    }
  }
}

function routes(settings: Settings, store: Store, measure: () => readonly Metric[]): readonly Route[] {
  const { health, metrics, allowedHosts } = settings
  const page = settings.page ? pageRoutes(disk) : []
  const entries = entryRoutes(store)
  const watched = healthRoutes({ health, metrics, allowedHosts, journal: store.journal, measure })
  if (settings.auth === 'none') return [...page, ...entries, ...watched]
  const { accounts } = store
  const loginLimit = limitOf(settings.loginLimit)
  return [
    ...page,
    ...entries.map(route => ({ ...route, ability: settings.abilities.get(route.operation) })),
    ...sessionRoutes({ accounts, loginLimit, ttlMinutes: settings.tokenTtlMinutes }),
    ...watched
  ]
}

function routerOf(routes: readonly Route[]): Router<Route> {
  const router = new Router<Route>()
  for (const route of routes) router.add(route.method, route.path, route)
  return router
}

function limitOf(requests: number): RateLimit | undefined {
  return requests === 0 ? undefined : new RateLimit(requests, CLOCKS.nowMs)
}

/** Tells the operator what is served to whom. */
function announce(settings: Settings, store: Store, url: string, log: Log): void {
  const { auth, host, rateLimit, tlsCert, trustProxy } = settings
  log.info(`address        ${url}`)
  log.info(auth === 'bearer'
    ? `configuration  protected: ${store.accounts.users().length} users, ${store.accounts.tokens().length} tokens`
    : 'configuration  open: whoever reaches the address reads and changes every entry')
  if (rateLimit === 0) log.warn('the rate limit is off')
  if (host === 'localhost' || isLoopback(host)) return
  if (auth === 'none') {
    log.warn(`${host} is reachable from other machines, and this configuration asks nobody for a password`)
  }
  if (tlsCert === undefined && trustProxy === undefined) {
    log.warn(`${host} is reachable from other machines, and without TLS_CERT whoever is on the way reads everything`)
  }
}
