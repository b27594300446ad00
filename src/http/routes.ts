/** The five operations (contract §1, §9), and login and logout of the protected configuration (§5). */
import { OPERATIONS, TEXTS } from '../contract.ts'
import { LOGIN_LIMIT_REQUESTS, MAX_LOGIN_PAIRS, MAX_LOGIN_PASSWORD_LENGTH } from '../limits.ts'
import { hashOfToken, type Accounts } from '../store/accounts.ts'
import { createEntry, deleteEntry, updateEntry, type Precondition } from '../store/commands.ts'
import { CREATE_SHAPE, entryText, UPDATE_SHAPE } from '../store/entry.ts'
import type { Commits } from '../store/store.ts'
import { covers, sees } from '../store/users.ts'
import { addressOf, email, textUpTo } from '../store/validate.ts'
import { clientKey } from './client.ts'
import type { Head } from './head.ts'
import { RateLimit } from './rate-limit.ts'
import { jsonReply, messageReply, TOO_MANY, type Reply } from './reply.ts'
import { route, type Route } from './route.ts'

const NONE_ACTIVE = messageReply(404, TEXTS.noneActive)
export const UNKNOWN: Reply = messageReply(404, TEXTS.unknownId)
const CREATED = messageReply(200, TEXTS.created)
const DELETED = messageReply(200, TEXTS.deleted)

const created = (entry: number, prefix: string): Reply =>
  ({ ...CREATED, headers: ['Location', `${prefix}/api/getPassword/${entry}`], logged: { entry } })

function entryReply(id: number, text: string, tag: string, before: string, behind: string): Reply {
  return { status: 200, body: `${before}${text}${behind}`, headers: ['ETag', `"${tag}"`], tells: id }
}

const BEHIND_READ = ',"status":200}'
const BEHIND_UPDATED = `,${JSON.stringify({ message: TEXTS.updated, status: 200 }).slice(1)}`

/** Entity tags (RFC 9110 §8.8.3); quotes may hold commas and asterisks. */
const TAGS = /^[ \t,]*(?:(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"[ \t]*(?:,[ \t,]*|$))*$/

/**
 * Undefined without `If-Match` (RFC 9110 §13.1.1). Comparison is strong: weak tags and malformed lists match no entry.
 */
export function preconditionIn({ 'if-match': tags }: Head): Precondition | undefined {
  if (tags === undefined) return undefined
  // A waiting change holds no more than was sent.
  return (_entry, tag) =>
    tags.trim() === '*' || (TAGS.test(tags) && new RegExp(`(?<!W/)"${tag()}"`).test(tags))
}

/** The same answer for an id that no entry has, and for an entry out of sight. */
export function unknownIdIn({ state }: Commits): NonNullable<Route['before']> {
  return (id, session) =>
    state.entries.has(id) && sees(session?.groups, state.entries.grupo(id)) ? undefined : UNKNOWN
}

/** `prefix` is an embedder's path; a move to another group takes the ability `deletes`, too. */
export function entryRoutes(
  store: Commits, prefix: string = '', deletes: string | undefined = OPERATIONS.deletePassword
): readonly Route[] {
  const { state } = store
  const unknownId = unknownIdIn(store)
  return [
    {
      // contract §3, §4.1
      operation: 'listPassword', method: 'GET', path: '/api/listPassword',
      handle: ({ session }) => {
        const body = state.entries.list(session?.groups)
        if (body === undefined) return NONE_ACTIVE
        return { status: 200, body, tells: { list: session?.groups ?? 'active' }, logged: { entry: 'all' } }
      }
    },
    {
      // contract §3, §4.2
      operation: 'getPassword', method: 'GET', path: '/api/getPassword/{id}',
      handle: ({ id, session }) => {
        const text = state.entries.text(id)
        if (text === undefined || unknownId(id, session) !== undefined) return UNKNOWN
        return entryReply(id, text, state.entries.tag(id)!, '{"passwords":', BEHIND_READ)
      }
    },
    route({
      // contract §4.3
      operation: 'createPassword', method: 'POST', path: '/api/createPassword',
      shape: CREATE_SHAPE,
      storingFailed: TEXTS.createFailed,
      handle: ({ body, session }) => createEntry(store, body, session ?? null).then(({ id }) => created(id, prefix))
    }),
    route({
      // contract §4.4
      operation: 'updatePassword', method: 'POST', path: '/api/updatePassword/{id}',
      shape: UPDATE_SHAPE,
      before: unknownId,
      storingFailed: TEXTS.updateFailed,
      handle: async ({ head, id, body, session }) => {
        const mayMove = session === undefined || deletes === undefined || covers(session.abilities, deletes)
        const entry = await updateEntry(store, id, body, session ?? null, {
          isExpected: preconditionIn(head), mayMove, tells: { reader: session, operation: 'updatePassword' }
        })
        if (entry === undefined) return UNKNOWN
        const text = entryText(entry) // as of this change, not of another in the same write
        return entryReply(id, text, state.entries.tagOf(entry), '{"password":', BEHIND_UPDATED)
      }
    }),
    {
      // contract §4.5
      operation: 'deletePassword', method: 'POST', path: '/api/deletePassword/{id}',
      before: unknownId,
      storingFailed: TEXTS.deleteFailed,
      handle: async ({ head, id, session }) =>
        await deleteEntry(store, id, session ?? null, preconditionIn(head)) ? DELETED : UNKNOWN
    }
  ]
}

const INVALID_CREDENTIALS = messageReply(401, TEXTS.invalidCredentials)
const LOGGED_OUT = messageReply(200, TEXTS.loggedOut)

/**
 * `loginLimit` is logins a minute and client, 0 for no limit. Without `ttlMinutes`, a token lives until it is revoked.
 */
export function sessionRoutes(
  accounts: Accounts, loginLimit: number, ttlMinutes: number | undefined
): readonly Route[] {
  // An address's limit may be wide; this limit stops guesses at one user's password.
  const pairs = loginLimit === 0 ? undefined : new RateLimit(LOGIN_LIMIT_REQUESTS, MAX_LOGIN_PAIRS)
  return [
    route({
      // contract §5.3, §8.5
      operation: 'login', method: 'POST', path: '/api/login',
      isPublic: true,
      limit: loginLimit === 0 ? undefined : new RateLimit(loginLimit),
      shape: { email, password: textUpTo(MAX_LOGIN_PASSWORD_LENGTH) },
      storingFailed: 'Error logging in',
      handle: async ({ body, client, isGone }) => {
        const verdict = pairs?.take(`${clientKey(client)} ${addressOf(body.email)}`)
        if (verdict?.allowed === false) {
          return { ...TOO_MANY, headers: ['Retry-After', String(verdict.retryAfterSeconds)] }
        }
        const issued = await accounts.login(body.email, body.password, ttlMinutes, isGone)
        if (issued === undefined) return { ...INVALID_CREDENTIALS, logged: { user: accounts.idOf(body.email) } }
        const { token, user, abilities, groups, expires } = issued
        return {
          ...jsonReply(200, { token, user: { ...user, abilities, groups }, expires, status: 200 }),
          logged: { user: user.id, token: hashOfToken(token) }
        }
      }
    }),
    {
      // contract §5.4
      operation: 'logout', method: 'POST', path: '/api/logout',
      takesAnyToken: true,
      storingFailed: 'Error logging out',
      handle: async ({ session }) => {
        await accounts.revoke(session!.hash, session!.user)
        return LOGGED_OUT
      }
    }
  ]
}
