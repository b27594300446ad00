/** The composition: from settings to a service, for the program and for embedders. */
import { Failure, systemCode } from './errors.ts'
import { isLoopback } from './http/client.ts'
import { listen, type Listener } from './http/listener.ts'
import { RateLimit } from './http/rate-limit.ts'
import { HSTS } from './http/reply.ts'
import { pipelineOf, type Pipeline } from './http/pipeline.ts'
import { Router, withAbilities, type Route } from './http/router.ts'
import { entryRoutes } from './entries/entry-routes.ts'
import { sessionRoutes } from './accounts/login-routes.ts'
import { endOf, type Certificate } from './http/tls.ts'
import { disk } from './journal/files.ts'
import { SHUTDOWN_TIMEOUT_MS, TOKEN_SWEEP_MS } from './limits.ts'
import { counted, type Log, type Observer } from './log.ts'
import type { Load, OpenPart, PartContext } from './part.ts'
import { checkTransport, PARTS, type ServiceSettings } from './settings.ts'
import { openStorage, type OpenOptions } from './storage.ts'
import { Accounts } from './accounts/accounts.ts'
import { askedFor } from './rights/rights.ts'
import { markRecording } from './knowledge/disclosure.ts'
import { recorderOn } from './knowledge/recorder.ts'
import type { Store } from './store/store.ts'

/** Embedders get more: see `index.ts`. */
export interface OpenService {
  readonly store: Store
  readonly accounts: Accounts | undefined
  readonly pipeline: Pipeline
  /** By operation, for calls of an embedder, served or not. */
  routes(): Promise<ReadonlyMap<string, Route>>
  listen(): Promise<string>
  close(): Promise<void>
}

type Opening = Pick<OpenOptions, 'mayCreate' | 'keys'> &
  Partial<Pick<PartContext<object>, 'vouchedFor'>>

/**
 * Opens a service that does not listen yet. `prefix` is an embedder's path: empty, or `/vault`.
 * Rejects with a `Failure`, holding nothing.
 */
export async function composeService(
  settings: ServiceSettings,
  log: Log,
  prefix: string = '',
  opening: Opening = {}
): Promise<OpenService> {
  const closers: Close[] = []
  try {
    return await compose(settings, log, prefix, opening, closers)
  } catch (error) {
    await closeAll(closers).catch(() => {}) // the first error says more
    throw error
  }
}

async function compose(
  settings: ServiceSettings,
  log: Log,
  prefix: string,
  { vouchedFor, ...opening }: Opening,
  closers: Close[]
): Promise<OpenService> {
  const storage = await openStorage(settings, log, opening)
  closers.push(storage.close)
  const { store } = storage
  const accounts = accountsOf(settings, store, log)
  await markRecording(store, accounts !== undefined, log.warn)

  const rateLimit = settings.rateLimit === 0 ? undefined : new RateLimit(settings.rateLimit)
  const routes = withAbilities(coreRoutes(settings, store, accounts, prefix), settings.abilities)
  const parts: OpenPart[] = []
  let listener: Listener | undefined
  const load = (): Load => ({
    connections: listener?.connections() ?? 0,
    rateLimitClients: rateLimit?.clients ?? 0,
    lostLines: parts.reduce((sum, part) => sum + (part.lostLines?.() ?? 0), 0),
    certificateEndMs: certificateEnd(settings)
  })
  const more = { settings, accounts, log, prefix, vouchedFor, load, routes: () => routes }
  for (const part of PARTS) {
    const open = (await part.open?.({ ...storage, ...more })) ?? {}
    closers.push(() => open.close?.())
    parts.push(open)
    routes.push(...withAbilities(open.routes ?? [], settings.abilities))
    if (open.observer !== undefined) store.observe(open.observer)
  }

  const observers = parts.flatMap(({ observer }) => observer ?? [])
  const pipeline = pipelineOn(settings, log, { routes, rateLimit, observers, accounts, store })
  closers.push(sweepTokens(store))
  let opened: Promise<Listener> | undefined
  closers.push(() => stop(pipeline, opened))

  const open = async (): Promise<string> => {
    checkTransport(settings)
    if (pipeline.isStopping()) throw refused('is closed')
    if (opened !== undefined) throw refused('listens already')
    opened = listenOn(settings, log, pipeline, observers)
    opened.catch(() => (opened = undefined))
    listener = await opened
    if (pipeline.isStopping()) throw refused('was closed meanwhile')
    return announce(settings, accounts, parts, listener.port, log)
  }
  let hosted: Promise<ReadonlyMap<string, Route>> | undefined
  let closed: Promise<void> | undefined
  return {
    store,
    accounts,
    pipeline,
    routes: () => (hosted ??= byOperation(routes, parts, settings)),
    listen: open,
    close: () => (closed ??= closeAll(closers))
  }
}

function accountsOf(
  { auth, abilities, tokensPerUser }: ServiceSettings,
  store: Store,
  { warn }: Log
): Accounts | undefined {
  return auth === 'bearer'
    ? new Accounts(store, { abilities: abilities.values(), tokensPerUser, warn })
    : undefined
}

/** Without their abilities. */
function coreRoutes(
  { abilities, loginLimit, tokenTtlMinutes: ttlMinutes }: ServiceSettings,
  store: Store,
  accounts: Accounts | undefined,
  prefix: string
): readonly Route[] {
  const sessions = accounts === undefined ? [] : sessionRoutes(accounts, { loginLimit, ttlMinutes })
  return [...entryRoutes(store, prefix, askedFor(abilities, 'deletePassword')), ...sessions]
}

/** The routes that are served, and those that a host alone may call. */
async function byOperation(
  served: readonly Route[],
  parts: readonly OpenPart[],
  { abilities }: ServiceSettings
): Promise<ReadonlyMap<string, Route>> {
  const hosted = await Promise.all(parts.map(part => part.hosted?.() ?? []))
  const all = [...served, ...withAbilities(hosted.flat(), abilities)]
  return new Map(all.map(route => [route.operation, route]))
}

function headersOf({ tlsCert }: ServiceSettings): readonly string[] {
  return tlsCert === undefined ? [] : HSTS
}

function pipelineOn(
  settings: ServiceSettings,
  { warn }: Log,
  {
    routes,
    rateLimit,
    observers,
    accounts,
    store
  }: {
    readonly routes: readonly Route[]
    readonly rateLimit: RateLimit | undefined
    readonly observers: readonly Observer[]
    readonly accounts: Accounts | undefined
    readonly store: Store
  }
): Pipeline {
  const { rateLimitBy, trustProxy, isProduction, corsOrigins, maxBodyBytes } = settings
  return pipelineOf({
    router: new Router(routes),
    rateLimit,
    limitsByUser: rateLimitBy === 'user',
    trustedProxies: trustProxy,
    asksForHttps: isProduction,
    guardedHosts: accounts === undefined ? settings.allowedHosts : undefined,
    corsOrigins: corsOrigins.size === 0 ? undefined : corsOrigins,
    authenticate: accounts && ((token, client) => accounts.session(token, client)),
    catchUp: store.journal.catchUp,
    recorder: recorderOn(store),
    maxBodyBytes,
    headers: headersOf(settings),
    observers,
    warn
  })
}

function listenOn(
  settings: ServiceSettings,
  log: Log,
  pipeline: Pipeline,
  observers: readonly Observer[]
): Promise<Listener> {
  const { tlsCert, tlsKey, trustProxy } = settings
  return listen(settings, pipeline, {
    // Read anew for each reload.
    certificate:
      tlsCert === undefined ? undefined : () => ({ cert: pemIn(tlsCert), key: pemIn(tlsKey!) }),
    trustedProxies: trustProxy,
    headers: headersOf(settings),
    log,
    onRefusal: (...refused) => {
      for (const one of observers) one.malformedRefused?.(...refused)
    }
  })
}

/** Undefined without HTTPS, or if the file is no certificate just now. */
function certificateEnd({ tlsCert }: ServiceSettings): number | undefined {
  try {
    return tlsCert === undefined ? undefined : endOf(pemIn(tlsCert))
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

async function stop(pipeline: Pipeline, opened: Promise<Listener> | undefined): Promise<void> {
  const ended = async (): Promise<void> =>
    (await opened?.catch(() => undefined))?.close(SHUTDOWN_TIMEOUT_MS)
  await Promise.all([pipeline.stop(SHUTDOWN_TIMEOUT_MS), ended()])
}

function refused(why: string): Failure {
  return new Failure('address-unusable', `the service ${why}`)
}

function sweepTokens({ state }: Store): () => void {
  // A clock that runs ahead must not end tokens for good.
  const look = (): void => state.sweep(Math.min(Date.now(), Date.parse(state.recorded)))
  const timer = setInterval(look, TOKEN_SWEEP_MS).unref()
  return () => clearInterval(timer)
}

/** Warns if the service is open to more people than may be meant. */
function announce(
  settings: ServiceSettings,
  accounts: Accounts | undefined,
  parts: readonly OpenPart[],
  port: number,
  log: Log
): string {
  const { host, rateLimit, tlsCert, trustProxy, isProduction, tokenTtlMinutes } = settings
  const isOpen = accounts === undefined
  const isFar = host !== 'localhost' && !isLoopback(host)
  const far = `${host} is reachable from other machines, and`
  const scheme = tlsCert === undefined ? 'http' : 'https'
  const url = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
  log.info(`address        ${url}`)
  log.info(
    isOpen
      ? 'configuration  open: anyone who reaches the address can read and change every entry'
      : `configuration  protected: ${counted(accounts.users().length, 'user')}, ` +
          counted(accounts.tokens().length, 'token')
  )
  const warnings: readonly (readonly [isSo: boolean, line: string])[] = [
    [rateLimit === 0, 'the rate limit is off'],
    [
      isOpen && trustProxy !== undefined,
      'whoever reaches the proxy can read and change every entry: AUTH=bearer asks for a password'
    ],
    [
      !isOpen && isProduction && tokenTtlMinutes === undefined,
      'logins give tokens that never end; TOKEN_TTL_MINUTES=720 ends them after twelve hours'
    ],
    [isFar && isOpen, `${far} this configuration asks for no password`],
    [
      isFar && tlsCert === undefined && trustProxy === undefined,
      `${far} without TLS_CERT anyone on the way can read everything`
    ]
  ]
  for (const [isSo, line] of warnings) if (isSo) log.warn(line)
  for (const { place } of parts)
    if (place !== undefined) log.info(`${place.name.padEnd(14)} ${url}${place.path}`)
  return url
}

type Close = () => void | Promise<void>

/**
 * Releases resources, the last opened first, with those that are added meanwhile. All are tried;
 * then the first error is thrown.
 */
export async function closeAll(closers: Close[]): Promise<void> {
  const errors: unknown[] = []
  for (let close = closers.pop(); close !== undefined; close = closers.pop()) {
    try {
      await close()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
}
