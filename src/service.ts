/** The composition: from settings to a service that listens. It knows no signals and never ends the process. */
import { randomBytes, randomInt } from 'node:crypto'
import { join, resolve } from 'node:path'
import { entryRoutes } from './api/entries.ts'
import { createPipeline } from './api/pipeline.ts'
import type { Route } from './api/route.ts'
import type { Settings } from './config.ts'
import { isLoopback } from './http/address.ts'
import { listen } from './http/listener.ts'
import { localDoor } from './http/local.ts'
import { RateLimit } from './http/rate-limit.ts'
import { sendReply, statusReply } from './http/reply.ts'
import { Router } from './http/router.ts'
import { openFileJournal } from './journal/file.ts'
import { disk } from './journal/files.ts'
import { holdFolder } from './journal/lock.ts'
import { openMemoryJournal } from './journal/memory.ts'
import { SHUTDOWN_TIMEOUT_MS } from './limits.ts'
import { Store } from './store/store.ts'

/** Takes the lines that an operator should see. */
export interface Log {
  info(line: string): void
  warn(line: string): void
}

/** A running service. */
export interface Service {
  readonly store: Store
  /** Where it listens. */
  readonly url: string
  /** Answers what is in flight, closes the journal, lets go of the folder; takes `SHUTDOWN_TIMEOUT_MS` at most. */
  close(): Promise<void>
}

/** Opens the journal and listens. Rejects with a `Failure`, holding nothing. */
export async function openService(settings: Settings, log: Log): Promise<Service> {
  const undo: (() => Promise<void>)[] = []
  const close = async (): Promise<void> => { for (const step of undo.splice(0).reverse()) await step() }
  try {
    const store = settings.journal === 'memory' ? memoryStore() : await fileStore(settings, log, undo)
    undo.push(() => store.close())
    const url = await listenOn(settings, store, log, undo)
    return { store, url, close }
  } catch (error) {
    await close()
    throw error
  }
}

function memoryStore(): Store { return new Store(fold => openMemoryJournal(fold, Date.now)) }

async function fileStore(settings: Settings, log: Log, undo: (() => Promise<void>)[]): Promise<Store> {
  const folder = resolve(settings.dataDir)
  const keyFile = resolve(settings.keyFile ?? join(folder, 'journal.key'))
  log.info(`data folder    ${folder}`)
  // Nobody is served at this door yet; that it answers is what shows that the folder is held.
  const door = localDoor((_request, response) => sendReply(response, statusReply(404), [], true))
  const hold = await holdFolder(disk, folder, door, process.pid, randomInt)
  undo.push(() => hold.release())
  const store = new Store(fold => openFileJournal({
    files: disk, folder, keyFile, fold, wallMs: Date.now, random: randomBytes, warn: log.warn
  }))
  const { records, head } = store.journal.health()
  log.info(`journal        ${records} records, ${store.entries} entries (${store.activeEntries} active)`)
  log.info(`chain head     ${head}`)
  return store
}

async function listenOn(settings: Settings, store: Store, log: Log, undo: (() => Promise<void>)[]): Promise<string> {
  const router = new Router<Route>()
  for (const route of entryRoutes(store)) router.add(route.method, route.path, route)
  let isStopping = false
  const answer = createPipeline({
    router,
    rateLimit: settings.rateLimit === 0 ? undefined : new RateLimit(settings.rateLimit, () => performance.now()),
    trustedProxies: settings.trustProxy,
    allowedHosts: settings.allowedHosts,
    maxBodyBytes: settings.maxBodyBytes,
    isStopping: () => isStopping,
    warn: log.warn
  })
  const { host } = settings
  const listener = await listen({ host, port: settings.port }, answer)
  undo.push(async () => { isStopping = true; await listener.close(SHUTDOWN_TIMEOUT_MS) })
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${listener.port}`
  log.info(`address        ${url}`)
  log.info('configuration  open: whoever reaches the address reads and changes every entry')
  if (settings.rateLimit === 0) log.warn('the rate limit is off')
  if (settings.journal === 'memory') log.warn('JOURNAL=memory keeps nothing beyond this process')
  if (host !== 'localhost' && !isLoopback(host)) {
    log.warn(`${host} is reachable from other machines, and this configuration asks nobody for a password`)
  }
  return url
}
