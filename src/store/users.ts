/** Users and tokens as they are kept (contract §5). */

/** A user (contract §5). Removed users are kept to show the journal's `by`. */
export interface User {
  readonly id: number
  /** In lower case, for comparison. */
  readonly email: string
  readonly name: string
  readonly abilities: readonly string[]
  /** A PHC string; undefined once removed. */
  readonly passwordHash: string | undefined
  /** How many so far. */
  readonly passwords: number
}

export type KeptUser = Pick<User, 'email' | 'name' | 'abilities'> & { readonly passwordHash: string }

/** The token itself is kept nowhere. */
export interface Token {
  readonly user: number
  readonly abilities: readonly string[]
  /** ISO 8601; `expires` null: never. */
  readonly issued: string
  readonly expires: string | null
  /** Given by the operator. */
  readonly name?: string | undefined
  readonly isOfLogin?: true | undefined
  /** Its last use, in milliseconds since 1970; never recorded. */
  usedMs?: number | undefined
}

/** `hash`: SHA-256 of the token, 64 hexadecimal digits. */
export type KeptToken = Omit<Token, 'usedMs'> & { readonly hash: string }

export function isExpired({ expires }: Pick<Token, 'expires'>, wallMs: number): boolean {
  return expires !== null && Date.parse(expires) <= wallMs
}
