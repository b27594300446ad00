/** Users and tokens as they are kept (contract §5). */

/** Who may log in (contract §5). A removed user is kept, so that the journal's `by` can still be shown. */
export interface User {
  readonly id: number
  /** In lower case: addresses are compared without case. */
  readonly email: string
  readonly name: string
  readonly abilities: readonly string[]
  /** A PHC string; undefined once the user was removed. */
  readonly passwordHash: string | undefined
  /** How many passwords the user has had so far. */
  readonly passwords: number
}

export type KeptUser = Pick<User, 'email' | 'name' | 'abilities'> & { readonly passwordHash: string }

/** A bearer token; the token itself is kept nowhere. */
export interface Token {
  readonly user: number
  readonly abilities: readonly string[]
  /** When it was issued, and when it ends, if it does: ISO 8601. */
  readonly issued: string
  readonly expires: string | null
  /** What the operator called it. */
  readonly name?: string | undefined
  /** Whether a login gave it. */
  readonly isOfLogin?: true | undefined
}

/** With the SHA-256 of the token, 64 hexadecimal digits. */
export type KeptToken = Token & { readonly hash: string }

export function isExpired({ expires }: Token, wallMs: number): boolean {
  return expires !== null && Date.parse(expires) <= wallMs
}

/** Tokens by their hashes. */
export class Tokens extends Map<string, Token> {
  /** When each was last used, as far as this process knows: milliseconds since 1970. */
  readonly usedMs: Map<string, number> = new Map()

  override delete(hash: string): boolean {
    this.usedMs.delete(hash)
    return super.delete(hash)
  }
}
