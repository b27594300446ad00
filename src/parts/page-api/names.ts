import type { Knower } from '../../knowledge/knowledge.ts'
import type { State } from '../../store/state.ts'

/** A user's address, `#ID` for a removed user, or an operator's name. */
export function nameOf({ users }: Pick<State, 'users'>, by: Knower): string {
  if (typeof by !== 'number') return by
  const user = users.get(by)
  return user === undefined || user.isRemoved === true ? `#${by}` : user.email
}
