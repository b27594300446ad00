/**
 * Health and metrics, for this machine and tokens unless a setting allows everyone. They have no
 * rate limit, and disclose no secret.
 */
import { isFromOtherSite, isHostAllowed, isLoopback } from '../../http/client.ts'
import { messageReply, type Kind, type Reply } from '../../http/reply.ts'
import type { Journal } from '../../journal/journal.ts'
import type { Call } from '../../http/router.ts'
import type { Session } from '../../rights/rights.ts'
import type { CoreSettings } from '../../core-settings.ts'
import type { DescribedRoute, RouteDescription } from '../routes/described-route.ts'
import { EXPOSITION_TYPE, metric } from './exposition.ts'
import type { Audience, MetricsSettings } from './part.ts'

const HEALTHY = messageReply(200, 'OK')
const FAILED = messageReply(
  503,
  'The journal takes no more writes: read the runbook before you restart the service.'
)
const WAITING = messageReply(503, 'The journal takes no writes at the moment.')
const FULL = messageReply(
  503,
  'The disk of the journal, or etcd, is full: changes fail until there is room.'
)
const behindReply = (percent: number): Reply =>
  messageReply(503, `The journal is being read: ${percent} % of what other instances wrote.`)
const NOT_LOCAL = messageReply(
  403,
  'Only this machine, or a token, may ask. The settings HEALTH and METRICS can allow it.'
)
const FOREIGN_HOST = messageReply(
  403,
  'The Host of this request is not known here: ask by an IP address or localhost, ' +
    'or name it in ALLOWED_HOSTS.'
)
const EXPOSITION: Kind = { type: EXPOSITION_TYPE, cache: 'no-store' }
const exposed = (text: string): Reply => ({ status: 200, body: text, kind: EXPOSITION })

const HEALTH: RouteDescription = {
  tag: 'service',
  summary: 'Ask for health',
  description: 'Whether the service takes changes.',
  answers: {
    healthy: HEALTHY,
    failed: FAILED,
    waiting: WAITING,
    full: FULL,
    behind: behindReply(40)
  }
}
const LIVE: RouteDescription = {
  tag: 'service',
  summary: 'Ask whether it runs',
  description: 'Whether the process answers: for what restarts it.',
  answers: { healthy: HEALTHY }
}
const METRICS: RouteDescription = {
  tag: 'service',
  summary: 'Read the metrics',
  description: 'What the service measures, for Prometheus.',
  answers: {
    exposed: exposed(
      metric('gauge', 'pes_entries', 'Entries in the store.', [1, { status: 'active' }])
    )
  }
}

export function healthRoutes(
  { health, metrics, allowedHosts }: MetricsSettings & Pick<CoreSettings, 'allowedHosts'>,
  journal: Pick<Journal, 'status'>,
  measure: () => string
): DescribedRoute[] {
  const questions: readonly Question[] = [
    {
      audience: health,
      operation: 'health',
      path: '/healthz',
      description: HEALTH,
      // A look at the file takes 2 µs, a sixth of a request: a flood costs that much more than any
      // other.
      answer: () => {
        const { fault, mayHeal, readPercent, fullSince } = journal.status()
        if (fullSince !== undefined) return FULL
        if (fault === undefined) return HEALTHY
        if (readPercent !== undefined) return behindReply(readPercent)
        return mayHeal === true ? WAITING : FAILED
      }
    },
    {
      audience: health,
      operation: 'live',
      path: '/livez',
      description: LIVE,
      answer: () => HEALTHY
    },
    {
      audience: metrics,
      operation: 'metrics',
      path: '/metrics',
      description: METRICS,
      answer: () => exposed(measure()),
      // A metric counts all entries: a token that does not see all of them does not suffice.
      isAllowed: session => session !== undefined && session.groups === undefined
    }
  ]
  return questions
    .filter(({ audience }) => audience !== 'off')
    .map(question => routeFor(question, allowedHosts))
}

interface Question {
  readonly audience: Audience
  readonly operation: string
  readonly path: string
  readonly description: RouteDescription
  readonly answer: () => Reply
  /** Without it, any token may ask. */
  readonly isAllowed?: (session: Session | undefined) => boolean
}

function routeFor(
  {
    audience,
    operation,
    path,
    description,
    answer,
    isAllowed = session => session !== undefined
  }: Question,
  allowedHosts: ReadonlySet<string>
): DescribedRoute {
  const refusals = { notLocal: NOT_LOCAL, foreignHost: FOREIGN_HOST }
  const isPublic = audience === 'public'
  return {
    operation,
    method: 'GET',
    path,
    isPublic: true,
    allowsHttp: true,
    description: isPublic
      ? description
      : { ...description, answers: { ...description.answers, ...refusals } },
    handle: call =>
      isPublic || isAllowed(call.session) ? answer() : (refusal(call, allowedHosts) ?? answer())
  }
}

/**
 * Some proxies send one of these alone. A proxy that sends none cannot be told from a program on
 * its machine.
 */
const FIELDS_OF_PROXIES = [
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
  'x-real-ip',
  'forwarded',
  'via'
] as const

/** Undefined for a program on this machine. */
function refusal(
  { client, head }: Call<unknown>,
  allowedHosts: ReadonlySet<string>
): Reply | undefined {
  const isDirect = FIELDS_OF_PROXIES.every(field => head[field] === undefined)
  if (!isLoopback(client) || !isDirect || isFromOtherSite(head['sec-fetch-site'])) return NOT_LOCAL
  return isHostAllowed(head.host!, allowedHosts) ? undefined : FOREIGN_HOST
}
