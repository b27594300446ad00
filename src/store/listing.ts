/**
 * The list without secrets. Only a caller who sees all entries and may read their passwords learns how many
 * other entries share a password, because the count would answer guesses.
 */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { LIST_PAGE_ENTRIES } from '../limits.ts'
import type { Entries } from './entries.ts'
import { ENTRY_FIELDS, FIELDS } from './entry.ts'
import { idsOn, PagedList, pageOf } from './paged-list.ts'
import { keptByGroups, sees, type Groups } from './users.ts'

/** `reused` counts equal passwords of all entries, so it is for callers who see all of them. */
export type ListForm = 'plain' | 'reused'

/** `tag` stands for the bytes, as the text of an entity tag. */
export interface Listing { readonly bytes: Buffer, readonly tag: string }

const OPEN_FIELDS = ENTRY_FIELDS.filter(field => !FIELDS[field].isSecret)
/** Shown as set, no more. */
const SECRETS = ENTRY_FIELDS.filter(field => FIELDS[field].isSecret && !FIELDS[field].isRequired)
/** Pages made before other requests are served. */
const SLICE_PAGES = 64
const EMPTY = Buffer.from('[]')

/** Unchanged pages are not read again. */
export function listingOf(entries: Entries): (form: ListForm, groups?: Groups) => Promise<Listing> {
  const equals = new EqualPasswords(entries)
  const plain = tagged(new PagedList(entries, id => rowText(entries, id)))
  const reused = tagged(
    new PagedList(entries, id => rowText(entries, id, equals.others(id)), page => equals.version(page)))
  const inSight = keptByGroups(groups =>
    tagged(new PagedList(entries, id => sees(groups, entries.grupo(id)) ? rowText(entries, id) : undefined)))
  return async (form, groups) => {
    const ofAll = form === 'reused' ? reused : plain
    const { list, listing } = groups === undefined ? ofAll : inSight(groups)
    const isFresh = (): boolean => (list !== reused.list || equals.refresh(SLICE_PAGES)) && list.refresh(SLICE_PAGES)
    while (!isFresh()) await new Promise(resolve => setImmediate(resolve))
    return listing()
  }
}

function tagged(list: PagedList): { readonly list: PagedList, listing(): Listing } {
  let given: Listing | undefined
  const listing = (): Listing => {
    const bytes = list.bytes() ?? EMPTY
    return given?.bytes === bytes ? given : given = { bytes, tag: hash('sha256', bytes, 'base64url') }
  }
  return { list, listing }
}

function rowText(entries: Entries, id: number, others: number = 0): string | undefined {
  if (!entries.isActive(id)) return undefined
  const { status, ...fields } = entries.get(id)!
  const row: { [field: string]: unknown } = { id }
  for (const field of OPEN_FIELDS) row[field] = fields[field]
  const changedMs = entries.changedMs(id)
  const changed = changedMs === undefined ? undefined : new Date(changedMs).toISOString()
  const set = Object.fromEntries(SECRETS.filter(field => fields[field] !== undefined).map(field => [field, true]))
  return JSON.stringify({ ...row, status, changed, reused: others === 0 ? undefined : others, ...set })
}

/** How many other active entries have an entry's password. Equal passwords share a number. */
class EqualPasswords {
  readonly #entries: Entries
  /** By id; 0 for an entry that is not active. */
  readonly #numbers: number[] = []
  /** The active entries with each number. */
  readonly #counts = new Map<number, number>()
  /** Numbers whose count has changed for other entries, too. */
  readonly #changed = new Set<number>()
  /** By page: its changes when it was read, and the changes of its counts. */
  readonly #read: number[] = []
  readonly #recounts: number[] = []

  constructor(entries: Entries) { this.#entries = entries }

  others(id: number): number { return (this.#counts.get(this.#numbers[id] ?? 0) ?? 1) - 1 }

  /** Another number after each change of the page, or of a count in it. */
  version(page: number): number { return this.#entries.pageChanges(page) + (this.#recounts[page] ?? 0) }

  /** Reads changed pages, at most so many. True if none is left. */
  refresh(mostPages: number): boolean {
    let read = 0
    for (let page = 0; page * LIST_PAGE_ENTRIES < this.#entries.size; page++) {
      const changes = this.#entries.pageChanges(page)
      if (this.#read[page] === changes) continue
      if (read++ === mostPages) return false
      this.#read[page] = changes
      for (const id of idsOn(page)) this.#set(id)
    }
    if (this.#changed.size === 0) return true
    for (const [id, number] of this.#numbers.entries()) {
      if (this.#changed.has(number)) this.#recounts[pageOf(id)] = (this.#recounts[pageOf(id)] ?? 0) + 1
    }
    this.#changed.clear()
    return true
  }

  #set(id: number): void {
    const before = this.#numbers[id] ?? 0
    const after = this.#entries.isActive(id) ? numberOf(this.#entries.get(id)!.password) : 0
    this.#numbers[id] = after
    if (before === after) return
    if (before !== 0) this.#count(before, -1)
    if (after !== 0) this.#count(after, 1)
  }

  #count(number: number, more: number): void {
    const before = this.#counts.get(number) ?? 0
    if (before + more === 0) this.#counts.delete(number)
    else this.#counts.set(number, before + more)
    if (Math.max(before, before + more) > 1) this.#changed.add(number)
  }
}

/** 48 bits of SHA-256, and not 0: two passwords share them by chance once in millions of lists. */
function numberOf(password: string): number { return parseInt(hash('sha256', password, 'hex').slice(0, 12), 16) || 1 }
