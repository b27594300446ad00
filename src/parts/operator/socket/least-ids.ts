/** Which of several entries with the same password stands for them. */
import type { State } from '../../../store/state.ts'

interface Least {
  readonly of: number
  readonly ids: ReadonlyMap<number, number>
}

const least = new WeakMap<State, Least>()

/** By number of a password that several entries have: the least id of an active one. */
export function leastIds(state: State): Least['ids'] {
  const { entries, knowledge } = state
  const { numbers } = knowledge
  const known = least.get(state)
  if (known?.of === numbers.lastChange) return known.ids
  const ids = new Map<number, number>()
  for (let id = entries.size; id > 0; id--)
    if (entries.isActive(id) && numbers.active(numbers.of(id)) > 1) ids.set(numbers.of(id), id)
  least.set(state, { of: numbers.lastChange, ids })
  return ids
}
