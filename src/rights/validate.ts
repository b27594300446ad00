/** The validator: a shape maps fields to rules; checked values have its fields only. */
import { requiredText } from '../contract.ts'
import { Failure, type FieldErrors } from '../errors.ts'
import { MAX_EMAIL_CHARACTERS } from '../limits.ts'
import { addressOf } from './rights.ts'

export interface Rule<T> {
  readonly optional: boolean
  readonly fault: (field: string, value: unknown) => string | undefined
  /** What null stands for, if it is taken. */
  readonly cleared?: '' | null
  /** Never set: carries the type of a valid value. */
  readonly type?: T
}

export type Shape = { readonly [field: string]: Rule<unknown> }

export type Shaped<S extends Shape> = {
  readonly [F in keyof S]: S[F] extends Rule<infer T> ? T : never
}

export type Checked<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly errors: FieldErrors }

export type Given = ReadonlyMap<string, unknown> | { readonly [field: string]: unknown }

export function check<S extends Shape>(shape: S, object: Given): Checked<Shaped<S>> {
  const value: { [field: string]: unknown } = {}
  const errors: { [field: string]: string[] } = {}
  let ok = true
  for (const field in shape) {
    const { optional, fault, cleared } = shape[field]!
    const given = valueIn(object, field)
    if (given === undefined && optional) continue
    const message = fault(field, given)
    if (message === undefined) {
      // Copied: the caller may change the list.
      value[field] = Array.isArray(given) ? [...given] : (given ?? cleared)
    } else {
      errors[field] = [message]
      ok = false
    }
  }
  return ok ? { ok, value: value as Shaped<S> } : { ok, errors }
}

function valueIn(object: Given, field: string): unknown {
  if (object instanceof Map) return object.get(field)
  return Object.hasOwn(object, field)
    ? (object as { readonly [field: string]: unknown })[field]
    : undefined
}

/** For callers without HTTP. Throws `input-invalid`. */
export function shaped<S extends Shape>(shape: S, given: object): Shaped<S> {
  const checked = check(shape, { ...given })
  if (checked.ok) return checked.value
  throw new Failure('input-invalid', sentenceOf(checked.errors), { errors: checked.errors })
}

export function sentenceOf(errors: FieldErrors): string {
  return Object.values(errors).flat().join(' ')
}

/** `mustBe` completes the message for an invalid value. */
export function rule<T>(isKept: (value: unknown) => boolean, mustBe: string): Rule<T> {
  return {
    optional: false,
    fault: (field, value) => {
      if (value === undefined || value === null || value === '') return requiredText(field)
      return isKept(value) ? undefined : `The ${field} field must ${mustBe}.`
    }
  }
}

export function optional<T>(rule: Rule<T>): Rule<T | undefined> {
  return { ...rule, optional: true }
}

/** `more` judges only what the first rule lets through. */
export function also<T>(
  first: Rule<T>,
  more: (field: string, value: T) => string | undefined
): Rule<T> {
  return { ...first, fault: (field, value) => first.fault(field, value) ?? more(field, value as T) }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** Not empty. */
export const text: Rule<string> = rule(isText, 'be a string')

/** An empty text, or null, clears the field. */
export const clearable: Rule<string | undefined> = {
  optional: true,
  cleared: '',
  fault: (field, value) =>
    value === null || typeof value === 'string' ? undefined : `The ${field} field must be a string.`
}

/** Not empty; `maxLength` in UTF-16 units. */
export function textUpTo(maxLength: number): Rule<string> {
  return also(text, (field, value) =>
    value.length <= maxLength
      ? undefined
      : `The ${field} field must not be greater than ${maxLength} characters.`
  )
}

const EMAIL = /^[^\s@]+@[^\s@]+$/

/** At most 254 characters as it is stored (RFC 5321 §4.5.3.1). */
export const email: Rule<string> = rule(
  value =>
    isText(value) &&
    EMAIL.test(value) &&
    value.length <= MAX_EMAIL_CHARACTERS &&
    addressOf(value).length <= MAX_EMAIL_CHARACTERS,
  'be a valid email address'
)

/** Bounds included. */
export function number(least: number, most: number): Rule<number> {
  return rule(
    value => typeof value === 'number' && value >= least && value <= most,
    `be a number between ${least} and ${most}`
  )
}

export const texts: Rule<readonly string[]> = rule(
  value => Array.isArray(value) && value.every(isText),
  'be a list of strings'
)
