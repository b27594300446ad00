/** The rules for users and tokens: the same for the operator's program, for embedders, and for logins. */
import { Failure } from '../errors.ts'
import { email, number, texts, textUpTo } from './rules.ts'
import { check, optional, sentenceOf, text, type Rule, type Shape, type Shaped } from './validate.ts'
import { MAX_LOGIN_PASSWORD_LENGTH, MAX_TOKEN_TTL_MINUTES, MIN_LOGIN_PASSWORD_CHARACTERS } from '../limits.ts'
import { LONE_SURROGATE } from './password-hash.ts'
import { ANY_ABILITY } from './session.ts'

const anyPassword = textUpTo(MAX_LOGIN_PASSWORD_LENGTH)

/** A password that is to be set; older ones may be shorter. */
const newPassword: Rule<string> = {
  ...anyPassword,
  fault: (field, value) => anyPassword.fault(field, value) ?? newPasswordFault(field, value as string)
}

function newPasswordFault(field: string, password: string): string | undefined {
  if (LONE_SURROGATE.test(password)) return `The ${field} field must be Unicode without halves of surrogate pairs.`
  if ([...password.normalize('NFC')].length >= MIN_LOGIN_PASSWORD_CHARACTERS) return undefined
  return `The ${field} field must be at least ${MIN_LOGIN_PASSWORD_CHARACTERS} characters.`
}

type ShapeOf<T> = { readonly [F in keyof T]: Rule<T[F]> }

export const ADDRESS_SHAPE: ShapeOf<{ email: string }> = { email }
export const PASSWORD_SHAPE: ShapeOf<{ email: string, password: string }> = { email, password: newPassword }
export const USER_SHAPE: ShapeOf<
  { email: string, password: string, name: string | undefined, abilities: readonly string[] | undefined }
> = { ...PASSWORD_SHAPE, name: optional(text), abilities: optional(texts) }
export const CHANGE_SHAPE: ShapeOf<
  { email: string, name: string | undefined, abilities: readonly string[] | undefined }
> = { email, name: optional(text), abilities: optional(texts) }
export const TOKEN_SHAPE: ShapeOf<
  { email: string, abilities: readonly string[] | undefined, ttlMinutes: number | undefined }
> = { email, abilities: optional(texts), ttlMinutes: optional(number(0, MAX_TOKEN_TTL_MINUTES)) }

function refused(why: string): Failure { return new Failure('input-invalid', why) }

/** Throws `input-invalid` for what lacks the shape. */
export function shaped<S extends Shape>(shape: S, given: object): Shaped<S> {
  const checked = check(shape, { ...given })
  if (checked.ok) return checked.value
  throw refused(sentenceOf(checked.errors))
}

/** What is wrong with a new password; undefined: nothing. */
export function passwordFault(password: string, email: string): string | undefined {
  return newPassword.fault('password', password) ??
    // Anybody would try that first.
    (password.toLowerCase() === email.toLowerCase() ? 'the password must not be the address' : undefined)
}

/** Throws `input-invalid` unless an address and its new password keep the rules. */
export function assertPassword(email: string, password: string): void {
  shaped(PASSWORD_SHAPE, { email, password })
  const fault = passwordFault(password, email)
  if (fault !== undefined) throw refused(fault)
}

/** Throws `input-invalid` for an ability that no operation asks for. */
export function assertKnown(abilities: readonly string[], known: readonly string[] | undefined): void {
  if (known === undefined || abilities.every(one => one === ANY_ABILITY || known.includes(one))) return
  throw refused(`an ability must be one of ${[ANY_ABILITY, ...new Set(known)].join(', ')}`)
}
