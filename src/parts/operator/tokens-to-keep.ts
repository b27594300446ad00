/** Which tokens a compaction keeps. */
import type { End } from '../../journal/journal.ts'
import type { State } from '../../store/state.ts'
import { isExpired, type KeptToken } from '../../store/users.ts'

/** The earlier of now and the newest record's time counts, so a clock that runs ahead ends no token. */
export function tokensToKeep(
  { tokens }: State, { end, time }: { readonly end: Pick<End, 'time'>, readonly time: string }
): KeptToken[] {
  const atMs = Math.min(Date.parse(time), Date.parse(end.time ?? time))
  return Array.from(tokens, ([hash, { usedMs: _, ...token }]) => ({ hash, ...token }))
    .filter(token => !isExpired(token, atMs))
}
