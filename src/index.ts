/**
 * For embedders: services in their own process. A service sets no signal handlers, never ends the process, and prints
 * only to the given log.
 */
import { readValues, SETTINGS, validateCombinations, type Settings } from './settings.ts'
import { Failure } from './errors.ts'
import { peerOf } from './http/client.ts'
import type { IncomingMessage, ServerResponse } from './http/listener.ts'
import { BUSY, statusReply, type Reply } from './http/reply.ts'
import { respond } from './http/sending.ts'
import type { Log } from './log.ts'
import { openService as open, type OpenService } from './service.ts'
import { Accounts, type ListedToken, type ListedUser } from './store/accounts.ts'
import { createEntry, deleteEntry, updateEntry } from './store/commands.ts'
import { disclosed } from './store/disclosure.ts'
import { HOST, type Tells } from './store/knowledge.ts'
import {
  answered, CREATE_SHAPE, entryOf, entryText, UPDATE_SHAPE, type AnsweredEntry as Entry, type EntryChanges,
  type EntryFields
} from './store/entry.ts'
import { shaped } from './store/validate.ts'

export { Failure, type FailureCode } from './errors.ts'
export type { Log } from './log.ts'
export type { Issued, ListedToken, ListedUser, PublicUser } from './store/accounts.ts'
export type { AnsweredEntry as Entry, EntryChanges, EntryFields } from './store/entry.ts'

/**
 * A service: the operations of the contract (§4), without HTTP and tokens. Changes reject with `input-invalid`,
 * `entry-too-large`, `entry-changed`, `key-unknown`, `write-failed`, `journal-refused`, `journal-closed`, `queue-full`
 * or `journal-busy`; after `journal-failed` or `journal-unreachable` the change may be recorded.
 */
export interface Service {
  /** The active entries, ascending by id. */
  listPassword(): Promise<Entry[]>
  /** Gives deleted entries too; undefined for an unknown id. Rejects with `input-invalid` if that is no integer. */
  getPassword(id: number): Promise<Entry | undefined>
  /** Resolves once the entry is durable. */
  createPassword(fields: EntryFields): Promise<Entry>
  /** Undefined for an unknown id. Rejects with `entry-changed` if the entry is not `ifUnchanged`. */
  updatePassword(id: number, changes: EntryChanges, options?: UpdateOptions): Promise<Entry | undefined>
  /** False for an unknown id. */
  deletePassword(id: number): Promise<boolean>
  /** Users and tokens. */
  readonly accounts: Pick<
    Accounts, 'addUser' | 'changeUser' | 'setPassword' | 'removeUser' | 'issue' | 'revokeToken' |
    'revokeAll'
  > & { users(): Promise<ListedUser[]>, tokens(): Promise<ListedToken[]> }
  /**
   * Answers below the prefix. On a Unix socket all clients share one limit, and `production` refuses them: no proxy
   * there has an address to trust.
   */
  handle(request: IncomingMessage, response: ServerResponse): void
  /**
   * Resolves with the address. Rejects with `address-unusable` (also if it listens already, or is closed),
   * `certificate-invalid`, or `setting-invalid` (production without HTTPS or a proxy).
   */
  listen(): Promise<string>
  /** Finishes requests in flight. */
  close(): Promise<void>
}

/** Options of a change. */
export interface UpdateOptions {
  /** The entry as it was read; a change by others since then prevents this change. */
  readonly ifUnchanged?: Entry | undefined
}

/** Settings: numbers and booleans as such, others as text. */
export type Options = {
  readonly [K in keyof Settings]?:
    NonNullable<Settings[K]> extends string | number | boolean ? Settings[K] | undefined : string | undefined
}

/** Options besides the settings. */
export interface HostOptions {
  /** Receives the operator's messages. Its functions must not throw, except `access.write` for a line that is lost. */
  readonly log?: Log | undefined
  /**
   * The path below which `handle` answers, such as `/vault`; empty: every path. `listen` expects a proxy that cuts it
   * off.
   */
  readonly prefix?: string | undefined
  /** Refuses requests without HTTPS, and a missing or empty journal, as `NODE_ENV=production` does. */
  readonly production?: boolean | undefined
  /** Makes a missing journal in production too. */
  readonly init?: boolean | undefined
}

const SILENT: Log = { info: () => {}, warn: () => {}, access: { write: () => {}, pendingBytes: () => 0 } }

/** Path segments (RFC 3986 §3.3). */
const PREFIX = /^(\/([\w.~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+)*$/

/**
 * Opens a service on a folder (`dataDir`), or in memory (`journal: 'memory'`). Rejects with a `Failure`,
 * holding nothing.
 */
export async function openService(options: Options & HostOptions = {}): Promise<Service> {
  if (typeof options !== 'object' || options === null) throw wrong('options must be an object')
  const { log: given = SILENT, prefix = '', production = false, init = false, ...values } = options
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) {
    throw wrong('prefix must be a path such as /vault, encoded as in a request')
  }
  for (const [name, value] of Object.entries({ production, init })) {
    if (typeof value !== 'boolean') throw wrong(`${name} must be true or false`)
  }
  const settings = { ...readOptions(values), isProduction: production }
  validateCombinations(settings) // `listen` checks the transport
  const log = boundLog(given, 'accessLog' in settings && settings.accessLog === true)
  const opened = await open(settings, log, prefix, init)
  return embedded(opened, new Accounts(opened.store, { abilities: settings.abilities.values() }), prefix, log)
}

function wrong(why: string): Failure { return new Failure('setting-invalid', why) }

/** Throws `setting-invalid`, also for an unknown name, or for `true` as a free text. */
function readOptions(options: Options): Settings {
  const flags: { [flag: string]: string } = {}
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue
    if (name === 'signal') throw wrong('signal is not an option: call close() instead')
    if (!Object.hasOwn(SETTINGS, name)) throw wrong(`${name} is not a setting`)
    if (!['string', 'number', 'boolean'].includes(typeof value)) {
      throw wrong(`${name} must be a text, a number, true or false`)
    }
    const { flag, fallback, parse } = SETTINGS[name as keyof Settings]
    const isAnyText = typeof fallback !== 'boolean' && ['on', 'off'].every(word => takes(parse, word))
    if (typeof value !== 'boolean') { flags[flag] = String(value); continue }
    if (isAnyText) throw wrong(`${name} must be a text`)
    flags[flag] = value ? 'on' : 'off'
  }
  return readValues(SETTINGS, flags, {}, name => name)
}

function takes(parse: (text: string) => unknown, text: string): boolean {
  try {
    parse(text)
    return true
  } catch {
    return false
  }
}

/** Its methods may need their `this`. */
function boundLog(given: Log, isAccessLogged: boolean): Log {
  const { access } = given ?? {}
  const methods = {
    'log.info': given?.info, 'log.warn': given?.warn,
    ...isAccessLogged && { 'log.access.write': access?.write, 'log.access.pendingBytes': access?.pendingBytes }
  }
  for (const [name, method] of Object.entries(methods)) {
    if (typeof method !== 'function') throw wrong(`${name} must be a function`)
  }
  return {
    info: line => given.info(line), warn: line => given.warn(line),
    progress: (what, share) => given.progress?.(what, share), access
  }
}

function embedded(
  { store, accounts: own, pipeline, listen, close }: OpenService, accounts: Accounts, prefix: string, log: Log
): Service {
  const { journal, state: { entries } } = store
  const catchUp = async (): Promise<void> => {
    if (pipeline.isStopping()) throw new Failure('journal-closed', 'the service is closed')
    await journal.catchUp?.()
  }
  const reader = own === undefined ? undefined : HOST
  const active = (): Entry[] =>
    [...entries.entries()].filter(({ status }) => status === 1).map(entry => answered(entry))
  const told = async <T>(operation: string, read: () => T, tells: (found: T) => Tells | undefined): Promise<T> =>
    (await disclosed(store, reader, operation, () => {
      const found = read()
      return { found, tells: tells(found) }
    })).found
  return {
    accounts: {
      addUser: (...given) => accounts.addUser(...given),
      changeUser: (...given) => accounts.changeUser(...given),
      setPassword: (...given) => accounts.setPassword(...given),
      removeUser: (...given) => accounts.removeUser(...given),
      issue: (...given) => accounts.issue(...given),
      revokeToken: (...given) => accounts.revokeToken(...given),
      revokeAll: (...given) => accounts.revokeAll(...given),
      users: async () => { await catchUp(); return accounts.users() },
      tokens: async () => { await catchUp(); return accounts.tokens() }
    },
    listPassword: async () => {
      await catchUp()
      return told('listPassword', active, () => ({ list: 'active' }))
    },
    getPassword: async id => {
      await catchUp()
      const given = idOf(id)
      const entry = await told('getPassword', () => entries.get(given), found => found && given)
      return entry && answered(entry)
    },
    createPassword: async fields => answered(await createEntry(store, shaped(CREATE_SHAPE, fields), null)),
    updatePassword: async (id, changes, { ifUnchanged } = {}) => {
      const wanted = shaped(UPDATE_SHAPE, changes) // the caller may change it during the wait
      const known = ifUnchanged && entryText(entryOf(ifUnchanged.id, ifUnchanged, ifUnchanged.status))
      const isExpected = (entry: Entry): boolean => known === undefined || entryText(entry) === known
      if (known !== undefined) await catchUp() // an outdated copy would refuse it
      const entry = await updateEntry(store, idOf(id), wanted, null, {
        isExpected, tells: { reader, operation: 'updatePassword' }
      })
      return entry && answered(entry)
    },
    deletePassword: async id => deleteEntry(store, idOf(id), null),
    handle: (request, response) => {
      const { socket } = request as { readonly socket: IncomingMessage['socket'] | null }
      if (socket === null) return void response.destroy() // the host has destroyed it
      if (peerOf(socket) === undefined || socket.destroyed) return
      if (response.headersSent || response.writableEnded) {
        log.warn('handle was given a request whose answer has begun; nothing was done')
        return
      }
      const whole = wholeTarget(prefix, request)
      const target = whole === '*' ? whole : below(prefix, whole) // `OPTIONS *` is about the whole server
      const answer = (reply: Reply): void => respond(response, reply, [], pipeline.isStopping())
      if (target === undefined) return answer(statusReply(404))
      // The page's relative links need the slash.
      if (target !== '*' && !whole.startsWith(`${prefix}/`)) {
        return answer({ status: 308, headers: ['Location', prefix + target] })
      }
      if (pipeline.isStopping()) answer(BUSY)
      else pipeline(request, response, target)
    },
    listen,
    close
  }
}

/** A safe integer or its decimal text; anything else throws `input-invalid`. */
function idOf(given: unknown): number {
  const id = typeof given === 'string' ? Number(given) : given
  if (Number.isSafeInteger(id) && String(given) === String(id)) return id as number
  const why = 'The id field must be a safe integer or its decimal text.'
  throw new Failure('input-invalid', why, { errors: { id: [why] } })
}

/** Frameworks may cut the prefix off `url`; `originalUrl` has it. */
function wholeTarget(
  prefix: string, { url = '', originalUrl }: IncomingMessage & { readonly originalUrl?: unknown }
): string {
  return typeof originalUrl === 'string' && below(prefix, originalUrl) === url ? originalUrl : url
}

function below(prefix: string, target: string): string | undefined {
  if (!target.startsWith(prefix)) return undefined
  const rest = target.slice(prefix.length)
  if (rest === '' || rest.startsWith('?')) return `/${rest}`
  return rest.startsWith('/') ? rest : undefined
}
