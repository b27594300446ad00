import { parseSwitch, setting } from '../../core-settings.ts'
import type { Route } from '../../http/router.ts'
import type { Part } from '../../part.ts'

interface ExtraSettings {
  readonly extraRoutes: boolean
}

/** With a page, whatever the setting says. */
const FOR_PAGE: ReadonlySet<string> = new Set([
  'listEntries',
  'oneTimeCode',
  'deletedPasswords',
  'olderDeletedPasswords',
  'restorePassword',
  'whoKnows'
])

export const pageApi: Part<ExtraSettings> = {
  settings: {
    extraRoutes: setting(
      'on|off',
      false,
      parseSwitch,
      'Whether routes beyond the contract are served: histories; without a page, ' +
        'also the list without secrets, one-time codes and deleted entries, which a page ' +
        'always needs.'
    )
  },
  abilities: {
    listEntries: ['entry:list', 'listPassword'],
    oneTimeCode: 'getPassword',
    deletedPasswords: 'password:deleted',
    // Both give the same entries: to close one must close the other.
    olderDeletedPasswords: 'deletedPasswords',
    restorePassword: 'password:restore',
    historyPassword: 'password:history',
    formerPassword: 'historyPassword',
    formerNotes: 'formerPassword',
    // Who may read histories knows who set which password.
    whoKnows: ['entry:knowledge', 'historyPassword']
  },
  open: async context => {
    const { settings } = context
    const hasPage = 'page' in settings && settings.page === true
    let made: Promise<readonly Route[]> | undefined
    const hosted = (): Promise<readonly Route[]> =>
      (made ??= import('./page-api-routes.ts').then(({ extraRoutes }) => extraRoutes(context)))
    if (!settings.extraRoutes && !hasPage) return { hosted }
    const routes = await hosted()
    return {
      hosted,
      routes: settings.extraRoutes
        ? routes
        : routes.filter(({ operation }) => FOR_PAGE.has(operation))
    }
  }
}
