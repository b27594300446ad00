/** Reads an OpenAPI 3.1 description strictly: its structure, its examples, and answers held against it. */
import assert from 'node:assert/strict'
import type { RawAnswer } from './raw.ts'
import { faultOf, type Schema } from './json-schema.ts'

/** An example of a request with all that is known of it. */
export interface DescribedRequest {
  readonly operation: string
  /** The example's name; undefined where the operation takes nothing. */
  readonly name: string | undefined
  readonly method: string
  readonly path: string
  readonly body: unknown
}

type Fields = { readonly [name: string]: any }

/** The fields that an object of the description may have, the required ones with a `!` (OpenAPI 3.1.0 §4.8). */
const FORMS: { readonly [kind: string]: readonly string[] } = {
  document: ['openapi!', 'info!', 'paths!', 'components'],
  info: ['title!', 'version!', 'license', 'description'],
  license: ['name!', 'identifier'],
  operation: ['operationId!', 'summary!', 'security', 'parameters', 'requestBody', 'responses!'],
  parameter: ['name!', 'in!', 'required!', 'schema!', 'examples!'],
  requestBody: ['required!', 'content!'],
  media: ['schema!', 'examples'],
  example: ['value!'],
  response: ['description!', 'headers', 'content'],
  header: ['required!', 'description', 'schema!', 'example'],
  securityScheme: ['type!', 'scheme!', 'description']
}

function assertForm(kind: string, value: Fields, at: string): void {
  assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), `${at} is an object`)
  const form = FORMS[kind]!
  for (const field of form.filter(one => one.endsWith('!'))) assert.ok(field.slice(0, -1) in value, `${at} has ${field}`)
  for (const field of Object.keys(value)) assert.ok(form.includes(field) || form.includes(`${field}!`), `${at}: ${field}`)
}

function assertMedia(media: Fields, at: string): void {
  assertForm('media', media, at)
  for (const [name, example] of Object.entries<Fields>(media['examples'] ?? {})) {
    assertForm('example', example, `${at} ${name}`)
    assert.match(name, /^[a-zA-Z]+$/)
    faultOf(media['schema'], example['value']) // knows every word of the schema
  }
}

/** Throws unless a document is a description in the form that OpenAPI 3.1 asks for, and true in itself. */
export function assertDescription(document: Fields): void {
  assertForm('document', document, 'the document')
  assert.equal(document['openapi'], '3.1.0')
  assertForm('info', document['info'], 'info')
  assertForm('license', document['info'].license, 'license')
  const schemes: Fields = document['components']?.securitySchemes ?? {}
  for (const [name, scheme] of Object.entries(schemes)) assertForm('securityScheme', scheme, name)
  const ids = new Set<string>()
  for (const [path, item] of Object.entries<Fields>(document['paths'])) {
    assert.match(path, /^(\/([A-Za-z.]+|\{[a-z]+\}))+$/)
    for (const [method, operation] of Object.entries<Fields>(item)) {
      const at = `${method} ${path}`
      assert.ok(['get', 'post'].includes(method), at)
      assertForm('operation', operation, at)
      assert.ok(!ids.has(operation['operationId']), `${at} has a name of its own`)
      ids.add(operation['operationId'])
      for (const one of operation['security'] ?? []) for (const name of Object.keys(one)) assert.ok(name in schemes, at)
      assertParameters(path, operation['parameters'] ?? [], at)
      const { requestBody } = operation
      if (requestBody !== undefined) {
        assertForm('requestBody', requestBody, at)
        assert.deepEqual(Object.keys(requestBody.content), ['application/json'])
        assertMedia(requestBody.content['application/json'], `${at} body`)
      }
      assertResponses(operation['responses'], at)
    }
  }
}

function assertParameters(path: string, parameters: readonly Fields[], at: string): void {
  assert.deepEqual(parameters.map(({ name }) => name), [...path.matchAll(/\{(\w+)\}/g)].map(found => found[1]))
  for (const parameter of parameters) {
    assertForm('parameter', parameter, at)
    assert.deepEqual([parameter['in'], parameter['required']], ['path', true], at)
    for (const [name, example] of Object.entries<Fields>(parameter['examples'])) {
      assert.equal(faultOf(parameter['schema'], example['value']), undefined, `${at} ${name}`)
    }
  }
}

function assertResponses(responses: Fields, at: string): void {
  assert.ok('200' in responses && 'default' in responses, `${at} has a success and a default`)
  for (const [status, response] of Object.entries<Fields>(responses)) {
    assert.match(status, /^([2-5]\d\d|default)$/)
    assertForm('response', response, `${at} ${status}`)
    for (const [name, header] of Object.entries<Fields>(response['headers'] ?? {})) {
      assertForm('header', header, `${at} ${status} ${name}`)
    }
    for (const media of Object.values<Fields>(response['content'])) {
      assertMedia(media, `${at} ${status}`)
      for (const [name, { value }] of Object.entries<Fields>(media['examples'] ?? {})) {
        assert.equal(faultOf(media['schema'], value), undefined, `${at} ${status} ${name} is an example of its schema`)
      }
    }
  }
}

/** The operation of a name, where it is, and how it is asked for. */
export function operationOf(document: Fields, name: string): { method: string, path: string, operation: Fields } {
  for (const [path, item] of Object.entries<Fields>(document['paths'])) {
    for (const [method, operation] of Object.entries<Fields>(item)) {
      if (operation['operationId'] === name) return { method: method.toUpperCase(), path, operation }
    }
  }
  return assert.fail(`${name} is not described`)
}

/** All examples of requests; of an operation that takes nothing, the bare request. */
export function requestsOf(document: Fields): DescribedRequest[] {
  return Object.values<Fields>(document['paths']).flatMap(Object.values<Fields>).flatMap(({ operationId, ...rest }): DescribedRequest[] => {
    const { method, path } = operationOf(document, operationId)
    const bodies: Fields = rest['requestBody']?.content['application/json'].examples ?? {}
    const parameters: readonly Fields[] = rest['parameters'] ?? []
    const names = new Set([...Object.keys(bodies), ...parameters.flatMap(({ examples }) => Object.keys(examples))])
    if (names.size === 0) return [{ operation: operationId, name: undefined, method, path, body: undefined }]
    return [...names].map(name => ({
      operation: operationId, name, method, body: bodies[name]?.value,
      path: parameters.reduce((at, { name: one, examples }) => at.replace(`{${one}}`, examples[name].value), path)
    }))
  })
}

/** All examples of answers: operation, status, name, and body. */
export function answersOf(document: Fields): { operation: string, status: number, name: string, body: unknown }[] {
  return Object.values<Fields>(document['paths']).flatMap(Object.values<Fields>).flatMap(({ operationId, responses }) =>
    Object.entries<Fields>(responses).flatMap(([status, { content }]) => Object.values<Fields>(content).flatMap(media =>
      Object.entries<Fields>(media['examples'] ?? {}).map(([name, { value }]) =>
        ({ operation: operationId, status: Number(status), name, body: value })))))
}

/** What is wrong with an answer to an operation: its status, a header field, its type or its body. */
export function faultOfAnswer(document: Fields, operation: string, answer: RawAnswer): string | undefined {
  const { responses } = operationOf(document, operation).operation as { responses: Fields }
  const response: Fields = responses[answer.status] ?? responses['default']
  for (const [name, { required, schema }] of Object.entries<Fields>(response['headers'] ?? {})) {
    const text = answer.headers[name.toLowerCase()]
    if (text === undefined) {
      if (required) return `${name} is missing`
      continue
    }
    const fault = faultOf(schema as Schema, schema.type === 'integer' ? Number(text) : text, name)
    if (fault !== undefined) return fault
  }
  if ((answer.json?.status ?? answer.status) !== answer.status) return 'the status in the body is another one'
  const type = answer.headers['content-type'] ?? ''
  const media = Object.entries<Fields>(response['content']).find(([one]) => type.startsWith(one))?.[1]
  if (media === undefined) return `the type ${type} is not described`
  return faultOf(media['schema'], type.startsWith('application/json') ? answer.json : answer.text, 'the body')
}
