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

/** Abilities that include others: who may read an entry may also read the list without secrets. */
const INCLUDED: { readonly [ability: string]: string } = { 'entry:list': 'password:read' }

/** Whether some abilities include a wanted one: guards, issuing and narrowing ask here. */
export function covers(has: readonly string[], wanted: string): boolean {
  const wider = INCLUDED[wanted]
  return has.includes(wanted) || has.includes(ANY_ABILITY) || (wider !== undefined && has.includes(wider))
}

const TOKEN_ID_DIGITS = 12

/** The id of a token in logs and for the operator: the beginning of its hash. */
export function tokenId(hash: string): string { return hash.slice(0, TOKEN_ID_DIGITS) }
