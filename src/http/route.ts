/** What a route is, a line of the contract's table with the function that answers it; and the router that finds it. */
import { Failure } from '../errors.ts'
import type { Session } from '../store/session.ts'
import type { Shape, Shaped } from '../store/validate.ts'
import type { Head } from './head.ts'
import type { RateLimit } from './rate-limit.ts'
import type { Reply } from './reply.ts'

/** A request that has come as far as its handler. */
export interface Call<Body> {
  readonly head: Head
  /** The id in the path; 0, which no entry has, if there is none or it is not valid. */
  readonly id: number
  /** The validated body; undefined for a route without a shape. */
  readonly body: Body
  /** The client's address. */
  readonly client: string
  /** Whether the client has hung up. */
  readonly isGone: () => boolean
  /** Undefined in the open configuration. */
  readonly session: Session | undefined
}

export interface Route<Body = unknown> {
  /** The operation's name, which settings and logs use. */
  readonly operation: string
  readonly method: 'GET' | 'POST'
  /** A path, whose last segment may be `{id}`. */
  readonly path: string
  /** The ability that a token needs for it, which the settings give; undefined: any token will do. */
  readonly ability?: string | undefined
  /** Whether it needs no token; a GET then also tells nothing of what is stored. */
  readonly isPublic?: boolean
  /** Whether any token will do: it is about that token alone. */
  readonly takesAnyToken?: boolean
  /** Whether it is answered without HTTPS in production: a probe on the same machine has no proxy. */
  readonly allowsHttp?: boolean
  /** A limit of its own, by client address, besides the general one. */
  readonly limit?: RateLimit | undefined
  /** What the body must be; a route without a shape does not read its body. */
  readonly shape?: Shape
  /** Answers before the body is looked at: an unknown id goes before anything that is wrong with a body. */
  readonly before?: (id: number) => Reply | undefined
  /** The message of the 500 when the journal fails; `Server Error` if there is none. */
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

/** A route with its ability. Throws `route-invalid` if that was forgotten: the route would be open to any token. */
export function withAbility(route: Route, abilities: ReadonlyMap<string, string | undefined>): Route {
  const { operation, isPublic = false, takesAnyToken = false } = route
  if (!isPublic && !takesAnyToken && !abilities.has(operation)) {
    const what = `${operation}, ${route.method} ${route.path}, asks for no ability`
    throw new Failure('route-invalid', `${what}; its part has to name one in abilities`)
  }
  return { ...route, ability: abilities.get(operation) }
}

/** A route with the id of the path, or the methods that the path allows, or (undefined) no such path. */
export type Found =
  | { readonly route: Route, readonly id: number }
  | { readonly route: undefined, readonly allow: readonly string[] }
  | undefined

/** The routes of a path by their methods. */
type Methods = Map<string, Route>

/** The router: two tables, of whole paths and of those whose last segment is an id. A whole path wins. */
export class Router {
  readonly #whole = new Map<string, Methods>()
  /** By the path up to the id. */
  readonly #beforeId = new Map<string, Methods>()

  /** Throws if two routes have the same method and path, or `{` is anywhere but in a last segment `{id}`. */
  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const [, path, id] = /^(\/[^{]*?)((?<=\/)\{id\})?$/.exec(route.path) ?? []
      if (path === undefined) throw new Error(`${route.path}: only the last segment may be {id}`)
      const table = id === undefined ? this.#whole : this.#beforeId
      const methods = table.get(path) ?? new Map<string, Route>()
      if (methods.has(route.method)) throw new Error(`${route.method} ${route.path} was added before`)
      table.set(path, methods.set(route.method, route))
    }
  }

  /** Finds the route of a path without its query. HEAD is found where GET is. Never throws. */
  find(method: string, path: string): Found {
    let methods = this.#whole.get(path)
    let id = 0
    if (methods === undefined) {
      const start = path.lastIndexOf('/') + 1
      if (start === path.length) return undefined
      methods = this.#beforeId.get(path.slice(0, start))
      if (methods === undefined) return undefined
      id = idFrom(path.slice(start))
    }
    const route = methods.get(method === 'HEAD' ? 'GET' : method)
    if (route !== undefined) return { route, id }
    return { route, allow: [...methods.keys(), ...(methods.has('GET') ? ['HEAD'] : []), 'OPTIONS'] }
  }
}

/** The positive integer that a percent-decoded segment (RFC 3986 §2.1) is in canonical form; 0 for anything else. */
function idFrom(segment: string): number {
  try {
    const text = segment.includes('%') ? decodeURIComponent(segment) : segment
    return /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : 0
  } catch {
    return 0
  }
}
