/** `/openapi.json`, the description of the interface. */
import { jsonReply, type Reply } from '../../http/reply.ts'
import type { Part } from '../../part.ts'

export const openapi: Part = {
  settings: {},
  open: async context => {
    let reply: Reply | undefined
    return {
      routes: [
        {
          operation: 'openapi',
          method: 'GET',
          path: '/openapi.json',
          isPublic: true,
          // Made on the first request: few ask, and all routes are known then.
          handle: async () =>
            (reply ??= jsonReply(200, (await import('./description.ts')).describe(context)))
        }
      ]
    }
  }
}
