/** Rules for fields that an entry does not have: those of users and tokens. */
import { MAX_EMAIL_CHARACTERS } from '../limits.ts'
import { isText, rule, text, type Rule } from './validate.ts'

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
