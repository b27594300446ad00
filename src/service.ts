/** The composition: from settings to a service. It knows no signals and never ends the process. */
import { CREATE_SHAPE, UPDATE_SHAPE } from './api/entries.ts'
import { Metrics } from './api/metrics.ts'
import { ADDRESS_SHAPE, PASSWORD_SHAPE, TOKEN_SHAPE, USER_SHAPE } from './api/operator.ts'
import type { ServiceSettings } from './config.ts'
import { Failure } from './errors.ts'
import { check, sentenceOf, type Shape, type Shaped } from './json/shape.ts'
import { openStore } from './open-store.ts'
import { nowMs, serve, type Log, type Serving } from './serving.ts'
import type { Accounts } from './store/accounts.ts'
import type { Entry, EntryChanges, EntryFields } from './store/record.ts'
import type { Store } from './store/store.ts'

/**
 * A service. The five operations are those of the contract (§4), without HTTP and without tokens; changes reject with
 * a `Failure`: `input-invalid` for fields that the contract refuses, `write-failed`, `journal-latched`, `queue-full`
 * or `journal-closed` where nothing was recorded.
 */
export interface Service extends Serving {
  /** The active entries, ascending by id. */
  listPassword(): Promise<Entry[]>
  /** An entry, deleted ones too; undefined for an unknown id. */
  getPassword(id: number): Promise<Entry | undefined>
  /** Creates an active entry; gives it once it is durable. */
  createPassword(fields: EntryFields): Promise<Entry>
  /** Changes the given fields; gives the entry as it is then, undefined for an unknown id. */
  updatePassword(id: number, changes: EntryChanges): Promise<Entry | undefined>
  /** Marks an entry as deleted; false for an unknown id. */
  deletePassword(id: number): Promise<boolean>
  /** Users and tokens. */
  readonly accounts: Pick<
    Accounts, 'addUser' | 'setPassword' | 'removeUser' | 'users' | 'issue' | 'tokens' | 'revokeToken' | 'revokeAll'>
}

/** A service with what its own program and tests look at besides. */
export interface OpenService extends Service {
  readonly store: Store
}

/** Opens a service; nobody is served yet. `prefix`: see `serve`. Rejects with a `Failure`, holding nothing. */
export async function openService(settings: ServiceSettings, log: Log, prefix: string = ''): Promise<OpenService> {
  const metrics = new Metrics()
  const opened = await openStore(settings, log, () => {
    const startMs = nowMs()
    return isMade => metrics.countWrite(nowMs() - startMs, isMade)
  })
  const { store } = opened
  try {
    const serving = serve(settings, store, log, metrics, prefix)
    const current = async (): Promise<void> => store.journal.current?.()
    let closed: Promise<void> | undefined
    return {
      ...serving, store, accounts: guarded(store.accounts),
      listPassword: async () => { await current(); return store.activeList() },
      getPassword: async id => { await current(); return store.entry(id) },
      createPassword: async fields => store.createEntry(shaped(CREATE_SHAPE, fields), null),
      updatePassword: async (id, changes) => store.updateEntry(id, shaped(UPDATE_SHAPE, changes), null),
      deletePassword: async id => store.deleteEntry(id, null),
      close: () => closed ??= serving.close().then(opened.close)
    }
  } catch (error) {
    await opened.close()
    throw error
  }
}

/** The same rules as for the body of a request. */
function shaped<S extends Shape>(shape: S, given: object): Shaped<S> {
  const checked = check(shape, { ...given })
  if (checked.ok) return checked.value
  throw new Failure('input-invalid', sentenceOf(checked.errors))
}

/** Users and tokens under the rules that the operator's program is under. */
function guarded(accounts: Accounts): Service['accounts'] {
  return {
    users: () => accounts.users(),
    tokens: () => accounts.tokens(),
    addUser: async (email, name, abilities, password) => {
      const given = shaped(USER_SHAPE, { email, name, abilities, password })
      return accounts.addUser(given.email, given.name ?? given.email, given.abilities ?? [], given.password)
    },
    setPassword: async (email, password) => {
      const given = shaped(PASSWORD_SHAPE, { email, password })
      return accounts.setPassword(given.email, given.password)
    },
    removeUser: async email => accounts.removeUser(shaped(ADDRESS_SHAPE, { email }).email),
    issue: async (email, abilities, ttlMinutes) => {
      const given = shaped(TOKEN_SHAPE, { email, abilities, ttlMinutes })
      return accounts.issue(given.email, given.abilities, given.ttlMinutes)
    },
    revokeToken: async id => accounts.revokeToken(id),
    revokeAll: async email => accounts.revokeAll(shaped(ADDRESS_SHAPE, { email }).email)
  }
}
