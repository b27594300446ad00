/** What a route is: a line of the contract's table, and the function that answers it. */
import type { Params } from '../http/router.ts'
import type { Reply } from '../http/reply.ts'
import type { Shape, Shaped } from '../json/shape.ts'

/** A request that has come as far as its handler. */
export interface Call<Body> {
  readonly params: Params
  /** The validated body; undefined for a route without a shape. */
  readonly body: Body
  /** The id of the user whose token the request carries; null in the open configuration. */
  readonly by: number | null
}

/** A route of the interface. */
export interface Route<Body = unknown> {
  /** The operation's name, which settings and logs use. */
  readonly operation: string
  readonly method: 'GET' | 'POST'
  /** The router's pattern. */
  readonly path: string
  /** What the body must be; a route without one does not read its body. */
  readonly shape?: Shape
  /** Answers before the body is looked at: an unknown id goes before anything that is wrong with a body. */
  readonly early?: (params: Params) => Reply | undefined
  /** The message of the 500 when the journal fails; `Server Error` where there is none. */
  readonly storingFailed?: string
  handle(call: Call<Body>): Reply | Promise<Reply>
}

/** Ties the type of a route's body to its shape. */
export function route<S extends Shape>(route: Route<Shaped<S>> & { readonly shape: S }): Route {
  return route as Route
}
