import { parseSwitch, setting } from '../../core-settings.ts'
import { disk } from '../../journal/files.ts'
import type { Part } from '../../part.ts'

interface PageSettings {
  readonly page: boolean
}

export const page: Part<PageSettings> = {
  settings: {
    page: setting('on|off', true, parseSwitch, 'Whether there is a page for people at `/`.')
  },
  open: async ({ settings, routes, store, accounts }) => {
    if (!settings.page) return {}
    const { pageRoutes } = await import('./page-routes.ts')
    const hasUsers = (): boolean => accounts === undefined || store.state.users.size > 0
    return { routes: pageRoutes(disk, routes, hasUsers), place: { name: 'page', path: '/' } }
  }
}
