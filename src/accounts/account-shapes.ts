/** What is given for users and tokens, and the rules for it. */
import { MAX_TOKEN_TTL_MINUTES } from '../limits.ts'
import { groupList } from '../entries/entry-shapes.ts'
import { newPassword, passwordFault } from './password-rules.ts'
import { ANY_ABILITY, invalid } from '../rights/rights.ts'
import { email, number, optional, shaped, text, texts, type Rule } from '../rights/validate.ts'

type ShapeOf<T> = { readonly [F in keyof T]: Rule<T[F]> }
export type Abilities = readonly string[] | undefined
/** Null: all groups. Undefined: all for a new user or token, no change for an old one. */
export type GivenGroups = readonly string[] | null | undefined

export interface NewUser {
  readonly email: string
  readonly name: string | undefined
  readonly abilities: Abilities
  readonly groups: GivenGroups
  readonly password: string | null
}

export const ADDRESS_SHAPE: ShapeOf<{ email: string }> = { email }
const PASSWORD_SHAPE: ShapeOf<{ email: string; password: string }> = {
  email,
  password: newPassword
}
const RIGHTS: ShapeOf<{ name: string | undefined; abilities: Abilities; groups: GivenGroups }> = {
  name: optional(text),
  abilities: optional(texts),
  groups: optional(groupList)
}
export const CHANGE_SHAPE: typeof ADDRESS_SHAPE & typeof RIGHTS = { email, ...RIGHTS }
/** Without a password, the user can log in by a trusted proxy alone. */
export const LOGIN_SHAPE: ShapeOf<{ email: string; password: string | undefined }> = {
  email,
  password: optional(newPassword)
}
export const USER_SHAPE: typeof CHANGE_SHAPE & typeof LOGIN_SHAPE = {
  ...CHANGE_SHAPE,
  ...LOGIN_SHAPE
}
export const TOKEN_SHAPE: typeof CHANGE_SHAPE & ShapeOf<{ ttlMinutes: number | undefined }> = {
  ...CHANGE_SHAPE,
  ttlMinutes: optional(number(0, MAX_TOKEN_TTL_MINUTES))
}

/** `known`: all that there are; undefined: any. Throws `input-invalid`. */
export function assertAbilities(wanted: Abilities, known: readonly string[] | undefined): void {
  if (
    known === undefined ||
    (wanted ?? []).every(one => one === ANY_ABILITY || known.includes(one))
  )
    return
  const all = [ANY_ABILITY, ...new Set(known)].join(', ')
  throw invalid('abilities', `an ability must be one of ${all}`)
}

/** Throws `input-invalid`. */
export function assertPassword(email: string, password: string): void {
  shaped(PASSWORD_SHAPE, { email, password })
  const fault = passwordFault(password, email)
  if (fault !== undefined) throw invalid('password', fault)
}
