/**
 * Holds a value against a JSON Schema (draft 2020-12), of which it knows the words that this interface's description
 * uses; any other word is an error, so that none is passed over.
 */

/** A schema. */
export type Schema = { readonly [keyword: string]: unknown }

type Fault = string | undefined
type Check = (word: any, value: unknown, schema: Schema, at: string) => Fault

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const TYPES: { readonly [name: string]: (value: unknown) => boolean } = {
  array: Array.isArray,
  integer: Number.isInteger,
  null: value => value === null,
  number: value => typeof value === 'number',
  object: isObject,
  string: value => typeof value === 'string'
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)
const when = (applies: boolean, isFine: () => boolean, fault: string): Fault => applies && !isFine() ? fault : undefined
const first = <T>(items: readonly T[], look: (item: T) => Fault): Fault => {
  for (const item of items) {
    const fault = look(item)
    if (fault !== undefined) return fault
  }
  return undefined
}

const CHECKS: { readonly [keyword: string]: Check } = {
  description: () => undefined,
  type: (word, value, _, at) => when(true, () => [word].flat().some(one => TYPES[one]!(value)), `${at} is no ${word}`),
  const: (word, value, _, at) => when(true, () => same(word, value), `${at} is not ${JSON.stringify(word)}`),
  enum: (word: readonly unknown[], value, _, at) =>
    when(true, () => word.some(one => same(one, value)), `${at} is none of ${JSON.stringify(word)}`),
  anyOf: (word: readonly Schema[], value, _, at) =>
    when(true, () => word.some(one => faultOf(one, value, at) === undefined), `${at} is like none of ${word.length}`),
  minimum: (word, value, _, at) => when(typeof value === 'number', () => Number(value) >= word, `${at} is too small`),
  maximum: (word, value, _, at) => when(typeof value === 'number', () => Number(value) <= word, `${at} is too large`),
  minLength: (word, value, _, at) => when(typeof value === 'string', () => [...value as string].length >= word,
    `${at} is too short`),
  maxLength: (word, value, _, at) => when(typeof value === 'string', () => [...value as string].length <= word,
    `${at} is too long`),
  pattern: (word, value, _, at) => when(typeof value === 'string', () => new RegExp(word, 'u').test(value as string),
    `${at} has not the form ${word}`),
  minItems: (word, value, _, at) => when(Array.isArray(value), () => (value as unknown[]).length >= word,
    `${at} has too few items`),
  items: (word, value, _, at) =>
    Array.isArray(value) ? first([...value.entries()], ([i, item]) => faultOf(word, item, `${at}[${i}]`)) : undefined,
  required: (word: readonly string[], value, _, at) =>
    isObject(value) ? first(word, name => Object.hasOwn(value, name) ? undefined : `${at}.${name} is missing`) : undefined,
  minProperties: (word, value, _, at) => when(isObject(value), () => Object.keys(value as object).length >= word,
    `${at} has too few properties`),
  propertyNames: (word, value, _, at) =>
    isObject(value) ? first(Object.keys(value), name => faultOf(word, name, `the name ${at}.${name}`)) : undefined,
  properties: (word: { readonly [name: string]: Schema }, value, _, at) => isObject(value)
    ? first(Object.keys(word).filter(name => Object.hasOwn(value, name)), name =>
      faultOf(word[name]!, value[name], `${at}.${name}`))
    : undefined,
  additionalProperties: (word: Schema | boolean, value, { properties = {} }, at) => isObject(value)
    ? first(Object.keys(value).filter(name => !Object.hasOwn(properties as object, name)), name =>
      typeof word === 'boolean'
        ? when(true, () => word, `${at}.${name} is not expected`)
        : faultOf(word, value[name], `${at}.${name}`))
    : undefined
}

/** What is wrong with a value; undefined if nothing is. Throws on a word that it does not know. */
export function faultOf(schema: Schema, value: unknown, at: string = 'it'): string | undefined {
  return first(Object.entries(schema), ([keyword, word]) => {
    const check = CHECKS[keyword]
    if (check === undefined) throw new Error(`${keyword} is not known to this validator`)
    return check(word, value, schema, at)
  })
}
