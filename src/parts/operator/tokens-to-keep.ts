/** Which tokens a compaction keeps. */
import type { End } from '../../journal/journal.ts'
import type { State } from '../../store/state.ts'
import { isExpired, type KeptToken } from '../../store/users.ts'

/**
 * Those that had not expired when the newest record was made, or have not by now, whichever is earlier: a clock that
 * runs ahead while a journal is compacted, and has made no record before, ends no token for good.
 */
export function tokensToKeep(
  { tokens }: State, { end, time }: { readonly end: Pick<End, 'time'>, readonly time: string }
): KeptToken[] {
  const atMs = Math.min(Date.parse(time), Date.parse(end.time ?? time))
  return Array.from(tokens.entries(), ([hash, token]) => ({ hash, ...token })).filter(token => !isExpired(token, atMs))
}
