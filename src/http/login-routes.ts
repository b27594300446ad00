/** Login and logout (contract §5), which only the protected configuration has. */
import { TEXTS } from '../contract.ts'
import { jsonReply, messageReply, type Reply } from './reply.ts'
import { email, textUpTo } from '../store/validate.ts'
import { MAX_LOGIN_PASSWORD_LENGTH } from '../limits.ts'
import { hashOfToken, type Accounts, type Issued } from '../store/accounts.ts'
import { tokenId } from '../store/session.ts'
import type { RateLimit } from './rate-limit.ts'
import { route, type Route } from './route.ts'

const INVALID_CREDENTIALS = messageReply(401, TEXTS.invalidCredentials)
const LOGGED_OUT = messageReply(200, TEXTS.loggedOut)
const loggedIn = ({ token, user, abilities }: Issued): Reply => ({
  ...jsonReply(200, { token, user: { ...user, abilities }, status: 200 }),
  logged: { user: user.id, token: tokenId(hashOfToken(token)) }
})

interface SessionRoutesOptions {
  readonly accounts: Accounts
  /** The stricter limit for logins, if there is one. */
  readonly loginLimit: RateLimit | undefined
  /** The lifetime of a token from a login, in minutes; undefined: until it is revoked. */
  readonly ttlMinutes: number | undefined
}

export function sessionRoutes({ accounts, loginLimit, ttlMinutes }: SessionRoutesOptions): readonly Route[] {
  return [
    route({
      // contract §5.3, §8.5
      operation: 'login', method: 'POST', path: '/api/login',
      isPublic: true,
      rateLimit: loginLimit,
      shape: { email, password: textUpTo(MAX_LOGIN_PASSWORD_LENGTH) },
      handle: async ({ body, isGone }) => {
        const issued = await accounts.login(body.email, body.password, ttlMinutes, isGone)
        return issued === undefined ? INVALID_CREDENTIALS : loggedIn(issued)
      }
    }),
    {
      // contract §5.4
      operation: 'logout', method: 'POST', path: '/api/logout',
      takesAnyToken: true,
      handle: async ({ session }) => {
        await accounts.revoke(session!.hash, session!.user)
        return LOGGED_OUT
      }
    }
  ]
}
