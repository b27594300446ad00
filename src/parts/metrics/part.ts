/** `/healthz` and `/metrics`, for monitoring. */
import { setting } from '../../config/core-settings.ts'
import { oneOf } from '../../config/values.ts'
import type { Part } from '../part.ts'
import type { Metric } from './exposition.ts'

/** Who may ask: clients on this machine and those with a token; everyone; no one. */
export type Audience = 'local' | 'public' | 'off'

interface MetricsSettings {
  readonly health: Audience
  readonly metrics: Audience
}

export const metrics: Part<MetricsSettings> = {
  settings: {
    health: setting('WHO', 'local', oneOf('local', 'public', 'off'),
      'Who may read `/healthz`: `local`, this machine and anyone with a token; `public`, anyone; `off`.'),
    metrics: setting('WHO', 'local', oneOf('local', 'public', 'off'), 'Who may read `/metrics`; as `HEALTH`.')
  },
  open: async ({ settings, store, load }) => {
    const [{ Metrics }, { healthRoutes }] = await Promise.all([import('./metrics.ts'), import('./health.ts')])
    const observer = new Metrics()
    const measure = (): readonly Metric[] => observer.all(store, load())
    const routes = healthRoutes({ ...settings, journal: store, measure })
    return { routes, observer, close: () => observer.close() }
  }
}
