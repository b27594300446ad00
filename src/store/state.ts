/** The state, and the one fold that makes it: every record ever applied, from the first, in order. */
import { EntryTable } from './entries.ts'
import type { Entry, Facts } from './record.ts'
import { DraftTable, type Table } from './table.ts'

/** What decisions look at: the committed state, or a draft of what it will be. */
export interface State {
  readonly entries: Table<number, Entry>
}

/** The committed state, which is served. */
export interface CommittedState extends State {
  readonly entries: EntryTable
}

/** The state before the first record. */
export function emptyState(): CommittedState {
  return { entries: new EntryTable() }
}

/** A state that starts as the given one and goes its own way. */
export function draftOf(state: State): State {
  return { entries: new DraftTable(state.entries) }
}

type Appliers = { readonly [T in keyof Facts]: (state: State, data: Facts[T]) => void }

const APPLIERS: Appliers = {
  'entry.created': ({ entries }, { id, password, sistema, usuario }) => {
    if (id !== entries.size + 1) throw new Error(`entry ${id} is not the next one`)
    entries.set(id, { id, password, sistema, usuario, status: 1 })
  },
  'entry.updated': ({ entries }, { id, password, sistema, usuario }) => {
    const old = known(entries.get(id), id)
    entries.set(id, {
      ...old, password: password ?? old.password, sistema: sistema ?? old.sistema, usuario: usuario ?? old.usuario
    })
  },
  'entry.deleted': ({ entries }, { id }) => {
    entries.set(id, { ...known(entries.get(id), id), status: 0 })
  }
}

/** Folds one record into a state; the same for replay, for drafts and for commits. Throws if it does not fit. */
export function apply(state: State, type: string, data: unknown): void {
  if (!Object.hasOwn(APPLIERS, type)) throw new Error(`a record of type ${type} is not known to this version`)
  APPLIERS[type as keyof Facts](state, data as never)
}

function known(entry: Entry | undefined, id: number): Entry {
  if (entry === undefined) throw new Error(`entry ${id} does not exist`)
  return entry
}
