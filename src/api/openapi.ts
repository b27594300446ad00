/**
 * The interface description: OpenAPI 3.1.0 (spec.openapis.org/oas/v3.1.0), made from the routes, their shapes and the
 * very replies that they and the way to them give. An example of a request and that of its answer have one name.
 */
import { jsonReply, said, type Reply } from '../http/reply.ts'
import { check, schemaOf, type Schema } from '../json/shape.ts'
import {
  BAD_REQUEST, BUSY, FOREIGN_HOST, FOREIGN_ORIGIN, HTTPS_ONLY, invalid, serverError, TOO_LARGE, TOO_MANY, UNABLE,
  UNAUTHENTICATED, UNSUPPORTED
} from './answers.ts'
import { HEALTH_PATHS } from './health.ts'
import { answerSchema, type Documentation, type Example, type Route } from './route.ts'

/** The version of the interface and of the program. */
export const VERSION: string = '1.0.0'

/** What all routes have in common. */
interface OpenapiOptions {
  readonly isProtected: boolean
  readonly asksForHttps: boolean
  /** Whether there is a rate limit. */
  readonly isLimited: boolean
}

type Json = { readonly [name: string]: unknown }
type Examples = { readonly [name: string]: Example }

const JSON_TYPE = 'application/json'
const EXAMPLE_REQUEST_ID = '3b241101-e2bb-4255-8caf-4136c566a962'
const ANY_ERROR: Json = {
  description: 'Any other error.',
  content: { [JSON_TYPE]: { schema: answerSchema({ message: { type: 'string' }, status: { type: 'integer' } }) } }
}
const LIMIT_HEADERS: { readonly [name: string]: string } = {
  'X-RateLimit-Limit': 'Requests that a client may make in a minute.',
  'X-RateLimit-Remaining': 'Requests that are left in the window.'
}
const RETRY_AFTER = 'Seconds after which a request would pass.'

/** A route that is described. */
type Described = Route & { readonly documentation: Documentation }

function isDescribed(route: Route): route is Described { return route.documentation !== undefined }

/** The route of the description of the given routes, and of itself; it is made once. */
export function openapiRoute(routes: readonly Route[], options: OpenapiOptions): Route {
  const self: Route = {
    operation: 'openapi', method: 'GET', path: '/openapi.json', isPublic: true, mayBeStale: true,
    documentation: {
      summary: 'This description.',
      examples: {
        description: {
          reply: jsonReply(200, head(options)),
          schema: { type: 'object', required: ['openapi', 'info'], properties: { openapi: { const: '3.1.0' } } }
        }
      }
    },
    handle: () => reply
  }
  const paths: { [path: string]: { [method: string]: Json } } = {}
  for (const route of [...routes, self].filter(isDescribed)) {
    (paths[route.path] ??= {})[route.method.toLowerCase()] = operation(route, options)
  }
  const reply = jsonReply(200, { ...head(options), paths })
  return self
}

function head({ isProtected }: OpenapiOptions): Json {
  const bearer = { type: 'http', scheme: 'bearer', description: 'A token; its roles are the abilities it has.' }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Password Entry Service', version: VERSION, license: { name: 'MIT', identifier: 'MIT' },
      description: 'An example of a request and the example of its answer have the same name.'
    },
    paths: {},
    ...isProtected ? { components: { securitySchemes: { bearer } } } : {}
  }
}

function operation(route: Described, options: OpenapiOptions): Json {
  const { summary, examples } = route.documentation
  const own = { ...examples, ...invalidExamples(route) }
  const { params } = Object.values(examples)[0]!
  return {
    operationId: route.operation, summary,
    ...needsToken(route, options) ? { security: [{ bearer: route.ability === undefined ? [] : [route.ability] }] } : {},
    ...params === undefined ? {} : { parameters: Object.keys(params).map(name => parameter(name, own)) },
    ...route.shape === undefined ? {} : { requestBody: requestBody(route.shape, own) },
    responses: responses({ ...own, ...commonExamples(route, options) }, isLimited(route, options))
  }
}

function needsToken(route: Route, { isProtected }: OpenapiOptions): boolean {
  return isProtected && route.isPublic !== true
}

function isLimited(route: Route, options: OpenapiOptions): boolean {
  return options.isLimited && route.path.startsWith('/api/')
}

/** Bodies that the route's shape refuses, with what it says of them. */
function invalidExamples({ shape, documentation }: Described): Examples {
  if (shape === undefined) return {}
  const fields = Object.keys(shape)
  const { params } = Object.values(documentation.examples)[0]!
  const messages = { type: 'array', minItems: 1, items: { type: 'string' } }
  const errors = {
    type: 'object', minProperties: 1, additionalProperties: messages, propertyNames: { enum: [...fields, 'body'] }
  }
  const schema = answerSchema({ message: { const: 'Invalid data' }, errors, status: { const: 400 } })
  const bodies = { missing: {}, malformed: Object.fromEntries(fields.map(field => [field, 7])) }
  return Object.fromEntries(Object.entries(bodies).flatMap(([name, body]) => {
    const checked = check(shape, body)
    return checked.ok ? [] : [[name, { ...params && { params }, body, reply: invalid(checked.errors), schema }]]
  }))
}

/** The answers that the way to a route may give instead of it. */
function commonExamples(route: Route, options: OpenapiOptions): Examples {
  const { isProtected, asksForHttps } = options
  const isWrite = route.method === 'POST'
  const isOpen = !isProtected
  const replies: readonly (readonly [applies: boolean, name: string, reply: () => Reply])[] = [
    [true, 'badRequest', () => BAD_REQUEST],
    [needsToken(route, options), 'unauthenticated', () => UNAUTHENTICATED],
    [needsToken(route, options) && route.ability !== undefined, 'unable', () => UNABLE],
    [isOpen, 'foreignHost', () => FOREIGN_HOST],
    [isOpen, 'foreignOrigin', () => FOREIGN_ORIGIN],
    [asksForHttps && !HEALTH_PATHS.has(route.path), 'httpsOnly', () => HTTPS_ONLY],
    [route.shape !== undefined, 'tooLarge', () => TOO_LARGE],
    [route.shape !== undefined, 'unsupported', () => UNSUPPORTED],
    [isLimited(route, options) || route.rateLimit !== undefined, 'tooMany', () => TOO_MANY],
    [route.storingFailed !== undefined, 'storingFailed', () => said(500, route.storingFailed!)],
    [true, 'unforeseen', () => serverError(EXAMPLE_REQUEST_ID)],
    [isWrite, 'busy', () => BUSY]
  ]
  return Object.fromEntries(replies.filter(([applies]) => applies).map(([, name, reply]) => [name, { reply: reply() }]))
}

function parameter(name: string, examples: Examples): Json {
  const values = Object.entries(examples).flatMap(([example, { params }]) =>
    params === undefined ? [] : [[example, { value: params[name] }]])
  const schema = { type: 'integer', minimum: 1 }
  return { name, in: 'path', required: true, schema, examples: Object.fromEntries(values) }
}

function requestBody(shape: NonNullable<Route['shape']>, examples: Examples): Json {
  const bodies = Object.entries(examples).flatMap(([name, { body }]) =>
    body === undefined ? [] : [[name, { value: body }]])
  return {
    required: Object.values(shape).some(rule => !rule.optional),
    content: { [JSON_TYPE]: { schema: schemaOf(shape), examples: Object.fromEntries(bodies) } }
  }
}

function responses(examples: Examples, isLimited: boolean): Json {
  const byStatus: { [status: string]: { [name: string]: Example } } = {}
  for (const [name, example] of Object.entries(examples)) (byStatus[example.reply.status] ??= {})[name] = example
  const described = Object.entries(byStatus).map(([status, some]) => [status, response(some, isLimited)])
  return { ...Object.fromEntries(described), default: ANY_ERROR }
}

/** What answers with one status have in common, and each of their bodies. */
function response(examples: Examples, isLimited: boolean): Json {
  const all = Object.values(examples)
  const bodies = all.map(bodyOf)
  const messages = bodies.map(body => (body as { readonly message?: string }).message)
  const schemas = all.map(({ schema }, i) => schema ?? exactly(bodies[i] as Json))
  const distinct = [...new Map(schemas.map(schema => [JSON.stringify(schema), schema])).values()]
  const values = Object.fromEntries(Object.keys(examples).map((name, i) => [name, { value: bodies[i] }]))
  return {
    description: [...new Set(messages)].join(' / ') || 'OK',
    headers: headers(all.map(({ reply }) => reply), isLimited),
    content: {
      [all[0]!.reply.kind?.type ?? JSON_TYPE]: {
        schema: distinct.length === 1 ? distinct[0] : { anyOf: distinct }, examples: values
      }
    }
  }
}

function bodyOf({ reply: { body, kind } }: Example): unknown {
  return kind === undefined ? JSON.parse(body as string) : body
}

function exactly(body: Json): Schema {
  return answerSchema(Object.fromEntries(Object.entries(body).map(([field, value]) => [field, { const: value }])))
}

/** The header fields of answers with one status: required where each of them has it. */
function headers(replies: readonly Reply[], isLimited: boolean): Json {
  const described: { [name: string]: Json } = {}
  const integer = { type: 'integer', minimum: 0 }
  if (isLimited) {
    for (const [name, description] of Object.entries(LIMIT_HEADERS)) {
      described[name] = { required: true, description, schema: integer }
    }
  }
  if (replies[0]!.status === 429) {
    described['Retry-After'] = { required: true, description: RETRY_AFTER, schema: integer }
  }
  const fieldsOf = ({ headers = [] }: Reply): [string, string][] =>
    headers.flatMap((name, i) => i % 2 === 0 ? [[name, headers[i + 1]!]] : [])
  for (const [name, example] of replies.flatMap(fieldsOf)) {
    const required = replies.every(reply => fieldsOf(reply).some(([one]) => one === name))
    described[name] = { required, schema: { type: 'string' }, example }
  }
  return described
}
