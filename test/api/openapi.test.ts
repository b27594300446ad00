/**
 * The interface description is true: each of its examples is sent to the running program, and each answer that it
 * shows is brought about and held against it.
 */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { VERSION } from '../../src/version.ts'
import { CREATE_SHAPE, UPDATE_SHAPE } from '../../src/api/entry-routes.ts'
import { Failure } from '../../src/errors.ts'
import { check } from '../../src/json/validator.ts'
import { MAX_BODY_BYTES } from '../../src/limits.ts'
import { SETTINGS } from '../../src/settings.ts'
import type { Store } from '../../src/store/store.ts'
import { call, startProtected, tokenOf, type CallOptions } from '../support/accounts.ts'
import { faultOf } from '../support/json-schema.ts'
import { answersOf, assertDescription, faultOfAnswer, operationOf, requestsOf, resolved } from '../support/openapi.ts'
import type { RawAnswer } from '../support/raw.ts'
import { startService, type Started } from '../support/service.ts'

const FIELDS = { password: 'S3cr3ta', sistema: 'correo', usuario: 'ana' }
const LIMIT = { 'rate-limit': '1000', 'login-limit': '100' }

/** What makes a request be answered in another way than by its success. */
interface Provocation {
  readonly options?: CallOptions
  /** What breaks in the service meanwhile. */
  readonly broken?: (store: Store) => object
}

const refused = (error: Error) => (store: Store): object => Object.assign(store.journal, {
  append: () => Promise.reject(error)
})
const broken = (): never => { throw new Error('broken') }

/** The examples of answers, in the order in which they are brought about. */
const PROVOCATIONS: { readonly [name: string]: Provocation } = {
  none: {}, created: {}, found: {}, entries: {}, unknown: {}, updated: {}, deleted: {},
  loggedIn: {}, invalidCredentials: {}, loggedOut: {}, healthy: {}, exposed: {}, description: {},
  missing: { options: { body: {} } },
  malformed: { options: { body: { password: 7, sistema: 7, usuario: 7, email: 7 } } },
  badRequest: { options: { fields: ['Host: a', 'Host: b'] } },
  unauthenticated: { options: { token: 'pes_unknown' } },
  forbidden: {},
  foreignHost: { options: { fields: ['Host: evil.example'] } },
  foreignOrigin: { options: { fields: ['Origin: http://evil.example'] } },
  notLocal: { options: { fields: ['X-Forwarded-For: 203.0.113.7'], token: undefined } },
  tooLarge: { options: { body: 'x'.repeat(MAX_BODY_BYTES + 1) } },
  unsupported: { options: { body: '{}', fields: ['Content-Type: text/plain'] } },
  tooMany: {},
  storingFailed: { broken: refused(new Failure('write-failed', 'as the test asked')) },
  busy: { broken: refused(new Failure('queue-full', 'as the test asked')) },
  failed: { broken: ({ journal }) => {
    const health = { ...journal.health(), fault: 'as the test asked' }
    return Object.assign(journal, { health: () => health })
  } },
  waiting: { broken: ({ journal }) => {
    const health = { ...journal.health(), fault: 'as the test asked', mayHeal: true }
    return Object.assign(journal, { health: () => health })
  } },
  unforeseen: { broken: store => {
    Object.assign(store.journal, { health: broken, append: broken })
    return Object.assign(store, { entryText: broken, list: broken })
  } }
}

/** What an example can only be like. */
const ALIKE = ['loggedIn', 'exposed', 'description']
/** What nothing here can bring about: nothing can go wrong with bytes that are made at the start. */
const NEVER = ['openapi unforeseen']

async function descriptionOf(t: TestContext, url: string): Promise<any> {
  const { status, headers, json } = await call(t, url, 'GET', '/openapi.json')
  assert.deepEqual([status, headers['content-type']], [200, 'application/json; charset=utf-8'])
  return resolved(json)
}

/** Brings about each answer of the description, and holds it against the description. Gives what was answered. */
async function holdTrue(t: TestContext, started: Started, tight: Started): Promise<Map<string, RawAnswer>> {
  const document = await descriptionOf(t, started.url)
  assertDescription(document)
  const requests = requestsOf(document)
  const answers = answersOf(document)
  for (const { operation, name } of requests) {
    assert.ok(name === undefined || answers.some(one => one.operation === operation && one.name === name),
      `${operation} ${name} has its answer`)
  }
  const isProtected = document.components.securitySchemes !== undefined
  const given = new Map<string, RawAnswer>()
  const names = Object.keys(PROVOCATIONS)
  const inOrder = answers.toSorted((a, b) => names.indexOf(a.name) - names.indexOf(b.name))
  for (const { operation, status, name, body } of inOrder) {
    const provocation = PROVOCATIONS[name]
    const what = `${operation} ${name}`
    assert.ok(provocation !== undefined, `it is known how to bring about ${what}`)
    if (NEVER.includes(what)) continue
    const own = requests.filter(one => one.operation === operation)
    const request = own.find(one => one.name === name) ?? own[0]!
    const where = name === 'tooMany' ? tight : started
    const token = isProtected ? await tokenOf(where, undefined, name === 'forbidden' ? [] : undefined) : undefined
    if (name === 'tooMany') await call(t, where.url, 'GET', '/api/none')
    const { store } = where.service
    const unbroken = [store, store.journal].map(one => [one, { ...one }] as const)
    provocation.broken?.(store)
    const options = { token, body: request.body, ...provocation.options }
    const answer = await call(t, where.url, request.method, request.path, options)
    for (const [one, whole] of unbroken) {
      for (const field of Object.keys(one)) if (!(field in whole)) Reflect.deleteProperty(one, field)
    }
    assert.equal(answer.status, status, what)
    assert.equal(faultOfAnswer(document, operation, answer), undefined, what)
    if (!ALIKE.includes(name)) assert.deepEqual(answer.json, body, what)
    given.set(what, answer)
  }
  return given
}

test('each example is answered as the description says, open and protected', async t => {
  const open = await holdTrue(t, await startService(t, LIMIT), await startService(t, { 'rate-limit': '1' }))
  assert.equal(open.get('createPassword created')?.text, '{"message":"SE CREÓ UNA NUEVA CONTRASEÑA","status":200}')
  assert.equal(open.get('listPassword tooMany')?.text, '{"message":"Too Many Requests"}')
  assert.ok(open.size > 50)
  const shut = await holdTrue(t, await startProtected(t, LIMIT), await startProtected(t, { 'rate-limit': '1' }))
  assert.equal(shut.get('login invalidCredentials')?.json.message, 'Invalid credentials')
  assert.equal(shut.get('deletePassword forbidden')?.json.message, 'Invalid ability provided.')
  assert.ok(shut.size > 60)
})

/** Every operation of a description: name, method, path, and the abilities that it asks for. */
function tableOf(document: any): unknown[][] {
  return Object.entries<any>(document.paths).flatMap(([path, item]) => Object.entries<any>(item).map(
    ([method, { operationId, security, 'x-ability': ability = [] }]) =>
      [operationId, method, path, security.length === 0 ? undefined : [ability].flat()]))
}

const OPEN = [
  ['listPassword', 'get', '/api/listPassword', undefined], ['getPassword', 'get', '/api/getPassword/{id}', undefined],
  ['createPassword', 'post', '/api/createPassword', undefined],
  ['updatePassword', 'post', '/api/updatePassword/{id}', undefined],
  ['deletePassword', 'post', '/api/deletePassword/{id}', undefined],
  ['health', 'get', '/healthz', undefined], ['metrics', 'get', '/metrics', undefined],
  ['openapi', 'get', '/openapi.json', undefined]
]

test('§5.6 each route is described, with the ability that it needs; what a setting takes away is not', async t => {
  const open = await descriptionOf(t, (await startService(t)).url)
  assert.deepEqual(tableOf(open), OPEN)
  assert.equal(open.components.securitySchemes, undefined)
  const less = await descriptionOf(t, (await startService(t, { health: 'off', metrics: 'off' })).url)
  assert.deepEqual(tableOf(less), OPEN.filter(([name]) => name !== 'health' && name !== 'metrics'))
  assert.ok(!JSON.stringify(less).includes('RateLimit'))
  assert.ok(!answersOf(less).some(({ status }) => status === 429))
  const { url } = await startProtected(t, { abilities: 'listPassword=a:list,createPassword=a:create' })
  const shut = await descriptionOf(t, url)
  assert.deepEqual(tableOf(shut).map(row => [row[0], row[3]]), [
    ['listPassword', ['a:list']], ['getPassword', []], ['createPassword', ['a:create']], ['updatePassword', []],
    ['deletePassword', []], ['login', undefined], ['logout', []], ['health', undefined], ['metrics', undefined],
    ['openapi', undefined]
  ])
  assert.equal(shut.components.securitySchemes.bearer.scheme, 'bearer')
})

/** The statuses that each operation is described with. */
const STATUSES: { readonly [configuration: string]: { readonly [operation: string]: string } } = {
  open: {
    listPassword: '200 400 403 404 429 500', getPassword: '200 400 403 404 429 500',
    createPassword: '200 400 403 413 415 429 500 503', updatePassword: '200 400 403 404 413 415 429 500 503',
    deletePassword: '200 400 403 404 429 500 503',
    health: '200 400 403 500 503', metrics: '200 400 403 500', openapi: '200 400 403 500'
  },
  protected: {
    listPassword: '200 400 401 403 404 429 500', getPassword: '200 400 401 403 404 429 500',
    createPassword: '200 400 401 403 413 415 429 500 503', updatePassword: '200 400 401 403 404 413 415 429 500 503',
    deletePassword: '200 400 401 403 404 429 500 503',
    login: '200 400 401 413 415 429 500 503', logout: '200 400 401 429 500 503',
    health: '200 400 403 500 503', metrics: '200 400 403 500', openapi: '200 400 500'
  }
}

test('no status that an operation answers with is left out', async t => {
  const documents = {
    open: await descriptionOf(t, (await startService(t, LIMIT)).url),
    protected: await descriptionOf(t, (await startProtected(t, LIMIT)).url)
  }
  for (const [configuration, document] of Object.entries(documents)) {
    const found: { [operation: string]: string[] } = {}
    for (const { operation, status } of answersOf(document)) (found[operation] ??= []).push(String(status))
    const statuses = Object.entries(found).map(([operation, some]) => [operation, [...new Set(some)].sort().join(' ')])
    assert.deepEqual(Object.fromEntries(statuses), STATUSES[configuration])
  }
})

test('the version is that of the package', async t => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  assert.equal(VERSION, version)
  assert.equal((await descriptionOf(t, (await startService(t)).url)).info.version, version)
})

const created = (change: object): RawAnswer => {
  const json = { message: 'SE CREÓ UNA NUEVA CONTRASEÑA', status: 200 }
  const headers = {
    'content-type': 'application/json; charset=utf-8', 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '59'
  }
  return { status: 200, line: '', headers, body: Buffer.alloc(0), text: JSON.stringify(json), json, ...change }
}
const json = created({}).json

const WRONG_ANSWERS: readonly (readonly [what: string, change: object])[] = [
  ['another text', { json: { ...json, message: 'SE CREO UNA NUEVA CONTRASEÑA' } }],
  ['another status in the body', { json: { ...json, status: 201 } }],
  ['a status as text', { json: { ...json, status: '200' } }],
  ['no status in the body', { json: { message: json.message } }],
  ['a field too many', { json: { ...json, id: 1 } }],
  ['a bare text', { json: json.message }],
  ['another status', { status: 404 }],
  ['a status that is not described, and another form', { status: 418, json: { error: 'teapot' } }],
  ['another type', { headers: { ...created({}).headers, 'content-type': 'text/html' } }],
  ['no header of the rate limit', { headers: { 'content-type': 'application/json' } }],
  ['a header that is no number', { headers: { ...created({}).headers, 'x-ratelimit-remaining': 'many' } }]
]

test('an answer, an example or a description that differs from the others is found out', async t => {
  const { url } = await startService(t, LIMIT)
  const document = await descriptionOf(t, url)
  const faultIn = (change: object): string | undefined =>
    faultOfAnswer(document, 'createPassword', created(change))
  assert.equal(faultIn({}), undefined)
  for (const [what, change] of WRONG_ANSWERS) assert.notEqual(faultIn(change), undefined, what)
  const media = operationOf(document, 'getPassword').operation['responses']['404'].content['application/json']
  const examples = structuredClone(media.examples)
  media.examples.unknown.value.message = 'contrasena no encontrada'
  assert.throws(() => assertDescription(document), Error)
  Object.assign(media, { examples })
  assertDescription(document)
  media.schema.properties.message.enum = ['Not Found']
  assert.match(faultOfAnswer(document, 'getPassword', await call(t, url, 'GET', '/api/getPassword/7')) ?? '', /message/)
})

test('the schema of each body takes exactly what its validator takes', async t => {
  const document = await descriptionOf(t, (await startProtected(t)).url)
  const values = [7, true, null, '', 'a', ' ', 'ñ', [], ['a'], {}, { a: 1 }]
  for (const [name, shape] of [['createPassword', CREATE_SHAPE], ['updatePassword', UPDATE_SHAPE]] as const) {
    const { schema } = operationOf(document, name).operation['requestBody'].content['application/json']
    const bodies = Object.keys(shape).flatMap(field => values.map(value => ({ ...FIELDS, [field]: value })))
    for (const body of [{}, FIELDS, { ...FIELDS, other: 1 }, { password: 'a' }, ...bodies]) {
      assert.equal(faultOf(schema, body) === undefined, check(shape, body).ok, `${name} ${JSON.stringify(body)}`)
    }
  }
})

test('routes of parts are described like those of the contract: their tags, and examples that fit their schemas', async t => {
  const extra: Record<string, string> = 'extraRoutes' in SETTINGS ? { 'extra-routes': 'on' } : {}
  for (const { url } of [await startService(t, extra), await startProtected(t, extra)]) {
    const document = (await call(t, url, 'GET', '/openapi.json')).json
    assertDescription(resolved(document))
    const used = Object.values<object>(document.paths).flatMap(path => Object.values(path)).flatMap(({ tags }) => tags)
    assert.deepEqual(document.tags.map((tag: { name: string }) => tag.name), [...new Set(used)])
  }
})
