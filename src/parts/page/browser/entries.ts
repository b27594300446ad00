/** The known entries, without secrets: sorted, searched and changed without another request. */
import type { List, Listed, Person } from './answers.ts'
import { hostIn, webAddress } from './plain.ts'

export const COLUMNS = ['sistema', 'usuario', 'grupo', 'changed'] as const
export type Column = (typeof COLUMNS)[number]

/** By `changed`: newest first unless reversed. */
export interface Order {
  readonly by: Column
  readonly isReversed: boolean
}

const YEAR_MS = 365 * 86_400_000

export const STATES = {
  exposed: ({ exposed = 0 }: Listed): boolean => exposed > 0,
  reused: ({ reused = 0 }: Listed): boolean => reused > 0,
  old: ({ changed }: Listed): boolean =>
    changed !== undefined && Date.now() - Date.parse(changed) > YEAR_MS
} as const
export type State = keyof typeof STATES

/** `person`: the id of somebody to whom they are exposed. `group`: empty for entries without one. */
export interface Filter {
  readonly state?: State | undefined
  readonly person?: number | undefined
  readonly group?: string | undefined
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
  #filter: Filter = {}
  #order: Order = { by: 'sistema', isReversed: false }
  #shown: readonly Listed[] = []
  #groups: readonly string[] | undefined
  #tag: string | undefined
  #isLoaded = false
  #changes = 0
  readonly #onChange: () => void

  /** `onChange` is called once after each change of what is shown. */
  constructor(onChange: () => void = () => {}) {
    this.#onChange = onChange
  }

  get shown(): readonly Listed[] {
    return this.#shown
  }

  get total(): number {
    return this.#known.length
  }

  /** Until then nothing is known, also not that there are none. */
  get isLoaded(): boolean {
    return this.#isLoaded
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
  get filter(): Filter {
    return this.#filter
  }
  get order(): Order {
    return this.#order
  }

  /** An unchanged entry stays the same object, so its row stays. Without a list all is forgotten. */
  load(list?: List): void {
    const { entries, tag } = list ?? { entries: [] }
    this.#tag = tag
    this.#isLoaded = list !== undefined
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
    this.#show()
  }

  /** An empty filter shows all again. */
  select(filter: Filter): void {
    this.#filter = filter
    this.#show()
  }

  /** How many of all there would be. */
  count(filter: Filter, query: string = ''): number {
    return this.#matching(filter, query).length
  }

  get groups(): readonly string[] {
    const all = new Set(this.#known.map(({ entry }) => entry.grupo))
    all.delete('')
    return (this.#groups ??= [...all].sort(compare))
  }

  /** To whom passwords are exposed. */
  get people(): readonly Person[] {
    const all = this.#known.flatMap(({ entry }) => entry.exposedTo ?? [])
    return [...new Map(all.map(person => [person.id, person])).values()]
  }

  put(entry: Listed): void {
    this.#changes++
    this.#known = [...this.#known.filter(one => one.entry.id !== entry.id), knownOf(entry)]
    this.#sort()
  }

  drop(id: number): void {
    this.#changes++
    this.#known = this.#known.filter(({ entry }) => entry.id !== id)
    this.#groups = undefined
    this.#show()
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
    this.#groups = undefined
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
    this.#show()
  }

  #show(): void {
    this.#shown = this.#matching(this.#filter, this.#query)
    this.#onChange()
  }

  #matching({ state, person, group }: Filter, query: string): readonly Listed[] {
    const terms = plain(query).split(/\s+/)
    const matches = (entry: Listed): boolean =>
      (state === undefined || STATES[state](entry)) &&
      (person === undefined || mayMean(entry, person)) &&
      (group === undefined || entry.grupo === group)
    return this.#known
      .filter(({ text, entry }) => matches(entry) && terms.every(term => text.includes(term)))
      .map(({ entry }) => entry)
  }
}

/** Of many people only the first are named. */
function mayMean({ exposed = 0, exposedTo = [] }: Listed, person: number): boolean {
  return exposed > exposedTo.length || exposedTo.some(({ id }) => id === person)
}

function knownOf(entry: Listed): Known {
  const { sistema, usuario, url, grupo, changed = '' } = entry
  const address = webAddress(sistema)
  const name = address === undefined ? sistema : hostIn(sistema) + address.pathname
  return {
    entry,
    text: [sistema, usuario, url, grupo].map(plain).join('\n'),
    keys: { sistema: name, usuario, grupo, changed }
  }
}

export function isAlike(a: Listed, b: Listed): boolean {
  const names = Object.keys({ ...a, ...b }) as (keyof Listed)[]
  return names.every(name => JSON.stringify(a[name]) === JSON.stringify(b[name]))
}

/** Most texts have no accents, and removing accents takes longest. */
function plain(text: string): string {
  return (
    /^[\0-\x7f]*$/.test(text) ? text : text.normalize('NFD').replace(/\p{M}+/gu, '')
  ).toLowerCase()
}
