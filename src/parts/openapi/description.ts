/**
 * The interface in OpenAPI 3.1.0 (spec.openapis.org/oas/v3.1.0). Examples of a request and its
 * answer share a name.
 */
import * as common from '../../http/reply.ts'
import { messageReply, statusReply, type Reply } from '../../http/reply.ts'
import type { Route } from '../../http/router.ts'
import type { NeededAbilities } from '../../rights/rights.ts'
import { RATE_LIMIT_WINDOW } from '../../limits.ts'
import { VERSION } from '../../version.ts'
import type { PartContext } from '../../part.ts'
import type { DescribedRoute, RouteDescription, Schema } from '../routes/described-route.ts'
import { DESCRIPTIONS, SCHEMAS } from './contract-operations.ts'

type DescribedSettings = PartContext<object>['settings']
type OpenApiObject = { readonly [name: string]: unknown }

const JSON_TYPE = 'application/json'
const TAGS: { readonly [name: string]: string } = {
  entries: 'The password entries.',
  session: 'Login and logout.',
  service: 'Health, metrics and this description.'
}
const LIMIT_HEADERS = ['X-RateLimit-Limit', 'X-RateLimit-Remaining']
const HEADERS: {
  readonly [name: string]: readonly [description: string, type: 'integer' | 'string']
} = {
  'X-RateLimit-Limit': [`Requests that a client may make in ${RATE_LIMIT_WINDOW}.`, 'integer'],
  'X-RateLimit-Remaining': ['Requests that are left in the window.', 'integer'],
  'Retry-After': ['Seconds to wait before the next request.', 'integer'],
  'Location': ['Where the new entry is got.', 'string'],
  'ETag': ['The entry as it is now, for `If-Match`.', 'string']
}
const IF_MATCH = {
  name: 'If-Match',
  in: 'header',
  required: false,
  schema: { type: 'string' },
  description:
    'The `ETag` that the entry was got with; where it is another by now, nothing is changed.'
}

export function describe({ settings, prefix, routes }: PartContext<object>): OpenApiObject {
  const paths: { [path: string]: { [method: string]: OpenApiObject } } = {}
  const tags = new Set<string>()
  for (const route of routes() as readonly DescribedRoute[]) {
    const description = route.description ?? DESCRIPTIONS[route.operation]
    if (description === undefined) continue
    tags.add(description.tag)
    ;(paths[route.path] ??= {})[route.method.toLowerCase()] = operation(
      route,
      description,
      settings
    )
  }
  const bearer = {
    type: 'http',
    scheme: 'bearer',
    description: 'A token of a login or of the operator.'
  }
  const headers = Object.entries(HEADERS).filter(
    ([name]) => settings.rateLimit !== 0 || !LIMIT_HEADERS.includes(name)
  )
  const text = JSON.stringify([paths, SCHEMAS])
  return {
    openapi: '3.1.0',
    info: {
      title: 'Password Entry Service',
      version: VERSION,
      license: { name: 'MIT', identifier: 'MIT' },
      description:
        'Stores password entries: a password, the system it belongs to, a user name. ' +
        'An example of a request and the example of its answer have the same name.',
      contact: { name: 'The operator of this service' }
    },
    servers: [{ url: prefix || '/', description: 'This service.' }],
    tags: [...tags].map(name => ({ name, description: TAGS[name] ?? 'Beyond the contract.' })),
    security: [],
    paths,
    components: {
      schemas: Object.fromEntries(
        Object.keys(SCHEMAS)
          .filter(name => text.includes(`#/components/schemas/${name}"`))
          .map(name => [name, SCHEMAS[name]])
      ),
      headers: Object.fromEntries(
        headers.map(([name, [description, type]]) => [
          name,
          {
            description,
            schema: { type, ...(type === 'integer' && { minimum: 0 }) },
            required: name !== 'ETag'
          }
        ])
      ),
      securitySchemes: settings.auth === 'bearer' ? { bearer } : undefined
    }
  }
}

/** A list if each of several suffices. */
function shownAbility(asked: NeededAbilities): string | NeededAbilities {
  return asked?.length === 1 ? asked[0] : asked
}

function operation(
  route: Route,
  described: RouteDescription,
  settings: DescribedSettings
): OpenApiObject {
  const { tag, summary, description, ids, body, bodies = {} } = described
  const isCounted = settings.rateLimit !== 0 && route.path.startsWith('/api/')
  const needsToken = settings.auth === 'bearer' && route.isPublic !== true
  return {
    'operationId': route.operation,
    summary,
    description,
    'tags': [tag],
    'security': needsToken ? [{ bearer: [] }] : [],
    'x-ability': needsToken ? shownAbility(route.abilities) : undefined,
    'parameters': ids && [
      parameter('id', 'The id of an entry.', ids),
      ...(route.path.endsWith('{version}')
        ? [parameter('version', 'A version of its history.', ids)]
        : []),
      ...(described.honoursIfMatch === true ? [IF_MATCH] : [])
    ],
    'requestBody': body && {
      required: described.isBodyOptional !== true,
      description: 'A JSON object.',
      content: { [JSON_TYPE]: { schema: body, examples: examplesOf(bodies) } }
    },
    'responses': responses(
      {
        ...described.answers,
        ...(described.honoursIfMatch === true && { entryChanged: common.PRECONDITION_FAILED }),
        ...commonAnswers(route, settings, needsToken, isCounted)
      },
      isCounted
    )
  }
}

function parameter(name: string, description: string, examples: OpenApiObject): OpenApiObject {
  return {
    name,
    in: 'path',
    required: true,
    description,
    schema: { type: 'integer', minimum: 1 },
    examples: examplesOf(examples)
  }
}

/** Given before a route is reached. */
function commonAnswers(
  route: Route,
  { auth, isProduction, tlsCert }: DescribedSettings,
  needsToken: boolean,
  isCounted: boolean
): RouteDescription['answers'] {
  const isOpen = auth === 'none'
  const asksForHttps = isProduction && tlsCert === undefined
  const hasBody = route.shape !== undefined
  const { storingFailed = '' } = route
  const rows: readonly (readonly [applies: boolean, name: string, answer: Reply])[] = [
    [true, 'badRequest', common.BAD_REQUEST],
    [needsToken, 'unauthenticated', common.UNAUTHENTICATED],
    [needsToken && route.abilities !== undefined, 'forbidden', common.FORBIDDEN],
    [isOpen, 'foreignHost', common.FOREIGN_HOST],
    [isOpen, 'foreignOrigin', common.FOREIGN_ORIGIN],
    [asksForHttps && route.allowsHttp !== true, 'httpsOnly', common.HTTPS_ONLY],
    [hasBody, 'tooLarge', common.TOO_LARGE],
    [hasBody, 'unsupported', common.UNSUPPORTED],
    [storingFailed !== '', 'storingFailed', messageReply(500, storingFailed)],
    [true, 'unforeseen', statusReply(500)],
    [route.method === 'POST', 'busy', common.BUSY],
    [isCounted || route.limit !== undefined, 'tooMany', common.TOO_MANY]
  ]
  return Object.fromEntries(
    rows.filter(([applies]) => applies).map(([, name, answer]) => [name, answer])
  )
}

function responses(answers: RouteDescription['answers'], isCounted: boolean): OpenApiObject {
  const found: { [status: string]: OpenApiObject } = {}
  for (const status of [...new Set(Object.values(answers).map(answer => answer.status))].sort()) {
    const named = Object.entries(answers).filter(([, answer]) => answer.status === status)
    const bodies = Object.fromEntries(named.map(([name, answer]) => [name, bodyOf(answer)]))
    const messages = Object.values(bodies).flatMap(
      body => (body as { message?: string } | null)?.message ?? []
    )
    const given = named.flatMap(([, answer]) => answer.headers ?? [])
    const own = new Set(given.filter(name => Object.hasOwn(HEADERS, name)))
    // its limit makes this header
    if (named.some(([name]) => name === 'tooMany')) own.add('Retry-After')
    const headers = [...(isCounted ? LIMIT_HEADERS : []), ...own]
    const type = named[0]![1].kind?.type ?? JSON_TYPE
    found[status] = {
      description: [...new Set(messages)].join(' / ') || 'OK',
      headers: Object.fromEntries(
        headers.map(name => [name, { $ref: `#/components/headers/${name}` }])
      ),
      content: { [type]: { schema: anyOf(bodies, answers), examples: examplesOf(bodies) } }
    }
  }
  const any = { $ref: '#/components/schemas/Message' }
  return {
    ...found,
    default: { description: 'Any other error.', content: { [JSON_TYPE]: { schema: any } } }
  }
}

function bodyOf({ body, kind }: Reply): unknown {
  return kind === undefined ? JSON.parse(String(body)) : body
}

function anyOf(examples: OpenApiObject, answers: RouteDescription['answers']): Schema {
  const own: Schema[] = []
  const alike = new Map<string, unknown[]>()
  for (const [name, example] of Object.entries(examples)) {
    const schema = answers[name]!.schema
    const fields = Object.keys(Object(example)).join()
    if (schema !== undefined) own.push(schema)
    else alike.set(fields, [...(alike.get(fields) ?? []), example])
  }
  const all = [...own, ...Array.from(alike.values(), schemaOf)]
  return all.length === 1 ? all[0]! : { anyOf: all }
}

/** `message` and `status` allow only the examples' values. */
function schemaOf(examples: readonly unknown[]): Schema {
  const [first] = examples
  if (Array.isArray(first)) return { type: 'array', items: schemaOf(examples.flat()) }
  if (typeof first !== 'object' || first === null) return { type: typeof first }
  const fields = Object.keys(first)
  const named = Object.keys(SCHEMAS).find(
    name => name !== 'Message' && hasShape(SCHEMAS[name]!, fields)
  )
  if (named !== undefined) return { $ref: `#/components/schemas/${named}` }
  const properties = Object.fromEntries(
    fields.map(field => {
      const values = (examples as readonly OpenApiObject[]).map(example => example[field])
      if (field === 'status') return [field, { const: values[0] }]
      return [field, field === 'message' ? { enum: [...new Set(values)] } : schemaOf(values)]
    })
  )
  return { type: 'object', required: fields, properties }
}

function hasShape({ properties, required = [] }: Schema, fields: readonly string[]): boolean {
  const wanted = required as readonly string[]
  return (
    wanted.length > 0 &&
    wanted.every(field => fields.includes(field)) &&
    fields.every(field => Object.hasOwn(properties as object, field))
  )
}

function examplesOf(values: OpenApiObject): OpenApiObject {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value }]))
}
