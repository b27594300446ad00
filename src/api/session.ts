/** Login and logout (contract §5), which only the protected configuration has. */
import { jsonReply, said, type Reply } from '../http/reply.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import { email, text, textUpTo } from '../json/shape.ts'
import { MAX_LOGIN_PASSWORD_LENGTH } from '../limits.ts'
import { TOKEN, type Accounts, type Issued } from '../store/accounts.ts'
import { answerSchema, route, type Route } from './route.ts'

const INVALID_CREDENTIALS = said(401, 'Invalid credentials')
const LOGGED_OUT = said(200, 'Logged out successfully')
const loggedIn = ({ token, user }: Pick<Issued, 'token' | 'user'>): Reply =>
  jsonReply(200, { token, user, status: 200 })

const EXAMPLE_LOGIN = { email: 'ana@example.org', password: 'correct horse battery staple' }
const EXAMPLE_USER = { id: 1, email: EXAMPLE_LOGIN.email, name: 'ana' }

interface SessionRoutesOptions {
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
      documentation: {
        summary: 'Issues a token.',
        examples: {
          loggedIn: {
            body: EXAMPLE_LOGIN,
            reply: loggedIn({ token: 'pes_47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU', user: EXAMPLE_USER }),
            schema: answerSchema({
              token: { type: 'string', pattern: TOKEN.source },
              user: answerSchema({ id: { type: 'integer', minimum: 1 }, email: email.schema, name: text.schema }),
              status: { const: 200 }
            })
          },
          invalidCredentials: { body: { ...EXAMPLE_LOGIN, password: 'wrong' }, reply: INVALID_CREDENTIALS }
        }
      },
      handle: async ({ body }) => {
        const issued = await accounts.login(body.email, body.password, ttlMinutes)
        return issued === undefined ? INVALID_CREDENTIALS : loggedIn(issued)
      }
    }),
    {
      operation: 'logout', method: 'POST', path: '/api/logout',
      documentation: {
        summary: 'Revokes the token that the request carries.', examples: { loggedOut: { reply: LOGGED_OUT } }
      },
      handle: async ({ session }) => {
        await accounts.revoke(session!.hash, session!.user)
        return LOGGED_OUT
      }
    }
  ]
}
