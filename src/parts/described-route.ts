/** What a part says about its routes, for `/openapi.json`. */
import type { Reply } from '../http/reply.ts'
import type { Route } from '../http/route.ts'

export type DescribedRoute = Route & { readonly description?: RouteDescription }

export type Schema = { readonly [keyword: string]: unknown }

/** Names tie requests to answers. */
export interface RouteDescription {
  readonly tag: string
  readonly summary: string
  readonly description: string
  /** Examples of `{id}`. */
  readonly ids?: { readonly [name: string]: number }
  /** With examples. */
  readonly body?: Schema
  readonly isBodyOptional?: boolean
  readonly honoursIfMatch?: boolean
  readonly bodies?: { readonly [name: string]: unknown }
  readonly answers: { readonly [name: string]: Reply }
  readonly schemas?: { readonly [name: string]: Schema }
}

/** All properties, and no others. */
export function object(properties: { readonly [name: string]: Schema }): Schema {
  return { type: 'object', required: Object.keys(properties), additionalProperties: false, properties }
}
