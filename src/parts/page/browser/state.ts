/**
 * What the page knows, all of which is forgotten when a session ends; and which screen it shows. Whatever changes one
 * of these calls `show`, which is all that leads to the document.
 */
import { Rights, type Refusal } from './answers.ts'
import { Api } from './api.ts'
import { Entries } from './entries.ts'
import type { TextName } from './texts.ts'

/** What is shown below the bar; dialogs are above it. */
export type Screen =
  | { readonly name: 'loading' }
  | { readonly name: 'login', readonly note: TextName }
  | { readonly name: 'locked' }
  | { readonly name: 'list' }
  /** The entries that were deleted, in the place of the others. */
  | { readonly name: 'deleted' }
  | { readonly name: 'failed', readonly refusal: Refusal, retry(): void }

export const api: Api = new Api()
export const rights: Rights = new Rights()
export const entries: Entries = new Entries()
export const deleted: Entries = new Entries()
/** Whether the service has users, without whom nobody can log in. */
export const service = { hasUsers: true }

let current: Screen = { name: 'loading' }

/** What `screen.ts` does for the modules below it, which it sets at the start. */
interface Page {
  draw(): void
  /** Makes all of it again: for another language, or other rights. */
  renew(): void
  /** Puts the focus where a person goes on: into the list, or the search. */
  focus(): void
  /** Brings an entry into sight, even if the search hides it, and focuses it; a new one is marked. */
  focusOn(id: number, isNew?: boolean): void
  toTop(): void
  /** Takes the search back; `isForGood` at the end of a session. */
  clearSearch(isForGood?: boolean): void
  setLoading(isLoading: boolean): void
}
const nothing = (): void => {}
export const page: Page = {
  draw: nothing, renew: nothing, focus: nothing, focusOn: nothing, toTop: nothing, clearSearch: nothing,
  setLoading: nothing
}

export function screenNow(): Screen { return current }

export function entriesNow(): Entries { return current.name === 'deleted' ? deleted : entries }

/** Whether there is a list, which a person may look at. */
export function isAtList(): boolean { return current.name === 'list' || current.name === 'deleted' }

/** Shows a screen, or again the one that is shown. */
export function show(screen: Screen = current): void {
  current = screen
  page.draw()
}
