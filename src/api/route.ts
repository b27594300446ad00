/** What a route is: a line of the contract's table, and the function that answers it. */
import type { Head } from '../http/head.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import type { Reply } from '../http/reply.ts'
import { Router, type Params } from '../http/router.ts'
import type { Schema, Shape, Shaped } from '../json/shape.ts'
import type { Session } from '../store/accounts.ts'

/** A request that has come as far as its handler. */
export interface Call<Body> {
  readonly head: Head
  readonly params: Params
  /** The validated body; undefined for a route without a shape. */
  readonly body: Body
  /** The address of the client. */
  readonly client: string
  /** Who asks; undefined in the open configuration. */
  readonly session: Session | undefined
}

/** A request, and the answer to it: the very reply that the handler gives. */
export interface Example {
  /** The values of the path's parameters. */
  readonly params?: { readonly [name: string]: number }
  readonly body?: unknown
  readonly reply: Reply
  /** What the reply's body is like; without it, there is just that one body. */
  readonly schema?: Schema
}

/** What the interface description tells of a route, besides what the route itself tells. */
export interface Documentation {
  readonly summary: string
  /** By a name for each; the first one is a success. */
  readonly examples: { readonly [name: string]: Example }
}

/** A route of the interface. */
export interface Route<Body = unknown> {
  /** The operation's name, which settings and logs use. */
  readonly operation: string
  readonly method: 'GET' | 'POST'
  /** The router's pattern. */
  readonly path: string
  /** Whether it is there for whoever has no token yet. */
  readonly isPublic?: boolean
  /** Whether it need not know what others have just written: a change decides anew when its turn comes. */
  readonly mayBeStale?: boolean
  /** The ability that a token needs for it; undefined: any token will do. */
  readonly ability?: string | undefined
  /** A limit of its own, by client address, besides the general one. */
  readonly rateLimit?: RateLimit | undefined
  /** What the body must be; a route without one does not read its body. */
  readonly shape?: Shape
  /** Answers before the body is looked at: an unknown id goes before anything that is wrong with a body. */
  readonly beforeBody?: (params: Params) => Reply | undefined
  /** The message of the 500 when the journal fails; `Server Error` where there is none. */
  readonly storingFailed?: string
  /** A route without it is not described: the operator's. */
  readonly documentation?: Documentation
  handle(call: Call<Body>): Reply | Promise<Reply>
}

/** Ties the type of a route's body to its shape. */
export function route<S extends Shape>(route: Route<Shaped<S>> & { readonly shape: S }): Route {
  return route as Route
}

/** The schema of an answer: an object of just these fields, all of them there. */
export function answerSchema(properties: { readonly [field: string]: Schema }): Schema {
  return { type: 'object', required: Object.keys(properties), properties, additionalProperties: false }
}

/** A router of these routes. */
export function routerOf(routes: readonly Route[]): Router<Route> {
  const router = new Router<Route>()
  for (const route of routes) router.add(route.method, route.path, route)
  return router
}
