import type { IncomingMessage } from 'node:http'
import { Failure } from '../errors.ts'
import { idIn } from '../entries/entry.ts'
import type { NeededAbilities, NeededByOperation, Session } from '../rights/rights.ts'
import type { Shape, Shaped } from '../rights/validate.ts'
import type { Head } from './head.ts'
import type { RateLimit } from './rate-limit.ts'
import type { Reply } from './reply.ts'

export interface Call<Body> {
  readonly route: Route
  readonly head: Head
  /** 0, which no entry has, if it is missing or invalid. */
  readonly id: number
  /** As `id`: the number that follows it in the path. */
  readonly version: number
  /** Validated. Undefined without a shape. */
  readonly body: Body
  readonly client: string
  readonly request?: IncomingMessage
  readonly session: Session | undefined
}

export interface Route<Body = unknown> {
  readonly operation: string
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly abilities?: NeededAbilities
  /** Needs no token. A public GET must tell nothing of stored data. */
  readonly isPublic?: boolean
  /** Pages of other origins may not read its answers, whatever `CORS_ORIGINS` says. */
  readonly isNeverShared?: boolean
  /** Whether any token will do: the route is about the token itself. */
  readonly takesAnyToken?: boolean
  /** Not refused for want of HTTPS: for probes on this machine, which have no proxy. */
  readonly allowsHttp?: boolean
  /** Besides the general limit. */
  readonly limit?: RateLimit | undefined
  /**
   * Counted by address, whatever `RATE_LIMIT_BY` says: who holds a token of the user must not use
   * up the user's requests.
   */
  readonly isCountedByAddress?: true
  /** Without a shape, the body is not read. */
  readonly shape?: Shape
  /**
   * Answers before the body is read, so that an unknown id, or one out of sight, comes before a
   * body's faults.
   */
  readonly before?: (id: number, session: Session | undefined) => Reply | undefined
  /** The message of the 500 if the journal fails. */
  readonly storingFailed?: string
  /** May throw a reply. */
  handle(call: Call<Body>): Reply | Promise<Reply>
}

/** Ties the body's type to its shape. */
export function route<S extends Shape>(route: Route<Shaped<S>> & { readonly shape: S }): Route {
  return route as Route
}

/** Throws `route-invalid` if the operation's ability was forgotten: any token could call it. */
export function withAbilities(routes: readonly Route[], abilities: NeededByOperation): Route[] {
  return routes.map(route => {
    const { operation, isPublic = false, takesAnyToken = false } = route
    if (!isPublic && !takesAnyToken && !abilities.has(operation)) {
      const what = `${operation}, ${route.method} ${route.path}, asks for no ability`
      throw new Failure('route-invalid', `${what}; its part has to name one in abilities`)
    }
    return { ...route, abilities: abilities.get(operation) }
  })
}

export interface MatchedRoute {
  readonly route: Route
  readonly id: number
  readonly version: number
}

/** Undefined for an unknown path; a list of methods if the path has others. */
export type Match =
  | MatchedRoute
  | {
      readonly route: undefined
      readonly allow: readonly string[]
      readonly isNeverShared: boolean
    }
  | undefined

type Methods = Map<string, Route>

/** Whole paths win over ids. */
export class Router {
  readonly #whole = new Map<string, Methods>()
  readonly #beforeId = new Map<string, Methods>()
  readonly #beforeVersion = new Map<string, Methods>()

  /** Throws on a repeated route or a misplaced `{`. */
  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const [, path, id, version] =
        /^(\/[^{]*?)((?<=\/)\{id\}(\/\{version\})?)?$/.exec(route.path) ?? []
      if (path === undefined)
        throw new Error(`${route.path}: only its end may be {id}, or {id}/{version}`)
      const ofId = version === undefined ? this.#beforeId : this.#beforeVersion
      const table = id === undefined ? this.#whole : ofId
      const methods = table.get(path) ?? new Map<string, Route>()
      if (methods.has(route.method))
        throw new Error(`${route.method} ${route.path} was added before`)
      table.set(path, methods.set(route.method, route))
    }
  }

  /** HEAD finds GET. Never throws. */
  find(method: string, path: string): Match {
    let methods = this.#whole.get(path)
    let id = 0
    let version = 0
    if (methods === undefined) {
      const start = path.lastIndexOf('/') + 1
      if (start === path.length) return undefined
      methods = this.#beforeId.get(path.slice(0, start))
      if (methods !== undefined) id = idIn(path.slice(start))
      else {
        const before = path.lastIndexOf('/', start - 2) + 1
        methods = this.#beforeVersion.get(path.slice(0, before))
        if (methods === undefined) return undefined
        id = idIn(path.slice(before, start - 1))
        version = idIn(path.slice(start))
      }
    }
    const route = methods.get(method === 'HEAD' ? 'GET' : method)
    if (route !== undefined) return { route, id, version }
    const isNeverShared = [...methods.values()].some(one => one.isNeverShared)
    return {
      route,
      allow: [...methods.keys(), ...(methods.has('GET') ? ['HEAD'] : []), 'OPTIONS'],
      isNeverShared
    }
  }
}
