import { parseWord, setting } from '../../core-settings.ts'
import type { Part } from '../../part.ts'

export type Audience = 'local' | 'public' | 'off'

export interface MetricsSettings {
  readonly health: Audience
  readonly metrics: Audience
}

export const metrics: Part<MetricsSettings> = {
  settings: {
    health: setting(
      'WHO',
      'local',
      parseWord('local', 'public', 'off'),
      'Who may read `/healthz` and `/livez`: `local`, this machine and anyone with a token; ' +
        '`public`, anyone; `off`.'
    ),
    metrics: setting(
      'WHO',
      'local',
      parseWord('local', 'public', 'off'),
      'Who may read `/metrics`; as `HEALTH`.'
    )
  },
  open: async ({ settings, store, load }) => {
    const [{ Metrics }, { exposition, watchEventLoop }, { healthRoutes }] = await Promise.all([
      import('./metrics.ts'),
      import('./exposition.ts'),
      import('./health.ts')
    ])
    const observer = new Metrics()
    const delay = watchEventLoop()
    const routes = healthRoutes(settings, store, () => exposition(observer, delay, store, load()))
    return {
      routes,
      observer,
      close: () => {
        delay.disable()
      }
    }
  }
}
