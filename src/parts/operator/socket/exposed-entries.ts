/** The entries whose passwords are to be changed. */
import { ENTRY_FIELDS, FIELDS, type Entry } from '../../../entries/entry.ts'
import { Exposure } from '../../../knowledge/exposure.ts'
import type { Knower } from '../../../knowledge/knowledge.ts'
import type { State } from '../../../store/state.ts'
import type { AskedAbilities } from '../../../rights/rights.ts'

/** As `true` if they are set: their values stay known if only the password changes. */
export function optionalSecrets(entry: Entry): { readonly [field: string]: true } {
  const set = ENTRY_FIELDS.filter(
    field => FIELDS[field].isSecret && !FIELDS[field].isRequired && entry[field]
  )
  return Object.fromEntries(set.map(field => [field, true as const]))
}

/** How many present passwords a user knows, also from an entry that has or had the same. */
export function countKnown({ entries, knowledge }: State, user: number): number {
  const known = new Set<string>()
  for (const { id, password } of entries.entries())
    if (knowledge.knows(user, id)) known.add(password)
  let count = 0
  for (const { password } of entries.entries()) {
    if (known.has(password) || knowledge.formerKnowers(password).includes(user)) count++
  }
  return count
}

/**
 * By id of an active entry: how many users know its password, from it or from another entry that
 * has or had the same, and may be told it by no operation any more.
 */
export function exposedEntries(
  state: State,
  abilities: AskedAbilities
): ReadonlyMap<number, number> {
  const { entries, knowledge } = state
  const exposure = new Exposure(state, abilities)
  const knowers = new Map<string, Set<Knower>>()
  const users = knowledge.knowers().filter(knower => typeof knower === 'number')
  for (const { id, password } of entries.entries()) {
    const known = knowers.get(password) ?? new Set(knowledge.formerKnowers(password))
    for (const user of users) if (knowledge.knows(user, id)) known.add(user)
    if (known.size > 0) knowers.set(password, known)
  }
  const found = new Map<number, number>()
  for (const { id, password, grupo, status } of entries.entries()) {
    const known = status === 1 ? knowers.get(password) : undefined
    const count =
      known === undefined ? 0 : exposure.outsiders(grupo).filter(user => known.has(user)).length
    if (count > 0) found.set(id, count)
  }
  return found
}
