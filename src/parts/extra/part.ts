/** Routes beyond the contract: deleted entries, the history of an entry, and the password of the user who asks. */
import { setting } from '../../core-settings.ts'
import { parseSwitch } from '../../setting-values.ts'
import type { Part } from '../../part.ts'

interface ExtraSettings {
  /** Whether the history of an entry and a change of one's own password are served; off unless given. */
  readonly extraRoutes: boolean
}

/** What is served where there is a page in any case: whoever deletes there by mistake has to get it back there. */
const FOR_PAGE: ReadonlySet<string> = new Set(['deletedPasswords', 'olderDeletedPasswords', 'restorePassword'])

export const extra: Part<ExtraSettings> = {
  settings: {
    extraRoutes: setting('on|off', false, parseSwitch,
      'Whether deleted entries (where there is a page, in any case), histories and a change of one’s own password ' +
      'are served.')
  },
  abilities: {
    deletedPasswords: 'password:deleted',
    // The same entries, from an id on: who closes the one must not have to know of the other.
    olderDeletedPasswords: 'deletedPasswords',
    restorePassword: 'password:restore',
    historyPassword: 'password:history',
    changeOwnPassword: 'account:password'
  },
  open: async context => {
    const { settings } = context
    const hasPage = 'page' in settings && settings.page === true
    if (!settings.extraRoutes && !hasPage) return {}
    const { extraRoutes } = await import('./extra-routes.ts')
    const routes = extraRoutes(context)
    return { routes: settings.extraRoutes ? routes : routes.filter(({ operation }) => FOR_PAGE.has(operation)) }
  }
}
