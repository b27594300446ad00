/** The known entries, without secrets: sorted, searched and changed without another request. */
import type { List, Listed } from './answers.ts'
import { webAddress } from './plain.ts'

export const COLUMNS = ['sistema', 'usuario', 'changed'] as const
export type Column = typeof COLUMNS[number]

/** By `changed`: newest first unless reversed. */
export interface Order {
  readonly by: Column
  readonly isReversed: boolean
}

interface Known {
  readonly entry: Listed
  readonly text: string
  readonly keys: { readonly [column in Column]: string }
}

export class Entries {
  #known: Known[] = []
  #query = ''
  #order: Order = { by: 'sistema', isReversed: false }
  #shown: readonly Listed[] = []
  #tag: string | undefined
  #changes = 0

  get shown(): readonly Listed[] { return this.#shown }

  get total(): number { return this.#known.length }

  /** Of the list that was loaded. */
  get tag(): string | undefined { return this.#tag }

  /** The number of changes since the page was opened: an older list does not hold the last of them. */
  get changes(): number { return this.#changes }

  get query(): string { return this.#query }
  get order(): Order { return this.#order }

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

  put(entry: Listed): void {
    this.#changes++
    this.#known = [...this.#known.filter(one => one.entry.id !== entry.id), knownOf(entry)]
    this.#sort()
  }

  drop(id: number): void {
    this.#changes++
    this.#known = this.#known.filter(({ entry }) => entry.id !== id)
    this.#filter()
  }

  get(id: number): Listed | undefined { return this.#known.find(({ entry }) => entry.id === id)?.entry }

  named(sistema: string, usuario?: string): readonly Listed[] {
    return this.#known.map(({ entry }) => entry)
      .filter(entry => entry.sistema === sistema && (usuario === undefined || entry.usuario === usuario))
  }

  #sort(): void {
    const { by, isReversed } = this.#order
    // The oldest have no date.
    const sign = isReversed === (by === 'changed') ? 1 : -1
    const orders: readonly Column[] = [by, 'sistema', 'usuario']
    this.#known.sort((a, b) => {
      const column = orders.find(one => a.keys[one] !== b.keys[one])
      if (column === undefined) return a.entry.id - b.entry.id
      return (a.keys[column] > b.keys[column] ? 1 : -1) * (column === by ? sign : 1)
    })
    this.#filter()
  }

  #filter(): void {
    const terms = plain(this.#query).split(/\s+/)
    this.#shown = this.#known.filter(({ text }) => terms.every(term => text.includes(term))).map(({ entry }) => entry)
  }
}

function knownOf(entry: Listed): Known {
  const { sistema, usuario, url, changed = '' } = entry
  const address = webAddress(sistema)
  const name = plain(address === undefined ? sistema : address.host + address.pathname)
  const user = plain(usuario)
  return {
    entry, text: `${plain(sistema)}\n${user}\n${plain(url)}`,
    keys: { sistema: natural(name), usuario: natural(user), changed }
  }
}

function isAlike(a: Listed, b: Listed): boolean {
  return a.sistema === b.sistema && a.usuario === b.usuario && a.url === b.url && a.changed === b.changed &&
    a.reused === b.reused
}

/** Most texts have no accents, and removing accents takes longest. */
function plain(text: string): string {
  return (/^[\0-\x7f]*$/.test(text) ? text : text.normalize('NFD').replace(/\p{M}+/gu, '')).toLowerCase()
}

/** Sorts numbers by value: the count of digits leads each number. */
function natural(text: string): string {
  return text.replace(/0*(\d+)/g, (_run, digits: string) => `0${String.fromCharCode(0x30 + digits.length)}${digits}`)
}
