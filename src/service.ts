/** The composition: from settings to a service. It knows no signals and never ends the process. */
import { randomUUID } from 'node:crypto'
import { CREATE_SHAPE, entryRoutes, UPDATE_SHAPE } from './api/entry-routes.ts'
import { sessionRoutes } from './api/login-routes.ts'
import { createPipeline } from './api/request.ts'
import { routerOf, type Route } from './api/route.ts'
import { disk } from './disk/files.ts'
import { Failure } from './errors.ts'
import { createAccessLog, refusedRequest } from './http/access-log.ts'
import { isLoopback } from './http/address.ts'
import { Connections } from './http/connections.ts'
import { DrainGate } from './http/drain-gate.ts'
import { listen, type Answer, type IncomingMessage, type Listener, type ServerResponse } from './http/listener.ts'
import { RateLimit } from './http/rate-limit.ts'
import { sendReply, statusReply } from './http/reply.ts'
import { HSTS_MAX_AGE_SECONDS, SHUTDOWN_TIMEOUT_MS, TOKEN_SWEEP_MS } from './limits.ts'
import type { Log, Observer } from './log.ts'
import type { OpenPart } from './parts/part.ts'
import { checkTransport, JOURNALS, PARTS, type ServiceSettings } from './settings.ts'
import { openStorage, type Storage } from './storage.ts'
import { shaped } from './store/account-rules.ts'
import type { Accounts } from './store/accounts.ts'
import type { Entry, EntryChanges, EntryFields } from './store/events.ts'
import type { Store } from './store/store.ts'

/** How a service is reached. */
interface Server {
  /** Answers a request that the embedder's own server received, below the prefix. */
  handle(request: IncomingMessage, response: ServerResponse): void
  /**
   * Listens where the settings say; resolves with the address. Rejects with `address-unusable`, also where it listens
   * already or was closed, with `certificate-invalid`, or with `setting-invalid` in production without HTTPS or a
   * proxy.
   */
  listen(): Promise<string>
  /** Stops taking requests and finishes those in flight. */
  close(): Promise<void>
}

/**
 * A service. The five operations are those of the contract (§4), without HTTP and without tokens; changes reject with
 * a `Failure`: `input-invalid` for fields that the contract refuses, `write-failed`, `journal-failed`, `queue-full`
 * or `journal-closed`. After `journal-failed` or `journal-unreachable` a change may be recorded.
 */
export interface Service extends Server {
  /** The active entries, ascending by id. */
  listPassword(): Promise<Entry[]>
  /** An entry, deleted ones too; undefined for an unknown id. */
  getPassword(id: number): Promise<Entry | undefined>
  /** Creates an active entry; resolves with it once it is durable. */
  createPassword(fields: EntryFields): Promise<Entry>
  /** Changes the given fields; resolves with the changed entry, undefined for an unknown id. */
  updatePassword(id: number, changes: EntryChanges): Promise<Entry | undefined>
  /** Marks an entry as deleted; false for an unknown id. */
  deletePassword(id: number): Promise<boolean>
  /** Users and tokens. */
  readonly accounts: Pick<
    Accounts, 'addUser' | 'setPassword' | 'removeUser' | 'users' | 'issue' | 'tokens' | 'revokeToken' | 'revokeAll'>
}

/** A service, and what only the program and the tests use. */
export interface OpenService extends Service {
  readonly store: Store
}

/**
 * Opens a service, which does not listen yet. `prefix` is the path below which `handle` answers: empty, or `/vault`.
 * Rejects with a `Failure`, having released everything.
 */
export async function openService(settings: ServiceSettings, log: Log, prefix: string = ''): Promise<OpenService> {
  const observers: Observer[] = []
  const storage = await openStorage(settings, JOURNALS, log, {
    observers, mayOnlyRead: true
  })
  const opened: OpenPart[] = []
  try {
    return await serve(settings, storage, log, prefix, observers, opened)
  } catch (error) {
    for (const part of opened) part.close?.()
    await storage.close()
    throw error
  }
}

/** A monotonic clock, in milliseconds. */
const nowMs = (): number => performance.now()

async function serve(
  settings: ServiceSettings, storage: Storage, log: Log, prefix: string, observers: Observer[], opened: OpenPart[]
): Promise<OpenService> {
  const { host, port, tlsCert, tlsKey, trustProxy } = settings
  const { store, journal, readMs } = storage
  const rateLimit = limitOf(settings.rateLimit)
  const routes: Route[] = coreRoutes(settings, store)
  let listener: Listener | undefined
  let opening: Promise<Listener> | undefined
  for (const part of PARTS) {
    opened.push(await part.open?.({
      settings, store, journal, readMs, log, prefix, routes: () => routes,
      load: () => ({ connections: listener?.connections() ?? 0, rateLimitClients: rateLimit?.clients ?? 0 })
    }) ?? {})
  }
  for (const part of opened) {
    if (part.observer !== undefined) observers.push(part.observer)
    routes.push(...(part.routes ?? []).map(route => withAbility(settings, route)))
  }
  storage.serveLocally(opened.flatMap(({ localRoutes = [] }) => localRoutes))

  const isTls = tlsCert !== undefined && tlsKey !== undefined
  const certificate = isTls
    ? (await import('./http/certificate.ts')).openCertificate(disk, tlsCert, tlsKey, log) : undefined
  const accessLog = settings.accessLog ? createAccessLog(log.access!, Date.now) : undefined
  const gate = new DrainGate()
  const answer: Answer = createPipeline({
    router: routerOf(routes),
    rateLimit,
    limitsByUser: settings.rateLimitBy === 'user',
    trustedProxies: trustProxy,
    asksForHttps: settings.isProduction,
    guardedHosts: settings.auth === 'bearer' ? undefined : settings.allowedHosts,
    corsOrigins: settings.corsOrigins.size === 0 ? undefined : settings.corsOrigins,
    readBarrier: store.journal.readBarrier,
    authenticate: settings.auth === 'bearer' ? token => store.accounts.session(token) : undefined,
    maxBodyBytes: settings.maxBodyBytes,
    headers: isTls ? ['Strict-Transport-Security', `max-age=${HSTS_MAX_AGE_SECONDS}`] : [],
    isStopping: gate.isClosed,
    nowMs,
    observers,
    log: accessLog?.log,
    warn: log.warn
  })
  gate.open(answer)
  const connections = new Connections(gate.take)
  const sweeping = setInterval(() => store.accounts.sweep(), TOKEN_SWEEP_MS).unref()

  const close = async (): Promise<void> => {
    store.abortWork() // requests may be waiting for it
    clearInterval(sweeping)
    certificate?.close()
    const listenerClosed = opening?.then(listener => listener.close(SHUTDOWN_TIMEOUT_MS), () => {})
    await Promise.all([gate.close(SHUTDOWN_TIMEOUT_MS), listenerClosed])
    for (const part of opened) part.close?.()
    accessLog?.close()
    await storage.close()
  }
  let closed: Promise<void> | undefined
  return {
    store,
    accounts: store.accounts,
    listPassword: async () => { await store.journal.readBarrier?.(); return store.activeList() },
    getPassword: async id => { await store.journal.readBarrier?.(); return store.entry(id) },
    createPassword: async fields => store.createEntry(shaped(CREATE_SHAPE, fields), null),
    updatePassword: async (id, changes) => store.updateEntry(id, shaped(UPDATE_SHAPE, changes), null),
    deletePassword: async id => store.deleteEntry(id, null),
    handle: (request, response) => {
      const target = below(prefix, request.url ?? '')
      if (target === undefined) return sendReply(response, statusReply(404), [], gate.isClosed())
      // The page's own links are relative: it is at `/vault/`, not at `/vault`.
      if (!request.url!.startsWith(`${prefix}/`)) {
        return sendReply(response, { status: 308, headers: ['Location', prefix + target] }, [], gate.isClosed())
      }
      connections.take(request, response, target)
    },
    listen: async () => {
      checkTransport(settings)
      if (gate.isClosed()) throw new Failure('address-unusable', 'the service is closed')
      if (opening !== undefined) throw new Failure('address-unusable', 'the service listens already')
      opening = listen({ host, port }, answer, {
        certificate: certificate?.current, trustedProxies: trustProxy, warn: log.warn,
        onRefusal: (address, status) => {
          for (const one of observers) one.malformedRefused?.(status)
          accessLog?.log(refusedRequest(address, status, randomUUID()))
        }
      })
      const listening = listener = await opening.catch(error => {
        opening = undefined
        throw error
      })
      if (gate.isClosed()) throw new Failure('address-unusable', 'the service was closed meanwhile')
      certificate?.onChange(renewed => listening.renew(renewed))
      const url = `${isTls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${listening.port}`
      announce(settings, store, url, log)
      return url
    },
    close: () => closed ??= close()
  }
}

/** The contract's routes: the five operations, and login and logout in the protected configuration. */
function coreRoutes(settings: ServiceSettings, store: Store): Route[] {
  const routes = [...entryRoutes(store)]
  if (settings.auth === 'bearer') {
    const { accounts } = store
    const loginLimit = limitOf(settings.loginLimit)
    routes.push(...sessionRoutes({ accounts, loginLimit, ttlMinutes: settings.tokenTtlMinutes }))
  }
  return routes.map(route => withAbility(settings, route))
}

/** A route requires the ability that the settings name for its operation. */
function withAbility({ abilities }: ServiceSettings, route: Route): Route {
  return { ...route, ability: abilities.get(route.operation) ?? route.ability }
}

function limitOf(requests: number): RateLimit | undefined {
  return requests === 0 ? undefined : new RateLimit(requests, nowMs)
}

/** The part of a request's target below a prefix; undefined if it is not below it. */
function below(prefix: string, target: string): string | undefined {
  if (!target.startsWith(prefix)) return undefined
  const rest = target.slice(prefix.length)
  return rest.startsWith('/') ? rest : rest === '' || rest.startsWith('?') ? `/${rest}` : undefined
}

/** Reports to the operator what is served and to whom. */
function announce(settings: ServiceSettings, store: Store, url: string, log: Log): void {
  const { auth, host, rateLimit, tlsCert, trustProxy } = settings
  log.info(`address        ${url}`)
  log.info(auth === 'bearer'
    ? `configuration  protected: ${store.accounts.users().length} users, ${store.accounts.tokens().length} tokens`
    : 'configuration  open: anyone who reaches the address can read and change every entry')
  if (rateLimit === 0) log.warn('the rate limit is off')
  if (host === 'localhost' || isLoopback(host)) return
  if (auth === 'none') {
    log.warn(`${host} is reachable from other machines, and this configuration asks for no password`)
  }
  if (tlsCert === undefined && trustProxy === undefined) {
    log.warn(`${host} is reachable from other machines, and without TLS_CERT anyone on the way can read everything`)
  }
}
