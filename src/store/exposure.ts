/** Passwords known by users whom no operation may tell them any more, and who knows a password at all. */
import type { Knower } from './knowledge.ts'
import type { State } from './state.ts'
import { covers, sees } from './users.ts'

/** The operations that answer the password of an active entry. */
const TELLING = ['getPassword', 'listPassword', 'updatePassword', 'formerPassword']

/** `abilities`: by operation; undefined means any token. */
export class Exposure {
  readonly #state: State
  readonly #abilities: readonly (string | undefined)[]
  /** By group, as of `#rights`. */
  readonly #outsiders = new Map<string | undefined, readonly number[]>()
  #rights = -1

  constructor(state: State, abilities: ReadonlyMap<string, string | undefined>) {
    this.#state = state
    this.#abilities = TELLING.filter(operation => abilities.has(operation)).map(operation => abilities.get(operation))
  }

  /** Another number after each change of what users may do. */
  get rights(): number { return this.#state.rights }

  /** Another number after each password that was told. */
  get tellings(): number { return this.#state.knowledge.tellings }

  /** Users, removed ones too, who may be told no password of the group's entries. */
  outsiders(grupo: string | undefined): readonly number[] {
    const { users, rights } = this.#state
    if (this.#rights !== rights) this.#outsiders.clear()
    this.#rights = rights
    const known = this.#outsiders.get(grupo)
    if (known !== undefined) return known
    const found = [...users.values()].filter(({ isRemoved, groups, abilities }) => {
      const isThere = isRemoved !== true && sees(groups, grupo)
      return !isThere || !this.#abilities.some(one => one === undefined || covers(abilities, one))
    }).map(({ id }) => id)
    this.#outsiders.set(grupo, found)
    return found
  }

  /** How many outsiders know the password of an entry; `others` know it through another entry. */
  of(id: number, others: readonly number[] = []): number {
    const { entries, knowledge } = this.#state
    return this.outsiders(entries.grupo(id)).filter(user => knowledge.knows(user, id) || others.includes(user)).length
  }

  /** Users who know one of the entries, of those who may be told the passwords of some groups alone. */
  confinedKnowers(ids: ReadonlySet<number>): readonly number[] {
    const { knowledge } = this.#state
    return this.outsiders(undefined).filter(user => {
      for (const id of ids) if (knowledge.knows(user, id)) return true
      return false
    })
  }
}

/** `equal`: through an entry that has the same password. An operator without an account name has an empty text. */
export type KnowerRow = { readonly how: 'set' | 'read' | 'equal' } & (
  | { readonly user: { readonly id: number, readonly email: string, readonly name: string }, readonly removed?: true }
  | { readonly operator: string }
  | { readonly host: true }
)

/** `unrecordedBefore`, ISO 8601: who was told before may be unknown. */
export interface WhoKnows { readonly knows: readonly KnowerRow[], readonly unrecordedBefore?: string | undefined }

/** `equals`: ids of the entries that have the same password, if the caller may know of them. */
export function whoKnows(state: State, id: number, equals: Iterable<number> = []): WhoKnows {
  const { knowledge } = state
  const found = new Map<Knower, KnowerRow['how']>()
  for (const { knower, how } of knowledge.knowersOf(id)) found.set(knower, how)
  for (const other of equals) {
    for (const { knower } of knowledge.knowersOf(other)) if (!found.has(knower)) found.set(knower, 'equal')
  }
  // Nothing is recorded at the moment.
  const ms = knowledge.recording === 'begun' ? knowledge.unrecordedBeforeMs(id) : Date.now()
  return {
    knows: [...found].map(([knower, how]) => rowOf(state, knower, how)),
    ...ms !== undefined && { unrecordedBefore: new Date(ms).toISOString() }
  }
}

function rowOf({ users }: State, knower: Knower, how: KnowerRow['how']): KnowerRow {
  if (typeof knower !== 'number') {
    return knower === 'host' ? { host: true, how } : { operator: knower.slice('operator:'.length), how }
  }
  const { email = '', name = '', isRemoved } = users.get(knower) ?? { isRemoved: true }
  return { user: { id: knower, email, name }, how, ...isRemoved === true && { removed: true } }
}
