/** Changes that only the operator makes. Each is recorded with the operator's name. */
import type { EncodedEvent } from '../../../journal/journal.ts'
import { fieldsOf, hasMore, type Entry, type EntryRow } from '../../../entries/entry.ts'
import { CREATE_SHAPE, FORMER_SHAPE } from '../../../entries/entry-shapes.ts'
import { GroupNames } from '../../../rights/groups.ts'
import type { EntryTable } from '../../../entries/entry-table.ts'
import { event, OPERATOR, type Events } from '../../../store/events.ts'
import { idLists } from '../../../knowledge/ids.ts'
import type { State } from '../../../store/state.ts'
import type { Command, Commits } from '../../../store/store.ts'
import { rule, shaped, type Rule } from '../../../rights/validate.ts'
import type { Imported, ImportedGroup, ImportRow } from '../../commands/operation.ts'
import { assertHeapRoom } from './heap-room.ts'
import { breath } from '../../commands/signals.ts'
import { SLICE_ENTRIES } from './exposed-entries.ts'
import type { OperationCall } from './operation-table.ts'

/** `isChanged`: whether the last command recorded something. */
export type OperatorCommits = Commits & { readonly isChanged: boolean }

/** The only way to the store: each record gets the name. */
export function forOperator(store: Commits, name: string): OperatorCommits {
  let isChanged = false
  const named =
    <T>(decide: Command<T>): Command<T> =>
    draft => {
      const [events, outcome] = decide(draft)
      isChanged = events.length > 0
      return [events.map(one => withName(one, name)), outcome]
    }
  return {
    state: store.state,
    get isChanged(): boolean {
      return isChanged
    },
    commit: (decide, by, bytes) => store.commit(named(decide), by, bytes),
    commitAlone: (decide, by) => store.commitAlone(named(decide), by),
    commitFirst: (decide, by) => store.commitFirst(named(decide), by)
  }
}

function withName({ type, by, data }: EncodedEvent, name: string): EncodedEvent {
  const more = { ...(data as object), [OPERATOR]: name }
  return { type, by, data: more, json: JSON.stringify(more) }
}

/**
 * Removes the values; the id stays unknown. Gives the entry as it was; undefined for an unknown id.
 */
export function purgeEntry(store: Commits, id: number): Promise<Entry | undefined> {
  return store.commit(draft => {
    const entry = draft.get(id)
    return [entry === undefined ? [] : [event('entry.purged', null, { id })], entry]
  })
}

/** Undefined shows nothing. What is shown is read in the turn in which that is recorded. */
export function disclosing<T>(
  { commits }: OperationCall,
  read: (entries: Pick<EntryTable, 'get'>) => readonly [T, Disclosure] | undefined
): Promise<T | undefined> {
  return commits.commitFirst(draft => {
    const found = read(draft)
    if (found === undefined) return [[], undefined]
    const [shown, disclosure] = found
    return [disclosed(disclosure), shown]
  })
}

type Disclosed = Events['entries.disclosed']
/** `ids`: their present passwords. `former`: passwords that they had. */
type Disclosure = Pick<Disclosed, 'command' | 'fields' | 'everything'> & {
  readonly ids: readonly number[]
  readonly former?: readonly string[] | undefined
}

function disclosed({ ids, former = [], ...what }: Disclosure): EncodedEvent[] {
  const entries = ids.length
  if (what.everything) return [event('entries.disclosed', null, { ...what, entries })]
  const [lists, texts] = [idLists(ids), inPieces(former)]
  const { length } = lists.length < texts.length ? texts : lists
  return Array.from({ length: Math.max(1, length) }, (_, n) =>
    event('entries.disclosed', null, {
      ...what,
      entries,
      entryIds: lists[n] ?? [],
      former: texts[n]
    })
  )
}

/** In UTF-16 units; a single text may be longer. */
const PIECE_UNITS = 32 * 1024

function inPieces(texts: readonly string[]): readonly (readonly string[])[] {
  const pieces: string[][] = []
  let units = Infinity
  for (const text of texts) {
    if (units + text.length > PIECE_UNITS) {
      pieces.push([])
      units = 0
    }
    pieces.at(-1)!.push(text)
    units += text.length
  }
  return pieces
}

export function oneOf<V extends number | string>(...values: readonly V[]): Rule<V> {
  return rule(value => values.includes(value as V), `be ${values.join(' or ')}`)
}

const STATUS = { status: oneOf(0, 1) }
const ROW_SHAPE = { ...CREATE_SHAPE, ...STATUS }
/** An export of this program may have what older versions took. */
const OWN_ROW_SHAPE = { ...FORMER_SHAPE, ...STATUS }

/** All or none, in one record. Empties `given`. */
export async function importEntries(
  commits: Commits,
  given: ImportRow[],
  how: { readonly keepsDuplicates: boolean; readonly isTrial: boolean }
): Promise<Imported> {
  assertHeapRoom(commits.state, bytesOf(given))
  const rows: { readonly isOwn: boolean; readonly entry: EntryRow }[] = []
  given.reverse()
  for (let row = given.pop(); row !== undefined; row = given.pop()) {
    const { isOwn } = row
    rows.push({ isOwn, entry: rowOf(shaped(isOwn ? OWN_ROW_SHAPE : ROW_SHAPE, row)) })
    if (rows.length % SLICE_ENTRIES === 0) await breath()
  }
  if (how.isTrial) return planOf(commits.state, rows, how.keepsDuplicates).imported
  // Alone in its write: the state has all that was decided before.
  return commits.commitAlone(() => {
    const { imported, entries } = planOf(commits.state, rows, how.keepsDuplicates)
    if (entries.length === 0) return [[], imported]
    const first = commits.state.entries.size + 1
    const type = entries.some(hasMore) ? 'fields.imported' : 'entries.imported'
    return [[event(type, null, { first, entries })], { ...imported, first }]
  })
}

function planOf(
  state: State,
  rows: readonly { readonly isOwn: boolean; readonly entry: EntryRow }[],
  keepsDuplicates: boolean
): { readonly imported: Imported; readonly entries: readonly EntryRow[] } {
  const { names } = state
  const known = knownAmong(state, rows)
  const passwords = new Set<string>()
  const shared = new Set<string>()
  for (const { entry } of rows)
    (passwords.has(entry.password) ? shared : passwords).add(entry.password)
  const duplicates: number[] = []
  const made: EntryRow[] = []
  const spellings = new GroupNames(names)
  for (const [i, { isOwn, entry: given }] of rows.entries()) {
    const grupo = given.grupo && spellings.spelled(given.grupo)
    spellings.numberOf(grupo)
    const entry = grupo === given.grupo ? given : rowOf({ ...given, grupo })
    const isDuplicate = known.has(keyOf(entry))
    if (isDuplicate) duplicates.push(i)
    // Two equal rows of another program are one entry. Two of this program's export were two
    // entries.
    if (!isOwn && shared.has(entry.password)) known.add(keyOf(entry))
    if (!isDuplicate || keepsDuplicates) made.push(entry)
  }
  const groups = groupsOf(state, made)
  return { imported: { duplicates, groups, made: made.length }, entries: made }
}

/** About, as JSON. */
function bytesOf(rows: readonly ImportRow[]): number {
  let bytes = 0
  for (const row of rows) bytes += JSON.stringify(row).length
  return bytes
}

const keyOf = (entry: EntryRow): string => JSON.stringify(rowOf(entry))

/** Keys of the entries that share a password with a row. */
function knownAmong(
  { entries, knowledge: { numbers } }: State,
  rows: readonly { readonly entry: EntryRow }[]
): Set<string> {
  const known = new Set<string>()
  const wanted = new Set(rows.map(({ entry }) => numbers.ofText(entry.password)))
  for (let id = 1; id <= entries.size; id++) {
    const entry = wanted.has(numbers.of(id)) ? entries.get(id) : undefined
    if (entry !== undefined) known.add(keyOf(entry))
  }
  return known
}

function groupsOf(state: State, made: readonly EntryRow[]): readonly ImportedGroup[] {
  const counts = new Map<string, number>()
  for (const { grupo } of made) {
    if (grupo !== undefined) counts.set(grupo, (counts.get(grupo) ?? 0) + 1)
  }
  if (counts.size === 0) return []
  const used = groupsInUse(state)
  const users = [...state.users.values()]
  return [...counts].map(([name, entries]) => ({
    name,
    entries,
    isNew: !used.has(name),
    seenBy: users.filter(({ groups = [] }) => groups.includes(name)).map(({ email }) => email)
  }))
}

/** Names that an entry, a user or a token has. */
export function groupsInUse({ entries, users, tokens }: State): ReadonlySet<string> {
  const used = new Set([...users.values(), ...tokens.values()].flatMap(({ groups = [] }) => groups))
  for (let id = 1; id <= entries.size; id++) {
    const grupo = entries.grupo(id)
    if (grupo !== undefined) used.add(grupo)
  }
  return used
}

function rowOf(entry: EntryRow): EntryRow {
  return { ...fieldsOf(entry), status: entry.status }
}
