/**
 * The list as a grid (WAI-ARIA Authoring Practices, "Grid"): one stop of the Tab key, and arrow keys within it. Only
 * the rows in sight are in the document, each at its place; their `aria-` attributes say which they are, of how many.
 */
import { destination, moved, type Place } from './grid-keys.ts'
import type { Entry } from './api.ts'
import { area, keepFocus } from './dialogs.ts'
import { find } from './dom.ts'
import { Layout } from './layout.ts'
import { createHeading, createRow, explainCut, heightsOf, scrolls, showPassword, stopsOf, type Act } from './row.ts'
import { REVEALED_MS } from './wait.ts'

/** Rows above and below those in sight. */
const SPARE_ROWS = 6
/** How long a new row is marked. */
const MARKED_MS = 8_000

/** The grid of the page; `onAct` does what is asked of an entry. */
export class Grid {
  readonly #grid = find(HTMLElement, '#grid')
  readonly #header = find(HTMLElement, '#tools')
  readonly #holder = find(HTMLElement, '#rows')
  readonly #onAct: (act: Act, entry: Entry) => void
  readonly #rows = new Map<Entry, HTMLElement>()
  readonly #headings = new Map<number, HTMLElement>()
  /** The revealed entries, and when each hides itself. */
  readonly #revealed = new Map<number, ReturnType<typeof setTimeout>>()
  /** The heights of revealed rows, once they were measured. */
  readonly #heights = new Map<number, number>()
  readonly #layout = new Layout()
  #entries: readonly Entry[] = []
  #groups: ReadonlyMap<number, number> = new Map()
  #marked: number | undefined
  /** Where the focus is, or where it goes when it enters the grid. */
  #place: Place = { index: 0, column: 0 }
  #rowHeight = 0
  #headingHeight = 0
  /** Whether the layout has to be built again. */
  #isStale = true
  #isDue = false

  constructor(onAct: (act: Act, entry: Entry) => void) {
    this.#onAct = onAct
    this.#grid.addEventListener('click', event => this.#click(event))
    this.#grid.addEventListener('keydown', event => this.#key(event))
    this.#grid.addEventListener('focusin', event => this.#entered(event))
    this.#holder.addEventListener('pointerover', event => explainCut(event))
    addEventListener('scroll', () => this.#soon(), { passive: true })
    const resized = (): void => { this.#rowHeight = 0; this.#heights.clear(); this.#isStale = true; this.#soon() }
    new ResizeObserver(resized).observe(document.body)
  }

  /** The entry of the row that has the focus. */
  get focused(): Entry | undefined { return this.#entries[this.#placeOf(document.activeElement)?.index ?? -1] }

  /** Shows entries, with a heading where a group begins. Rows that were shown before stay, the focus with its entry. */
  show(entries: readonly Entry[], groups: ReadonlyMap<number, number>): void {
    const hadFocus = this.#holder.contains(document.activeElement)
    this.#place = moved(this.#place, this.#entries, entries)
    this.#entries = entries
    this.#groups = groups
    this.#grid.ariaRowCount = String(entries.length + 1)
    for (const heading of this.#headings.values()) heading.remove()
    this.#headings.clear()
    this.#isStale = true
    this.#render()
    if (hadFocus && !this.#holder.contains(document.activeElement)) this.#focusPlace()
  }

  /** Creates all rows again: for another language, or other abilities. */
  renew(): void {
    const hadFocus = this.#holder.contains(document.activeElement)
    for (const row of this.#rows.values()) row.remove()
    this.#rows.clear()
    this.show(this.#entries, this.#groups)
    if (hadFocus) this.#focusPlace()
  }

  /** Hides every password. */
  hideAll(): void {
    for (const timer of this.#revealed.values()) clearTimeout(timer)
    this.#revealed.clear()
    this.#heights.clear()
    this.renew()
  }

  /** Scrolls to the first row. */
  toTop(): void {
    this.#place = { index: 0, column: 0 }
    scrollTo({ top: 0, behavior: 'instant' })
    this.#render()
  }

  /** Focuses the row that had the focus last, or the nearest: its name, since a button could be pressed twice. */
  focus(): void { this.#go({ ...this.#place, column: 0 }) }

  /** Brings an entry into sight and focuses it, marked for a while if it is new; false if it is not shown. */
  focusOn(id: number, isNew: boolean = false): boolean {
    const index = this.#entries.findIndex(entry => entry.id === id)
    if (index < 0) return false
    this.#go({ index, column: 0 })
    if (isNew) this.#mark(id)
    return true
  }

  /** Shows or hides a password. */
  reveal(entry: Entry, isRevealed: boolean): void {
    clearTimeout(this.#revealed.get(entry.id))
    this.#revealed.delete(entry.id)
    this.#heights.delete(entry.id)
    if (isRevealed) this.#revealed.set(entry.id, setTimeout(() => this.reveal(entry, false), REVEALED_MS))
    const now = this.#entries.find(({ id }) => id === entry.id) ?? entry
    const row = this.#rows.get(now)
    if (row !== undefined) showPassword(row, now, isRevealed)
    this.#isStale = true
    this.#render()
  }

  isRevealed(entry: Entry): boolean { return this.#revealed.has(entry.id) }

  /** Marks the button of an act as busy until that is done. */
  setBusy(entry: Entry, act: Act, isBusy: boolean): void {
    const button = this.#rows.get(entry)?.querySelector(`[data-act=${act}]`)
    if (button instanceof HTMLElement) button.ariaBusy = isBusy ? 'true' : null
  }

  #mark(id: number): void {
    this.#marked = id
    this.#showMark(id, true)
    setTimeout(() => {
      if (this.#marked === id) this.#marked = undefined
      this.#showMark(id, false)
    }, MARKED_MS)
  }

  #showMark(id: number, isMarked: boolean): void {
    const entry = this.#entries.find(one => one.id === id)
    if (entry !== undefined) this.#rows.get(entry)?.classList.toggle('new', isMarked)
  }

  #soon(): void {
    if (this.#isDue) return
    this.#isDue = true
    requestAnimationFrame(() => { this.#isDue = false; this.#render() })
  }

  #render(): void {
    this.#measure()
    const top = -this.#holder.getBoundingClientRect().top
    const first = Math.max(0, this.#layout.indexAt(top) - SPARE_ROWS)
    const last = Math.min(this.#entries.length - 1, this.#layout.indexAt(top + innerHeight) + SPARE_ROWS)
    const wanted = new Set<number>()
    for (let index = first; index <= last; index++) wanted.add(index)
    // The Tab key has to find the row with the focus, even if it was scrolled away.
    if (this.#place.index < this.#entries.length) wanted.add(this.#place.index)
    this.#put([...wanted].sort((a, b) => a - b))
    // A revealed row is as high as its password needs; that is known once it is in the document.
    for (const index of wanted) {
      const { id } = this.#entries[index]!
      if (!this.#revealed.has(id) || this.#heights.has(id)) continue
      this.#heights.set(id, this.#rows.get(this.#entries[index]!)!.offsetHeight)
      this.#isStale = true
    }
    if (!this.#isStale) return
    this.#measure()
    this.#put([...wanted].sort((a, b) => a - b))
  }

  /** Measures heights, which depend on the width of the window and the size of its letters, and lays out the rows. */
  #measure(): void {
    if (!this.#isStale) return
    if (this.#rowHeight === 0 && this.#entries.length > 0) {
      const { row, heading } = heightsOf(this.#entries[0]!, this.#holder)
      this.#rowHeight = row
      this.#headingHeight = heading
    }
    const { length } = this.#entries
    this.#layout.build(length, i => this.#heights.get(this.#entries[i]!.id) ?? (this.#rowHeight || 1),
      i => this.#groups.has(i) ? this.#headingHeight : 0)
    this.#isStale = this.#rowHeight === 0
    this.#holder.style.blockSize = `${this.#layout.height}px`
  }

  /** Puts the rows of these indices, and no others, into the document. */
  #put(indices: readonly number[]): void {
    const kept = new Set(indices.map(index => this.#entries[index]!))
    for (const [entry, row] of this.#rows) {
      if (kept.has(entry)) continue
      row.remove()
      this.#rows.delete(entry)
    }
    for (const [index, heading] of this.#headings) {
      if (indices.includes(index)) continue
      heading.remove()
      this.#headings.delete(index)
    }
    let next = this.#holder.firstElementChild
    for (const index of indices) {
      const row = this.#rowOf(this.#entries[index]!)
      row.ariaRowIndex = String(index + 2)
      for (const element of [this.#headingOf(index), row]) {
        if (element === undefined) continue
        const top = this.#layout.top(index) - (element === row ? 0 : this.#headingHeight)
        element.style.translate = `0 ${top}px`
        if (element === next) next = next.nextElementSibling
        else this.#holder.insertBefore(element, next)
      }
      this.#setStop(row, index)
    }
  }

  #rowOf(entry: Entry): HTMLElement {
    const known = this.#rows.get(entry)
    if (known !== undefined) return known
    const row = createRow(entry, this.#revealed.has(entry.id))
    this.#rows.set(entry, row)
    row.classList.toggle('new', this.#marked === entry.id)
    return row
  }

  #headingOf(index: number): HTMLElement | undefined {
    const count = this.#groups.get(index)
    if (count !== undefined && !this.#headings.has(index)) {
      this.#headings.set(index, createHeading(this.#entries[index]!, count))
    }
    return this.#headings.get(index)
  }

  /** One element of the grid is in the order of the Tab key. */
  #setStop(row: HTMLElement, index: number): void {
    const stops = stopsOf(row)
    const column = Math.min(this.#place.column, stops.length - 1)
    for (const [i, stop] of stops.entries()) stop.tabIndex = index === this.#place.index && i === column ? 0 : -1
  }

  #go({ index, column }: Place): void {
    if (this.#entries.length === 0) return
    const place = this.#place = { index: Math.max(0, Math.min(index, this.#entries.length - 1)), column }
    this.#measure()
    const head = this.#header.getBoundingClientRect().bottom
    const start = this.#holder.getBoundingClientRect().top
    const top = start + this.#layout.top(place.index) - (this.#groups.has(place.index) ? this.#headingHeight : 0)
    const bottom = start + this.#layout.top(place.index) + this.#heightAt(place.index)
    const by = top < head ? top - head - 8 : Math.max(0, bottom + 24 + area.offsetHeight - innerHeight)
    if (by !== 0) scrollBy({ top: by, behavior: 'instant' })
    this.#render()
    this.#focusPlace()
    document.activeElement?.scrollIntoView({ block: 'nearest' })
  }

  #focusPlace(): void {
    if (this.#entries.length === 0) return keepFocus()
    const stops = stopsOf(this.#rowOf(this.#entries[this.#place.index]!))
    stops[Math.min(this.#place.column, stops.length - 1)]?.focus({ preventScroll: true })
  }

  #heightAt(index: number): number { return this.#heights.get(this.#entries[index]!.id) ?? this.#rowHeight }

  #entered({ target }: Event): void {
    const at = this.#placeOf(target)
    if (at === undefined || (at.index === this.#place.index && at.column === this.#place.column)) return
    this.#place = at
    this.#render()
  }

  #placeOf(target: EventTarget | null): Place | undefined {
    const row = target instanceof Element ? target.closest<HTMLElement>('#rows .row') : null
    const stop = target instanceof Element ? target.closest<HTMLElement>('[data-stop]') : null
    if (row === null) return undefined
    return { index: Number(row.ariaRowIndex) - 2, column: stop === null ? 0 : Math.max(0, stopsOf(row).indexOf(stop)) }
  }

  #click({ target }: Event): void {
    const entry = this.#entries[this.#placeOf(target)?.index ?? -1]
    if (!(target instanceof Element) || entry === undefined || target.closest('a') !== null) return
    const button = target.closest<HTMLElement>('[data-act]')
    if (button !== null) return this.#onAct(button.dataset['act'] as Act, entry)
    // Whoever selects a text does not want to open its entry.
    if (target.closest('.revealed') === null && getSelection()?.isCollapsed !== false) this.#onAct('view', entry)
  }

  #key(event: KeyboardEvent): void {
    const { key, target } = event
    const at = this.#placeOf(target)
    if (at === undefined || event.altKey || event.metaKey || !(target instanceof HTMLElement)) return
    if (scrolls(target, key)) { event.preventDefault(); return }
    const page = Math.max(1, Math.floor(innerHeight / (this.#rowHeight || 1)) - 2)
    const to = destination(event, at, page, this.#entries.length - 1)
    if (to !== undefined) {
      event.preventDefault()
      this.#go({ ...to, column: Math.min(to.column, stopsOf(this.#rowOf(this.#entries[at.index]!)).length - 1) })
    } else if (key === 'Enter' && target.role !== null) {
      this.#onAct(target.classList.contains('password') ? 'reveal' : 'view', this.#entries[at.index]!)
    }
  }
}
