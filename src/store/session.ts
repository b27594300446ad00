/** The sender of a request, in the protected configuration (contract §5). */

export interface Session {
  readonly user: number
  /** The token's hash. */
  readonly hash: string
  /** The same array until they change: drafts compare it. */
  readonly abilities: readonly string[]
}

export const ANY_ABILITY = '*'

/** Readers of entries may read the list without secrets. */
const INCLUDED: { readonly [ability: string]: string } = { 'entry:list': 'password:read' }

export function covers(has: readonly string[], wanted: string): boolean {
  const wider = INCLUDED[wanted]
  return has.includes(wanted) || has.includes(ANY_ABILITY) || (wider !== undefined && has.includes(wider))
}

const TOKEN_ID_DIGITS = 12

export function tokenId(hash: string): string { return hash.slice(0, TOKEN_ID_DIGITS) }
