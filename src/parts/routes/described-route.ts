import { jsonReply, type Reply } from '../../http/reply.ts'
import type { Route } from '../../http/router.ts'
import { FIELDS, REQUIRED_FIELDS, type EntryField, type EntryFields } from '../../entries/entry.ts'

export type DescribedRoute = Route & { readonly description?: RouteDescription }

export type Schema = { readonly [keyword: string]: unknown }

/** An example. Its schema follows from it, unless one is given. */
type Answer = Reply & { readonly schema?: Schema }

/** An example of a request and that of its answer have one name. */
export interface RouteDescription {
  readonly tag: string
  readonly summary: string
  readonly description: string
  readonly ids?: { readonly [name: string]: number }
  readonly body?: Schema
  readonly isBodyOptional?: boolean
  readonly honoursIfMatch?: boolean
  readonly bodies?: { readonly [name: string]: unknown }
  readonly answers: { readonly [name: string]: Answer }
}

export const EXAMPLE = Object.fromEntries(
  REQUIRED_FIELDS.map(field => [field, FIELDS[field].example])
) as { readonly [F in EntryField as undefined extends EntryFields[F] ? never : F]: string }

/** With all of these properties; an answer may get more in a later version. */
export function object(properties: { readonly [name: string]: Schema }): Schema {
  return {
    type: 'object',
    required: Object.keys(properties),
    properties
  }
}

/** 200 with these properties and `status`. A property that may be absent has no example. */
export function answered(properties: {
  readonly [name: string]: readonly [example: unknown, schema: Schema]
}): Answer {
  const all = Object.entries({ ...properties, status: [200, { const: 200 }] as const })
  const examples = all.filter(([, [example]]) => example !== undefined)
  const schemas = Object.fromEntries(all.map(([name, [, schema]]) => [name, schema]))
  return {
    ...jsonReply(200, Object.fromEntries(examples.map(([name, [example]]) => [name, example]))),
    schema: { ...object(schemas), required: examples.map(([name]) => name) }
  }
}

export const TEXT: Schema = { type: 'string' }

/** An id that no example has. */
export const UNKNOWN_ID = 999_999_999
