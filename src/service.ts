/** The composition: from settings to a service, for the program and for embedders. */
import { Failure, systemCode } from './errors.ts'
import { isLoopback } from './http/client.ts'
import { listen, type Listener, type ListenOptions } from './http/listener.ts'
import { RateLimit } from './http/rate-limit.ts'
import { HSTS } from './http/reply.ts'
import { pipelineOf, type Pipeline, type PipelineOptions } from './http/pipeline.ts'
import { Router, withAbilities, type Route } from './http/router.ts'
import { entryRoutes } from './entries/entry-routes.ts'
import { sessionRoutes } from './accounts/login-routes.ts'
import { endOf, type Certificate } from './http/tls.ts'
import { disk } from './journal/files.ts'
import { SHUTDOWN_TIMEOUT_MS, TOKEN_SWEEP_MS } from './limits.ts'
import { counted, type Log, type Observer } from './log.ts'
import type { Load, OpenPart, Part, PartContext } from './part.ts'
import { checkTransport, PARTS, type ServiceSettings } from './settings.ts'
import { openStorage, type OpenOptions } from './storage.ts'
import { Accounts } from './accounts/accounts.ts'
import { askedFor } from './rights/rights.ts'
import { markRecording } from './knowledge/disclosure.ts'
import { recorderOn } from './knowledge/recorder.ts'
import type { Store } from './store/store.ts'

/** An open service. Embedders get more: see `index.ts`. */
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
export async function openService(
  settings: ServiceSettings,
  log: Log,
  prefix: string = '',
  opening: Opening = {}
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
  settings: ServiceSettings,
  log: Log,
  prefix: string,
  { vouchedFor, ...opening }: Opening,
  closers: Closers
): Promise<OpenService> {
  const storage = await openStorage(settings, log, opening)
  closers.add(storage.close)
  const { store } = storage
  const accounts = accountsOf(settings, store, log)
  await markRecording(store, accounts !== undefined, log.warn)
  const rateLimit = settings.rateLimit === 0 ? undefined : new RateLimit(settings.rateLimit)
  const listening = new Listening(settings)
  const parts = new OpenParts(settings.abilities, ownRoutes(settings, store, accounts, prefix))
  const load = (): Load => ({
    connections: listening.connections(),
    rateLimitClients: rateLimit?.clients ?? 0,
    lostLines: parts.lostLines(),
    certificateEndMs: settings.tlsCert === undefined ? undefined : certificateEnd(settings.tlsCert)
  })
  const context = {
    ...storage,
    settings,
    accounts,
    log,
    prefix,
    vouchedFor,
    load,
    routes: () => parts.routes
  }
  for (const part of PARTS) await parts.open(part, context, closers)
  const { observers } = parts
  const certificate = certificateOf(settings)
  const headers = certificate ? HSTS : []
  const pipeline = pipelineOf({
    ...pipelineSettings(settings),
    router: new Router(parts.routes),
    rateLimit,
    guardedHosts: accounts === undefined ? settings.allowedHosts : undefined,
    authenticate: accounts && ((token, client) => accounts.session(token, client)),
    catchUp: store.journal.catchUp,
    recorder: recorderOn(store),
    headers,
    observers,
    warn: log.warn
  })
  closers.add(sweepTokens(store))
  closers.add(async () => {
    await Promise.all([pipeline.stop(SHUTDOWN_TIMEOUT_MS), listening.end()])
  })
  const listen = async (): Promise<string> => {
    const port = await listening.begin(pipeline, {
      certificate,
      trustedProxies: settings.trustProxy,
      headers,
      log,
      onRefusal: (...refused) => {
        for (const one of observers) one.malformedRefused?.(...refused)
      }
    })
    const { host } = settings
    const url = `http${certificate ? 's' : ''}://${host.includes(':') ? `[${host}]` : host}:${port}`
    announce(settings, accounts, url, log)
    for (const { name, path } of parts.places()) log.info(`${name.padEnd(14)} ${url}${path}`)
    return url
  }
  return {
    store,
    accounts,
    pipeline,
    routes: () => parts.hosted(),
    listen,
    close: () => closers.close()
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

/** The contract's, without their abilities. */
function ownRoutes(
  { abilities, loginLimit, tokenTtlMinutes: ttlMinutes }: ServiceSettings,
  store: Store,
  accounts: Accounts | undefined,
  prefix: string
): readonly Route[] {
  const sessions = accounts === undefined ? [] : sessionRoutes(accounts, { loginLimit, ttlMinutes })
  return [...entryRoutes(store, prefix, askedFor(abilities, 'deletePassword')), ...sessions]
}

function pipelineSettings({
  rateLimitBy,
  trustProxy,
  isProduction,
  corsOrigins,
  maxBodyBytes
}: ServiceSettings): Pick<
  PipelineOptions,
  'limitsByUser' | 'trustedProxies' | 'asksForHttps' | 'corsOrigins' | 'maxBodyBytes'
> {
  return {
    limitsByUser: rateLimitBy === 'user',
    trustedProxies: trustProxy,
    asksForHttps: isProduction,
    corsOrigins: corsOrigins.size === 0 ? undefined : corsOrigins,
    maxBodyBytes
  }
}

/** The parts that are open so far, and what they add; a part may ask later, when all are open. */
class OpenParts {
  /** With their abilities; the contract's first. */
  routes: readonly Route[]
  readonly observers: Observer[] = []
  readonly #abilities: ServiceSettings['abilities']
  readonly #open: OpenPart[] = []
  #hosted: Promise<ReadonlyMap<string, Route>> | undefined

  /** Throws `route-invalid`, as `open` does. */
  constructor(abilities: ServiceSettings['abilities'], own: readonly Route[]) {
    this.#abilities = abilities
    this.routes = this.#withAbilities(own)
  }

  async open(part: Part, context: PartContext<object>, closers: Closers): Promise<void> {
    const open = (await part.open?.(context)) ?? {}
    closers.add(() => open.close?.())
    this.#open.push(open)
    this.routes = [...this.routes, ...this.#withAbilities(open.routes ?? [])]
    if (open.observer === undefined) return
    this.observers.push(open.observer)
    context.store.observe(open.observer)
  }

  places(): readonly { readonly name: string; readonly path: string }[] {
    return this.#open.flatMap(({ place }) => place ?? [])
  }

  lostLines(): number {
    return this.#open.reduce((sum, part) => sum + (part.lostLines?.() ?? 0), 0)
  }

  /** By operation, for calls of an embedder, who calls once all are open. */
  hosted(): Promise<ReadonlyMap<string, Route>> {
    return (this.#hosted ??= Promise.all(this.#open.map(part => part.hosted?.() ?? [])).then(
      routes =>
        new Map(
          [...this.routes, ...this.#withAbilities(routes.flat())].map(route => [
            route.operation,
            route
          ])
        )
    ))
  }

  #withAbilities(routes: readonly Route[]): readonly Route[] {
    return routes.map(route => withAbilities(route, this.#abilities))
  }
}

/** Reads the files anew each time; undefined without HTTPS. */
function certificateOf({ tlsCert, tlsKey }: ServiceSettings): (() => Certificate) | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  return () => ({ cert: pemIn(tlsCert), key: pemIn(tlsKey) })
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

/** The listener of a service: opened at most once, and not after the stop. */
class Listening {
  readonly #settings: ServiceSettings
  #opening: Promise<Listener> | undefined
  #listener: Listener | undefined

  constructor(settings: ServiceSettings) {
    this.#settings = settings
  }

  connections(): number {
    return this.#listener?.connections() ?? 0
  }

  /** Gives the port. */
  async begin(pipeline: Pipeline, options: ListenOptions): Promise<number> {
    checkTransport(this.#settings)
    if (pipeline.isStopping()) throw refused('is closed')
    if (this.#opening !== undefined) throw refused('listens already')
    this.#opening = listen(this.#settings, pipeline, options)
    try {
      this.#listener = await this.#opening
    } catch (error) {
      this.#opening = undefined
      throw error
    }
    if (pipeline.isStopping()) throw refused('was closed meanwhile')
    return this.#listener.port
  }

  async end(): Promise<void> {
    await (await this.#opening?.catch(() => undefined))?.close(SHUTDOWN_TIMEOUT_MS)
  }
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
  url: string,
  log: Log
): void {
  const { host, rateLimit, tlsCert, trustProxy, isProduction, tokenTtlMinutes } = settings
  const isOpen = accounts === undefined
  const isFar = host !== 'localhost' && !isLoopback(host)
  const far = `${host} is reachable from other machines, and`
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
}

/** Releases resources, the last opened first. All are tried; then the first error is thrown. */
export class Closers {
  readonly #open: (() => void | Promise<void>)[] = []
  #closed: Promise<void> | undefined

  add(close: () => void | Promise<void>): void {
    this.#open.push(close)
  }

  /** Once, including resources added meanwhile. */
  close(): Promise<void> {
    return (this.#closed ??= this.#closeAll())
  }

  async #closeAll(): Promise<void> {
    const errors: unknown[] = []
    while (this.#open.length > 0) {
      const close = this.#open.pop()!
      try {
        await close()
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 0) throw errors[0]
  }
}
