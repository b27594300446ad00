/** Routes beyond the contract: deleted entries, the history of an entry, and the password of the user who asks. */
import { onOrOff } from '../../config/values.ts'
import type { Part } from '../part.ts'

interface ExtraSettings {
  readonly extraRoutes: boolean
}

export const extra: Part<ExtraSettings> = {
  settings: {
    extraRoutes: {
      variable: 'EXTRA_ROUTES', flag: 'extra-routes', value: 'on|off', fallback: false, shown: '`off`',
      help: 'Whether deleted entries, the history of an entry and a change of one’s own password are served.',
      parse: onOrOff
    }
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
