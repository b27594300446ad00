/** Who has sent a request, in the protected configuration, and what they may do (contract §5). */

export interface Session {
  readonly user: number
  /** The hash of the token. */
  readonly hash: string
  /** Those of the token, in the same array until they are others. */
  readonly abilities: readonly string[]
}

/** The ability that includes all others. */
export const ANY_ABILITY = '*'

/** Whether some abilities include a wanted one: guards, issuing, narrowing and the page ask here. */
export function covers(has: readonly string[], wanted: string): boolean {
  return has.includes(wanted) || has.includes(ANY_ABILITY)
}

const TOKEN_ID_DIGITS = 12

/** The id of a token in logs and for the operator: the beginning of its hash. */
export function tokenId(hash: string): string { return hash.slice(0, TOKEN_ID_DIGITS) }
