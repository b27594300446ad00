/**
 * The store: it decides changes against the state in memory, and has the journal record them, which then applies them.
 * Reads are answered from memory and never see what is not durable.
 */
import type { Buffer } from 'node:buffer'
import { Failure } from '../errors.ts'
import type { Journal, Status } from '../journal/journal.ts'
import { CommitLoop, type Command, type Decision, type JournalObserver } from './commit-loop.ts'
import { ENTRY_FIELDS, fieldsOf, type Entry, type EntryChanges, type EntryFields } from './entry.ts'
import type { EntryList } from './entry-pages.ts'
import { OPERATOR } from './events.ts'
import { assertStands, type Session } from './session.ts'
import { assertFits, decidable, event, type CommittedState, type State } from './state.ts'

/** Whether an entry is still what a caller takes it for; its revision is undefined where that is not durable yet. */
export type Precondition = (entry: Entry, revision: number | undefined) => boolean

const ANY: Precondition = () => true

/** The entry of an id, undefined for an unknown one. Throws `entry-changed` where it is not what was expected. */
export function expectedEntry(state: State, id: number, isExpected: Precondition = ANY): Entry | undefined {
  const entry = state.entries.get(id)
  if (entry === undefined || isExpected(entry, state.revisionOf(id))) return entry
  throw new Failure('entry-changed', `entry ${id}`)
}

type Loop = Pick<CommitLoop<State>, 'commit' | 'status' | 'close'>

/**
 * All writes reject with the failures of `CommitLoop.commit`. `by` is who asks, null for none; where that token was
 * revoked meanwhile they reject with `session-changed`.
 */
export class Store {
  readonly journal: Journal
  /** What is served: the journal applies records to it, and a sweep takes out tokens that have expired. */
  readonly state: CommittedState
  readonly #loop: Loop

  /** `state` is what the journal was read into; `loop` is that of another store which this one is a view of. */
  constructor(
    journal: Journal, state: CommittedState, observers?: readonly JournalObserver[],
    loop: Loop = new CommitLoop(journal, decidable(state), observers)
  ) {
    this.journal = journal
    this.state = state
    this.#loop = loop
  }

  /** The same store, whose events have the name of the operator who asks, where `nameOf` gives one. */
  forOperator(nameOf: () => string | undefined): Store {
    const loop = this.#loop
    const commit = <T>(decide: Command<State, T>): Promise<T> => {
      const name = nameOf()
      return loop.commit(name === undefined ? decide : state => ofOperator(decide(state), name))
    }
    return new Store(this.journal, this.state, [], {
      commit, status: () => loop.status(), close: () => loop.close()
    })
  }

  /** The newest id; those of entries that were purged are below it as well. */
  get lastId(): number { return this.state.entries.size }
  get entryCount(): number { return this.state.entries.count }
  get activeCount(): number { return this.state.entries.active }

  /** The JSON text of an entry, deleted ones too; undefined for an unknown id. */
  entryText(id: number): string | undefined { return this.state.entries.text(id) }

  /** The bytes of that text: see `EntryTable`. */
  entryBytes(id: number): Buffer | undefined { return this.state.entries.bytes(id) }

  /** Whether there is an entry, a deleted one too. */
  has(id: number): boolean { return this.state.entries.has(id) }

  /** The number of the record that changed an entry last, over all journals; 0 for an id that was never given. */
  revisionOf(id: number): number { return this.state.entries.revisionOf(id) }

  /** An entry, deleted ones too; undefined for an unknown id. */
  entry(id: number): Entry | undefined { return this.state.entries.get(id) }

  /** The active entries, ascending by id. */
  activeList(): Entry[] {
    return Array.from(this.state.entries.entries(), ([, entry]) => entry).filter(({ status }) => status === 1)
  }

  /** The active entries as a JSON array in pieces, ascending by id; undefined if there are none. */
  list(): EntryList | undefined { return this.state.entries.list() }

  /** Creates an active entry and returns it (contract §2). */
  createEntry(fields: EntryFields, by: Session | null): Promise<Entry> {
    return this.commit(({ entries }) => {
      const id = entries.size + 1
      const made = { id, ...fieldsOf(fields) }
      assertFits({ ...made, status: 1 })
      return {
        event: event('entry.created', by?.user ?? null, made),
        outcome: state => state.entries.get(id)!
      }
    }, by)
  }

  /** Changes the given fields of an entry and returns it as changed; undefined for an unknown id. */
  updateEntry(
    id: number, fields: EntryChanges, by: Session | null, isExpected?: Precondition
  ): Promise<Entry | undefined> {
    return this.commit(state => {
      const old = expectedEntry(state, id, isExpected)
      const changed = old && ENTRY_FIELDS.filter(field => fields[field] !== undefined && fields[field] !== old[field])
      const changes = Object.fromEntries(changed?.map(field => [field, fields[field]]) ?? [])
      if (old !== undefined && changed?.length) assertFits({ ...old, ...changes })
      return {
        event: changed?.length ? event('entry.updated', by?.user ?? null, { id: old!.id, ...changes }) : undefined,
        outcome: state => state.entries.get(id), heldBytes: bytesOf(old)
      }
    }, by)
  }

  /** Marks an entry as deleted (contract §3); false for an unknown id. */
  deleteEntry(id: number, by: Session | null, isExpected?: Precondition): Promise<boolean> {
    return this.commit(state => {
      const old = expectedEntry(state, id, isExpected)
      const deletion = old?.status === 1 ? event('entry.deleted', by?.user ?? null, { id: old.id }) : undefined
      return { event: deletion, outcome: () => old !== undefined, heldBytes: bytesOf(old) }
    }, by)
  }

  /** Decides any other command; see `CommitLoop`. */
  commit<T>(decide: Command<State, T>, by: Session | null = null): Promise<T> {
    return this.#loop.commit(by === null ? decide : state => {
      assertStands(state, by)
      return decide(state)
    })
  }

  /** See `CommitLoop`. */
  status(): Status & { readonly waiting: number } { return this.#loop.status() }

  /** Waits for what was queued and closes the journal. */
  close(): Promise<void> { return this.#loop.close() }
}

/** About as many bytes as an entry takes. */
export function bytesOf(entry: Entry | undefined): number {
  return entry === undefined ? 0 : ENTRY_FIELDS.reduce((sum, field) => sum + (entry[field]?.length ?? 0), 0)
}

/** A decision whose event has the operator's name. */
function ofOperator<T>({ event, ...rest }: Decision<State, T>, name: string): Decision<State, T> {
  return { event: event && { ...event, data: { ...event.data as object, [OPERATOR]: name } }, ...rest }
}
