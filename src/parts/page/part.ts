/** The page for people. */
import { onOrOff } from '../../config/values.ts'
import { disk } from '../../disk/files.ts'
import type { Part } from '../part.ts'

interface PageSettings {
  readonly page: boolean
}

export const page: Part<PageSettings> = {
  settings: {
    page: {
      variable: 'PAGE', flag: 'page', value: 'on|off', fallback: true, shown: '`on`',
      help: 'Whether there is a page for people at `/`.', parse: onOrOff
    }
  },
  open: async ({ settings, routes }) => {
    if (!settings.page) return {}
    const { pageRoutes } = await import('./page-routes.ts')
    return { routes: pageRoutes(disk, routes) }
  }
}
