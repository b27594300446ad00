/** `/openapi.json`, the description of the interface. */
import type { Part } from '../part.ts'

export const openapi: Part = {
  settings: {},
  open: async ({ settings, prefix, routes }) => {
    const { descriptionRoute } = await import('./description.ts')
    const { auth, isProduction, tlsCert, rateLimit } = settings
    const configuration = {
      prefix, isProtected: auth === 'bearer', asksForHttps: isProduction && tlsCert === undefined,
      isLimited: rateLimit !== 0
    }
    return { routes: [descriptionRoute(routes, configuration)] }
  }
}
