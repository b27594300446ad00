/**
 * The entries in memory, each as the JSON text that is served: a text is one object for the collector, where an
 * entry with its strings would be four. The list is kept in pages of bytes; a change costs the page that it is in.
 */
import { Buffer } from 'node:buffer'
import { PAGE_ENTRIES } from '../limits.ts'
import type { Entry } from './record.ts'
import type { Table } from './table.ts'

/** Entries by id. Ids count from 1 without gaps. */
export class EntryTable implements Table<number, Entry> {
  /** The text of the entry with id i + 1. */
  readonly #texts: string[] = []
  readonly #deleted = new Set<number>()
  /** The list's pages: the active ones of `PAGE_ENTRIES` entries, each behind a comma; undefined where out of date. */
  readonly #pages: (Buffer | undefined)[] = []

  get size(): number { return this.#texts.length }

  /** How many entries are active. */
  get active(): number { return this.#texts.length - this.#deleted.size }

  /** The JSON text of an entry. */
  text(id: number): string | undefined { return this.#texts[id - 1] }

  get(id: number): Entry | undefined {
    const text = this.text(id)
    return text === undefined ? undefined : JSON.parse(text) as Entry
  }

  set(id: number, entry: Entry): void {
    if (id > this.size + 1) throw new Error(`entry ${id} would leave a gap`)
    this.#texts[id - 1] = entryText(entry)
    if (entry.status === 0) this.#deleted.add(id)
    else this.#deleted.delete(id)
    this.#pages[pageOf(id)] = undefined
  }

  /**
   * The list of the active entries, ascending by id, as a JSON array in pieces; undefined if there are none. The
   * pieces are never changed: who is slow to read them still reads the list of that moment.
   */
  list(): Buffer[] | undefined {
    if (this.active === 0) return undefined
    const pieces = [OPEN]
    for (let page = 0; page < this.#pages.length; page++) {
      const bytes = this.#pages[page] ??= this.#makePage(page)
      if (bytes.length > 0) pieces.push(pieces.length === 1 ? bytes.subarray(1) : bytes)
    }
    pieces.push(CLOSE)
    return pieces
  }

  #makePage(page: number): Buffer {
    const first = page * PAGE_ENTRIES
    let texts = this.#texts.slice(first, first + PAGE_ENTRIES)
    if (this.#deleted.size > 0) texts = texts.filter((_, i) => !this.#deleted.has(first + i + 1))
    return Buffer.from(texts.map(text => `,${text}`).join(''))
  }

  /** Throws unless everything kept here agrees with everything else. */
  check(): void {
    for (let id = 1; id <= this.size; id++) {
      const entry = this.get(id)!
      const isWhole = entry.id === id && this.text(id) === entryText(entry) &&
        [entry.password, entry.sistema, entry.usuario].every(field => typeof field === 'string' && field !== '')
      if (!isWhole) throw new Error(`entry ${id} is not whole`)
      if ((entry.status === 0) !== this.#deleted.has(id)) throw new Error(`entry ${id} has two states`)
    }
    for (const [page, bytes] of this.#pages.entries()) {
      if (bytes !== undefined && !bytes.equals(this.#makePage(page))) throw new Error(`page ${page} is out of date`)
    }
    if (this.#pages.length !== Math.ceil(this.size / PAGE_ENTRIES)) throw new Error('a page is missing')
  }
}

const OPEN = Buffer.from('[')
const CLOSE = Buffer.from(']')

function pageOf(id: number): number { return Math.floor((id - 1) / PAGE_ENTRIES) }

/** An entry as it is served, its fields in the contract's order (§2). */
function entryText({ id, password, sistema, usuario, status }: Entry): string {
  return JSON.stringify({ id, password, sistema, usuario, status })
}
