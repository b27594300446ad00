/** The operator's way to a running service: routes on the lock socket, which only the folder's owner can open. */
import type { Part } from '../../part.ts'

/** How long reading the journal takes, and how many records it has an entry, before compacting it is worth a line. */
const LONG_READ_MS = 1_000
const MANY_RECORDS_AN_ENTRY = 10

export const operator: Part = {
  settings: {},
  open: async ({ settings, store, journal, readMs, log, stopping }) => {
    if (journal === undefined) return {}
    const { count } = store.state.entries
    if (readMs > LONG_READ_MS && journal.status().records > MANY_RECORDS_AN_ENTRY * Math.max(1, count)) {
      const how = journal.location().endpoints === undefined ? 'node dist/admin.js journal compact'
        : 'compacting a copy of the journal in a file, and copying that back to another place,'
      log.info(`hint           most records are history; ${how} shortens a start`)
    }
    const { operatorRoutes } = await import('./operator-routes.ts')
    return { localRoutes: operatorRoutes(store, settings, journal, stopping) }
  },
  commands: async () => (await Promise.all([
    import('./account-commands.ts'), import('./entry-commands.ts'), import('./journal-commands.ts'),
    import('./key-list.ts'), import('./salvage.ts'), import('./transfer-commands.ts')
  ])).flatMap(({ COMMANDS }) => COMMANDS)
}
