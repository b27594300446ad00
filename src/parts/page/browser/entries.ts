/** The entries that the page knows: sorted, grouped, searched, and changed without another request for the list. */
import type { Entry, EntryFields } from './api.ts'

/** What the list is sorted by. */
export type Order = 'sistema' | 'usuario' | 'newest'

interface Known {
  readonly entry: Entry
  /** What the search looks at. */
  readonly text: string
  readonly system: string
  readonly user: string
}

/** All entries, and those that the search shows. */
export class Entries {
  #known: Known[] = []
  /** Deleted on the page, not yet by the service. */
  readonly #leaving = new Set<number>()
  /** What was put (or dropped) since a list was asked for, which may not have that yet. */
  readonly #newer = new Map<number, Known | undefined>()
  #terms: readonly string[] = []
  #order: Order = 'sistema'
  #isGrouped = false
  #shown: readonly Entry[] = []
  #groups: ReadonlyMap<number, number> = new Map()
  #total = 0

  /** What the search shows, in order. */
  get shown(): readonly Entry[] { return this.#shown }

  /** Where each group of more than one begins among the shown entries, and how many it has; empty without groups. */
  get groups(): ReadonlyMap<number, number> { return this.#groups }

  /** How many entries there are. */
  get total(): number { return this.#total }

  /** Notes that a list is asked for: what changes from now on outlives it. */
  expect(): void { this.#newer.clear() }

  /** Replaces all entries by those of the list that was asked for. */
  load(entries: readonly Entry[]): void {
    const newer = [...this.#newer.values()].filter(one => one !== undefined)
    this.#known = [...entries.filter(({ id }) => !this.#newer.has(id)).map(known), ...newer]
    this.#sort()
  }

  /** Forgets everything. */
  clear(): void {
    this.#leaving.clear()
    this.#newer.clear()
    this.load([])
  }

  /** Sorts and groups. */
  arrange(order: Order, isGrouped: boolean): void {
    this.#order = order
    this.#isGrouped = isGrouped
    this.#sort()
  }

  /** Shows the entries whose system or user holds each word of the query. */
  search(query: string): void {
    this.#terms = termsOf(query)
    this.#filter()
  }

  /** Adds or replaces an entry. */
  put(entry: Entry): void {
    const own = known(entry)
    this.#newer.set(entry.id, own)
    this.#known = [...this.#known.filter(one => one.entry.id !== entry.id), own]
    this.#sort()
  }

  /** Removes an entry. */
  drop(id: number): void {
    this.#leaving.delete(id)
    this.#newer.set(id, undefined)
    this.#known = this.#known.filter(({ entry }) => entry.id !== id)
    this.#filter()
  }

  /** Hides an entry that is about to be deleted, or shows it again. */
  setLeaving(id: number, isLeaving: boolean): void {
    if (isLeaving) this.#leaving.add(id)
    else this.#leaving.delete(id)
    this.#filter()
  }

  /** An entry, if it is known. */
  get(id: number): Entry | undefined { return this.#known.find(({ entry }) => entry.id === id)?.entry }

  /** The ids of all entries. */
  ids(): ReadonlySet<number> { return new Set(this.#known.map(({ entry }) => entry.id)) }

  /** The newest entry that has these fields and none of these ids. */
  newest(fields: EntryFields, but: ReadonlySet<number>): Entry | undefined {
    return this.#known.map(({ entry }) => entry)
      .filter(entry => !but.has(entry.id) && entry.sistema === fields.sistema && entry.usuario === fields.usuario &&
        entry.password === fields.password)
      .sort((a, b) => b.id - a.id)[0]
  }

  /** The other entries that have this password. */
  sharing(password: string, but: number | undefined): readonly Entry[] {
    return this.#known.map(({ entry }) => entry).filter(entry => entry.password === password && entry.id !== but)
  }

  #sort(): void {
    const before: { readonly [order in Order]: (a: Known, b: Known) => number } = {
      sistema: (a, b) => compare(a.system, b.system) || compare(a.user, b.user),
      usuario: (a, b) => compare(a.user, b.user) || compare(a.system, b.system),
      newest: (a, b) => b.entry.id - a.entry.id
    }
    const own = before[this.#order]
    this.#known.sort((a, b) =>
      (this.#isGrouped && compare(a.system, b.system)) || own(a, b) || a.entry.id - b.entry.id)
    this.#filter()
  }

  #filter(): void {
    const present = this.#known.filter(({ entry }) => !this.#leaving.has(entry.id))
    const hits = present.filter(({ text }) => this.#terms.every(term => text.includes(term)))
    this.#total = present.length
    this.#shown = hits.map(({ entry }) => entry)
    const groups = new Map<number, number>()
    let start = 0
    for (let i = 0; this.#isGrouped && i < hits.length; i++) {
      if (hits[i]!.system !== hits[start]!.system) start = i
      if (i > start) groups.set(start, i - start + 1)
    }
    this.#groups = groups
  }
}

/** The words of a query, as they are looked for. */
export function termsOf(query: string): readonly string[] {
  return plain(query).split(/\s+/).filter(term => term !== '')
}

/** Whether the system or user of an entry holds each word. */
export function matches({ sistema, usuario }: Entry, terms: readonly string[]): boolean {
  const text = `${plain(sistema)}\n${plain(usuario)}`
  return terms.every(term => text.includes(term))
}

function known(entry: Entry): Known {
  const [system, user] = [plain(entry.sistema), plain(entry.usuario)]
  return { entry, text: `${system}\n${user}`, system: natural(system), user: natural(user) }
}

function compare(a: string, b: string): number { return Number(a > b) - Number(a < b) }

/** Without case and accents; most texts have no accents, and looking for them takes longest. */
function plain(text: string): string {
  return (/^[\0-\x7f]*$/.test(text) ? text : text.normalize('NFD').replace(/\p{M}+/gu, '')).toLowerCase()
}

/** Numbers within a text are sorted by their value: each is led by the number of its digits. */
function natural(text: string): string {
  return text.replace(/0*(\d+)/g, (_run, digits: string) =>
    `0${String.fromCharCode(0x30 + digits.length)}${digits}`)
}
