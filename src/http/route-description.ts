/** How a route describes itself to programs, beside what can be seen of it. */
import type { Reply } from './reply.ts'

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
