/** Login and logout (contract §5), which only the protected configuration has. */
import { jsonReply, said } from '../http/reply.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import { email, textUpTo } from '../json/shape.ts'
import { MAX_LOGIN_PASSWORD_LENGTH } from '../limits.ts'
import type { Accounts } from '../store/accounts.ts'
import { route, type Route } from './route.ts'

const INVALID_CREDENTIALS = said(401, 'Invalid credentials')
const LOGGED_OUT = said(200, 'Logged out successfully')

/** What the two routes need. */
export interface SessionRoutesOptions {
  readonly accounts: Accounts
  /** The stricter limit of logins; undefined: none. */
  readonly loginLimit: RateLimit | undefined
  /** How long a token lives that a login issues; undefined: until it is revoked. */
  readonly ttlMinutes: number | undefined
}

/** The routes of login and logout. */
export function sessionRoutes({ accounts, loginLimit, ttlMinutes }: SessionRoutesOptions): readonly Route[] {
  return [
    route({
      operation: 'login', method: 'POST', path: '/api/login',
      isPublic: true,
      rateLimit: loginLimit,
      shape: { email, password: textUpTo(MAX_LOGIN_PASSWORD_LENGTH) },
      handle: async ({ body }) => {
        const issued = await accounts.login(body.email, body.password, ttlMinutes)
        return issued === undefined
          ? INVALID_CREDENTIALS
          : jsonReply(200, { token: issued.token, user: issued.user, status: 200 })
      }
    }),
    {
      operation: 'logout', method: 'POST', path: '/api/logout',
      handle: async ({ session }) => {
        await accounts.revoke(session!.hash, session!.user)
        return LOGGED_OUT
      }
    }
  ]
}
