/**
 * The router: a tree of path segments, one level a segment. A literal child wins over a parameter. Finding a path
 * takes at most as many steps as the deepest pattern has segments, however long a hostile path is.
 */

/** The values of a pattern's parameters, decoded; undefined where the path's percent-encoding is malformed. */
export type Params = { readonly [name: string]: string | undefined }

/** A target with its parameters, or the methods that the path allows, or (undefined) no such path. */
export type Found<T> =
  | { readonly target: T, readonly params: Params }
  | { readonly target: undefined, readonly allow: readonly string[] }
  | undefined

interface Node<T> {
  readonly literals: Map<string, Node<T>>
  parameter?: { readonly name: string, readonly node: Node<T> }
  readonly methods: Map<string, T>
}

const node = <T>(): Node<T> => ({ literals: new Map(), methods: new Map() })

export const NO_PARAMS: Params = Object.freeze(Object.create(null))

export class Router<T> {
  readonly #root: Node<T> = node()

  /**
   * Adds a target. A pattern is a path whose segments are literals or `{name}`: `/api/getPassword/{id}`. Throws when
   * the same method and pattern were added before, or one position was given two parameter names.
   */
  add(method: string, pattern: string, target: T): void {
    let at = this.#root
    for (const segment of pattern.slice(1).split('/')) {
      if (segment.startsWith('{')) {
        const name = segment.slice(1, -1)
        at.parameter ??= { name, node: node() }
        if (at.parameter.name !== name) throw new Error(`${pattern}: {${at.parameter.name}} is here already`)
        at = at.parameter.node
      } else {
        const next = at.literals.get(segment) ?? node()
        at.literals.set(segment, next)
        at = next
      }
    }
    if (at.methods.has(method)) throw new Error(`${method} ${pattern} was added before`)
    at.methods.set(method, target)
  }

  /** Finds the target of a path without its query. HEAD is found where GET is. Never throws. */
  find(method: string, path: string): Found<T> {
    let params: { [name: string]: string | undefined } = NO_PARAMS
    let at = this.#root
    let start = 1 // after the leading slash
    for (;;) {
      const slash = path.indexOf('/', start)
      const segment = path.slice(start, slash < 0 ? undefined : slash)
      const literal = at.literals.get(segment)
      if (literal !== undefined) {
        at = literal
      } else if (at.parameter !== undefined && segment !== '') {
        if (params === NO_PARAMS) params = Object.create(null)
        params[at.parameter.name] = decode(segment)
        at = at.parameter.node
      } else {
        return undefined
      }
      if (slash < 0) break
      start = slash + 1
    }
    if (at.methods.size === 0) return undefined
    const target = at.methods.get(method === 'HEAD' ? 'GET' : method)
    return target === undefined ? { target: undefined, allow: allowed(at.methods) } : { target, params }
  }
}

/** Percent-decoding, RFC 3986 §2.1, of valid UTF-8 alone. */
function decode(segment: string): string | undefined {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

function allowed(methods: ReadonlyMap<string, unknown>): string[] {
  return [...methods.keys(), ...(methods.has('GET') ? ['HEAD'] : []), 'OPTIONS']
}
