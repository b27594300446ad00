/**
 * Health and metrics, for whoever watches over the service: clients on its own machine, and those with a token, unless
 * a setting lets everybody. They are outside `/api`, are not limited, and tell no secret.
 */
import { isLoopback } from '../http/address.ts'
import { isFromOtherSite, isHostAllowed } from '../http/origin.ts'
import { said, type Kind, type Reply } from '../http/reply.ts'
import { exposition, EXPOSITION_TYPE, type Metric } from '../metrics/exposition.ts'
import type { Journal } from '../journal/journal.ts'
import type { Call, Example, Route } from './route.ts'

/** Who may ask: clients on this machine and those with a token; everybody; nobody. */
export type Audience = 'local' | 'public' | 'off'

interface HealthRoutesOptions {
  readonly health: Audience
  readonly metrics: Audience
  /** Names by which a client on this machine may call the service. */
  readonly allowedHosts: ReadonlySet<string>
  readonly journal: Journal
  /** Gives what is measured. */
  readonly measure: () => readonly Metric[]
}

const HEALTHY = said(200, 'OK')
const LATCHED = said(503, 'The journal takes no more writes until a restart.')
const WAITING = said(503, 'The journal takes no writes at the moment.')
const NOT_LOCAL = said(403, 'Only this machine, or a token, may ask. The settings HEALTH and METRICS can allow it.')
const EXPOSITION: Kind = { type: EXPOSITION_TYPE, cache: 'no-store' }
const exposed = (metrics: readonly Metric[]): Reply =>
  ({ status: 200, body: exposition(metrics), kind: EXPOSITION })

const EXAMPLE: Metric = { name: 'journal_records', type: 'gauge', help: 'Records in the journal.', values: [[1]] }

/** The paths that do not ask for HTTPS: who watches from the same machine comes without the proxy. */
export const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthz', '/metrics'])

/** The routes that the settings leave. */
export function healthRoutes(options: HealthRoutesOptions): readonly Route[] {
  const { journal, measure, allowedHosts } = options
  const forAudience = (audience: Audience, answer: () => Reply) => (call: Call<unknown>): Reply =>
    audience === 'public' || call.session !== undefined || isLocal(call, allowedHosts) ? answer() : NOT_LOCAL
  const refusal = (audience: Audience): { readonly [name: string]: Example } =>
    audience === 'public' ? {} : { notLocal: { reply: NOT_LOCAL } }
  const routes: readonly (readonly [Audience, Route])[] = [
    [options.health, {
      operation: 'health', method: 'GET', path: '/healthz', isPublic: true, mayBeStale: true,
      documentation: {
        summary: 'Whether the service takes changes.',
        examples: {
          healthy: { reply: HEALTHY }, latched: { reply: LATCHED }, waiting: { reply: WAITING },
          ...refusal(options.health)
        }
      },
      // A look at the file (2 µs, a sixth of a request) is what a flood would cost more than any other.
      handle: forAudience(options.health, () => {
        const { fault, mayHeal } = journal.health()
        if (fault === undefined) return HEALTHY
        return mayHeal === true ? WAITING : LATCHED
      })
    }],
    [options.metrics, {
      operation: 'metrics', method: 'GET', path: '/metrics', isPublic: true, mayBeStale: true,
      documentation: {
        summary: 'What the service measures, for Prometheus.',
        examples: { exposed: { reply: exposed([EXAMPLE]), schema: { type: 'string' } }, ...refusal(options.metrics) }
      },
      handle: forAudience(options.metrics, () => exposed(measure()))
    }]
  ]
  return routes.filter(([audience]) => audience !== 'off').map(([, route]) => route)
}

/** Whether a program on this machine asks: no proxy for somebody else, and no web page in its browser. */
function isLocal({ client, head }: Call<unknown>, allowedHosts: ReadonlySet<string>): boolean {
  return isLoopback(client) && head.forwardedFor === undefined && isHostAllowed(head.host!, allowedHosts) &&
    !isFromOtherSite(head.fetchSite)
}
