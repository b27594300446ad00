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
  /** There is no list, and why; `retry` gets it. */
  | { readonly name: 'failed', readonly refusal: Refusal, retry(): void }

export const api: Api = new Api()
export const rights: Rights = new Rights()
export const entries: Entries = new Entries()
export const deleted: Entries = new Entries()
/** Whether the service has users, without whom nobody can log in. */
export const service = { hasUsers: true }

let current: Screen = { name: 'loading' }
let draw = (): void => {}

/** The screen that is shown. */
export function screenNow(): Screen { return current }

/** The entries of the screen. */
export function entriesNow(): Entries { return current.name === 'deleted' ? deleted : entries }

/** Whether there is a list, which a person may look at. */
export function isAtList(): boolean { return current.name === 'list' || current.name === 'deleted' }

/** Shows a screen, or again the one that is shown. */
export function show(screen: Screen = current): void {
  current = screen
  draw()
}

/** Says what brings the document to what is known; it is called once, at the start. */
export function onShow(toDocument: () => void): void { draw = toDocument }
