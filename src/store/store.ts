/**
 * The store: it decides changes against the state in memory, has the journal record them, and applies what is durable.
 * Reads are answered from memory and never see what is not durable.
 */
import type { Buffer } from 'node:buffer'
import type { Journal, JournalHealth } from '../journal/journal.ts'
import { CommitLoop, type Command, type JournalObserver } from './commit-loop.ts'
import { ENTRY_FIELDS, fieldsOf, type Entry, type EntryChanges, type EntryFields } from './entry.ts'
import { decidable, event, type CommittedState, type State } from './state.ts'

/** All writes reject with the failures of `CommitLoop.commit`. `by` is the id of the user, null for none. */
export class Store {
  readonly journal: Journal
  /** What is served: the commit loop changes it, and a sweep takes out tokens that have expired. */
  readonly state: CommittedState
  readonly #loop: CommitLoop<State>

  /** `state` is what the journal was read into. */
  constructor(journal: Journal, state: CommittedState, observers?: readonly JournalObserver[]) {
    this.journal = journal
    this.state = state
    this.#loop = new CommitLoop(journal, decidable(state), observers)
  }

  /** The newest id; those of entries that were purged are below it as well. */
  get lastId(): number { return this.state.entries.size }
  get entryCount(): number { return this.state.entries.count }
  get activeCount(): number { return this.state.entries.active }

  /** The JSON text of an entry, deleted ones too; undefined for an unknown id. */
  entryText(id: number): string | undefined { return this.state.entries.text(id) }

  /** An entry, deleted ones too; undefined for an unknown id. */
  entry(id: number): Entry | undefined { return this.state.entries.get(id) }

  /** The active entries, ascending by id. */
  activeList(): Entry[] {
    return Array.from(this.state.entries.entries(), ([, entry]) => entry).filter(({ status }) => status === 1)
  }

  /** The active entries as a JSON array in pieces, ascending by id; undefined if there are none. */
  list(): Buffer[] | undefined { return this.state.entries.list() }

  /** Creates an active entry and returns it (contract §2). */
  createEntry(fields: EntryFields, by: number | null): Promise<Entry> {
    return this.commit(({ entries }) => {
      const id = entries.size + 1
      return {
        event: event('entry.created', by, { id, ...fieldsOf(fields) }),
        outcome: state => state.entries.get(id)!
      }
    })
  }

  /** Changes the given fields of an entry and returns it as changed; undefined for an unknown id. */
  updateEntry(id: number, fields: EntryChanges, by: number | null): Promise<Entry | undefined> {
    return this.commit(({ entries }) => {
      const old = entries.get(id)
      const changed = old && ENTRY_FIELDS.filter(field => fields[field] !== undefined && fields[field] !== old[field])
      const changes = Object.fromEntries(changed?.map(field => [field, fields[field]]) ?? [])
      return {
        event: changed?.length ? event('entry.updated', by, { id, ...changes }) : undefined,
        outcome: state => state.entries.get(id)
      }
    })
  }

  /** Marks an entry as deleted (contract §3); false for an unknown id. */
  deleteEntry(id: number, by: number | null): Promise<boolean> {
    return this.commit(({ entries }) => ({
      event: entries.get(id)?.status === 1 ? event('entry.deleted', by, { id }) : undefined,
      outcome: state => state.entries.get(id) !== undefined
    }))
  }

  /** Decides any other command; see `CommitLoop`. */
  commit<T>(decide: Command<State, T>): Promise<T> { return this.#loop.commit(decide) }

  /** See `CommitLoop`. */
  health(): JournalHealth & { readonly waiting: number } { return this.#loop.health() }

  /** Waits for what was queued and closes the journal. */
  close(): Promise<void> { return this.#loop.close() }
}
