/**
 * The store: it decides on changes against memory, has the journal record them, and folds what is committed. Reads
 * are answered from memory and never see what is not durable.
 */
import type { Buffer } from 'node:buffer'
import type { Decided, Fold, Journal, JournalRecord } from '../journal/journal.ts'
import { ENTRY_FIELDS, fact, type Entry, type EntryChanges, type EntryFields, type ImportedEntry } from './record.ts'
import { Accounts, type AccountsOptions } from './accounts.ts'
import { apply, draftOf, emptyState, type CommittedState, type State } from './state.ts'

/** All writes reject with the failures of `Journal.commit`. `by` is the id of the user, null for none. */
export class Store {
  readonly #state: CommittedState = emptyState()
  readonly #journal: Journal
  #draft: State
  /** Users and tokens. */
  readonly accounts: Accounts

  /** `openJournal` opens the journal into the fold that it is given. */
  constructor(openJournal: (fold: Fold) => Journal, accounts: AccountsOptions) {
    this.accounts = new Accounts(this.#state, decide => this.#commit(decide), accounts)
    this.#draft = draftOf(this.#state)
    this.#journal = openJournal({
      begin: () => { this.#draft = draftOf(this.#state) },
      apply: (record: JournalRecord) => apply(this.#state, record.type, record.data)
    })
  }

  get journal(): Journal { return this.#journal }
  get entryCount(): number { return this.#state.entries.size }
  get activeCount(): number { return this.#state.entries.active }

  /** The JSON text of an entry, deleted ones too; undefined for an unknown id. */
  entryText(id: number): string | undefined { return this.#state.entries.text(id) }

  /** An entry, deleted ones too; undefined for an unknown id. */
  entry(id: number): Entry | undefined { return this.#state.entries.get(id) }

  /** The active entries, ascending by id. */
  activeList(): Entry[] {
    return Array.from({ length: this.entryCount }, (_, i) => this.entry(i + 1)!).filter(({ status }) => status === 1)
  }

  /** The active entries as a JSON array in pieces, ascending by id; undefined if there are none. */
  list(): Buffer[] | undefined { return this.#state.entries.list() }

  /** Creates an active entry and gives it. */
  createEntry(fields: EntryFields, by: number | null): Promise<Entry> {
    return this.#commit(state => {
      const { password, sistema, usuario } = fields
      const data = { id: state.entries.size + 1, password, sistema, usuario }
      return { outcome: { ...data, status: 1 }, fact: fact('entry.created', by, data) }
    })
  }

  /** Changes the given fields of an entry and gives it as it is then; undefined for an unknown id. */
  updateEntry(id: number, fields: EntryChanges, by: number | null): Promise<Entry | undefined> {
    return this.#commit<Entry | undefined>(state => {
      const old = state.entries.get(id)
      if (old === undefined) return { outcome: undefined }
      const changed = ENTRY_FIELDS.filter(field => fields[field] !== undefined && fields[field] !== old[field])
      if (changed.length === 0) return { outcome: old }
      const changes = Object.fromEntries(changed.map(field => [field, fields[field]]))
      return { outcome: { ...old, ...changes }, fact: fact('entry.updated', by, { id: old.id, ...changes }) }
    })
  }

  /** Marks an entry as deleted; false for an unknown id. */
  deleteEntry(id: number, by: number | null): Promise<boolean> {
    return this.#commit(state => {
      const old = state.entries.get(id)
      if (old === undefined || old.status === 0) return { outcome: old !== undefined }
      return { outcome: true, fact: fact('entry.deleted', by, { id: old.id }) }
    })
  }

  /** Makes a deleted entry active again: an operator's act. False for an unknown id. */
  restoreEntry(id: number, by: number | null): Promise<boolean> {
    return this.#commit(state => {
      const old = state.entries.get(id)
      if (old === undefined || old.status === 1) return { outcome: old !== undefined }
      return { outcome: true, fact: fact('entry.restored', by, { id }) }
    })
  }

  /** Creates entries, all of them or none, and gives the id of the first; the others follow it. */
  importEntries(entries: readonly ImportedEntry[], by: number | null): Promise<number> {
    return this.#commit(state => {
      const first = state.entries.size + 1
      return entries.length === 0
        ? { outcome: first }
        : { outcome: first, fact: fact('entries.imported', by, { first, entries }) }
    })
  }

  /** Throws unless the whole state agrees with itself. */
  check(): void {
    this.#state.entries.check()
    this.accounts.check()
  }

  /** Waits for what was queued and lets go of the journal. */
  close(): Promise<void> { return this.#journal.close() }

  #commit<T>(decide: (state: State) => Decided<T>): Promise<T> {
    return this.#journal.commit(() => {
      const decided = decide(this.#draft)
      if (decided.fact !== undefined) apply(this.#draft, decided.fact.type, decided.fact.data)
      return decided
    })
  }
}
