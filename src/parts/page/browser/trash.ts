/** The dialog of deleted entries: all that the service gives, to be searched and restored, a hundred at a time. */
import type { Entry } from './api.ts'
import { closeModal, keepFocus, openModal } from './dialogs.ts'
import { find, part } from './dom.ts'
import { matches, termsOf } from './entries.ts'
import { number, say } from './language.ts'
import { tell } from './messages.ts'
import { explain } from './notice.ts'
import { briefName, plainText, sentences } from './plain.ts'
import { showName } from './showing.ts'
import { api, rights } from './state.ts'

/** How many are shown, and how many more each time that is asked for. */
const SHOWN_COUNT = 100
/** How often the list is shown again while it comes. */
const REDRAWN_MS = 300

/** The dialog; `onRestored` is called when an entry is active again. */
export class Trash {
  readonly #dialog = find(HTMLDialogElement, '#trash')
  readonly #query = find(HTMLInputElement, '#trash-query')
  readonly #more = find(HTMLButtonElement, '#more-deleted')
  readonly #onRestored: (entry: Entry) => void
  #entries: readonly Entry[] = []
  #shown: readonly Entry[] = []
  #count = SHOWN_COUNT
  /** The load that was begun last, while it goes on. */
  #loading: object | undefined
  /** Why there may be more than are here. */
  #fault = ''
  /** Restored since the dialog was opened. */
  readonly #restored = new Set<number>()

  constructor(onRestored: (entry: Entry) => void) {
    this.#onRestored = onRestored
    part('show-trash').addEventListener('click', () => void this.#open())
    this.#query.addEventListener('input', () => { this.#count = SHOWN_COUNT; this.#show() })
    // Some browsers keep this key to themselves in a field for searches.
    this.#query.addEventListener('keydown', event => {
      if (event.key !== 'Escape') return
      event.preventDefault()
      if (this.#query.value === '') return closeModal(this.#dialog)
      this.#query.value = ''
      this.#show()
    })
    this.#more.addEventListener('click', () => {
      const first = part('deleted').childElementCount
      this.#count += SHOWN_COUNT
      this.#show()
      part('deleted').children[first]?.querySelector('button')?.focus()
    })
    // Nothing of it stays in the document.
    this.#dialog.addEventListener('close', () => {
      if (this.#dialog.open) return
      this.#loading = undefined
      this.#entries = []
      this.#show()
    })
  }

  async #open(): Promise<void> {
    this.#entries = []
    this.#restored.clear()
    this.#fault = ''
    this.#count = SHOWN_COUNT
    const loading = this.#loading = {}
    this.#show()
    openModal(this.#dialog)
    this.#query.focus()
    await this.#load(() => loading === this.#loading)
    if (loading !== this.#loading) return
    this.#loading = undefined
    this.#show()
  }

  /** Gets one page after the other, and shows them as they come. */
  async #load(isWanted: () => boolean): Promise<void> {
    let nextMs = 0
    for (;;) {
      const before = this.#entries
      const answer = await api.deleted(before.at(-1)?.id, more => {
        if (!isWanted()) return
        this.#entries = [...before, ...more]
        if (performance.now() < nextMs) return
        this.#show()
        nextMs = performance.now() + REDRAWN_MS
      })
      if (!isWanted()) return
      if (!answer.ok) {
        this.#fault = sentences(...explain(answer))
        return
      }
      if (answer.value.length === 0) return
      this.#entries = [...before, ...answer.value]
    }
  }

  #show(): void {
    const terms = termsOf(this.#query.value)
    const present = this.#entries.filter(({ id }) => !this.#restored.has(id))
    const hits = present.filter(entry => matches(entry, terms))
    const shown = hits.slice(0, this.#count)
    // What is there stays, and so does the focus in it.
    const isSame = shown.length === this.#shown.length && shown.every((entry, i) => entry === this.#shown[i])
    if (!isSame) part('deleted').replaceChildren(...shown.map(entry => this.#item(entry)))
    this.#shown = shown
    this.#more.hidden = hits.length <= this.#count
    this.#more.textContent = say('moreDeleted', { count: number(hits.length - this.#count) })
    const none = present.length === 0 ? 'noDeleted' : 'noHitTitle'
    const count = hits.length > 0 ? say('deletedCount', { count: number(hits.length) })
      : say(this.#loading === undefined ? none : 'loading')
    part('deleted-count').textContent = this.#fault === '' ? count : sentences(count, this.#fault)
  }

  #item(entry: Entry): HTMLElement {
    const item = document.createElement('li')
    const names = document.createElement('div')
    for (const text of [entry.sistema, entry.usuario]) {
      const name = document.createElement('bdi')
      showName(name, text)
      names.append(name)
    }
    item.append(names)
    if (!rights.may('restorePassword')) return item
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'second'
    button.textContent = say('restore')
    button.ariaLabel = say('restoreOf', { name: plainText(entry.sistema) })
    button.addEventListener('click', () => void this.#restore(entry, item, button))
    item.append(button)
    return item
  }

  async #restore(entry: Entry, item: HTMLElement, button: HTMLElement): Promise<void> {
    if (button.ariaBusy === 'true') return
    button.ariaBusy = 'true'
    const answer = await api.restore(entry.id)
    button.ariaBusy = null
    if (!answer.ok) {
      tell(sentences(...explain(answer)))
      return
    }
    const at = [...part('deleted').children].indexOf(item)
    const hadFocus = item.contains(document.activeElement)
    this.#restored.add(entry.id)
    if (this.#dialog.open) this.#show()
    tell(say('restored', { name: briefName(entry.sistema) }))
    this.#onRestored({ ...entry, status: 1 })
    const items = part('deleted').children
    if (hadFocus) items[Math.min(at, items.length - 1)]?.querySelector('button')?.focus()
    keepFocus()
  }
}
