/** `/openapi.json`, the description of the interface. */
import { jsonReply, type Reply } from '../../http/reply.ts'
import type { Part } from '../part.ts'

export const openapi: Part = {
  settings: {},
  open: async ({ settings: { auth, isProduction, tlsCert, rateLimit }, prefix, routes }) => {
    const configuration = {
      prefix, isProtected: auth === 'bearer', asksForHttps: isProduction && tlsCert === undefined,
      isLimited: rateLimit !== 0
    }
    let reply: Reply | undefined
    return {
      routes: [{
        operation: 'openapi', method: 'GET', path: '/openapi.json', isPublic: true, allowsStaleReads: true,
        // Made when it is first asked for: few ask, and all routes are known then.
        handle: async () => {
          const { describe } = await import('./description.ts')
          return reply ??= jsonReply(200, describe(routes(), configuration))
        }
      }]
    }
  }
}
