/** Rules for fields that an entry does not have: those of users and tokens, of imports, of the operator. */
import { MAX_EMAIL_CHARACTERS } from '../limits.ts'
import { check, isText, rule, text, type Rule, type Shape, type Shaped } from './validator.ts'

/** A string of at least one and at most `maxLength` UTF-16 units. */
export function textUpTo(maxLength: number): Rule<string> {
  const short = rule<string>(
    value => (value as string).length <= maxLength, `not be greater than ${maxLength} characters`)
  return { ...short, fault: (field, value) => text.fault(field, value) ?? short.fault(field, value) }
}

const EMAIL = /^[^\s@]+@[^\s@]+$/

/** An e-mail address: something, an @, something, no white space, at most 254 characters (RFC 5321 §4.5.3.1). */
export const email: Rule<string> = rule(
  value => isText(value) && value.length <= MAX_EMAIL_CHARACTERS && EMAIL.test(value), 'be a valid email address')

/** A number within bounds, both included. */
export function number(least: number, most: number): Rule<number> {
  return rule(value => typeof value === 'number' && value >= least && value <= most,
    `be a number between ${least} and ${most}`)
}

/** A list of strings of at least one character. */
export const texts: Rule<readonly string[]> = {
  ...rule(value => Array.isArray(value) && value.every(isText), 'be a list of strings'), isList: true
}

/** One of some numbers. */
export function oneOf<N extends number>(...numbers: readonly N[]): Rule<N> {
  return rule(value => numbers.includes(value as N), `be ${numbers.join(' or ')}`)
}

/** A list of objects that each have a shape. */
export function listOf<S extends Shape>(shape: S): Rule<readonly Shaped<S>[]> {
  const isItem = (item: unknown): boolean =>
    typeof item === 'object' && item !== null && check(shape, item as { readonly [field: string]: unknown }).ok
  const list = rule<readonly Shaped<S>[]>(value => Array.isArray(value) && value.every(isItem),
    `be a list of objects with ${Object.keys(shape).join(', ')}`)
  return { ...list, isList: true }
}
