/**
 * The list as a grid (WAI-ARIA Authoring Practices, "Grid"). All rows of a list of up to 500 are in
 * the document, so that the browser's own search finds them; of a longer list, the rows in sight.
 * All rows must have the same height.
 */
import type { Listed } from './answers.ts'
import { announce, area, settleFocus } from './dialogs.ts'
import { icon, make } from './dom.ts'
import { COLUMNS, type Column, type Order } from './entries.ts'
import { say } from './language.ts'
import { plainText } from './plain.ts'
import { createRow, explainCut, stopsOf, type Act } from './rows.ts'
import type { TextName } from './texts-es.ts'

const SPARE_ROWS = 6
export const MAX_WHOLE_ROWS = 500

const HEADERS: readonly TextName[] = [
  'sistema',
  'visit',
  'usuario',
  'copyUser',
  'grupo',
  'marks',
  'changed',
  'reveal',
  'edit',
  'remove',
  'copyCode',
  'copy'
]

const DELETED_HEADERS: { readonly [name in TextName]?: TextName } = {
  copy: 'restore',
  changed: 'deletedAt'
}

interface Place {
  readonly index: number
  readonly column: number
}

interface GridOptions {
  onAct(act: Act, entry: Listed, button?: HTMLElement): void
  onSort(by: Column): void
}

export class Grid {
  readonly element: HTMLElement
  readonly #options: GridOptions
  readonly #head = make('div', { className: 'head', role: 'rowgroup' })
  readonly #holder = make('div', { id: 'rows', className: 'rows', role: 'rowgroup' })
  /** In the document. */
  readonly #rows = new Map<Listed, HTMLElement>()
  /** Of a whole list, the rows that a search has taken out come back as they were. */
  #spare = new WeakMap<Listed, HTMLElement>()
  #isWhole = true
  #entries: readonly Listed[] = []
  #isDeleted = false
  #place: Place = { index: 0, column: 0 }
  #rowPx = 0
  #isDue = false
  /** The one stop of the Tab key. */
  #stop: HTMLElement | undefined

  constructor(options: GridOptions) {
    this.#options = options
    const hint = make('p', { id: 'grid-hint', className: 'unseen' })
    this.element = make(
      'div',
      { id: 'grid', className: 'grid', role: 'grid', ariaColCount: String(HEADERS.length) },
      hint,
      this.#head,
      this.#holder
    )
    this.element.setAttribute('aria-describedby', hint.id)
    this.element.addEventListener('click', event => this.#click(event))
    this.element.addEventListener('keydown', event => this.#key(event))
    this.element.addEventListener('focusin', event => this.#entered(event))
    this.#holder.addEventListener('pointerover', explainCut)
    addEventListener(
      'scroll',
      () => {
        if (!this.#isWhole) this.#soon()
      },
      { passive: true }
    )
    new ResizeObserver(() => {
      this.#rowPx = 0
      this.#soon()
    }).observe(document.body)
  }

  get focused(): Listed | undefined {
    return this.#entries[this.#placeOf(document.activeElement)?.index ?? -1]
  }

  /** Rows and focus stay with their entries. */
  show(entries: readonly Listed[], order: Order, isDeleted: boolean, isWhole: boolean): void {
    this.#isWhole = isWhole
    const hadFocus = this.#holder.contains(document.activeElement)
    const { id } = this.#entries[this.#place.index] ?? {}
    const at = entries.findIndex(entry => entry.id === id)
    const index = Math.max(0, at >= 0 ? at : Math.min(this.#place.index, entries.length - 1))
    this.#place = { index, column: this.#place.column }
    if (isDeleted !== this.#isDeleted) this.#clear()
    this.#isDeleted = isDeleted
    this.#entries = entries
    this.element.ariaLabel = say(isDeleted ? 'showDeleted' : 'title')
    this.element.ariaRowCount = String(entries.length + 1)
    this.element.firstElementChild!.textContent = say('gridHint')
    this.#showHead(order)
    this.#render()
    if (hadFocus && !this.#holder.contains(document.activeElement)) this.#focusPlace()
  }

  /** For another language, or other abilities. */
  renew(): void {
    const hadFocus = this.#holder.contains(document.activeElement)
    this.#clear()
    this.#render()
    if (hadFocus) this.#focusPlace()
  }

  toTop(): void {
    this.#place = { index: 0, column: 0 }
    scrollTo({ top: 0, behavior: 'instant' })
    this.#render()
  }

  /** Focuses the row's name: a button could be pressed twice. */
  focus(): void {
    this.#go({ ...this.#place, column: 0 })
  }

  /** False if the entry is not shown. */
  focusOn(id: number): boolean {
    const index = this.#entries.findIndex(entry => entry.id === id)
    if (index < 0) return false
    this.#go({ index, column: 0 })
    return true
  }

  button(id: number, act: Act): HTMLElement | undefined {
    return (
      this.#holder.querySelector<HTMLElement>(`[data-id="${id}"] [data-act=${act}]`) ?? undefined
    )
  }

  #clear(): void {
    for (const row of this.#rows.values()) row.remove()
    this.#rows.clear()
    this.#spare = new WeakMap()
  }

  #showHead(order: Order): void {
    const focused = this.#head.contains(document.activeElement)
      ? document.activeElement?.id
      : undefined
    const cells = HEADERS.map(name => {
      const by = COLUMNS.find(one => one === name)
      if (by === undefined || this.#isDeleted) {
        const text = say(this.#isDeleted ? (DELETED_HEADERS[name] ?? name) : name)
        const label = make('span', { className: by === undefined ? 'unseen' : '' }, text)
        return make('div', { className: name, role: 'columnheader' }, label)
      }
      const isUp = order.isReversed === (by === 'changed')
      const arrow = icon(isUp ? 'up' : 'down')
      const button = make(
        'button',
        { type: 'button', id: `sort-${by}`, className: 'sort' },
        say(name),
        arrow
      )
      button.addEventListener('click', () => this.#options.onSort(by))
      button.classList.toggle('on', order.by === by)
      const direction = isUp ? 'ascending' : 'descending'
      const ariaSort = order.by === by ? direction : 'none'
      return make('div', { className: name, role: 'columnheader', ariaSort }, button)
    })
    this.#head.replaceChildren(
      make('div', { className: 'row', role: 'row', ariaRowIndex: '1' }, ...cells)
    )
    if (focused !== undefined) document.getElementById(focused)?.focus()
  }

  #soon(): void {
    if (this.#isDue) return
    this.#isDue = true
    requestAnimationFrame(() => {
      this.#isDue = false
      if (this.element.isConnected) this.#render()
    })
  }

  #render(): void {
    const { length } = this.#entries
    if (length === 0) this.#clear()
    if (length === 0 || !this.element.isConnected) return
    if (this.#rowPx === 0) {
      if (this.#rows.size === 0) this.#put([0])
      this.#rowPx = [...this.#rows.values()][0]!.offsetHeight
    }
    const rowPx = this.#rowPx || 1
    this.#holder.style.blockSize = `${length * rowPx}px`
    const top = -this.#holder.getBoundingClientRect().top
    const first = this.#isWhole ? 0 : Math.max(0, Math.floor(top / rowPx) - SPARE_ROWS)
    const last = this.#isWhole
      ? length - 1
      : Math.min(length - 1, Math.floor((top + innerHeight) / rowPx) + SPARE_ROWS)
    const wanted = new Set(
      Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i)
    )
    // The Tab key must find the focused row, even out of sight.
    this.#put([...wanted.add(Math.min(this.#place.index, length - 1))].sort((a, b) => a - b))
    this.#setStop()
  }

  #setStop(): void {
    const entry = this.#entries[Math.min(this.#place.index, this.#entries.length - 1)]
    const stops = entry === undefined ? [] : stopsOf(this.#rowOf(entry))
    if (this.#stop !== undefined) this.#stop.tabIndex = -1
    this.#stop = stops[Math.min(this.#place.column, stops.length - 1)]
    if (this.#stop !== undefined) this.#stop.tabIndex = 0
  }

  #put(indices: readonly number[]): void {
    const wanted = new Set(indices.map(index => this.#entries[index]!))
    for (const [entry, row] of this.#rows) {
      if (wanted.has(entry)) continue
      row.remove()
      this.#rows.delete(entry)
    }
    let next = this.#holder.firstElementChild
    for (const index of indices) {
      const row = this.#rowOf(this.#entries[index]!)
      row.ariaRowIndex = String(index + 2)
      row.style.translate = `0 ${index * this.#rowPx}px`
      if (row === next) next = next.nextElementSibling
      else this.#holder.insertBefore(row, next)
    }
  }

  #rowOf(entry: Listed): HTMLElement {
    const row = this.#rows.get(entry) ?? this.#spare.get(entry) ?? createRow(entry, this.#isDeleted)
    this.#rows.set(entry, row)
    if (this.#isWhole) this.#spare.set(entry, row)
    return row
  }

  #go({ index, column }: Place): void {
    if (this.#entries.length === 0) return settleFocus()
    this.#place = { index: Math.max(0, Math.min(index, this.#entries.length - 1)), column }
    const head = this.#head.getBoundingClientRect().bottom
    const top = this.#holder.getBoundingClientRect().top + this.#place.index * this.#rowPx
    const below = top + this.#rowPx + 16 + area.offsetHeight - innerHeight
    const by = top < Math.max(head, 0) ? top - Math.max(head, 0) : Math.max(0, below)
    if (by !== 0) scrollBy({ top: by, behavior: 'instant' })
    this.#render()
    this.#focusPlace()
  }

  #focusPlace(): void {
    const entry = this.#entries[this.#place.index]
    if (entry === undefined) return settleFocus()
    const stops = stopsOf(this.#rowOf(entry))
    stops[Math.min(this.#place.column, stops.length - 1)]?.focus({ preventScroll: true })
  }

  #entered({ target }: Event): void {
    const at = this.#placeOf(target)
    if (at === undefined || (at.index === this.#place.index && at.column === this.#place.column))
      return
    this.#place = at
    this.#setStop()
  }

  #placeOf(target: EventTarget | null): Place | undefined {
    const row = target instanceof Element ? target.closest<HTMLElement>('#rows .row') : null
    const stop = target instanceof Element ? target.closest<HTMLElement>('[data-stop]') : null
    if (row === null) return undefined
    return {
      index: Number(row.ariaRowIndex) - 2,
      column: stop === null ? 0 : Math.max(0, stopsOf(row).indexOf(stop))
    }
  }

  #click({ target }: Event): void {
    const entry = this.#entries[this.#placeOf(target)?.index ?? -1]
    if (!(target instanceof Element) || entry === undefined || target.closest('a') !== null) return
    const button = target.closest<HTMLElement>('[data-act]')
    if (button !== null) return this.#options.onAct(button.dataset['act'] as Act, entry, button)
    // A click that ends a selection of text does not open the entry.
    if (getSelection()?.isCollapsed !== false) this.#options.onAct('view', entry)
  }

  #key(event: KeyboardEvent): void {
    const { key, target, ctrlKey } = event
    const at = this.#placeOf(target)
    if (at === undefined || event.altKey || event.metaKey || !(target instanceof HTMLElement))
      return
    const last = this.#entries.length - 1
    const page = Math.max(1, Math.floor(innerHeight / (this.#rowPx || 1)) - 2)
    const { index, column } = at
    const end = stopsOf(this.#rowOf(this.#entries[index]!)).length - 1
    const places: { readonly [key: string]: Place } = {
      ArrowDown: { index: index + 1, column },
      ArrowUp: { index: index - 1, column },
      ArrowRight: { index, column: Math.min(column + 1, end) },
      ArrowLeft: { index, column: Math.max(0, column - 1) },
      PageDown: { index: index + page, column },
      PageUp: { index: index - page, column },
      Home: { index: ctrlKey ? 0 : index, column: 0 },
      End: { index: ctrlKey ? last : index, column: end }
    }
    const to = Object.hasOwn(places, key) ? places[key] : undefined
    if (to !== undefined) {
      event.preventDefault()
      this.#go(to)
    } else if (key === 'Enter' && target.role !== null) {
      // Otherwise Enter would also press whatever gets the focus.
      event.preventDefault()
      const entry = this.#entries[index]!
      announce(say('viewOf', { name: plainText(entry.sistema) }))
      this.#options.onAct('view', entry)
    }
  }
}
