/** The operator's way to a running service: routes on the lock socket, which only the folder's owner can open. */
import type { Part } from '../part.ts'

export const operator: Part = {
  settings: {},
  open: async ({ store, journal }) => {
    if (journal === undefined) return {}
    const { operatorRoutes } = await import('./routes.ts')
    return { localRoutes: operatorRoutes(store, journal) }
  },
  commands: async () => (await import('./commands.ts')).COMMANDS
}
