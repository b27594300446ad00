/**
 * Login and logout of the protected configuration (contract §5), and what users may do about
 * themselves.
 */
import { TEXTS } from '../contract.ts'
import {
  LOGIN_LIMIT_REQUESTS,
  MAX_CODE_LENGTH,
  MAX_LOGIN_PAIRS,
  MAX_LOGIN_PASSWORD_LENGTH,
  MAX_RATE_LIMIT_CLIENTS
} from '../limits.ts'
import type { Accounts } from './accounts.ts'
import { hashOfToken } from './tokens.ts'
import type { LoggedIn } from './listed.ts'
import { newPassword, passwordFault } from './password-rules.ts'
import { addressOf } from '../rights/rights.ts'
import { email, optional, text, textUpTo } from '../rights/validate.ts'
import { clientKey } from '../http/client.ts'
import { RateLimit } from '../http/rate-limit.ts'
import {
  FORBIDDEN,
  invalidReply,
  jsonReply,
  messageReply,
  TOO_MANY,
  type Reply
} from '../http/reply.ts'
import { route, type Route } from '../http/router.ts'

export const INVALID_CREDENTIALS: Reply = messageReply(401, TEXTS.invalidCredentials)
const LOGGED_OUT = messageReply(200, TEXTS.loggedOut)
export const PASSWORD_CHANGED: Reply = messageReply(200, 'contraseña cambiada')
export const WRONG_PASSWORD: Reply = invalidReply({
  password: ['The current password is not correct.']
})
export const SAME_PASSWORD: Reply = invalidReply({
  newPassword: ['The newPassword field must be another password.']
})
export const SESSIONS_ENDED: Reply = messageReply(200, 'sesión terminada')
export const UNKNOWN_SESSION: Reply = messageReply(404, 'sesión no encontrada')
const SESSIONS = { ended: SESSIONS_ENDED, unknown: UNKNOWN_SESSION, newer: FORBIDDEN }

export interface LoginLimits {
  /** Logins in a window; 0: any number. */
  readonly loginLimit: number
  /** Undefined: a token lives until it is revoked. */
  readonly ttlMinutes: number | undefined
}

/** `user`: whose address was given, for the log. `issued` undefined: the credentials are wrong. */
export function loginReply(issued: LoggedIn | undefined, user: number | undefined): Reply {
  if (issued === undefined) return { ...INVALID_CREDENTIALS, logged: { user } }
  const { token, abilities, groups, expires } = issued
  return {
    ...jsonReply(200, { token, user: { ...issued.user, abilities, groups }, expires, status: 200 }),
    logged: { user: issued.user.id, token: hashOfToken(token) }
  }
}

export function assertWithin(limit: RateLimit | undefined, key: string): void {
  const verdict = limit?.take(key)
  if (verdict?.allowed === false)
    throw { ...TOO_MANY, headers: ['Retry-After', String(verdict.retryAfterSeconds)] }
}

export function sessionRoutes(
  accounts: Accounts,
  { loginLimit, ttlMinutes }: LoginLimits
): readonly Route[] {
  // An address's limit may be wide; this limit stops guesses at one user's password.
  const pairs = loginLimit === 0 ? undefined : new RateLimit(LOGIN_LIMIT_REQUESTS, MAX_LOGIN_PAIRS)
  return [
    route({
      // contract §5.3, §8.5
      operation: 'login',
      method: 'POST',
      path: '/api/login',
      isPublic: true,
      limit: loginLimit === 0 ? undefined : new RateLimit(loginLimit),
      shape: {
        email,
        password: textUpTo(MAX_LOGIN_PASSWORD_LENGTH),
        code: optional(textUpTo(MAX_CODE_LENGTH))
      },
      storingFailed: 'Error logging in',
      handle: async ({ body, client }) => {
        const key = clientKey(client)
        assertWithin(pairs, `${key} ${addressOf(body.email)}`)
        return loginReply(
          await accounts.login({ ...body, client: key }, ttlMinutes),
          accounts.idOf(body.email)
        )
      }
    }),
    {
      // contract §5.4
      operation: 'logout',
      method: 'POST',
      path: '/api/logout',
      takesAnyToken: true,
      isCountedByAddress: true,
      storingFailed: 'Error logging out',
      handle: async ({ session }) => {
        await accounts.revoke(session!.hash, session!.user)
        return LOGGED_OUT
      }
    },
    ...ownRoutes(accounts, loginLimit > 0)
  ]
}

/** For tokens of logins alone: a program's token is not its user. */
const before: NonNullable<Route['before']> = (_id, session) =>
  session!.token.isOfLogin === true ? undefined : FORBIDDEN

function ownRoutes(accounts: Accounts, isLimited: boolean): readonly Route[] {
  // For each token: who holds one must not find the password by trying, nor use up its user's
  // tries.
  const tries = isLimited ? new RateLimit(LOGIN_LIMIT_REQUESTS, MAX_RATE_LIMIT_CLIENTS) : undefined
  return [
    route({
      operation: 'changeOwnPassword',
      method: 'POST',
      path: '/api/changeOwnPassword',
      takesAnyToken: true,
      isCountedByAddress: true,
      before,
      shape: { password: textUpTo(MAX_LOGIN_PASSWORD_LENGTH), newPassword },
      storingFailed: 'Error changing password',
      handle: async ({ body: { password, newPassword }, session }) => {
        const fault = passwordFault(newPassword, accounts.emailOf(session!), 'newPassword')
        if (fault !== undefined) return invalidReply({ newPassword: [fault] })
        // Otherwise a first password would count as changed, and stay what its maker knows.
        if (newPassword.normalize('NFC') === password.normalize('NFC')) return SAME_PASSWORD
        assertWithin(tries, session!.hash)
        return (await accounts.changePassword(session!, password, newPassword))
          ? PASSWORD_CHANGED
          : WRONG_PASSWORD
      }
    }),
    {
      operation: 'ownSessions',
      method: 'GET',
      path: '/api/ownSessions',
      takesAnyToken: true,
      isCountedByAddress: true,
      before,
      handle: ({ session }) =>
        jsonReply(200, { sessions: accounts.sessions(session!), status: 200 })
    },
    route({
      operation: 'endOwnSessions',
      method: 'POST',
      path: '/api/endOwnSessions',
      takesAnyToken: true,
      isCountedByAddress: true,
      before,
      shape: { session: text },
      storingFailed: 'Error ending sessions',
      handle: async ({ body, session }) =>
        SESSIONS[await accounts.endSessions(session!, body.session)]
    })
  ]
}
