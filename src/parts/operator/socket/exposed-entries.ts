/**
 * Which passwords are known to somebody who may not be told them, or perhaps to others. Others are
 * served between two slices.
 */
import type { Entry } from '../../../entries/entry.ts'
import {
  Exposure,
  knownUser,
  unrecordedIn,
  unrecordedOf,
  type KnownUser,
  type Unrecorded
} from '../../../knowledge/exposure.ts'
import type { NeededByOperation } from '../../../rights/rights.ts'
import type { State } from '../../../store/state.ts'
import { breath } from '../../commands/signals.ts'
import type { FoundEntries, Knows, Listed } from '../../commands/operation.ts'

export const SLICE_ENTRIES = 1_000

export async function knownBy(state: State, user: number): Promise<Knows> {
  const { entries, knowledge } = state
  let knows = 0
  const unrecordedBefore: Record<string, number[]> = {}
  for (let first = 1; first <= entries.size; first += SLICE_ENTRIES) {
    const ids = Array.from({ length: SLICE_ENTRIES }, (_, n) => first + n).filter(id =>
      entries.has(id)
    )
    knows += ids.filter(id => knowledge.how(user, id, false) !== undefined).length
    const unrecorded: Unrecorded = unrecordedOf(state, ids)
    for (const [before, of] of Object.entries(unrecorded))
      (unrecordedBefore[before] ??= []).push(...of)
    await breath()
  }
  return { knows, unrecordedBefore }
}

interface ExposedEntries extends Pick<FoundEntries, 'lists' | 'users'> {
  of(entry: Entry): Partial<Listed> | undefined
}

export function exposedEntries(state: State, abilities: NeededByOperation): ExposedEntries {
  const exposure = new Exposure(state, abilities)
  const users = new Map<number, KnownUser>()
  // Most entries are known to the same few: each list of them is kept once.
  const lists = new Map<string, { readonly at: number; readonly ids: readonly number[] }>()
  const of: ExposedEntries['of'] = ({ id, status }) => {
    const ids = exposure.of(id, false)
    const before = unrecordedIn(state, id)
    if (ids.length === 0 && before === undefined) return undefined
    for (const user of ids) if (!users.has(user)) users.set(user, knownUser(state, user))
    const key = ids.join()
    const list = lists.get(key) ?? { at: lists.size, ids }
    lists.set(key, list)
    return {
      exposedTo: list.at,
      status: status === 1 ? 'active' : 'deleted',
      ...(before !== undefined && { unrecordedBefore: before })
    }
  }
  return {
    of,
    get lists() {
      return [...lists.values()].map(({ ids }) => ids)
    },
    get users() {
      return [...users.values()]
    }
  }
}

export function exposedIn(
  state: State,
  abilities: NeededByOperation,
  id: number
): { readonly exposedTo: readonly KnownUser[]; readonly unrecordedBefore?: string } {
  const exposedTo = new Exposure(state, abilities).of(id, false).map(user => knownUser(state, user))
  const before = unrecordedIn(state, id)
  return { exposedTo, ...(before !== undefined && { unrecordedBefore: before }) }
}
