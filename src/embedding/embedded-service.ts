/**
 * For embedders: services in their own process. A service sets no signal handlers, never ends the
 * process, and prints only to the given log.
 */
import {
  checkAuthGiven,
  readValues,
  SETTINGS,
  validateCombinations,
  type Settings
} from '../settings.ts'
import { Failure } from '../errors.ts'
import { peerOf } from '../http/client.ts'
import type { IncomingMessage, ServerResponse } from '../http/listener.ts'
import { BUSY, statusReply, type Reply } from '../http/reply.ts'
import { respond } from '../http/sending.ts'
import { KEY_BYTES, keyring, type Keyring } from '../journal/keys.ts'
import type { Log } from '../log.ts'
import { hostAccounts, type HostAccounts } from './host-accounts.ts'
import { failureInOptions, logInOptions } from './option-names.ts'
import { operationsOf, type Operations } from './operations.ts'
import { composeService, type OpenService } from '../service.ts'
import { Accounts } from '../accounts/accounts.ts'

export { Failure, type FailureCode } from '../errors.ts'
export type { Log } from '../log.ts'
export type { HostAccounts } from './host-accounts.ts'
export type { By, EntryWithoutSecrets, IfUnchanged, PastChange } from './operations.ts'
export type { KnownBy, Knowing } from '../knowledge/exposure.ts'
export type { Issued, ListedToken, ListedUser, PublicUser } from '../accounts/listed.ts'
export type { AnsweredEntry as Entry, EntryChanges, EntryFields } from '../entries/entry.ts'

/**
 * A service: the operations of the contract (§4) and others, without HTTP and tokens. Changes
 * reject with `input-invalid`, `entry-too-large`, `entry-changed`, `key-unknown`, `write-failed`,
 * `journal-refused`, `journal-closed`, `queue-full` or `journal-busy`; after `journal-failed` or
 * `journal-unreachable` the change may be recorded. Reads reject so if it cannot be recorded who is
 * told. With `by` also `user-unknown`, `forbidden`, `move-forbidden`, `session-changed` (the user
 * may do less meanwhile), and in the open configuration `setting-invalid`.
 */
export interface Service extends Operations {
  /** Users and tokens. */
  readonly accounts: HostAccounts
  /**
   * Answers below the prefix. Throws `request-foreign` if the two are not of `node:http`. On a Unix
   * socket all clients share one limit, and `production` refuses them: no proxy there has an
   * address to trust.
   */
  handle(request: IncomingMessage, response: ServerResponse): void
  /**
   * Says whose browser sent this request, which `handle` is then given: only `POST /api/proxyLogin`
   * heeds it. `user` is an e-mail address. Throws `setting-invalid` without the option `vouches`.
   */
  vouch(request: IncomingMessage, by: { readonly user: string }): void
  /**
   * Resolves with the address. Rejects with `address-unusable` (also if it listens already, or is
   * closed), `certificate-invalid`, or `setting-invalid` (production without HTTPS or a proxy).
   */
  listen(): Promise<string>
  /** Finishes requests in flight. */
  close(): Promise<void>
}

/** Settings: numbers and booleans as such, others as text. */
export type Options = {
  readonly [K in keyof Settings]?: NonNullable<Settings[K]> extends string | number | boolean
    ? Settings[K] | undefined
    : string | undefined
}

/**
 * In production `auth` must be given: an absent one would let everybody do everything. A `boolean`
 * may be true.
 */
export type AuthGiven =
  | { readonly production?: false | undefined }
  | { readonly production: boolean; readonly auth: Settings['auth'] }

export interface HostOptions {
  /**
   * Receives the operator's messages. Its functions need no `this`, and must not throw, except
   * `access.write` for a line that is lost.
   */
  readonly log?: Log | undefined
  /**
   * The path below which `handle` answers, such as `/vault`; empty: every path. `listen` expects a
   * proxy that cuts it off.
   */
  readonly prefix?: string | undefined
  /**
   * Refuses requests without HTTPS, a missing or empty journal, and options without `auth`, as
   * `NODE_ENV=production` does.
   */
  readonly production?: boolean | undefined
  /** Makes a missing journal in production too. */
  readonly init?: boolean | undefined
  /**
   * The key of a journal in a file, 32 bytes, or all its keys, the newest last: instead of the key
   * file, which is then neither read nor made. The newest seals. To rotate, open the service with
   * one more.
   */
  readonly key?: Uint8Array | readonly Uint8Array[] | undefined
  /** Serves `POST /api/proxyLogin`, for users of whom the host says by `vouch` who they are. */
  readonly vouches?: boolean | undefined
}

const SILENT: Log = {
  info: () => {},
  warn: () => {},
  access: { write: () => {}, pendingBytes: () => 0 }
}

/** Path segments (RFC 3986 §3.3). */
const PREFIX = /^(\/([\w.~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+)*$/

/**
 * Opens a service on a folder (`dataDir`), or in memory (`journal: 'memory'`). Rejects with a
 * `Failure`, holding nothing.
 */
export async function openService(
  options: Options & HostOptions & AuthGiven = {}
): Promise<Service> {
  try {
    return await open(options)
  } catch (error) {
    throw failureInOptions(error)
  }
}

async function open(options: Options & HostOptions): Promise<Service> {
  const {
    log: given = SILENT,
    prefix = '',
    production = false,
    init = false,
    vouches = false,
    key,
    ...values
  } = options
  if (!PREFIX.test(prefix)) {
    throw wrong('prefix must be a path such as /vault, encoded as in a request')
  }
  // `in`: what a class gives stands there, too, though it is not among the values.
  if (values.auth === undefined && 'auth' in options)
    throw wrong("auth has no value: give auth: 'bearer', or auth: 'none' on purpose")
  checkAuthGiven(production, values.auth !== undefined)
  const settings = { ...readOptions(values), isProduction: production }
  const log = logInOptions(given)
  const keys = key === undefined ? undefined : keysOf(key, settings)
  validateCombinations(settings) // `listen` checks the transport
  if ('accessLog' in settings && settings.accessLog === true && log.access === undefined)
    throw wrong('accessLog needs log.access')
  if (vouches && !('proxyLoginHeader' in SETTINGS))
    throw wrong('vouches needs the part proxy-login')
  const vouched = vouches ? new WeakMap<IncomingMessage, string>() : undefined
  const vouchedFor = vouched && ((request: IncomingMessage) => vouched.get(request))
  const opened = await composeService(settings, log, prefix, { mayCreate: init, keys, vouchedFor })
  return embedded(opened, settings, prefix, log, vouched)
}

function wrong(why: string): Failure {
  return new Failure('setting-invalid', why)
}

function keysOf(key: unknown, { keyFile, journal }: Settings): Keyring {
  const keys: readonly unknown[] = Array.isArray(key) ? key : [key]
  const isKey = (one: unknown): one is Uint8Array =>
    one instanceof Uint8Array && one.byteLength === KEY_BYTES
  if (keys.length === 0 || !keys.every(isKey)) {
    throw wrong(`key must be a Buffer of ${KEY_BYTES} bytes, or a list of them, the newest last`)
  }
  if (keyFile !== undefined) throw wrong('key and keyFile do not go together')
  if (!['file', 'memory'].includes(journal))
    throw wrong(`key does not go with journal: '${journal}'`)
  return keyring(keys)
}

/**
 * Throws `setting-invalid`, also for an unknown name, or for `true` where no words are asked for.
 */
function readOptions(options: Options): Settings {
  const flags: { [flag: string]: string } = {}
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue
    if (name === 'signal') throw wrong('signal is not an option: call close() instead')
    if (!Object.hasOwn(SETTINGS, name)) throw wrong(`${name} is not a setting`)
    if (!['string', 'number', 'boolean'].includes(typeof value)) {
      throw wrong(`${name} must be a text, a number, true or false`)
    }
    const { flag, parse } = SETTINGS[name as keyof Settings]
    if (typeof value !== 'boolean') {
      flags[flag] = String(value)
      continue
    }
    if (parse.words === undefined) throw wrong(`${name} must be a text or a number`)
    flags[flag] = value ? 'on' : 'off'
  }
  return readValues(SETTINGS, flags, {}, name => name)
}

function embedded(
  { store, accounts: own, pipeline, routes, listen, close }: OpenService,
  settings: Settings,
  prefix: string,
  log: Log,
  vouched: WeakMap<IncomingMessage, string> | undefined
): Service {
  const catchUp = async (): Promise<void> => {
    if (pipeline.isStopping()) throw new Failure('journal-closed', 'the service is closed')
    await store.journal.catchUp?.()
  }
  let isVersionKnown = false
  const warnOfVersion = (): void => {
    if (isVersionKnown) return
    isVersionKnown = true
    log.warn('handle was given a request of HTTP/2, and refuses it: it takes HTTP/1.1 of node:http')
  }
  const { abilities } = settings
  const accounts = new Accounts(store, { abilities: abilities.values() })
  return {
    ...operationsOf({ store, abilities, isOpen: own === undefined, catchUp, routes }),
    accounts: hostAccounts(accounts, catchUp),
    handle: (request, response) => {
      assertOfNode(request, response)
      const { socket } = request as { readonly socket: IncomingMessage['socket'] | null }
      if (socket === null) return void response.destroy() // the host has destroyed it
      if (peerOf(socket) === undefined || socket.destroyed) return
      if (response.headersSent || response.writableEnded) {
        log.warn('handle was given a request whose answer has begun; nothing was done')
        return
      }
      if (request.httpVersionMajor !== 1) warnOfVersion()
      const whole = wholeTarget(prefix, request)
      // `OPTIONS *` is about the whole server.
      const target = whole === '*' ? whole : below(prefix, whole)
      const answer = (reply: Reply): void => respond(response, reply, [], pipeline.isStopping())
      if (target === undefined) return answer(statusReply(404))
      // The page's relative links need the slash.
      if (target !== '*' && !whole.startsWith(`${prefix}/`)) {
        return answer({ status: 308, headers: ['Location', prefix + target] })
      }
      if (pipeline.isStopping()) answer(BUSY)
      else pipeline(request, response, target)
    },
    vouch: (request, { user }) => {
      if (vouched === undefined) throw wrong('vouch needs the option vouches: true')
      if (typeof user !== 'string') throw wrong('vouch takes { user }, an e-mail address')
      vouched.set(request, user)
    },
    listen: () => listen().catch(error => Promise.reject(failureInOptions(error))),
    close
  }
}

function assertOfNode(
  request: Partial<IncomingMessage> | undefined,
  response: Partial<ServerResponse> | undefined
): void {
  const isOfNode =
    request?.socket !== undefined &&
    typeof request.on === 'function' &&
    typeof response?.writeHead === 'function' &&
    typeof response.end === 'function'
  if (isOfNode) return
  throw new Failure(
    'request-foreign',
    'handle takes the IncomingMessage and the ServerResponse of node:http; with Bun.serve, ' +
      'Deno.serve or a route of Next there are none: serve with node:http there, or listen()'
  )
}

/** Frameworks may cut the prefix off `url`; `originalUrl` has it. */
function wholeTarget(
  prefix: string,
  { url = '', originalUrl }: IncomingMessage & { readonly originalUrl?: unknown }
): string {
  return typeof originalUrl === 'string' && below(prefix, originalUrl) === url ? originalUrl : url
}

function below(prefix: string, target: string): string | undefined {
  if (!target.startsWith(prefix)) return undefined
  const rest = target.slice(prefix.length)
  if (rest === '' || rest.startsWith('?')) return `/${rest}`
  return rest.startsWith('/') ? rest : undefined
}
