/**
 * The description of the interface: OpenAPI 3.1.0 (spec.openapis.org/oas/v3.1.0). The example of a request and that of
 * its answer have the same name.
 */
import type { Route, RouteDescription } from '../../api/route.ts'
import { jsonReply, type Reply } from '../../http/reply.ts'
import { VERSION } from '../../version.ts'
import { OPERATIONS, SCHEMAS } from './operations.ts'

/** What the description depends on besides the routes. */
export interface Configuration {
  readonly prefix: string
  readonly isProtected: boolean
  readonly asksForHttps: boolean
  readonly isLimited: boolean
}

type Json = { readonly [name: string]: unknown }
type Answer = RouteDescription['answers'][string]

const JSON_TYPE = 'application/json'
const TAGS: { readonly [name: string]: string } = {
  entries: 'The password entries.', session: 'Login and logout.', service: 'Health, metrics and this description.'
}
const LIMIT_HEADERS = ['X-RateLimit-Limit', 'X-RateLimit-Remaining']
/** The answers that say how long to wait. */
const WAITS = ['busy', 'tooMany']
const HEADERS = {
  'X-RateLimit-Limit': 'Requests that a client may make in a minute.',
  'X-RateLimit-Remaining': 'Requests that are left in the window.',
  'Retry-After': 'Seconds to wait before the next request.'
}
const SELF: RouteDescription = {
  tag: 'service', summary: 'Describe the interface', description: 'This description.',
  answers: {
    description: {
      status: 200, schema: { type: 'object', required: ['openapi'], properties: { openapi: { const: '3.1.0' } } },
      body: { openapi: '3.1.0' }
    }
  }
}

/** The route of the description; it is made when it is first asked for, since all routes are known then. */
export function descriptionRoute(routes: () => readonly Route[], configuration: Configuration): Route {
  let reply: Reply | undefined
  return {
    operation: 'openapi', method: 'GET', path: '/openapi.json', isPublic: true, allowsStaleReads: true,
    description: SELF,
    handle: () => reply ??= jsonReply(200, describe(routes(), configuration))
  }
}

function describe(routes: readonly Route[], configuration: Configuration): Json {
  const paths: { [path: string]: { [method: string]: Json } } = {}
  for (const route of routes) {
    const description = route.description ?? OPERATIONS[route.operation]
    if (description === undefined) continue
    (paths[route.path] ??= {})[route.method.toLowerCase()] = operation(route, description, configuration)
  }
  const bearer = { type: 'http', scheme: 'bearer', description: 'A token of a login or of the operator.' }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Password Entry Service', version: VERSION, license: { name: 'MIT', identifier: 'MIT' },
      description: 'Stores password entries: a password, the system it belongs to, a user name. An example of a ' +
        'request and the example of its answer have the same name.',
      contact: { name: 'The operator of this service' }
    },
    servers: [{ url: configuration.prefix || '/', description: 'This service.' }],
    tags: [...new Set(Object.values(paths).flatMap(tagsOf))]
      .map(name => ({ name, description: TAGS[name] ?? 'Beyond the contract.' })),
    security: [],
    paths,
    components: {
      schemas: used(SCHEMAS, paths),
      headers: Object.fromEntries(Object.entries(HEADERS)
        .filter(([name]) => configuration.isLimited || !LIMIT_HEADERS.includes(name)).map(([name, description]) =>
        [name, { description, schema: { type: 'integer', minimum: 0 }, required: true }])),
      ...configuration.isProtected ? { securitySchemes: { bearer } } : {}
    }
  }
}

function operation(route: Route, described: RouteDescription, configuration: Configuration): Json {
  const { tag, summary, description, ids = {}, body, bodies = {} } = described
  const needsToken = configuration.isProtected && route.isPublic !== true
  const answers = { ...described.answers, ...commonAnswers(route, configuration) }
  return {
    operationId: route.operation, summary, description, tags: [tag],
    security: needsToken ? [{ bearer: [] }] : [],
    ...needsToken && route.ability !== undefined ? { 'x-ability': route.ability } : {},
    ...Object.keys(ids).length === 0 ? {} : {
      parameters: [{
        name: 'id', in: 'path', required: true, description: 'The id of an entry.',
        schema: { type: 'integer', minimum: 1 }, examples: values(ids)
      }]
    },
    ...body === undefined ? {} : {
      requestBody: {
        required: described.isBodyOptional !== true,
        description: 'A JSON object.',
        content: { [JSON_TYPE]: { schema: body, examples: values(bodies) } }
      }
    },
    responses: responses(answers, configuration.isLimited && route.path.startsWith('/api/'))
  }
}

/** The answers that the way to a route may give instead of it. */
function commonAnswers(
  route: Route, { isProtected, asksForHttps, isLimited }: Configuration
): { [name: string]: Answer } {
  const needsToken = isProtected && route.isPublic !== true
  const hasBody = route.shape !== undefined
  const isUnderApi = route.path.startsWith('/api/')
  const setting = (what: string, name: string): string =>
    `This ${what} is not allowed. The setting ${name} can allow it.`
  const rows: readonly (readonly [applies: boolean, name: string, status: number, message: string])[] = [
    [true, 'badRequest', 400, 'Bad Request'],
    [needsToken, 'unauthenticated', 401, 'Unauthenticated.'],
    [needsToken && route.ability !== undefined, 'forbidden', 403, 'Invalid ability provided.'],
    [!isProtected, 'foreignHost', 403, setting('host', 'ALLOWED_HOSTS')],
    [!isProtected, 'foreignOrigin', 403, setting('origin', 'CORS_ORIGINS')],
    [asksForHttps && route.allowsHttp !== true, 'httpsOnly', 403, 'This service is reached by HTTPS only.'],
    [hasBody, 'tooLarge', 413, 'Payload Too Large'],
    [hasBody, 'unsupported', 415,
      'Unsupported Media Type: send Content-Type: application/json, in UTF-8 and not compressed.'],
    [true, 'unforeseen', 500, 'Server Error'],
    [route.method === 'POST', 'busy', 503, 'Service Unavailable']
  ]
  const answers: { [name: string]: Answer } = Object.fromEntries(rows.filter(([applies]) => applies)
    .map(([, name, status, message]) => [name, { status, body: { message, status } }]))
  if ((isLimited && isUnderApi) || route.rateLimit !== undefined) {
    const only = { type: 'object', required: ['message'], additionalProperties: false }
    const schema = { ...only, properties: { message: { const: 'Too Many Requests' } } }
    answers['tooMany'] = { status: 429, body: { message: 'Too Many Requests' }, schema }
  }
  return answers
}

function responses(answers: { readonly [name: string]: Answer }, isLimited: boolean): Json {
  const found: { [status: string]: Json } = {}
  for (const status of [...new Set(Object.values(answers).map(answer => answer.status))].sort()) {
    const named = Object.entries(answers).filter(([, answer]) => answer.status === status)
    const messages = named.flatMap(([, { body }]) => (body as { message?: string } | null)?.message ?? [])
    const plain = named.filter(([, { schema }]) => schema === undefined)
      .map(([, { body }]) => (body as { readonly message: string }).message)
    const own = named.flatMap(([, { schema }]) => schema ?? [])
    const distinct = new Map([...own, ...plain.length === 0 ? [] : [messageSchema(status, plain)]]
      .map(schema => [JSON.stringify(schema), schema]))
    const all = [...distinct.values()]
    const waits = named.some(([name]) => WAITS.includes(name))
    const names = [...isLimited ? LIMIT_HEADERS : [], ...waits ? ['Retry-After'] : []]
    found[status] = {
      description: [...new Set(messages)].join(' / ') || 'OK',
      headers: Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }])),
      content: {
        [named[0]![1].type ?? JSON_TYPE]: {
          schema: all.length === 1 ? all[0] : { anyOf: all },
          examples: values(Object.fromEntries(named.map(([name, { body }]) => [name, body])))
        }
      }
    }
  }
  const any = { $ref: '#/components/schemas/Message' }
  return { ...found, default: { description: 'Any other error.', content: { [JSON_TYPE]: { schema: any } } } }
}

function messageSchema(status: number, messages: readonly string[]): Json {
  return {
    type: 'object', required: ['message', 'status'], additionalProperties: false,
    properties: { message: { enum: [...new Set(messages)] }, status: { const: status } }
  }
}

/** The schemas that something refers to. */
function used(schemas: Json, paths: Json): Json {
  const text = JSON.stringify([paths, schemas])
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => text.includes(`#/components/schemas/${name}"`)))
}

function values(examples: { readonly [name: string]: unknown }): Json {
  return Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }]))
}

function tagsOf(operations: Json): readonly string[] {
  return Object.values(operations).flatMap(one => (one as { readonly tags: readonly string[] }).tags)
}
