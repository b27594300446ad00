/** What a route is: a line of the contract's table, and the function that answers it. */
import { Failure } from '../errors.ts'
import type { Shape, Shaped } from '../store/validate.ts'
import type { Session } from '../store/session.ts'
import type { Head } from './head.ts'
import type { RateLimit } from './rate-limit.ts'
import type { Reply } from './reply.ts'
import { Router, type Params } from './router.ts'

/** A request that has come as far as its handler. */
export interface Call<Body> {
  readonly head: Head
  readonly params: Params
  /** The validated body; undefined for a route without a shape. */
  readonly body: Body
  /** The client's address. */
  readonly client: string
  /** Whether the client has hung up. */
  readonly isGone: () => boolean
  /** Who asks; undefined in the open configuration. */
  readonly session: Session | undefined
}

export interface Route<Body = unknown> {
  /** The operation's name, which settings and logs use. */
  readonly operation: string
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** The ability that a token needs for it, which the settings give; undefined: any token will do. */
  readonly ability?: string | undefined
  /** Whether it needs no token; if it is a GET, it also tells nothing of what is stored. */
  readonly isPublic?: boolean
  /** Whether any token will do: it is about that token alone. */
  readonly takesAnyToken?: boolean
  /** Whether it is answered without HTTPS where that is asked for: a probe on the same machine has no proxy. */
  readonly allowsHttp?: boolean
  /** A limit of its own, by client address, besides the general one. */
  readonly limit?: RateLimit | undefined
  /** What the body must be; a route without one does not read its body. */
  readonly shape?: Shape
  /** Answers before the body is looked at: an unknown id goes before anything that is wrong with a body. */
  readonly before?: (params: Params) => Reply | undefined
  /** The message of the 500 when the journal fails; `Server Error` where there is none. */
  readonly storingFailed?: string
  /** For `/openapi.json`, which knows the contract's routes by itself. */
  readonly description?: RouteDescription
  /** Answers, or throws the answer. */
  handle(call: Call<Body>): Reply | Promise<Reply>
}

/** A JSON Schema. */
export type Schema = { readonly [keyword: string]: unknown }

/** What `/openapi.json` says of a route besides what the route itself does. Names tie requests to their answers. */
export interface RouteDescription {
  readonly tag: string
  readonly summary: string
  readonly description: string
  /** Examples of the path's `{id}`. */
  readonly ids?: { readonly [name: string]: number }
  /** The schema of the request's body, and examples of it. */
  readonly body?: Schema
  readonly isBodyOptional?: boolean
  /** Whether it changes nothing where `If-Match` does not name the entry as it is. */
  readonly honoursIfMatch?: boolean
  readonly bodies?: { readonly [name: string]: unknown }
  /** Examples of answers, and the schemas of those that are not all alike. */
  readonly answers: { readonly [name: string]: Reply }
  readonly schemas?: { readonly [name: string]: Schema }
}

/** Ties the type of a route's body to its shape. */
export function route<S extends Shape>(route: Route<Shaped<S>> & { readonly shape: S }): Route {
  return route as Route
}

/** A route with its ability. Throws `route-invalid` for one that has none by mistake: it would be open to any token. */
export function withAbility(route: Route, abilities: ReadonlyMap<string, string | undefined>): Route {
  const { operation, isPublic = false, takesAnyToken = false } = route
  if (!isPublic && !takesAnyToken && !abilities.has(operation)) {
    const what = `${operation}, ${route.method} ${route.path}, asks for no ability`
    throw new Failure('route-invalid', `${what}; its part has to name one in abilities`)
  }
  return { ...route, ability: abilities.get(operation) }
}

export function routerOf(routes: readonly Route[]): Router<Route> {
  const router = new Router<Route>()
  for (const route of routes) router.add(route.method, route.path, route)
  return router
}

/** The id of a path; 0, which no entry has, for what is not a positive integer in its canonical form. */
export function idOf({ id }: Params): number {
  return id !== undefined && /^[1-9][0-9]{0,14}$/.test(id) ? Number(id) : 0
}
