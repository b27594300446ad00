/** The known entries, without secrets: sorted, searched and changed without another request. */
import type { List, Listed } from './answers.ts'
import { hostIn, webAddress } from './plain.ts'

export const COLUMNS = ['sistema', 'usuario', 'changed'] as const
export type Column = (typeof COLUMNS)[number]

/** By `changed`: newest first unless reversed. */
export interface Order {
  readonly by: Column
  readonly isReversed: boolean
}

const YEAR_MS = 365 * 86_400_000

/** What may stand in the list alone, besides the groups. */
export const FILTERS = {
  exposed: ({ exposed = 0 }: Listed): boolean => exposed > 0,
  reused: ({ reused = 0 }: Listed): boolean => reused > 0,
  old: ({ changed }: Listed): boolean =>
    changed !== undefined && Date.now() - Date.parse(changed) > YEAR_MS
} as const

/** `group`: the name of a group. */
export type Filter = { readonly by: keyof typeof FILTERS } | { readonly group: string }

type Offers = { readonly [by in keyof typeof FILTERS]: number } & {
  readonly groups: readonly string[]
}

/** Numbers by their value; Ñ after N, and not among it, in English too. */
const { compare } = new Intl.Collator('es', { numeric: true, sensitivity: 'base' })

interface Known {
  readonly entry: Listed
  readonly text: string
  readonly keys: { readonly [column in Column]: string }
}

export class Entries {
  #known: Known[] = []
  #query = ''
  #kept: Filter | undefined
  #order: Order = { by: 'sistema', isReversed: false }
  #shown: readonly Listed[] = []
  #offers: Offers | undefined
  #tag: string | undefined
  #changes = 0

  get shown(): readonly Listed[] {
    return this.#shown
  }

  get total(): number {
    return this.#known.length
  }

  /** Of the list that was loaded. */
  get tag(): string | undefined {
    return this.#tag
  }

  /**
   * The number of changes since the page was opened: an older list does not hold the last of them.
   */
  get changes(): number {
    return this.#changes
  }

  get query(): string {
    return this.#query
  }
  get kept(): Filter | undefined {
    return this.#kept
  }
  get order(): Order {
    return this.#order
  }

  /** An unchanged entry stays the same object, so its row stays. */
  load({ entries, tag }: List = { entries: [] }): void {
    this.#tag = tag
    const before = new Map(this.#known.map(one => [one.entry.id, one]))
    this.#known = entries.map(entry => {
      const known = before.get(entry.id)
      return known !== undefined && isAlike(known.entry, entry) ? known : knownOf(entry)
    })
    this.#sort()
  }

  sort(order: Order): void {
    this.#order = order
    this.#sort()
  }

  search(query: string): void {
    this.#query = query
    this.#filter()
  }

  /** Without a filter, shows all again. */
  keep(filter?: Filter): void {
    this.#kept = filter
    this.#filter()
  }

  /** How many entries match each filter, and the groups, sorted. Counted once for each list. */
  get offers(): Offers {
    if (this.#offers !== undefined) return this.#offers
    const all = this.#known.map(({ entry }) => entry)
    const count = (by: keyof typeof FILTERS): number => all.filter(FILTERS[by]).length
    const groups = [...new Set(all.map(({ grupo }) => grupo))]
      .filter(name => name !== '')
      .sort(compare)
    return (this.#offers = {
      exposed: count('exposed'),
      reused: count('reused'),
      old: count('old'),
      groups
    })
  }

  put(entry: Listed): void {
    this.#changes++
    this.#known = [...this.#known.filter(one => one.entry.id !== entry.id), knownOf(entry)]
    this.#sort()
  }

  drop(id: number): void {
    this.#changes++
    this.#known = this.#known.filter(({ entry }) => entry.id !== id)
    this.#offers = undefined
    this.#filter()
  }

  get(id: number): Listed | undefined {
    return this.#known.find(({ entry }) => entry.id === id)?.entry
  }

  named(sistema: string, usuario?: string): readonly Listed[] {
    return this.#known
      .map(({ entry }) => entry)
      .filter(
        entry => entry.sistema === sistema && (usuario === undefined || entry.usuario === usuario)
      )
  }

  #sort(): void {
    this.#offers = undefined
    const { by, isReversed } = this.#order
    // The oldest have no date.
    const sign = isReversed === (by === 'changed') ? 1 : -1
    const orders: readonly Column[] = [by, 'sistema', 'usuario']
    this.#known.sort((a, b) => {
      for (const column of orders) {
        const order = compare(a.keys[column], b.keys[column])
        if (order !== 0) return order * (column === by ? sign : 1)
      }
      return a.entry.id - b.entry.id
    })
    this.#filter()
  }

  #filter(): void {
    const terms = plain(this.#query).split(/\s+/)
    const kept = this.#kept
    this.#shown = this.#known
      .filter(({ text }) => terms.every(term => text.includes(term)))
      .map(({ entry }) => entry)
      .filter(entry => kept === undefined || matches(entry, kept))
  }
}

function knownOf(entry: Listed): Known {
  const { sistema, usuario, url, changed = '' } = entry
  const address = webAddress(sistema)
  const name = address === undefined ? sistema : hostIn(sistema) + address.pathname
  return {
    entry,
    text: [sistema, usuario, url].map(plain).join('\n'),
    keys: { sistema: name, usuario, changed }
  }
}

function matches(entry: Listed, filter: Filter): boolean {
  return 'group' in filter ? entry.grupo === filter.group : FILTERS[filter.by](entry)
}

export function isAlike(a: Listed, b: Listed): boolean {
  const names = Object.keys({ ...a, ...b }) as (keyof Listed)[]
  return names.every(name => a[name] === b[name])
}

/** Most texts have no accents, and removing accents takes longest. */
function plain(text: string): string {
  return (
    /^[\0-\x7f]*$/.test(text) ? text : text.normalize('NFD').replace(/\p{M}+/gu, '')
  ).toLowerCase()
}
