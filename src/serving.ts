/** Serving a store: which routes there are, what a request passes on its way to them, and where it comes in. */
import { randomUUID } from 'node:crypto'
import { entryRoutes } from './api/entries.ts'
import { healthRoutes } from './api/health.ts'
import type { Metrics } from './api/metrics.ts'
import { openapiRoute } from './api/openapi.ts'
import { createPipeline, type PipelineOptions } from './api/pipeline.ts'
import { routerOf, type Route } from './api/route.ts'
import { sessionRoutes } from './api/session.ts'
import { openCertificate } from './certificate.ts'
import { checkTransport, type ServiceSettings } from './config.ts'
import { Failure } from './errors.ts'
import { createAccessLog, refusedRequest, type Sink } from './http/access-log.ts'
import { isLoopback } from './http/address.ts'
import { Connections } from './http/connections.ts'
import { Gate } from './http/gate.ts'
import { listen, type Answer, type IncomingMessage, type Listener, type ServerResponse } from './http/listener.ts'
import { RateLimit } from './http/rate-limit.ts'
import { sendReply, statusReply } from './http/reply.ts'
import { disk } from './journal/files.ts'
import { HSTS_MAX_AGE_SECONDS, SHUTDOWN_TIMEOUT_MS, TOKEN_SWEEP_MS } from './limits.ts'
import type { Metric } from './metrics/exposition.ts'
import { pageRoutes } from './page.ts'
import type { Settings } from './settings.ts'
import type { Store } from './store/store.ts'

/** Takes the lines that an operator should see, and those of the access log. */
export interface Log {
  info(line: string): void
  warn(line: string): void
  /** Takes how much of some long work is done, 0 to 1. */
  progress?(what: string, share: number): void
  /** Needed where the access log is on. */
  readonly access?: Sink | undefined
}

/** A store that is served. */
export interface Serving {
  /** Answers a request that somebody else's server took, below the prefix. */
  handle(request: IncomingMessage, response: ServerResponse): void
  /**
   * Listens where the settings say; gives the address. Rejects with `address-unusable`, also where it listens already
   * or was closed, with `certificate-invalid`, or with `setting-invalid` in production without HTTPS or a proxy.
   */
  listen(): Promise<string>
  /** Takes nothing more and answers what is in flight. */
  close(): Promise<void>
}

/** A clock that never goes back, milliseconds. */
export const nowMs = (): number => performance.now()

/** Whether the service is about to stop, and what listens. */
interface ServingState {
  isStopping: boolean
  listener?: Listener
}

/** Prepares to serve a store. `prefix` is the path below which `handle` finds everything: empty, or `/vault`. */
export function serve(settings: ServiceSettings, store: Store, log: Log, metrics: Metrics, prefix: string): Serving {
  const { host, port, tlsCert, tlsKey, trustProxy } = settings
  const isTls = tlsCert !== undefined && tlsKey !== undefined
  const state: ServingState = { isStopping: false }
  let opening: Promise<Listener> | undefined
  const accessLog = settings.accessLog ? createAccessLog(log.access!, Date.now) : undefined
  const answer = answerFrom(settings, store, metrics, state, { log: accessLog?.log, warn: log.warn })
  const gate = new Gate()
  gate.open(answer)
  const connections = new Connections(gate.take, () => {})
  const certificate = isTls ? openCertificate(disk, tlsCert, tlsKey, log) : undefined
  const sweeping = setInterval(() => store.accounts.sweep(), TOKEN_SWEEP_MS).unref()
  const unwatch = metrics.watchEventLoop(nowMs)

  return {
    handle: (request, response) => {
      const target = below(prefix, request.url ?? '')
      if (target === undefined) return sendReply(response, statusReply(404), [], state.isStopping)
      connections.take(request, response, target)
    },
    listen: async () => {
      checkTransport(settings)
      if (state.isStopping) throw new Failure('address-unusable', 'the service is closed')
      if (opening !== undefined) throw new Failure('address-unusable', 'the service listens already')
      opening = listen({ host, port }, answer, {
        certificate: certificate?.current, trustedProxies: trustProxy, warn: log.warn,
        onRefusal: (address, status) => {
          metrics.countMalformed(status)
          accessLog?.log(refusedRequest(address, status, randomUUID()))
        }
      })
      const listener = await opening.catch(error => {
        opening = undefined
        throw error
      })
      state.listener = listener
      if (state.isStopping) throw new Failure('address-unusable', 'the service was closed meanwhile')
      certificate?.onChange(renewed => listener.renew(renewed))
      const url = `${isTls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${listener.port}`
      announce(settings, store, url, log)
      return url
    },
    close: async () => {
      state.isStopping = true
      clearInterval(sweeping)
      unwatch()
      certificate?.close()
      const listenerClosed = opening?.then(opened => opened.close(SHUTDOWN_TIMEOUT_MS), () => {})
      await Promise.all([gate.close(SHUTDOWN_TIMEOUT_MS), listenerClosed])
      accessLog?.close()
    }
  }
}

/** The way to the routes, as the settings have it. */
function answerFrom(
  settings: ServiceSettings, store: Store, metrics: Metrics, state: ServingState,
  logs: Pick<PipelineOptions, 'log' | 'warn'>
): Answer {
  const { corsOrigins, isProduction, tlsCert } = settings
  const isProtected = settings.auth === 'bearer'
  const rateLimit = limitOf(settings.rateLimit)
  const measure = (): readonly Metric[] =>
    metrics.all({ store, rateLimitClients: rateLimit?.clients ?? 0, connections: state.listener?.connections() ?? 0 })
  const served = routes(settings, store, measure)
  const asksForHttps = isProduction && tlsCert === undefined
  const description = openapiRoute(served, { isProtected, asksForHttps, isLimited: rateLimit !== undefined })
  return createPipeline({
    ...logs,
    router: routerOf([...served, description]),
    rateLimit,
    limitsByUser: settings.rateLimitBy === 'user',
    trustedProxies: settings.trustProxy,
    asksForHttps: isProduction,
    guardedHosts: isProtected ? undefined : settings.allowedHosts,
    corsOrigins: corsOrigins.size === 0 ? undefined : corsOrigins,
    current: store.journal.current,
    authenticate: isProtected ? token => store.accounts.session(token) : undefined,
    maxBodyBytes: settings.maxBodyBytes,
    headers: tlsCert === undefined ? [] : ['Strict-Transport-Security', `max-age=${HSTS_MAX_AGE_SECONDS}`],
    isStopping: () => state.isStopping,
    nowMs,
    count: (operation, status, ms) => metrics.countRequest(operation, status, ms)
  })
}

/** The part of a request's target below a prefix; undefined if it is not below it. */
function below(prefix: string, target: string): string | undefined {
  if (!target.startsWith(prefix)) return undefined
  const rest = target.slice(prefix.length)
  return rest.startsWith('/') ? rest : rest === '' || rest.startsWith('?') ? `/${rest}` : undefined
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

function limitOf(requests: number): RateLimit | undefined {
  return requests === 0 ? undefined : new RateLimit(requests, nowMs)
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
