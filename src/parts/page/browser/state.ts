/** What the page knows and shows, forgotten when a session ends. Each change is drawn at once. */
import { Rights, type Refusal } from './answers.ts'
import { Api } from './api.ts'
import { Entries, type Filter } from './entries.ts'
import type { TextName } from './texts-es.ts'

export type Screen =
  | { readonly name: 'loading' }
  | { readonly name: 'login'; readonly note: TextName }
  | { readonly name: 'locked' }
  | { readonly name: 'list' }
  | { readonly name: 'deleted' }
  | { readonly name: 'failed'; readonly refusal: Refusal; retry(): void }

export const api: Api = new Api()
export const rights: Rights = new Rights()
export const entries: Entries = new Entries(redraw)
export const deleted: Entries = new Entries(redraw)
/** Without users nobody can log in. */
export const service = { hasUsers: true }

let current: Screen = { name: 'loading' }

interface Page {
  draw(): void
  /** For another language, or other rights. */
  renew(): void
  /** Into the list, or the search. */
  focus(): void
  /** Even if the search hides the entry; what a filter no longer matches has left it. */
  focusOn(id: number): void
  toTop(): void
  clearSearch(isForGood?: boolean): void
  setLoading(isLoading: boolean): void
  /** Stays in sight until the service answers again. */
  setLine(isUp: boolean): void
  /** Shows the entries that match alone; an empty filter, all. */
  select(filter: Filter): void
}

/** What `screen.ts` shows: set at the start, since an import would be circular. */
export let page: Page

export function startPage(own: Page): void {
  page = own
}

export function screenNow(): Screen {
  return current
}

export function entriesNow(): Entries {
  return current.name === 'deleted' ? deleted : entries
}

export function isAtList(): boolean {
  return current.name === 'list' || current.name === 'deleted'
}

export function show(screen: Screen): void {
  current = screen
  page.draw()
}

function redraw(): void {
  if (isAtList()) page.draw()
}
