/** Users and tokens for tests: a store with a clock of its own that can be reopened, and a protected service. */
import { Buffer } from 'node:buffer'
import { openMemoryJournal, type JournalRecord } from '../../src/journal/journal.ts'
import { PasswordHasher, type ScryptCost } from '../../src/accounts/passwords.ts'
import { emptyState } from '../../src/slices.ts'
import { Store } from '../../src/store/store.ts'
import { fileStore, withAccounts, type FullStore } from './stores.ts'
import { CHEAP } from './hashes.ts'
import { ask, message, type RawAnswer, type RawOptions } from './raw.ts'
import { freshFolder, startService, type Scope, type Started } from './service.ts'

/** The user that most tests have, and the password of every user. */
export const ANA = 'ana@example.org'
export const PASSWORD = 'correct horse battery staple'

/** A journal in memory that outlives its stores, under a clock that only the test moves. */
export class World {
  nowMs: number = Date.UTC(2026, 0, 31, 12)
  readonly records: JournalRecord[] = []

  /** A store on all records so far, as after a restart. */
  open(cost: ScryptCost = CHEAP, hasher: PasswordHasher = new PasswordHasher(cost)): FullStore {
    const wallMs = (): number => this.nowMs
    const state = emptyState()
    for (const record of this.records) state.apply(record)
    const journal = openMemoryJournal(wallMs, record => {
      state.apply(record)
      this.records.push(record)
    })
    return withAccounts(new Store(journal, state, wallMs), { hasher, wallMs })
  }

  dataOf(type: string): any[] { return this.records.filter(record => record.type === type).map(({ data }) => data) }
}

/** Starts the protected configuration with users (address: abilities). */
export async function startProtected(
  t: Scope, flags: Record<string, string> = {}, users: Record<string, readonly string[]> = { [ANA]: ['*'] }
): Promise<Started> {
  const folder = freshFolder(t)
  const store = await fileStore(folder)
  for (const [email, abilities] of Object.entries(users)) {
    await store.accounts.addUser(email, email.split('@')[0]!, abilities, PASSWORD)
  }
  await store.close()
  return startService(t, { auth: 'bearer', data: folder, ...flags })
}

/** A new token of a user; without abilities, with all of the user's. */
export async function tokenOf(
  { service }: Started, email: string = ANA, abilities?: readonly string[], ttlMinutes?: number
): Promise<string> {
  const issued = await service.accounts!.issue(email, abilities, ttlMinutes)
  if (issued === undefined) throw new Error(`there is no user ${email}`)
  return issued.token
}

export interface CallOptions extends RawOptions {
  readonly token?: string | undefined
  readonly body?: unknown
  readonly fields?: readonly string[]
}

/** Sends a request on a connection of its own; a body that is no text goes out as JSON. */
export function call(
  t: Scope, url: string, method: string, path: string, options: CallOptions = {}
): Promise<RawAnswer> {
  const { token, body, fields = [], ...connection } = options
  const text = body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  const all = token === undefined ? fields : [`Authorization: Bearer ${token}`, ...fields]
  return ask(t, url, message(method, path, text, all), connection)
}

/** The five operations as requests for the entry 1: name, method, path, body, and the default ability. */
export const FIVE: readonly (readonly [string, string, string, string | undefined, string])[] = [
  ['listPassword', 'GET', '/api/listPassword', undefined, 'password:read'],
  ['getPassword', 'GET', '/api/getPassword/1', undefined, 'password:read'],
  ['createPassword', 'POST', '/api/createPassword', '{"password":"p","sistema":"s","usuario":"u"}', 'password:create'],
  ['updatePassword', 'POST', '/api/updatePassword/1', '{"sistema":"t"}', 'password:update'],
  ['deletePassword', 'POST', '/api/deletePassword/1', undefined, 'password:delete']
]
