/** Who has sent a request, in the protected configuration, and what they may do (contract §5). */
import { Failure } from '../errors.ts'
import type { Token } from './events.ts'
import type { CommittedState, State } from './state.ts'

export interface Session {
  readonly user: number
  /** The hash of the token. */
  readonly hash: string
  /** Those of the token, in the same array until they are others. */
  readonly abilities: readonly string[]
}

/** The ability that includes all others. */
export const ANY_ABILITY = '*'

export function hasAbility(abilities: readonly string[], ability: string): boolean {
  return abilities.includes(ability) || abilities.includes(ANY_ABILITY)
}

const TOKEN_ID_DIGITS = 12

/** The id of a token in logs and for the operator: the beginning of its hash. */
export function tokenId(hash: string): string { return hash.slice(0, TOKEN_ID_DIGITS) }

export function isExpired({ expires }: Token, wallMs: number): boolean {
  return expires !== null && Date.parse(expires) <= wallMs
}

/** Throws `session-changed` where the token was revoked, or may do less, since the session was found. */
export function assertStands({ tokens }: State, { hash, abilities }: Session): void {
  if (tokens.get(hash)?.abilities !== abilities) throw new Failure('session-changed', `token ${tokenId(hash)}`)
}

/** Forgets the tokens that have expired; also in the open configuration, whose journal may hold some. */
export function sweep({ tokens }: CommittedState, wallMs: number): void {
  for (const [hash, token] of tokens.entries()) if (isExpired(token, wallMs)) tokens.delete(hash)
}
