/** Routes beyond the contract: deleted entries, the history of an entry, and the password of the user who asks. */
import { setting } from '../../config/core-settings.ts'
import { onOrOff } from '../../config/values.ts'
import type { Part } from '../part.ts'

interface ExtraSettings {
  /** Whether the history of an entry and a change of one's own password are served; off unless given. */
  readonly extraRoutes: boolean
}

export const extra: Part<ExtraSettings> = {
  settings: {
    extraRoutes: setting('on|off', false, onOrOff,
      'Whether deleted entries, the history of an entry and a change of one’s own password are served.')
  },
  abilities: {
    deletedPasswords: 'password:deleted',
    restorePassword: 'password:restore',
    historyPassword: 'password:history',
    changeOwnPassword: 'account:password'
  },
  open: async context => {
    if (!context.settings.extraRoutes) return {}
    const { extraRoutes } = await import('./extra-routes.ts')
    return { routes: extraRoutes(context) }
  }
}
