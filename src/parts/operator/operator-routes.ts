/** The operator's routes, on the lock socket in the data folder; a process that can open it may use them. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'
import type { CoreSettings } from '../../core-settings.ts'
import { TEXTS } from '../../contract.ts'
import { Failure } from '../../errors.ts'
import { entryRoutes, UNKNOWN } from '../../http/routes.ts'
import { jsonReply, messageReply, type Reply } from '../../http/reply.ts'
import { number } from '../../store/validate.ts'
import { optional, rule, text, type Shape, type Shaped } from '../../store/validate.ts'
import type { DurableJournal } from '../../journal/journal.ts'
import { ADDRESS_SHAPE, CHANGE_SHAPE, PASSWORD_SHAPE, TOKEN_SHAPE, USER_SHAPE } from '../../store/account-rules.ts'
import { Accounts } from '../../store/accounts.ts'
import { createEntry, restoreEntry } from '../../store/commands.ts'
import { forOperator, purgeEntry, recordDisclosure } from './operator-changes.ts'
import { CREATE_SHAPE } from '../../store/entry.ts'
import { ANY_ABILITY } from '../../store/session.ts'
import type { Store } from '../../store/store.ts'
import { checkpointOf } from './checkpoint.ts'
import { importRoutes } from './import-routes.ts'
import { rewriteJournal, type Rewrite, type Rewritten } from './rewrite.ts'
import { rotateKey, type QuietFile } from './quiet-file.ts'
import { oneOf } from './request-rules.ts'
import { tokensToKeep } from './tokens-to-keep.ts'
import { route, type Route } from '../../http/route.ts'
import { explained, ofFile, TEXTS_OF_SERVICE } from '../system-error.ts'

const DONE = messageReply(200, 'done')
const UNKNOWN_USER = messageReply(404, 'there is no user with this address')
const UNKNOWN_TOKEN = messageReply(404, 'there is no token with this id')
const ADDRESS_TAKEN = messageReply(409, 'there is a user with this address already')
const PURGED = messageReply(200, 'purged')
const RESTORED = messageReply(200, 'active again')
const entryId = rule<number>(id => Number.isSafeInteger(id) && Number(id) > 0, 'be a positive integer')
const DISCLOSURE_SHAPE = { command: text, entries: number(0, Number.MAX_SAFE_INTEGER), id: optional(entryId) }

/**
 * The operator's routes, of which each change has the name of the account that asks. The accounts are not those that
 * clients log in to: waiting logins do not delay the operator. A journal that is being written again stays as it is
 * once `stopping` is aborted.
 */
export function operatorRoutes(
  served: Store, { abilities }: Pick<CoreSettings, 'abilities'>, journal: DurableJournal, stopping: AbortSignal
): readonly Route[] {
  const asking = new AsyncLocalStorage<string>()
  const store = forOperator(served, () => asking.getStore())
  const accounts = new Accounts(store, { abilities: abilities.values() })
  let progress = 0
  const onProgress = (share: number): void => { progress = share }
  const status = (): object => ({
    pid: process.pid, ...journal.location(), ...served.status(), entries: store.state.entries.count,
    activeEntries: store.state.entries.active, progress
  })
  const rewrite = (
    isGone: () => boolean, rewriteOf: (file: QuietFile) => Omit<Rewrite, 'onProgress' | 'assertWanted'>
  ): Promise<Rewritten> => {
    progress = 0
    const assertWanted = (): void => {
      stopping.throwIfAborted()
      if (isGone()) throw new Failure('journal-busy', 'who asked for it has gone')
    }
    const work = (): Promise<Rewritten> =>
      rewriteJournal(journal, file => ({ ...rewriteOf(file), onProgress, assertWanted }))
    return served.exclusive(work, isGone)
      .catch(error => { throw ofFile(error, journal.location().path) })
  }
  const routes = [
    { ...get('status', 'status', status), isPublic: true },
    get('listUsers', 'users', () => accounts.users()),
    post('addUser', 'users/add', USER_SHAPE, ({ email, name, abilities = [ANY_ABILITY], password }) =>
      accounts.addUser(email, name, abilities, password), ADDRESS_TAKEN),
    post('setPassword', 'users/password', PASSWORD_SHAPE, ({ email, password }) =>
      accounts.setPassword(email, password), UNKNOWN_USER),
    post('changeUser', 'users/change', CHANGE_SHAPE, ({ email, name, abilities }) =>
      accounts.changeUser(email, name, abilities), UNKNOWN_USER),
    post('removeUser', 'users/remove', ADDRESS_SHAPE, ({ email }) => accounts.removeUser(email), UNKNOWN_USER),
    get('listTokens', 'tokens', () => accounts.tokens()),
    post('issueToken', 'tokens/issue', TOKEN_SHAPE, ({ email, abilities, ttlMinutes }) =>
      accounts.issue(email, abilities, ttlMinutes), UNKNOWN_USER),
    post('revokeToken', 'tokens/revoke', { id: text }, ({ id }) => accounts.revokeToken(id), UNKNOWN_TOKEN),
    post('revokeTokens', 'tokens/revoke-all', ADDRESS_SHAPE, ({ email }) => accounts.revokeAll(email), UNKNOWN_USER),
    post('addEntry', 'entries/add', CREATE_SHAPE, async fields =>
      ({ id: (await createEntry(store, fields, null)).id, message: TEXTS.created })),
    post('restoreEntry', 'entries/restore', { id: entryId }, ({ id }) => restoreEntry(store, id, null),
      UNKNOWN, RESTORED),
    post('purgeEntry', 'entries/purge', { id: entryId }, ({ id }) => purgeEntry(store, id), UNKNOWN, PURGED),
    post('recordDisclosure', 'disclosures', DISCLOSURE_SHAPE, disclosure =>
      recordDisclosure(store, disclosure).then(() => true)),
    post('rotateKey', 'key/rotate', {}, (_body, isGone) =>
      served.exclusive(() => rotateKey(journal, randomBytes), isGone)
      .catch(error => { throw ofFile(error, journal.location().keyFile) })),
    post('rewriteJournal', 'key/rewrite', {}, (_body, isGone) => rewrite(isGone, () => ({}))),
    post('compactJournal', 'journal/compact', { keepsHistory: oneOf(0, 1) }, ({ keepsHistory }, isGone) =>
      rewrite(isGone, file => ({
        checkpoint: checkpointOf(store.state, tokensToKeep(store.state, file)), keepsHistory: keepsHistory === 1
      }))),
    ...importRoutes(store),
    ...entryRoutes(store)
  ]
  return routes.map(route => ({
    ...route, handle: call => asking.run(call.head['x-operator'] ?? '', () => inWords(() => route.handle(call)))
  }))
}

/** What the call gives; an error of the system is thrown in words. */
async function inWords<T>(call: () => T | Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw explained(error, TEXTS_OF_SERVICE)
  }
}

function get(operation: string, path: string, value: () => unknown): Route {
  return { operation, method: 'GET', path: `/operator/${path}`, handle: () => jsonReply(200, value()) }
}

/**
 * `act` gets the body, and whether the client is gone by now; it gives the body of the answer, or true for `done`, or
 * false or undefined for `refused`. What the store refuses as invalid is answered 400.
 */
function post<S extends Shape>(
  operation: string, path: string, shape: S,
  act: (body: Shaped<S>, isGone: () => boolean) => Promise<object | boolean | undefined>,
  refused?: Reply, done: Reply = DONE
): Route {
  return route({
    operation, method: 'POST', path: `/operator/${path}`, shape,
    handle: async ({ body, isGone }) => {
      try {
        const result = await act(body, isGone)
        if (typeof result === 'object') return jsonReply(200, result)
        return result === true ? done : refused!
      } catch (error) {
        if (error instanceof Failure && error.code === 'input-invalid') return messageReply(400, error.message)
        throw error
      }
    }
  })
}
