/** The operator's routes, on the lock socket in the data folder; a process that can open it may use them. */
import { Failure } from '../../errors.ts'
import { CREATE_SHAPE, entryRoutes } from '../../api/entry-routes.ts'
import { jsonReply, messageReply, type Reply } from '../../http/reply.ts'
import { number, oneOf, optional, text } from '../../json/validator.ts'
import type { DurableJournal } from '../../journal/journal.ts'
import { ADDRESS_SHAPE, PASSWORD_SHAPE, TOKEN_SHAPE, USER_SHAPE } from '../../store/account-rules.ts'
import { ANY_ABILITY } from '../../store/events.ts'
import type { Store } from '../../store/store.ts'
import { importRoutes } from './import-routes.ts'
import { route, type Route } from '../../api/route.ts'

const DONE = messageReply(200, 'done')
const UNKNOWN_USER = messageReply(404, 'there is no user with this address')
const UNKNOWN_TOKEN = messageReply(404, 'there is no token with this id')
const UNKNOWN_ENTRY = messageReply(404, 'contraseña no encontrada')
const CREATED = 'SE CREÓ UNA NUEVA CONTRASEÑA'
const PURGED = messageReply(200, 'purged')
const RESTORED = messageReply(200, 'active again')
const anyNumber = number(1, Number.MAX_SAFE_INTEGER)
const entryId: typeof anyNumber = {
  ...anyNumber,
  fault: (field, id) => anyNumber.fault(field, id) ??
    (Number.isInteger(id) ? undefined : `The ${field} field must be an integer.`)
}
const ADDRESS_TAKEN = messageReply(409, 'there is a user with this address already')

/** The operator's routes on a store and its journal. */
export function operatorRoutes(store: Store, journal: DurableJournal): readonly Route[] {
  const routes = [
    ...userRoutes(store), ...tokenRoutes(store), ...journalRoutes(store, journal), ...importRoutes(store),
    ...entryRoutes(store)
  ]
  return routes.map(route => ({ ...route, handle: call => refusing(() => route.handle(call)) }))
}

/** What the store refuses as invalid is answered 400. */
async function refusing(handle: () => Reply | Promise<Reply>): Promise<Reply> {
  try {
    return await handle()
  } catch (error) {
    if (error instanceof Failure && error.code === 'input-invalid') return messageReply(400, error.message)
    throw error
  }
}

function userRoutes({ accounts }: Store): readonly Route[] {
  return [
    {
      operation: 'listUsers', method: 'GET', path: '/operator/users',
      handle: () => jsonReply(200, accounts.users())
    },
    route({
      operation: 'addUser', method: 'POST', path: '/operator/users/add',
      shape: USER_SHAPE,
      handle: async ({ body }) => {
        const { email, name, abilities = [ANY_ABILITY], password } = body
        const user = await accounts.addUser(email, name, abilities, password)
        return user === undefined ? ADDRESS_TAKEN : jsonReply(200, user)
      }
    }),
    route({
      operation: 'setPassword', method: 'POST', path: '/operator/users/password',
      shape: PASSWORD_SHAPE,
      handle: async ({ body }) => await accounts.setPassword(body.email, body.password) ? DONE : UNKNOWN_USER
    }),
    route({
      operation: 'removeUser', method: 'POST', path: '/operator/users/remove',
      shape: ADDRESS_SHAPE,
      handle: async ({ body }) => await accounts.removeUser(body.email) ? DONE : UNKNOWN_USER
    })
  ]
}

function tokenRoutes({ accounts }: Store): readonly Route[] {
  return [
    {
      operation: 'listTokens', method: 'GET', path: '/operator/tokens',
      handle: () => jsonReply(200, accounts.tokens())
    },
    route({
      operation: 'issueToken', method: 'POST', path: '/operator/tokens/issue',
      shape: TOKEN_SHAPE,
      handle: async ({ body }) => {
        const issued = await accounts.issue(body.email, body.abilities, body.ttlMinutes)
        return issued === undefined ? UNKNOWN_USER : jsonReply(200, issued)
      }
    }),
    route({
      operation: 'revokeToken', method: 'POST', path: '/operator/tokens/revoke',
      shape: { id: text },
      handle: async ({ body }) => await accounts.revokeToken(body.id) ? DONE : UNKNOWN_TOKEN
    }),
    route({
      operation: 'revokeTokens', method: 'POST', path: '/operator/tokens/revoke-all',
      shape: ADDRESS_SHAPE,
      handle: async ({ body }) => await accounts.revokeAll(body.email) ? DONE : UNKNOWN_USER
    })
  ]
}

function journalRoutes(store: Store, journal: DurableJournal): readonly Route[] {
  let progress = 0
  const onProgress = (share: number): void => { progress = share }
  return [
    {
      operation: 'status', method: 'GET', path: '/operator/status', allowsStaleReads: true,
      handle: (): Reply => jsonReply(200, {
        pid: process.pid, ...journal.location(), ...store.health(), entries: store.entryCount,
        activeEntries: store.activeCount, progress
      })
    },
    route({
      operation: 'recordDisclosure', method: 'POST', path: '/operator/disclosures',
      shape: { command: text, entries: number(0, Number.MAX_SAFE_INTEGER), id: optional(entryId) },
      handle: async ({ body }) => { await store.recordDisclosure(body); return DONE }
    }),
    route({
      operation: 'addEntry', method: 'POST', path: '/operator/entries/add',
      shape: CREATE_SHAPE,
      handle: async ({ body }) => jsonReply(200, { id: (await store.createEntry(body, null)).id, message: CREATED })
    }),
    route({
      operation: 'restoreEntry', method: 'POST', path: '/operator/entries/restore',
      shape: { id: entryId },
      handle: async ({ body }) => await store.restoreEntry(body.id, null) ? RESTORED : UNKNOWN_ENTRY
    }),
    route({
      operation: 'purgeEntry', method: 'POST', path: '/operator/entries/purge',
      shape: { id: entryId },
      handle: async ({ body }) => await store.purgeEntry(body.id) ? PURGED : UNKNOWN_ENTRY
    }),
    {
      operation: 'rotateKey', method: 'POST', path: '/operator/key/rotate',
      handle: async () => jsonReply(200, await store.exclusively(() => journal.rotateKey()))
    },
    {
      operation: 'rewriteJournal', method: 'POST', path: '/operator/key/rewrite',
      handle: async () => {
        progress = 0
        const { head, unneeded } = await store.exclusively(signal => journal.rewrite({ onProgress, signal }))
        return jsonReply(200, { head, unneeded })
      }
    },
    route({
      operation: 'compactJournal', method: 'POST', path: '/operator/journal/compact',
      shape: { keepsHistory: oneOf(0, 1) },
      handle: async ({ body }) => {
        progress = 0
        return jsonReply(200, await store.exclusively(async signal => {
          const checkpoint = await store.checkpoint()
          return journal.rewrite({ checkpoint, keepsHistory: body.keepsHistory === 1, onProgress, signal })
        }))
      }
    })
  ]
}
