/** Who knows a password, and which of them no operation may tell it any more. */
import { OTHERS, type How, type Knower } from './knowledge.ts'

export type { How }
import type { State } from '../store/state.ts'
import {
  HOST,
  mayCall,
  sees,
  type NeededAbilities,
  type NeededByOperation
} from '../rights/rights.ts'

const TELLING = ['getPassword', 'listPassword', 'updatePassword', 'formerPassword']

export class Exposure {
  readonly #state: State
  readonly #abilities: readonly NeededAbilities[]
  /** By group, as of `#rights`. */
  readonly #outsiders = new Map<string | undefined, readonly number[]>()
  #rights = -1

  constructor(state: State, abilities: NeededByOperation) {
    this.#state = state
    this.#abilities = TELLING.filter(operation => abilities.has(operation)).map(operation =>
      abilities.get(operation)
    )
  }

  /**
   * Users who know the password of the entry, and may not be told it. `byEntry`: see `Knowledge`.
   */
  of(id: number, byEntry: boolean): readonly number[] {
    const { entries, knowledge } = this.#state
    return this.#outsidersOf(entries.grupo(id)).filter(
      user => knowledge.how(user, id, byEntry) !== undefined
    )
  }

  /** Users, removed ones too, who may be told no password of the group's entries. */
  #outsidersOf(grupo: string | undefined): readonly number[] {
    const { users, rights } = this.#state
    if (this.#rights !== rights) this.#outsiders.clear()
    this.#rights = rights
    const known = this.#outsiders.get(grupo)
    if (known !== undefined) return known
    const found = [...users.values()]
      .filter(({ isRemoved, groups, abilities }) => {
        const isThere = isRemoved !== true && sees(groups, grupo)
        return !isThere || !this.#abilities.some(one => mayCall(abilities, one))
      })
      .map(({ id }) => id)
    this.#outsiders.set(grupo, found)
    return found
  }
}

export interface KnownUser {
  readonly user: { readonly id: number; readonly email: string; readonly name: string }
  readonly removed?: true
}

/** `operator` is empty for one without an account name. */
export type KnownBy = { readonly how: How } & (
  KnownUser | { readonly operator: string } | { readonly host: true }
)

/** Before `unrecordedBefore` (ISO 8601), others may have read it. */
export interface Knowing {
  readonly knows: readonly KnownBy[]
  readonly unrecordedBefore?: string | undefined
}

/** Those who know it from this entry come first. `among`: only these are looked at. */
export function knowersOf(
  { knowledge }: State,
  id: number,
  byEntry: boolean,
  among: readonly Knower[] = knowledge.knowers()
): readonly (readonly [knower: Knower, how: How])[] {
  const [read, equal]: [[Knower, How][], [Knower, How][]] = [[], []]
  for (const knower of among) {
    const how = knowledge.how(knower, id, byEntry)
    if (how !== undefined) (how === 'read' ? read : equal).push([knower, how])
  }
  return [...read, ...equal]
}

/**
 * Before when others may have read the present password, in milliseconds since 1970; `Infinity`:
 * until now. Undefined: nobody else.
 */
export function unrecordedBeforeMs(
  { entries, knowledge }: State,
  id: number,
  byEntry: boolean
): number | undefined {
  if (knowledge.recording !== 'begun') return Infinity
  if (knowledge.how(OTHERS, id, byEntry) === undefined) return undefined
  const told = byEntry ? 0 : knowledge.toldMs(id)
  return Math.max(knowledge.gapMs ?? 0, entries.changedMs(id) ?? 0, told)
}

/** Ids of entries whose passwords others may know, by ISO 8601; `now`: nothing is recorded. */
export type Unrecorded = { readonly [before: string]: readonly number[] }

export function unrecordedIn(state: State, id: number): string | undefined {
  const ms = unrecordedBeforeMs(state, id, false)
  if (ms === undefined) return undefined
  return ms === Infinity ? 'now' : new Date(ms).toISOString()
}

/** For callers who may be told what depends on the passwords' texts. */
export function unrecordedOf(state: State, ids: Iterable<number>): Unrecorded {
  const found = new Map<string, number[]>()
  for (const id of ids) {
    const when = unrecordedIn(state, id)
    if (when === undefined) continue
    const of = found.get(when)
    if (of === undefined) found.set(when, [id])
    else of.push(id)
  }
  return Object.fromEntries(found)
}

/** As `unrecordedBeforeMs`, in ISO 8601, and not later than now. */
function unrecordedBefore(state: State, id: number, byEntry: boolean): string | undefined {
  const ms = unrecordedBeforeMs(state, id, byEntry)
  return ms === undefined ? undefined : new Date(Math.min(ms, Date.now())).toISOString()
}

export function whoKnows(state: State, id: number, byEntry: boolean): Knowing {
  const before = unrecordedBefore(state, id, byEntry)
  return {
    knows: knowersOf(state, id, byEntry).map(([knower, how]) => rowOf(state, knower, how)),
    ...(before !== undefined && { unrecordedBefore: before })
  }
}

function rowOf(state: State, knower: Knower, how: How): KnownBy {
  if (typeof knower === 'number') return { ...knownUser(state, knower), how }
  return knower === HOST ? { host: true, how } : { operator: knower.slice('operator:'.length), how }
}

export function knownUser({ users }: State, id: number): KnownUser {
  const { email = '', name = '', isRemoved } = users.get(id) ?? { isRemoved: true }
  return { user: { id, email, name }, ...(isRemoved === true && { removed: true }) }
}
