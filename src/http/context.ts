/** What is known of a request while it is answered, and the options of the pipeline that answers it. */
import type { LoggedRequest } from './access-log.ts'
import type { AddressSet, Peer } from './address.ts'
import type { Head } from './head.ts'
import type { IncomingMessage, ServerResponse } from './listener.ts'
import type { Found, Params, Router } from './router.ts'
import type { Observer } from '../log.ts'
import type { Session } from '../store/session.ts'
import type { ByteBudget } from './byte-budget.ts'
import type { RateLimit, Verdict } from './rate-limit.ts'
import type { Route } from './route.ts'

/** The step of an option that is undefined is left out. */
export interface PipelineOptions {
  readonly router: Router<Route>
  /** The limit for everything under `/api`, and whether requests with a token count against its user. */
  readonly rateLimit?: RateLimit | undefined
  readonly limitsByUser?: boolean
  readonly trustedProxies?: AddressSet | undefined
  /** Whether a request is refused that reached neither this program nor a trusted proxy by HTTPS. */
  readonly asksForHttps?: boolean
  /** The guard of the open configuration: the names that a `Host` may have besides its own. */
  readonly guardedHosts?: ReadonlySet<string> | undefined
  /** Origins whose pages may read answers under `/api`. */
  readonly corsOrigins?: ReadonlySet<string> | undefined
  /** The protected configuration: who a token belongs to. */
  readonly authenticate?: ((token: string) => Session | undefined) | undefined
  /** See `Journal.catchUp`. */
  readonly catchUp?: (() => Promise<void>) | undefined
  readonly maxBodyBytes: number
  /** Header fields of every answer, names and values in turn. */
  readonly headers?: readonly string[]
  /** Whether an answer says what failed: for the operator. */
  readonly reportsFailures?: boolean
  /** Whether the service is about to stop: then each answer ends its connection. */
  readonly isStopping: () => boolean
  /** A monotonic clock, in milliseconds. */
  readonly nowMs: () => number
  readonly observers?: readonly Observer[]
  readonly log?: ((request: LoggedRequest) => void) | undefined
  /** Takes what the operator should know and the client should not. */
  readonly warn: (line: string) => void
}

/** A request, and what has been found out about it so far. */
export interface Context {
  readonly options: PipelineOptions
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly peer: Peer
  readonly startMs: number
  readonly done: () => void
  readonly head: Head | undefined
  /** Whether it is for what is limited and shared with other origins (contract §8, §9). */
  readonly isUnderApi: boolean
  /** The client's address. */
  readonly client: string
  readonly found: Found<Route>
  readonly route: Route | undefined
  readonly params: Params
  session: Session | undefined
  /** What the rate limit says of it. */
  verdict: Verdict | undefined
  /** The budget of all bodies that are worked on, and what this one holds of it. */
  readonly bodies: ByteBudget
  heldBytes: number
  isBodyRead: boolean
  isFinished: boolean
}

/** One whose head is well formed. */
export interface HeadContext extends Context {
  readonly head: Head
}

/** One that has come as far as its route. */
export interface RouteContext extends HeadContext {
  readonly route: Route
}
