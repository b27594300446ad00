/**
 * The model of the service: what it must say of its entries, users and tokens, and who was told which password.
 *
 * Modelled: each entry with its fields, its status and the passwords that it had; users with abilities and groups;
 * tokens, and whether they are live; who was told, has or set a password; what may have been read unrecorded; values
 * that were purged. Changes of which it is not known whether, or in which order, they were made are kept until an entry
 * shows it (`settle`).
 *
 * Not modelled: times, texts of messages, limits and queues, second factors, logins by a proxy, one-time codes, notes,
 * what a browser does. A password is of one text (`PW7Z`), and the user name that goes with it says which (`U7Z`), so
 * that lists without passwords show which password an entry has.
 */
import { Defect } from './client.ts'
import { emptyKnowledge, mayHave, type Knowledge } from './knowledge.ts'

export type Groups = readonly string[] | undefined

export interface Fields {
  readonly password: string
  readonly sistema: string
  readonly usuario: string
  readonly url?: string
  readonly grupo?: string
}
export interface Entry extends Fields { readonly status: 0 | 1 }

export interface User {
  readonly abilities: readonly string[]
  /** Without a list: all. */
  readonly groups: Groups
  readonly hasPassword: boolean
}

export interface Token {
  readonly token: string
  readonly email: string
  abilities: readonly string[]
  /** Its own; without: its user's. */
  groups: Groups
  isLive: boolean
}

/** A change of an entry, or with the id 0 a new one, that may have been made, or was at some time. */
export interface Change {
  readonly id: number
  readonly set: Partial<Entry>
  readonly isMade: boolean
  /** How many looks at the entries it has outlived: a client may be gone before its change is made. */
  looks: number
}

export interface State {
  /** By their ids, from 1; null is one that was purged. */
  entries: (Entry | null)[]
  /** By entry, what it is known to have had since its history began. */
  former: Map<number, Set<string>>
  users: Map<string, User>
  tokens: Token[]
  open: Change[]
  /** Values that were purged, and that no journal may hold which was compacted since. */
  purged: string[]
  /** Whether reads are recorded: not before a first start that asks for tokens. */
  isRecording: boolean
  /** How much of the journal a rewriting put there: without all of it, it is damaged. A restore copies it. */
  rewrittenBytes: number
  knows: Knowledge
}

export const emptyState = (): State => ({ entries: [], former: new Map(), users: new Map(), tokens: [], open: [],
  purged: [], isRecording: false, rewrittenBytes: 0, knows: emptyKnowledge() })
export const copyOf = (state: State): State => structuredClone(state)

/** In the order in which it is served. */
const FIELDS = ['password', 'sistema', 'usuario', 'url', 'grupo', 'status'] as const
const OPEN_FIELDS = FIELDS.filter(field => field !== 'password')

/** An entry as it is served, or without its password. */
export function shown(id: number, entry: Entry, fields: readonly (keyof Entry)[] = FIELDS): object {
  return { id, ...Object.fromEntries(fields.filter(field => (entry[field] ?? '') !== '')
    .map(field => [field, entry[field]])) }
}

export const shownOpen = (id: number, entry: Entry): object => shown(id, entry, OPEN_FIELDS)

export const sees = (groups: Groups, grupo: string | undefined): boolean =>
  groups === undefined || (grupo !== undefined && groups.includes(grupo))

export const groupsOf = ({ users }: State, { groups, email }: Token): Groups => groups ?? users.get(email)?.groups

export function idsSeen({ entries }: State, groups: Groups, status?: 0 | 1): number[] {
  return entries.flatMap((entry, at) => entry !== null && sees(groups, entry.grupo || undefined) &&
    (status ?? entry.status) === entry.status ? [at + 1] : [])
}

export const isCertain = ({ open, entries }: State, id: number): boolean =>
  !open.some(change => change.id === id || (change.id === 0 && (id === 0 || id > entries.length)))

/** A change that was made, or may have been, alone or beside others. */
export function note(state: State, id: number, set: Partial<Entry>, isMade: boolean, isAlone: boolean): void {
  if (!isMade || !isAlone || !isCertain(state, id)) { state.open.push({ id, set, isMade, looks: 0 }); return }
  const known = state.entries[id - 1]
  put(state, id === 0 ? state.entries.length + 1 : id, { ...known, ...id === 0 && { status: 1 }, ...set } as Entry)
}

function put(state: State, id: number, entry: Entry): void {
  mayHave(state.knows, id, entry.password)
  state.entries[id - 1] = entry
  state.former.set(id, (state.former.get(id) ?? new Set()).add(entry.password))
}

export function purge(state: State, id: number): void {
  state.purged.push(...state.former.get(id) ?? [])
  state.former.delete(id)
  state.entries[id - 1] = null
}

/** Takes what is served for what it must be, or is one of the things that it may be. */
export function settle(state: State, found: ReadonlyMap<number, Entry>): void {
  const before = state.entries.length
  for (const [id, entry] of [...found].sort(([a], [b]) => a - b)) {
    if (id > state.entries.length) adoptCreated(state, id, entry)
    const known = state.entries[id - 1]
    if (known === null) throw new Defect(`a purged entry is served: ${id}`)
    const open = state.open.filter(change => change.id === id)
    for (const field of FIELDS) {
      const setting = open.filter(({ set }) => set[field] !== undefined)
      const may = [...setting.some(({ isMade }) => isMade) ? [] : [known], ...setting.map(({ set }) => set)]
      if (may.some(one => (one![field] ?? '') === (entry[field] ?? ''))) continue
      throw new Defect(`an entry is served as nobody left it: ${id}, ${field} ${entry[field]}, not ${known![field]}; ` +
        JSON.stringify(open))
    }
    put(state, id, entry)
  }
  for (const [at, known] of state.entries.entries()) {
    if (known !== null && !found.has(at + 1)) throw new Defect(`an acknowledged entry is gone: ${at + 1} of ${before}`)
  }
  const isLost = state.open.some(({ id, isMade }) => id === 0 && isMade)
  if (isLost) throw new Defect(`an acknowledged create is gone: ${JSON.stringify(state.open)}`)
  state.open = state.open.filter(change => !change.isMade && ++change.looks < 3)
}

function adoptCreated(state: State, id: number, found: Entry): void {
  const isCreate = (change: Change): boolean => change.id === 0 && change.set.password === found.password
  // Who does not know of the new entry may have changed it.
  const isChanged = state.open.some(change => change.id === id && change.set.password === found.password)
  const at = state.open.findIndex(change => isCreate(change) || (isChanged && change.id === 0))
  if (at < 0) throw new Defect(`an entry is served that nobody made: ${id}, ${JSON.stringify(found)}`)
  if (id !== state.entries.length + 1) throw new Defect(`an id was left out: ${id} after ${state.entries.length}`)
  const [{ set }] = state.open.splice(at, 1) as [Change]
  state.entries.push({ status: 1, ...set } as Entry)
}

/** A salvage with losses: each entry may be as it once was, or gone, and tokens are not known. */
export function takeSalvaged(state: State, found: ReadonlyMap<number, Entry>, nextId: number): void {
  Object.assign(state, { open: [], tokens: [] })
  for (const [id, entry] of found) {
    if (state.knows.of.get(id)?.has(entry.password) === true) continue
    throw new Defect(`a salvage makes an entry that nobody made: ${id}, ${JSON.stringify(entry)}`)
  }
  state.entries = Array.from({ length: nextId - 1 }, (_, at) => found.get(at + 1) ?? null)
  const present = new Set(state.entries.map(entry => entry?.password))
  state.purged = state.purged.filter(value => !present.has(value))
}

const INCLUDED: { readonly [ability: string]: string } = {
  'entry:list': 'password:read', 'entry:knowledge': 'password:history' }

export const covers = (has: readonly string[], wanted: string): boolean =>
  has.includes('*') || has.includes(wanted) || has.includes(INCLUDED[wanted] ?? wanted)

/** The ability that an operation asks for. */
const ASKS: { readonly [operation: string]: string } = {
  listPassword: 'password:read', getPassword: 'password:read', createPassword: 'password:create',
  updatePassword: 'password:update', deletePassword: 'password:delete', restorePassword: 'password:restore',
  listEntries: 'entry:list', deletedPasswords: 'password:deleted', historyPassword: 'password:history',
  formerPassword: 'password:history', whoKnows: 'entry:knowledge'
}

/** What a request must be answered; undefined: what is known does not say it. */
export function statusOf(state: State, token: Token | undefined, operation: string, id: number,
  body?: Partial<Fields>): number | undefined {
  if (token?.isLive === false) return 401
  const abilities = token?.abilities ?? ['*']
  const groups = token && groupsOf(state, token)
  if (!covers(abilities, ASKS[operation]!)) return 403
  if (operation === 'createPassword') {
    const grupo = body?.grupo || (groups?.length === 1 ? groups[0] : undefined)
    return sees(groups, grupo) ? 200 : 400
  }
  if (operation === 'listPassword') {
    if (state.open.length > 0) return undefined
    return idsSeen(state, groups, 1).length > 0 ? 200 : 404
  }
  if (id === 0) return 200
  if (!isCertain(state, id)) return undefined
  const entry = state.entries[id - 1]
  if (!entry || !sees(groups, entry.grupo || undefined)) return 404
  if (operation === 'formerPassword') return undefined
  if (operation !== 'updatePassword' || body?.grupo === undefined) return 200
  if (!sees(groups, body.grupo || undefined)) return 400
  return body.grupo !== (entry.grupo ?? '') && !covers(abilities, 'password:delete') ? 403 : 200
}

/** What somebody may be told by some operation. */
export const mayBeTold = ({ abilities, groups }: User, grupo: string | undefined): boolean => sees(groups, grupo) &&
  ['password:read', 'password:update', 'password:history'].some(one => covers(abilities, one))

/** A user's rights are others, or as they were: tokens lose what their user has no more. */
export function setRights(state: State, email: string, abilities: readonly string[], groups: Groups): void {
  state.users.set(email, { ...state.users.get(email)!, abilities, groups })
  for (const token of state.tokens) {
    if (token.email !== email) continue
    token.abilities = token.abilities.includes('*') ? abilities : token.abilities.filter(one => covers(abilities, one))
    token.groups = token.groups?.filter(one => sees(groups, one))
  }
}

export function endTokens(state: State, email?: string): void {
  for (const token of state.tokens) if (email === undefined || token.email === email) token.isLive = false
}
