/** Which passwords somebody knows who may not be told them, and which others may know. */
import type { Entry } from '../../../entries/entry.ts'
import { Exposure, knownUser, unrecordedOf, type KnownUser } from '../../../knowledge/exposure.ts'
import type { NeededByOperation } from '../../../rights/rights.ts'
import type { State } from '../../../store/state.ts'
import type { Store } from '../../../store/store.ts'
import type { Knows, Listed } from '../../commands/operation.ts'

export function knownBy({ state }: Store, email: string): Knows {
  const { entries, knowledge } = state
  const user = state.userOf(email)
  const ids = entries.changedSince(0).filter(id => entries.has(id))
  const known =
    user === undefined ? [] : ids.filter(id => knowledge.how(user.id, id, false) !== undefined)
  return { knows: known.length, unrecordedBefore: unrecordedOf(state, ids) }
}

interface ExposedEntries {
  /** Undefined if there is nobody. */
  of(entry: Entry): Partial<Listed> | undefined
  /** All who were found. */
  readonly users: ReadonlySet<number>
}

export function exposedEntries(state: State, abilities: NeededByOperation): ExposedEntries {
  const exposure = new Exposure(state, abilities)
  const users = new Set<number>()
  // Most entries are known to the same few: each list of them is there once.
  const lists = new Map<string, readonly number[]>()
  const of: ExposedEntries['of'] = ({ id, status }) => {
    const ids = exposure.of(id, false)
    const before = beforeOf(state, id)
    if (ids.length === 0 && before === undefined) return undefined
    for (const user of ids) users.add(user)
    const key = ids.join()
    const list = lists.get(key) ?? ids
    lists.set(key, list)
    return {
      exposedTo: list,
      status: status === 1 ? 'active' : 'deleted',
      ...(before !== undefined && { unrecordedBefore: before })
    }
  }
  return { of, users }
}

export function exposedIn(
  state: State,
  abilities: NeededByOperation,
  id: number
): { readonly exposedTo: readonly KnownUser[]; readonly unrecordedBefore?: string } {
  const exposedTo = new Exposure(state, abilities).of(id, false).map(user => knownUser(state, user))
  const before = beforeOf(state, id)
  return { exposedTo, ...(before !== undefined && { unrecordedBefore: before }) }
}

/** A key of `Unrecorded`. */
function beforeOf(state: State, id: number): string | undefined {
  return Object.keys(unrecordedOf(state, [id]))[0]
}
