/**
 * The validator: a shape is a table from field to rule; a value either has it, and comes back typed with only the
 * fields of the shape, or every failing field is listed with its messages.
 */
import { requiredText } from '../contract.ts'

/** A rule for one field: whether it may be absent, and what is wrong with a value (undefined: nothing). */
export interface Rule<T> {
  readonly optional: boolean
  /** Whether it takes a list; then values that nest are built, else only checked for their syntax. */
  readonly isList?: boolean
  readonly fault: (field: string, value: unknown) => string | undefined
  /** Never set: it carries the type of a valid value. */
  readonly type?: T
}

/** A table of rules by field. */
export type Shape = { readonly [field: string]: Rule<unknown> }

/** The type of a value that has the shape. */
export type Shaped<S extends Shape> = { readonly [F in keyof S]: S[F] extends Rule<infer T> ? T : never }

/** The messages of each failing field. */
export type FieldErrors = { readonly [field: string]: readonly string[] }

/** All of them in one line, for callers without a form. */
export function sentenceOf(errors: FieldErrors): string { return Object.values(errors).flat().join(' ') }

/** What `check` finds. */
export type Checked<T> = { readonly ok: true, readonly value: T } | { readonly ok: false, readonly errors: FieldErrors }

/** How deep the values nest that a shape takes. */
export function depthOf(shape: Shape): number | undefined {
  return Object.values(shape).some(({ isList }) => isList) ? undefined : 1
}

/** A JSON object as a request's body gives it, or one of the caller's own. */
export type Given = ReadonlyMap<string, unknown> | { readonly [field: string]: unknown }

/** The value of a field; undefined where it was not given. */
function fieldIn(given: Given, field: string): unknown {
  if (given instanceof Map) return given.get(field)
  return Object.hasOwn(given, field) ? (given as { readonly [field: string]: unknown })[field] : undefined
}

/** Checks an object against a shape. Fields that the shape does not have are left out of the value. */
export function check<S extends Shape>(shape: S, object: Given): Checked<Shaped<S>> {
  const value: { [field: string]: unknown } = {}
  const errors: { [field: string]: string[] } = {}
  let ok = true
  for (const field of Object.keys(shape)) {
    const rule = shape[field]!
    const given = fieldIn(object, field)
    if (given === undefined && rule.optional) continue
    const fault = rule.fault(field, given)
    // A list is the caller's, who may change it later: what was checked is a copy.
    if (fault === undefined) { value[field] = Array.isArray(given) ? [...given] : given; continue }
    errors[field] = [fault]
    ok = false
  }
  return ok ? { ok, value: value as Shaped<S> } : { ok, errors }
}

/** A rule for a required field; `mustBe` completes the message about an invalid value. */
export function rule<T>(isKept: (value: unknown) => boolean, mustBe: string): Rule<T> {
  return {
    optional: false,
    fault: (field, value) => {
      if (value === undefined || value === null || value === '') return requiredText(field)
      return isKept(value) ? undefined : `The ${field} field must ${mustBe}.`
    }
  }
}

export const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** A string of at least one character. */
export const text: Rule<string> = rule(isText, 'be a string')

/** The same rule for a field that may be absent. */
export function optional<T>(rule: Rule<T>): Rule<T | undefined> {
  return { ...rule, optional: true }
}
