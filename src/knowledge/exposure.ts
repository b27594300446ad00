/**
 * Passwords known by users whom no operation may tell them any more, and who knows a password at
 * all.
 */
import type { Knower } from './knowledge.ts'
import type { State } from '../store/state.ts'
import { HOST, mayCall, sees, type Asked, type AskedAbilities } from '../rights/rights.ts'

/** The operations that answer the password of an active entry. */
const TELLING = ['getPassword', 'listPassword', 'updatePassword', 'formerPassword']

export class Exposure {
  readonly #state: State
  readonly #abilities: readonly Asked[]
  /** By group, as of `#rights`. */
  readonly #outsiders = new Map<string | undefined, readonly number[]>()
  #rights = -1

  constructor(state: State, abilities: AskedAbilities) {
    this.#state = state
    this.#abilities = TELLING.filter(operation => abilities.has(operation)).map(operation =>
      abilities.get(operation)
    )
  }

  /** Another number after each change of what users may do. */
  get rights(): number {
    return this.#state.rights
  }

  /** Another number after each password that was told, or that an entry has lost. */
  get tellings(): number {
    return this.#state.knowledge.tellings
  }

  /** Users, removed ones too, who may be told no password of the group's entries. */
  outsiders(grupo: string | undefined): readonly number[] {
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

  /** How many outsiders know the password of an entry; `others` know it through another entry. */
  of(id: number, others: readonly number[] = []): number {
    const { entries, knowledge } = this.#state
    return this.outsiders(entries.grupo(id)).filter(
      user => knowledge.knows(user, id) || others.includes(user)
    ).length
  }

  /**
   * Of the users who may not be told every password: those who know the one that these entries
   * have, from one of them, or from an entry that had it.
   */
  confinedKnowers(number: number, ids: Iterable<number>): readonly number[] {
    const { knowledge } = this.#state
    const [former, all] = [knowledge.former.of(number), [...ids]]
    return this.outsiders(undefined).filter(
      user => former.has(user) || all.some(id => knowledge.knows(user, id))
    )
  }

  /** Whether somebody knows the password from an entry that had it. */
  isFormer(number: number): boolean {
    return this.#state.knowledge.former.of(number).size > 0
  }

  formerNumbers(): Iterable<number> {
    return this.#state.knowledge.former.numbers()
  }
}

/** `equal`: from another entry that has, or had, the same password. */
export type How = 'set' | 'read' | 'equal'

/**
 * Somebody who knows the present password of an entry. An operator without an account name has an
 * empty text.
 */
export type KnownBy = { readonly how: How } & (
  | {
      readonly user: { readonly id: number; readonly email: string; readonly name: string }
      readonly removed?: true
    }
  | { readonly operator: string }
  | { readonly host: true }
)

/**
 * Who knows the present password of an entry; before `unrecordedBefore` (ISO 8601), others may have
 * read it.
 */
export interface Knowing {
  readonly knows: readonly KnownBy[]
  readonly unrecordedBefore?: string | undefined
}

/**
 * Who knows the password of an entry, whoever set it first. `equals`: ids of the entries that have
 * the same password; undefined if it must not be told that others have it.
 */
export function knowersOf(
  { entries, knowledge }: State,
  id: number,
  equals?: Iterable<number>
): ReadonlyMap<Knower, How> {
  const found = new Map<Knower, How>()
  for (const { knower, how } of knowledge.knowersOf(id)) found.set(knower, how)
  if (equals === undefined) return found
  const others = [...equals]
    .flatMap(other => knowledge.knowersOf(other))
    .map(({ knower }) => knower)
  for (const knower of [...others, ...knowledge.formerKnowers(entries.get(id)!.password)]) {
    if (!found.has(knower)) found.set(knower, 'equal')
  }
  return found
}

/** If who read it before this time may be unknown: milliseconds since 1970, `Infinity` for now. */
export function unrecordedBeforeMs(
  { entries, knowledge }: State,
  id: number,
  equals?: Iterable<number>
): number | undefined {
  // Reads are not recorded at all, or an operator's one is not recorded yet.
  if (knowledge.recording !== 'begun' || knowledge.isUntold) return Infinity
  if (equals === undefined) return knowledge.unrecordedBeforeMs(id)
  const { password } = entries.get(id)!
  return [id, ...equals]
    .map(one => knowledge.unrecordedBeforeMs(one, password))
    .find(ms => ms !== undefined)
}

/** As `knowersOf`. */
export function whoKnows(state: State, id: number, equals?: Iterable<number>): Knowing {
  const ms = unrecordedBeforeMs(state, id, equals)
  return {
    knows: [...knowersOf(state, id, equals)].map(([knower, how]) => rowOf(state, knower, how)),
    ...(ms !== undefined && { unrecordedBefore: new Date(Math.min(ms, Date.now())).toISOString() })
  }
}

function rowOf({ users }: State, knower: Knower, how: How): KnownBy {
  if (typeof knower !== 'number') {
    return knower === HOST
      ? { host: true, how }
      : { operator: knower.slice('operator:'.length), how }
  }
  const { email = '', name = '', isRemoved } = users.get(knower) ?? { isRemoved: true }
  return { user: { id: knower, email, name }, how, ...(isRemoved === true && { removed: true }) }
}
