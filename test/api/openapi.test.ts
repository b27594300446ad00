/**
 * The interface description is true: each of its examples is sent to the running program, and each answer that it
 * shows is brought about and held against it.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { entryRoutes } from '../../src/entries/entry-routes.ts'
import { VERSION } from '../../src/version.ts'
import { CREATE_SHAPE, UPDATE_SHAPE } from '../../src/entries/entry-shapes.ts'
import { Failure } from '../../src/errors.ts'
import { check } from '../../src/rights/validate.ts'
import type { DurableJournal } from '../../src/journal/journal.ts'
import { MAX_BODY_BYTES } from '../../src/limits.ts'
import { describe } from '../../src/parts/openapi/description.ts'
import type { PartContext } from '../../src/part.ts'
import { readSettings, SETTINGS } from '../../src/settings.ts'
import type { Store } from '../../src/store/store.ts'
import { ANA, call, PASSWORD, startProtected, tokenOf, type CallOptions } from '../support/accounts.ts'
import { memoryStore } from '../support/stores.ts'
import { faultOf } from '../support/json-schema.ts'
import { answersOf, assertDescription, faultOfAnswer, operationOf, requestsOf, resolved } from '../support/openapi.ts'
import type { RawAnswer } from '../support/raw.ts'
import { freshFolder, startService, type Started } from '../support/service.ts'
import { createEntry, updateEntry } from '../../src/entries/entry-commands.ts'

const FIELDS = { password: 'S3cr3ta', sistema: 'correo', usuario: 'ana' }
const HAS_EXTRA = 'extraRoutes' in SETTINGS
const EXTRA: Record<string, string> = HAS_EXTRA ? { 'extra-routes': 'on' } : {}
const LIMIT = { 'rate-limit': '1000', 'login-limit': '100', ...EXTRA }

/** What makes a request be answered in another way than by its success. */
interface Provocation {
  readonly options?: CallOptions
  /** What breaks, or comes, in the service meanwhile. */
  readonly broken?: (store: Store) => object
}

const refused = (error: Error) => (store: Store): object => Object.assign(store.journal, {
  append: () => Promise.reject(error)
})
const faulty = (more: object = {}) => ({ journal }: Store): object => {
  const health = { ...journal.status(), fault: 'as the test asked', ...more }
  return Object.assign(journal, { status: () => health })
}
const broken = (): never => { throw new Error('broken') }
/** Nor is its file short enough to read a history. */
const busy = (store: Store): object => {
  const journal = store.journal as DurableJournal
  const location = { ...journal.location(), bytes: Infinity }
  return Object.assign(refused(new Failure('queue-full', 'as the test asked'))(store), { location: () => location })
}

/** The examples of answers, in the order in which they are brought about. */
const PROVOCATIONS: { readonly [name: string]: Provocation } = {
  none: {}, created: {}, found: {}, entries: {}, unknown: {}, updated: {},
  // below another entry
  deleted: { broken: store => createEntry(store, FIELDS, null) }, restored: {}, history: {},
  former: { broken: store => updateEntry(store, 1, { password: `${Math.random()}`, notas: `${Math.random()}` }, null) },
  knows: {},
  loggedIn: {}, invalidCredentials: {}, loggedOut: {}, healthy: {}, exposed: {}, description: {},
  missing: { options: { body: {} } },
  malformed: { options: { body: { password: 7, sistema: 7, usuario: 7, url: 7, notas: 7, newPassword: 7, session: 7,
    grupo: 7, otp: 7, email: 7 } } },
  badRequest: { options: { fields: ['Host: a', 'Host: b'] } },
  unauthenticated: { options: { token: 'pes_unknown' } },
  forbidden: {},
  foreignHost: { options: { fields: ['Host: evil.example'], token: undefined } },
  foreignOrigin: { options: { fields: ['Origin: http://evil.example'] } },
  notLocal: { options: { fields: ['X-Forwarded-For: 203.0.113.7'], token: undefined } },
  entryChanged: { options: { fields: ['If-Match: "0"'] } },
  tooLarge: { options: { body: 'x'.repeat(MAX_BODY_BYTES + 1) } },
  unsupported: { options: { body: '{}', fields: ['Content-Type: text/plain'] } },
  tooMany: {},
  storingFailed: { broken: refused(new Failure('write-failed', 'as the test asked')) },
  busy: { broken: busy },
  failed: { broken: faulty() },
  full: { broken: faulty({ fault: undefined, fullSince: '2026-01-31T12:00:00.000Z' }) },
  waiting: { broken: faulty({ mayHeal: true }) },
  behind: { broken: faulty({ mayHeal: true, readPercent: 40 }) },
  unforeseen: { broken: store => {
    Object.assign(store.journal, { status: broken, append: broken, location: broken })
    Object.assign(store.state.knowledge, { knowers: broken })
    return Object.assign(store.state.entries, { pageChanges: broken, pageDeleted: broken, text: broken, get: broken,
      list: broken })
  } },
  code: { broken: store => {
    const { entries } = store.state
    entries.set({ ...entries.get(1)!, otp: 'JBSWY3DPEHPK3PXP' })
    return store
  } },
  sessions: {}, unknownSession: {}, ended: {},
  wrong: { options: { body: { password: 'wrong', newPassword: 'battery staple horse correct' } } },
  same: { options: { body: { password: 'battery staple horse', newPassword: 'battery staple horse' } } },
  changed: {}
}

const ALIKE = ['code', 'sessions', 'listEntries entries', 'loggedIn', 'exposed', 'description', 'history', 'former',
  'knows', 'deletedPasswords deleted', 'olderDeletedPasswords deleted']
/** What nothing here can bring about: nothing can go wrong with bytes that are made at the start. */
const NEVER = ['openapi unforeseen', 'ownSessions unforeseen', 'live unforeseen']

/** Past the limits of logins. */
async function loginOf({ service }: Started): Promise<string> {
  return (await service.accounts!.login({ email: ANA, password: PASSWORD, client: '' }, undefined))!.token
}

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
    const isOwn = ['changeOwnPassword', 'ownSessions', 'endOwnSessions'].includes(operation) && name !== 'forbidden'
    const token = !isProtected ? undefined : isOwn ? await loginOf(where)
      : await tokenOf(where, undefined, name === 'forbidden' ? [] : undefined)
    if (name === 'tooMany') await call(t, where.url, 'GET', '/api/none')
    const { store } = where.service
    const unbroken = [store, store.journal, store.state.entries].map(one => [one, { ...one }] as const)
    await provocation.broken?.(store)
    const options = { token, body: request.body, ...provocation.options }
    const path = name !== 'former' ? request.path
      : `/api/${operation}/1/${(await call(t, where.url, 'GET', '/api/historyPassword/1',
        { token })).json.history[0].version}`
    const answer = await call(t, where.url, request.method, path, options)
    for (const [one, whole] of unbroken) {
      for (const field of Object.keys(one)) if (!(field in whole)) Reflect.deleteProperty(one, field)
    }
    assert.equal(answer.status, status, what)
    assert.equal(faultOfAnswer(document, operation, answer), undefined, what)
    if (!ALIKE.includes(name) && !ALIKE.includes(what)) assert.deepEqual(answer.json, body, what)
    given.set(what, answer)
  }
  return given
}

test('each example is answered as the description says, open and protected', async t => {
  const open = await holdTrue(t, await startService(t, LIMIT), await startService(t, { ...LIMIT, 'rate-limit': '1' }))
  assert.equal(open.get('createPassword created')?.text, '{"message":"SE CREÓ UNA NUEVA CONTRASEÑA","status":200}')
  assert.equal(open.get('listPassword tooMany')?.text, '{"message":"Too Many Requests"}')
  assert.equal(open.size, HAS_EXTRA ? 141 : 74, 'no status that an operation answers with is left out')
  const shut = await holdTrue(t, await startProtected(t, LIMIT),
    await startProtected(t, { ...LIMIT, 'rate-limit': '1' }))
  assert.equal(shut.get('login invalidCredentials')?.json.message, 'Invalid credentials')
  assert.equal(shut.get('changeOwnPassword storingFailed')?.json.message, 'Error changing password')
  assert.equal(shut.get('deletePassword forbidden')?.json.message, 'Invalid ability provided.')
  assert.equal(shut.size, HAS_EXTRA ? 186 : 88, 'nor is one in the protected configuration')
})

/** Every operation of a description: name, method, path, and the abilities that it asks for. */
function tableOf(document: any): unknown[][] {
  return Object.entries<any>(document.paths).flatMap(([path, item]) => Object.entries<any>(item).map(
    ([method, { operationId, security, 'x-ability': ability = [] }]) =>
      [operationId, method, path, security.length === 0 ? undefined : [ability].flat()]))
}

test('§5.6 each route is described, with the ability that it needs; what a setting takes away is not', async t => {
  const less = await descriptionOf(t, (await startService(t, { health: 'off', metrics: 'off' })).url)
  assert.deepEqual(tableOf(less).map(row => row.join(' ').trim()), [
    'listPassword get /api/listPassword', 'getPassword get /api/getPassword/{id}',
    'createPassword post /api/createPassword', 'updatePassword post /api/updatePassword/{id}',
    'deletePassword post /api/deletePassword/{id}', 'openapi get /openapi.json'
  ])
  assert.equal(less.components.securitySchemes, undefined)
  assert.ok(!JSON.stringify(less).includes('RateLimit'))
  assert.ok(!answersOf(less).some(({ status }) => status === 429))
  const everybody = await descriptionOf(t, (await startService(t, { health: 'public' })).url)
  assert.deepEqual(answersOf(everybody).filter(({ name }) => name === 'notLocal').map(({ operation }) => operation),
    ['metrics'])
  const { url } = await startProtected(t, { abilities: 'listPassword=a:list,getPassword=any' })
  const shut = await descriptionOf(t, url)
  assert.deepEqual(tableOf(shut).map(row => [row[0], row[3]]), [
    ['listPassword', ['a:list']], ['getPassword', []], ['createPassword', ['password:create']],
    ['updatePassword', ['password:update']], ['deletePassword', ['password:delete']], ['login', undefined],
    ['logout', []], ['changeOwnPassword', []], ['ownSessions', []],
    ['endOwnSessions', []], ['health', undefined], ['live', undefined], ['metrics', undefined], ['openapi', undefined]
  ])
  // An entry that was changed again meanwhile has no ETag.
  assert.deepEqual(Object.entries<any>(shut.components.headers).map(([name, { required, schema }]) => [name, required,
    schema]), [
    ['Retry-After', true, { type: 'integer', minimum: 0 }], ['Location', true, { type: 'string' }],
    ['ETag', false, { type: 'string' }]
  ])
  const { type, scheme } = shut.components.securitySchemes.bearer
  assert.deepEqual([type, scheme], ['http', 'bearer'])
})

test('HTTPS is described as asked for in production without a certificate, but for a route that does without', () => {
  const [route] = entryRoutes(memoryStore())
  for (const [isProduction, tlsCert, allowsHttp, isAsked] of [
    [true, undefined, false, true], [false, undefined, false, false], [true, 'chain.pem', false, false],
    [true, undefined, true, false]
  ] as const) {
    const settings = { ...readSettings([], {}), isProduction, tlsCert }
    const context = { settings, prefix: '', routes: () => [{ ...route, allowsHttp }] }
    const answers = answersOf(resolved(describe(context as unknown as PartContext<object>)))
    assert.equal(answers.some(({ name }) => name === 'httpsOnly'), isAsked, `${isProduction} ${tlsCert} ${allowsHttp}`)
  }
})

test('the version is that of the package', async t => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  assert.equal(VERSION, version)
  assert.equal((await descriptionOf(t, (await startService(t)).url)).info.version, version)
})

test('an answer or an example that differs from the description is found out', async t => {
  const { url } = await startService(t, LIMIT)
  const document = await descriptionOf(t, url)
  const faultIn = async (path: string): Promise<string | undefined> =>
    faultOfAnswer(document, 'getPassword', await call(t, url, 'GET', path))
  assert.equal(await faultIn('/api/getPassword/7'), undefined)
  assert.notEqual(await faultIn('/openapi.json'), undefined)
  const media = operationOf(document, 'getPassword').operation['responses']['404'].content['application/json']
  assert.deepEqual(media.schema.properties, { message: { enum: ['contraseña no encontrada'] }, status: { const: 404 } })
  media.schema.properties.message.enum = ['Not Found']
  assert.match(await faultIn('/api/getPassword/7') ?? '', /message/)
  assert.throws(() => assertDescription(document), Error)
})

test('the schema of each body takes exactly what its validator takes', async t => {
  const document = await descriptionOf(t, (await startProtected(t)).url)
  const values = [7, true, null, '', 'a', ' ', 'ñ', [], ['a'], {}, { a: 1 }]
  for (const [name, shape] of [['createPassword', CREATE_SHAPE], ['updatePassword', UPDATE_SHAPE]] as const) {
    const { schema } = operationOf(document, name).operation['requestBody'].content['application/json']
    const bodies = Object.keys(shape).flatMap(field => values.map(value => ({ ...FIELDS, [field]: value })))
    for (const body of [{}, FIELDS, { password: 'a' }, ...bodies]) {
      assert.equal(faultOf(schema, body) === undefined, check(shape, body).ok, `${name} ${JSON.stringify(body)}`)
    }
    assert.notEqual(faultOf(schema, { ...FIELDS, other: 1 }), undefined, 'it is ignored, and not asked for')
  }
})

test('routes of parts are described like those of the contract: tags, and examples that fit the schemas', async t => {
  for (const { url } of [await startService(t, EXTRA), await startProtected(t, EXTRA)]) {
    const document = (await call(t, url, 'GET', '/openapi.json')).json
    assertDescription(resolved(document))
    const used = Object.values<object>(document.paths).flatMap(path => Object.values(path)).flatMap(({ tags }) => tags)
    assert.deepEqual(document.tags.map((tag: { name: string }) => tag.name), [...new Set(used)])
    const schemaOf = (path: string): any => document.paths[path].get.responses['200'].content['application/json'].schema
    const entry = { $ref: '#/components/schemas/Entry' }
    assert.deepEqual(schemaOf('/api/getPassword/{id}').properties.passwords, entry,
      'a client made of it has one type of entry')
    assert.deepEqual(schemaOf('/api/listPassword'), { type: 'array', minItems: 1, items: entry })
    const responses = Object.values<any>(document.paths).flatMap(path => Object.values<any>(path))
      .map(one => one.responses)
    const { EntryFields, EntryChanges, ...answered } = document.components.schemas
    assert.doesNotMatch(JSON.stringify([responses, answered]), /"additionalProperties":false/, 'answers may get fields')
    assert.deepEqual([EntryFields, EntryChanges].map(one => one.additionalProperties), [false, false])
  }
})

test('every route below /api that a source has is described', async t => {
  const src = fileURLToPath(new URL('../../src', import.meta.url))
  const sources = readdirSync(src, { recursive: true }).map(String).filter(path => path.endsWith('.ts'))
  const routes = sources.flatMap(path => [...readFileSync(join(src, path),
    'utf8').matchAll(/ path: '(\/api\/[^']+)'/g)])
  const secret = join(freshFolder(t), 'secret')
  writeFileSync(secret, randomBytes(32).toString('base64'))
  const proxy = 'proxyLoginHeader' in SETTINGS
    ? { 'proxy-login-header': 'Remote-Email', 'proxy-login-secret-file': secret, 'trust-proxy': '127.0.0.2',
      'token-ttl-minutes': '720' } : {}
  const { url } = await startProtected(t, { ...LIMIT, ...proxy })
  const { paths } = await (await fetch(`${url}/openapi.json`)).json() as { paths: object }
  assert.ok(routes.length >= 7)
  assert.deepEqual(routes.map(([, path]) => path!).filter(path => !(path in paths)), [])
})
