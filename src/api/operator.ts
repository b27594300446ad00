/** What the operator's program asks for, over the Unix socket in the data folder: whoever can open that may do it. */
import { jsonReply, said, type Reply } from '../http/reply.ts'
import { email, number, optional, text, texts, textUpTo, type Rule } from '../json/shape.ts'
import type { DurableJournal } from '../journal/journal.ts'
import { MAX_LOGIN_PASSWORD_LENGTH, MAX_TOKEN_TTL_MINUTES } from '../limits.ts'
import { ANY_ABILITY } from '../store/record.ts'
import type { Store } from '../store/store.ts'
import { importRoutes } from './import.ts'
import { route, type Route } from './route.ts'

const DONE = said(200, 'done')
const UNKNOWN_USER = said(404, 'there is no user with this address')
const UNKNOWN_TOKEN = said(404, 'there is no token with this id')
const UNKNOWN_ENTRY = said(404, 'there is no entry with this id')
const ADDRESS_TAKEN = said(409, 'there is a user with this address already')

const password = textUpTo(MAX_LOGIN_PASSWORD_LENGTH)

/** Whom a command is about. */
export const ADDRESS_SHAPE: { readonly email: Rule<string> } = { email }
/** A new password. */
export const PASSWORD_SHAPE: typeof ADDRESS_SHAPE & { readonly password: Rule<string> } = { email, password }
/** A new user. */
export const USER_SHAPE: typeof PASSWORD_SHAPE & {
  readonly name: Rule<string | undefined>, readonly abilities: Rule<readonly string[] | undefined>
} = { email, password, name: optional(text), abilities: optional(texts) }
/** A token to be issued. */
export const TOKEN_SHAPE: typeof ADDRESS_SHAPE & {
  readonly abilities: Rule<readonly string[] | undefined>, readonly ttlMinutes: Rule<number | undefined>
} = { email, abilities: optional(texts), ttlMinutes: optional(number(0, MAX_TOKEN_TTL_MINUTES)) }

/** The operator's routes on a store and its journal. */
export function operatorRoutes(store: Store, journal: DurableJournal): readonly Route[] {
  return [...userRoutes(store), ...tokenRoutes(store), ...journalRoutes(store, journal), ...importRoutes(store)]
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
        const { name = body.email, abilities = [ANY_ABILITY] } = body
        const user = await accounts.addUser(body.email, name, abilities, body.password)
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
  return [
    {
      operation: 'status', method: 'GET', path: '/operator/status', mayBeStale: true,
      handle: (): Reply => jsonReply(200, {
        pid: process.pid, ...journal.location(), ...journal.health(), entries: store.entryCount,
        activeEntries: store.activeCount, progress
      })
    },
    route({
      operation: 'restoreEntry', method: 'POST', path: '/operator/entries/restore',
      shape: { id: number(1, Number.MAX_SAFE_INTEGER) },
      handle: async ({ body }) => await store.restoreEntry(body.id, null) ? DONE : UNKNOWN_ENTRY
    }),
    {
      operation: 'rotateKey', method: 'POST', path: '/operator/key/rotate',
      handle: async () => jsonReply(200, await journal.rotateKey())
    },
    route({
      operation: 'rewriteJournal', method: 'POST', path: '/operator/key/rewrite',
      shape: { to: optional(text) },
      handle: async ({ body }) => {
        progress = 0
        return jsonReply(200, await journal.rewrite(share => { progress = share }, body.to))
      }
    })
  ]
}
