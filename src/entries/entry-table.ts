/** The entries in memory, each once, as the served JSON text. */
import type { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { LIST_PAGE_ENTRIES, MAX_KEPT_TAGS } from '../limits.ts'
import { changedEntry, entryText, textBeside, type AnsweredEntry, type Entry } from './entry.ts'
import type { Clock } from '../store/clock.ts'
import { Column } from '../store/column.ts'
import { GroupNames } from '../rights/groups.ts'
import { keptByGroups, PagedList, pageOf, type Pages } from './paged-list.ts'
import { sees, type Groups } from '../rights/rights.ts'

/** Ids count from 1 without gaps. */
export interface EntryTable {
  /** The newest id; purged ids stay taken. */
  readonly size: number
  get(id: number): Entry | undefined
  /** `changedMs`: when the password was set, milliseconds since 1970; if left out, that stays. */
  set(entry: Entry, changedMs?: number): void
  /** Makes an id, even the next one, unknown for good. */
  delete(id: number): void
}

interface PageCounts {
  deleted: number
  /** By the store's clock. */
  changes: number
}

const NONE = 0
const ACTIVE = 1
const INACTIVE = 2

/** 22 characters of base64url are 132 bits. */
const TAG_CHARACTERS = 22

export class Entries implements EntryTable, Pages {
  tagKey: () => string = () => ''
  /**
   * By id; place 0 is unused. Each text is one string: a cut or joined one keeps its sources alive.
   */
  readonly #texts: (string | undefined)[] = [undefined]
  /** By id. */
  readonly #standing = new Column(Uint8Array)
  /** By id: milliseconds since 1970; 0 if not known. */
  readonly #changedMs = new Column(Float64Array)
  /** By id: the unanswered fields, as JSON. */
  readonly #beside = new Map<number, string>()
  /** By id: the number of its group's name. */
  readonly #groups = new Column()
  readonly #names: GroupNames
  readonly #pages: PageCounts[] = []
  /** Of entries that were read: a hash is a good part of what a get costs. */
  readonly #tags = new Map<number, string>()
  readonly #list = new PagedList(this, id => (this.isActive(id) ? this.#texts[id] : undefined))
  readonly #listOf = keptByGroups(
    groups =>
      new PagedList(this, id =>
        sees(groups, this.grupo(id)) && this.isActive(id) ? this.#texts[id] : undefined
      )
  )
  readonly #clock: Clock
  #deleted = 0
  #purged = 0

  constructor(names: GroupNames = new GroupNames(), clock: Clock = { now: 0 }) {
    this.#names = names
    this.#clock = clock
  }

  get size(): number {
    return this.#texts.length - 1
  }

  /** With deleted entries. */
  get count(): number {
    return this.size - this.#purged
  }

  get active(): number {
    return this.count - this.#deleted
  }

  text(id: number): string | undefined {
    return this.#texts[id]
  }

  has(id: number): boolean {
    return this.#standing.get(id) !== NONE
  }

  isActive(id: number): boolean {
    return this.#standing.get(id) === ACTIVE
  }

  get(id: number): Entry | undefined {
    const text = this.#texts[id]
    if (text === undefined) return undefined
    const entry = JSON.parse(text) as AnsweredEntry
    const beside = this.#beside.get(id)
    return beside === undefined ? entry : changedEntry(entry, JSON.parse(beside))
  }

  grupo(id: number): string | undefined {
    return this.#names.nameOf(this.#groups.get(id))
  }

  /** Milliseconds since 1970; undefined: not known. */
  changedMs(id: number): number | undefined {
    return this.#changedMs.get(id) || undefined
  }

  pageChanges(page: number): number {
    return this.#pages[page]?.changes ?? 0
  }

  /** The ids on pages that were changed after this time of the clock, ascending; 0: all. */
  changedSince(time: number): number[] {
    const ids: number[] = []
    for (const [page, one] of this.#pages.entries()) {
      if (one.changes <= time) continue
      const last = Math.min(this.size, (page + 1) * LIST_PAGE_ENTRIES)
      for (let id = page * LIST_PAGE_ENTRIES + 1; id <= last; id++) ids.push(id)
    }
    return ids
  }

  pageDeleted(page: number): number {
    return this.#pages[page]?.deleted ?? 0
  }

  *entries(): Generator<Entry> {
    for (let id = 1; id <= this.size; id++) {
      const entry = this.get(id)
      if (entry !== undefined) yield entry
    }
  }

  set(entry: Entry, changedMs: number = this.#changedMs.get(entry.id)): void {
    const { id, status, grupo } = entry
    this.#put(id, entryText(entry), status === 1 ? ACTIVE : INACTIVE)
    this.#changedMs.set(id, changedMs)
    this.#groups.set(id, this.#names.numberOf(grupo))
    const beside = textBeside(entry)
    if (beside === '') this.#beside.delete(id)
    else this.#beside.set(id, beside)
  }

  delete(id: number): void {
    if (id <= this.size && !this.has(id)) return
    this.#put(id, undefined, NONE)
    this.#changedMs.set(id, 0)
    this.#groups.set(id, 0)
    this.#beside.delete(id)
    this.#purged++
  }

  #put(id: number, text: string | undefined, standing: number): void {
    if (id < 1 || id > this.#texts.length) throw new Error(`entry ${id} would leave a gap`)
    const page = (this.#pages[pageOf(id)] ??= { deleted: 0, changes: 0 })
    const change = Number(standing === INACTIVE) - Number(this.#standing.get(id) === INACTIVE)
    this.#standing.set(id, standing)
    page.deleted += change
    this.#deleted += change
    page.changes = ++this.#clock.now
    // V8 makes a long text in parts, which take twice the room until the text is first read.
    if (text !== undefined && text[0] !== '{') throw new Error(`entry ${id} is no object`)
    this.#texts[id] = text
    this.#tags.delete(id)
  }

  tag(id: number): string | undefined {
    const text = this.#texts[id]
    const kept = this.#tags.get(id)
    if (text === undefined || kept !== undefined) return kept
    if (this.#tags.size >= MAX_KEPT_TAGS) this.#tags.clear()
    const tag = this.#tagOf(text, this.#beside.get(id) ?? '')
    this.#tags.set(id, tag)
    return tag
  }

  /** For an entry that is not in the table yet. */
  tagOf(entry: Entry): string {
    return this.#tagOf(entryText(entry), textBeside(entry))
  }

  /**
   * Includes the id, so two entries never share a tag; and a key, so that nobody can check a guess
   * at a text.
   */
  #tagOf(text: string, beside: string): string {
    return hash('sha512-256', this.tagKey() + text + beside, 'base64url').slice(0, TAG_CHARACTERS)
  }

  /** A JSON array, ascending by id; undefined without an active entry in sight. */
  list(groups?: Groups): Buffer | undefined {
    return (groups === undefined ? this.#list : this.#listOf(groups)).bytes()
  }
}
