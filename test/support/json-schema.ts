/**
 * Holds a value against a JSON Schema (draft 2020-12), of which it knows the words that this interface's description
 * uses; any other word is an error, so that none is passed over.
 */

export type Schema = { readonly [keyword: string]: unknown }

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

const TYPES: { readonly [name: string]: (value: unknown) => boolean } = {
  array: Array.isArray,
  integer: Number.isInteger,
  boolean: value => typeof value === 'boolean',
  null: value => value === null,
  number: value => typeof value === 'number',
  object: isObject,
  string: value => typeof value === 'string'
}

/** Words that a value fulfils or not; one that is about another type of value is fulfilled. */
const PLAIN: { readonly [keyword: string]: (word: any, value: any) => boolean } = {
  description: () => true,
  type: (word, value) => [word].flat().some(one => TYPES[one]!(value)),
  const: same,
  enum: (word, value) => word.some((one: unknown) => same(one, value)),
  anyOf: (word, value) => word.some((one: Schema) => faultOf(one, value) === undefined),
  minimum: (word, value) => typeof value !== 'number' || value >= word,
  maximum: (word, value) => typeof value !== 'number' || value <= word,
  minLength: (word, value) => typeof value !== 'string' || [...value].length >= word,
  maxLength: (word, value) => typeof value !== 'string' || [...value].length <= word,
  pattern: (word, value) => typeof value !== 'string' || new RegExp(word, 'u').test(value),
  minItems: (word, value) => !Array.isArray(value) || value.length >= word,
  required: (word, value) => !isObject(value) || word.every((name: string) => Object.hasOwn(value, name)),
  minProperties: (word, value) => !isObject(value) || Object.keys(value).length >= word
}

type Inner = readonly (readonly [schema: Schema | boolean, value: unknown, at: string])[]

/** Words that apply schemas to what is in a value: each schema with what it applies to. */
const INNER: { readonly [keyword: string]: (word: any, value: any, schema: Schema) => Inner } = {
  items: (word, value) => Array.isArray(value) ? value.map((item, i) => [word, item, `[${i}]`] as const) : [],
  propertyNames: (word, value) =>
    isObject(value) ? Object.keys(value).map(name => [word, name, `.${name}`] as const) : [],
  properties: (word, value) => isObject(value)
    ? Object.keys(word).filter(name => Object.hasOwn(value, name)).map(name => [word[name], value[name], `.${name}`])
    : [],
  additionalProperties: (word, value, { properties = {} }) => isObject(value)
    ? Object.keys(value).filter(name => !Object.hasOwn(properties as object, name))
      .map(name => [word, value[name], `.${name}`])
    : []
}

/** What is wrong with a value; undefined if nothing is. Throws on a word that it does not know. */
export function faultOf(schema: Schema | boolean, value: unknown, at: string = 'it'): string | undefined {
  if (typeof schema === 'boolean') return schema ? undefined : `${at} is not expected`
  for (const [keyword, word] of Object.entries(schema)) {
    if (keyword in PLAIN) {
      if (!PLAIN[keyword]!(word, value)) return `${at} is against ${keyword} ${JSON.stringify(word)}`
      continue
    }
    if (!(keyword in INNER)) throw new Error(`${keyword} is not known to this validator`)
    for (const [one, inner, place] of INNER[keyword]!(word, value, schema)) {
      const fault = faultOf(one, inner, at + place)
      if (fault !== undefined) return fault
    }
  }
  return undefined
}
