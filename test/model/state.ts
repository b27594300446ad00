/** What a journal must say, as plainly as that can be put: the model of the service. */
import assert from 'node:assert/strict'

/** What a program did that it must not do. Its first line, without numbers, says which kind of defect it is. */
export class Defect extends Error {}

export interface Fields { readonly password: string, readonly sistema: string, readonly usuario: string }
export interface Entry extends Fields { readonly grupo?: string, readonly status: 0 | 1 }

export interface Token {
  readonly token: string
  readonly email: string
  readonly mayChange: boolean
  isLive: boolean
  /** Its own groups; without: its user's. */
  groups?: readonly string[] | undefined
}

export interface State {
  /** Entries by their ids, from 1; null is one that was purged. */
  entries: (Entry | null)[]
  /** Users by their addresses, and whether they may change entries. */
  users: Map<string, boolean>
  /** The groups of users who are confined to some. */
  groups: Map<string, readonly string[]>
  tokens: Token[]
  /** Values that were purged, and that no journal may hold which was compacted since. */
  purged: string[]
}

export const emptyState = (): State => ({ entries: [], users: new Map(), groups: new Map(), tokens: [], purged: [] })
export const copyOf = (state: State): State => structuredClone(state)

/** A change whose answer was not received, and that may or may not have been made. */
export interface Unanswered {
  readonly kind: 'create' | 'update' | 'delete'
  readonly id: number
  readonly fields: Fields
}

export const shown = (state: State, id: number): object | undefined => {
  const entry = state.entries[id - 1]
  return entry ? { id, ...plain(entry) } : undefined
}

/** In the order in which it is served. */
export const plain = ({ password, sistema, usuario, grupo, status }: Entry): Entry =>
  ({ password, sistema, usuario, ...grupo && { grupo }, status })

export const groupsOf = ({ groups }: State, token: Token): readonly string[] | undefined => token.groups ??
  groups.get(token.email)

export const isSeen = (groups: readonly string[] | undefined, entry: Entry): boolean =>
  groups === undefined || (entry.grupo !== undefined && groups.includes(entry.grupo))

export const listed = (state: State, groups?: readonly string[]): object[] =>
  state.entries.flatMap((entry, at) => entry?.status === 1 && isSeen(groups, entry) ? [shown(state, at + 1)!] : [])

/** Takes what a service shows of the entry with the next id for one of the changes that were not answered. */
export function adoptCreated(state: State, unanswered: Unanswered[], found: Entry): void {
  const at = unanswered.findIndex(({ kind, fields }) => kind === 'create' && fields.password === found.password)
  if (at < 0) throw new Defect(`an entry is served that nobody made: ${JSON.stringify(found)}`)
  const [{ fields }] = unanswered.splice(at, 1) as [Unanswered]
  assert.deepEqual({ ...fields, status: found.status }, found)
  state.entries.push(found)
}

/** The same for an entry that there was. */
export function adoptChanged(state: State, unanswered: readonly Unanswered[], id: number, found: Entry): void {
  const known = state.entries[id - 1]!
  const may = [known, ...unanswered.filter(one => one.id === id && one.kind !== 'create').map(({ kind, fields }) =>
    kind === 'delete' ? { ...known, status: 0 as const } : { ...known, ...fields })]
  if (!may.some(one => JSON.stringify(plain(one)) === JSON.stringify(found))) {
    const served = `${id}, ${JSON.stringify(found)}, not ${JSON.stringify(known)}`
    throw new Defect(`an entry is served as nobody left it: ${served}`)
  }
  state.entries[id - 1] = found
}
