/** The rules for users and tokens, shared by operator, embedders and logins. */
import { Failure } from '../errors.ts'
import { MAX_LOGIN_PASSWORD_LENGTH, MAX_TOKEN_TTL_MINUTES, MIN_LOGIN_PASSWORD_CHARACTERS } from '../limits.ts'
import { LONE_SURROGATE } from './passwords.ts'
import { also, email, number, optional, shaped, text, texts, textUpTo, type Rule } from './validate.ts'

/** Old passwords may be shorter. */
const newPassword: Rule<string> = also(textUpTo(MAX_LOGIN_PASSWORD_LENGTH), (field, password) => {
  if (LONE_SURROGATE.test(password)) return `The ${field} field must be Unicode without halves of surrogate pairs.`
  if ([...password.normalize('NFC')].length >= MIN_LOGIN_PASSWORD_CHARACTERS) return undefined
  return `The ${field} field must be at least ${MIN_LOGIN_PASSWORD_CHARACTERS} characters.`
})

type ShapeOf<T> = { readonly [F in keyof T]: Rule<T[F]> }
export type Abilities = readonly string[] | undefined

export const ADDRESS_SHAPE: ShapeOf<{ email: string }> = { email }
export const PASSWORD_SHAPE: ShapeOf<{ email: string, password: string }> = { email, password: newPassword }
export const CHANGE_SHAPE: ShapeOf<{ email: string, name: string | undefined, abilities: Abilities }> =
  { email, name: optional(text), abilities: optional(texts) }
export const USER_SHAPE: ShapeOf<{ email: string, password: string, name: string | undefined, abilities: Abilities }> =
  { ...PASSWORD_SHAPE, ...CHANGE_SHAPE }
export const TOKEN_SHAPE: ShapeOf<
  { email: string, abilities: Abilities, ttlMinutes: number | undefined, name: string | undefined }
> =
  { email, abilities: optional(texts), ttlMinutes: optional(number(0, MAX_TOKEN_TTL_MINUTES)), name: optional(text) }

export function passwordFault(password: string, email: string): string | undefined {
  return newPassword.fault('password', password) ??
    // The address is the first guess.
    (password.toLowerCase() === email.toLowerCase() ? 'the password must not be the address' : undefined)
}

/** Throws `input-invalid`. */
export function assertPassword(email: string, password: string): void {
  shaped(PASSWORD_SHAPE, { email, password })
  const fault = passwordFault(password, email)
  if (fault !== undefined) throw invalid('password', fault)
}

export function invalid(field: string, why: string): Failure {
  return new Failure('input-invalid', why, { errors: { [field]: [why] } })
}
