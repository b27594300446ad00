/** Reads an OpenAPI 3.1 description: its examples, and answers held against it. Linters judge its form. */
import assert from 'node:assert/strict'
import type { RawAnswer } from './raw.ts'
import { faultOf, type Schema } from './json-schema.ts'

export interface DescribedRequest {
  readonly operation: string
  /** The example's name; undefined where the operation takes nothing. */
  readonly name: string | undefined
  readonly method: string
  readonly path: string
  readonly body: unknown
}

type Fields = { readonly [name: string]: any }

/** A document with every `$ref` replaced by what it refers to. */
export function resolved(document: Fields): Fields {
  const look = (value: any): any => {
    if (Array.isArray(value)) return value.map(look)
    if (typeof value !== 'object' || value === null) return value
    if (typeof value.$ref === 'string') {
      const found = value.$ref.slice(2).split('/').reduce((at: any, name: string) => at?.[name], document)
      assert.ok(found !== undefined, `${value.$ref} is there`)
      return look(found)
    }
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, look(one)]))
  }
  return look(document)
}

/**
 * Throws unless every example is one of its schema, every operation has a name of its own and a success, and no text is
 * empty.
 */
export function assertDescription(document: Fields): void {
  assert.doesNotMatch(JSON.stringify(document), /[:,[{]""/)
  const ids = Object.values<Fields>(document['paths']).flatMap(Object.values<Fields>).map(({ operationId }) =>
    operationId)
  assert.equal(new Set(ids).size, ids.length)
  for (const [path, item] of Object.entries<Fields>(document['paths'])) {
    for (const [method, { parameters = [], requestBody, responses }] of Object.entries<Fields>(item)) {
      const at = `${method} ${path}`
      assert.deepEqual(parameters.filter((one: Fields) => one['in'] === 'path').map((one: Fields) => one['name']),
        [...path.matchAll(/\{(\w+)\}/g)].map(one => one[1]), at)
      assert.equal(parameters.some((one: Fields) => one['name'] === 'If-Match'), '412' in responses, at)
      for (const one of parameters) assert.equal(one['required'], one['in'] === 'path', `${at} ${one['name']}`)
      assert.ok('200' in responses && 'default' in responses, at)
      const described = [...parameters, ...Object.values<Fields>(responses).flatMap(one =>
        Object.values(one['content']))]
      for (const { schema, examples = {} } of described) {
        faultOf(schema, '') // throws on a type or a keyword that it does not know
        for (const [name, { value }] of Object.entries<Fields>(examples)) {
          assert.equal(faultOf(schema, value), undefined, `${at} ${name}`)
        }
      }
      if (requestBody) assert.equal(requestBody.required, 'required' in requestBody.content['application/json'].schema,
        at)
      for (const { value } of Object.values<Fields>(requestBody?.content['application/json'].examples ?? {})) {
        faultOf(requestBody.content['application/json'].schema, value) // throws on a keyword that it does not know
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
  return Object.values<Fields>(document['paths']).flatMap(Object.values<Fields>).flatMap(({ operationId,
    ...rest }): DescribedRequest[] => {
    const { method, path } = operationOf(document, operationId)
    const bodies: Fields = rest['requestBody']?.content['application/json'].examples ?? {}
    const parameters: readonly Fields[] = (rest['parameters'] ?? []).filter((one: Fields) => one['in'] === 'path')
    const names = new Set([...Object.keys(bodies), ...parameters.flatMap(({ examples }) => Object.keys(examples))])
    if (names.size === 0) return [{ operation: operationId, name: undefined, method, path, body: undefined }]
    return [...names].map(name => ({
      operation: operationId, name, method, body: bodies[name]?.value,
      path: parameters.reduce((at, { name: one, examples }) => at.replace(`{${one}}`, examples[name].value), path)
    }))
  })
}

export function answersOf(document: Fields): { operation: string, status: number, name: string, body: unknown }[] {
  return Object.values<Fields>(document['paths']).flatMap(Object.values<Fields>).flatMap(({ operationId, responses }) =>
    Object.entries<Fields>(responses).flatMap(([status, { content }]) => Object.values<Fields>(content).flatMap(media =>
      Object.entries<Fields>(media['examples'] ?? {}).map(([name, { value }]) =>
        ({ operation: operationId, status: Number(status), name, body: value })))))
}

/** Answers are open, for fields of later versions; those of this version are all described. */
function closed(schema: any): any {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([name, one]) => [name, closed(one)]))
  return 'properties' in schema && schema.type === 'object' ? { additionalProperties: false, ...inner } : inner
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
  for (const name of Object.keys(document['components'].headers)) {
    const isDescribed = Object.hasOwn(response['headers'] ?? {}, name)
    if (answer.headers[name.toLowerCase()] !== undefined && !isDescribed) return `${name} is not described`
  }
  if ((answer.json?.status ?? answer.status) !== answer.status) return 'the status in the body is another one'
  const type = answer.headers['content-type'] ?? ''
  const media = Object.entries<Fields>(response['content']).find(([one]) => type.startsWith(one))?.[1]
  if (media === undefined) return `the type ${type} is not described`
  const schema = operation === 'openapi' ? media['schema'] : closed(media['schema']) // that one names but its version
  return faultOf(schema, type.startsWith('application/json') ? answer.json : answer.text, 'the body')
}
