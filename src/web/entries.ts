/** The entries that the page knows: in order, searched, and changed without asking the service for the list again. */
import type { Entry } from './api.ts'

interface Known {
  readonly entry: Entry
  /** What it is searched and ordered by. */
  readonly key: string
}

/** All entries, and those of them that the search shows. */
export class Entries {
  #known: Known[] = []
  #terms: readonly string[] = []
  #shown: readonly Entry[] = []

  /** What the search shows, by system and user, without regard to case and accents. */
  get shown(): readonly Entry[] { return this.#shown }

  /** How many there are. */
  get total(): number { return this.#known.length }

  /** Takes all entries in the place of those before. */
  load(entries: readonly Entry[]): void {
    this.#known = entries.map(known).sort(compare)
    this.#filter()
  }

  /** Shows the entries whose system or user holds each word of the query. */
  search(query: string): void {
    this.#terms = plain(query).split(/\s+/).filter(term => term !== '')
    this.#filter()
  }

  /** Takes an entry in, or as it is now. */
  put(entry: Entry): void {
    const others = this.#known.filter(one => one.entry.id !== entry.id)
    const fresh = known(entry)
    const at = others.findIndex(one => compare(fresh, one) < 0)
    this.#known = others.toSpliced(at < 0 ? others.length : at, 0, fresh)
    this.#filter()
  }

  /** Drops an entry. */
  drop(id: number): void {
    this.#known = this.#known.filter(({ entry }) => entry.id !== id)
    this.#filter()
  }

  #filter(): void {
    this.#shown = this.#known.filter(({ key }) => this.#terms.every(term => key.includes(term)))
      .map(({ entry }) => entry)
  }
}

function known(entry: Entry): Known { return { entry, key: `${plain(entry.sistema)}\n${plain(entry.usuario)}` } }

function compare(a: Known, b: Known): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : a.entry.id - b.entry.id
}

function plain(text: string): string {
  return text.normalize('NFD').replace(/\p{M}+/gu, '').toLowerCase()
}
