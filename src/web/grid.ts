/**
 * The list as a grid (WAI-ARIA Authoring Practices, "Grid"): one stop of the Tab key, and within it the arrow keys.
 * Only the rows in sight are in the document, each at its place; how many there are, and which these are, stands in
 * their `aria-` attributes.
 */
import type { Entry, Operation } from './api.ts'
import { find } from './dom.ts'
import { createRow, showPassword, type Act } from './row.ts'
import { REVEALED_MS } from './wait.ts'

/** Rows above and below those in sight. */
const SPARE_ROWS = 6

interface Place {
  readonly index: number
  readonly column: number
}

/** The grid of the page; `onAct` does what is not the grid's own. */
export class Grid {
  readonly #grid = find(HTMLElement, '#grid')
  readonly #holder = find(HTMLElement, '#rows')
  readonly #onAct: (act: Exclude<Act, 'reveal'>, entry: Entry) => void
  readonly #rows = new Map<Entry, HTMLElement>()
  readonly #revealed = new Map<number, ReturnType<typeof setTimeout>>()
  #entries: readonly Entry[] = []
  #denied: ReadonlySet<Operation> = new Set()
  /** Where the focus is, or comes to when it enters. */
  #place: Place = { index: 0, column: 0 }
  #rowHeight = 0
  #isDue = false

  constructor(onAct: (act: Exclude<Act, 'reveal'>, entry: Entry) => void) {
    this.#onAct = onAct
    this.#grid.addEventListener('click', event => this.#click(event))
    this.#grid.addEventListener('keydown', event => this.#key(event))
    this.#grid.addEventListener('focusin', event => this.#entered(event))
    addEventListener('scroll', () => this.#soon(), { passive: true })
    new ResizeObserver(() => { this.#rowHeight = 0; this.#soon() }).observe(document.body)
  }

  /** Shows entries; the rows of those that were shown before stay as they are. */
  show(entries: readonly Entry[]): void {
    this.#entries = entries
    this.#place = { ...this.#place, index: Math.min(this.#place.index, Math.max(0, entries.length - 1)) }
    this.#grid.ariaRowCount = String(entries.length + 1)
    this.#render()
  }

  /** Makes all rows anew: for another language, or other abilities. */
  renew(denied: ReadonlySet<Operation>): void {
    this.#denied = denied
    for (const row of this.#rows.values()) row.remove()
    this.#rows.clear()
    this.#render()
  }

  /** Hides all that was revealed, and goes to the top. */
  reset(): void {
    for (const timer of this.#revealed.values()) clearTimeout(timer)
    this.#revealed.clear()
    this.#place = { index: 0, column: 0 }
    this.show([])
    scrollTo({ top: 0, behavior: 'instant' })
  }

  /** Puts the focus where it was last, or as near as there is a row. */
  focus(): void { this.#go(this.#place) }

  /** Brings an entry into sight and focuses it; does nothing if it is not shown. */
  focusOn(id: number): void {
    const index = this.#entries.findIndex(entry => entry.id === id)
    if (index >= 0) this.#go({ index, column: 0 })
  }

  #soon(): void {
    if (this.#isDue) return
    this.#isDue = true
    requestAnimationFrame(() => { this.#isDue = false; this.#render() })
  }

  #render(): void {
    const height = this.#height()
    this.#holder.style.blockSize = `${this.#entries.length * height}px`
    const top = -this.#holder.getBoundingClientRect().top
    const first = Math.max(0, Math.floor(top / height) - SPARE_ROWS)
    const last = Math.min(this.#entries.length - 1, Math.ceil((top + innerHeight) / height) + SPARE_ROWS)
    const wanted = new Set<number>()
    for (let index = first; index <= last; index++) wanted.add(index)
    // The Tab key, and who is in a row that was scrolled away, must find it.
    if (this.#place.index < this.#entries.length) wanted.add(this.#place.index)
    this.#put(([...wanted]).sort((a, b) => a - b), height)
  }

  /** Puts the rows of these indices, and no others, into the document. */
  #put(indices: readonly number[], height: number): void {
    const kept = new Set(indices.map(index => this.#entries[index]!))
    for (const [entry, row] of this.#rows) {
      if (kept.has(entry)) continue
      row.remove()
      this.#rows.delete(entry)
    }
    let next = this.#holder.firstElementChild
    for (const index of indices) {
      const entry = this.#entries[index]!
      const row = this.#rowOf(entry)
      row.ariaRowIndex = String(index + 2)
      row.style.translate = `0 ${index * height}px`
      if (row === next) next = next.nextElementSibling
      else this.#holder.insertBefore(row, next)
      this.#setStop(row, index)
    }
  }

  #rowOf(entry: Entry): HTMLElement {
    let row = this.#rows.get(entry)
    if (row === undefined) this.#rows.set(entry, row = createRow(entry, this.#revealed.has(entry.id), this.#denied))
    return row
  }

  /** One element of the grid is in the order of the Tab key. */
  #setStop(row: HTMLElement, index: number): void {
    const stops = stopsOf(row)
    const column = Math.min(this.#place.column, stops.length - 1)
    for (const [i, stop] of stops.entries()) stop.tabIndex = index === this.#place.index && i === column ? 0 : -1
  }

  /** Measured, since it depends on the width of the window and the size of its letters. */
  #height(): number {
    if (this.#rowHeight > 0 || this.#entries.length === 0) return this.#rowHeight || 1
    const row = this.#rowOf(this.#entries[0]!)
    if (!row.isConnected) this.#holder.prepend(row)
    return this.#rowHeight = row.offsetHeight || 1
  }

  #go({ index, column }: Place): void {
    if (this.#entries.length === 0) return
    const place = this.#place = { index: Math.max(0, Math.min(index, this.#entries.length - 1)), column }
    const height = this.#height()
    const head = find(HTMLElement, 'header').getBoundingClientRect().bottom
    const top = this.#holder.getBoundingClientRect().top + place.index * height
    const by = top < head ? top - head - 8 : Math.max(0, top + height + 8 - innerHeight)
    if (by !== 0) scrollBy({ top: by, behavior: 'instant' })
    this.#render()
    const stops = stopsOf(this.#rowOf(this.#entries[place.index]!))
    stops[Math.min(column, stops.length - 1)]!.focus({ preventScroll: true })
  }

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
    const button = target instanceof Element ? target.closest<HTMLElement>('[data-act]') : null
    const at = this.#placeOf(target)
    const entry = at === undefined ? undefined : this.#entries[at.index]
    if (button === null || entry === undefined) return
    const act = button.dataset['act'] as Act
    if (act === 'reveal') this.#reveal(entry, !this.#revealed.has(entry.id))
    else this.#onAct(act, entry)
  }

  #reveal(entry: Entry, isRevealed: boolean): void {
    clearTimeout(this.#revealed.get(entry.id))
    this.#revealed.delete(entry.id)
    if (isRevealed) this.#revealed.set(entry.id, setTimeout(() => this.#reveal(entry, false), REVEALED_MS))
    const now = this.#entries.find(({ id }) => id === entry.id) ?? entry
    const row = this.#rows.get(now)
    if (row !== undefined) showPassword(row, now, isRevealed)
  }

  #key(event: KeyboardEvent): void {
    const at = this.#placeOf(event.target)
    if (at === undefined || event.altKey || event.metaKey) return
    if (event.target instanceof HTMLElement && scrolls(event.target, event.key)) { event.preventDefault(); return }
    const page = Math.max(1, Math.floor(innerHeight / this.#height()) - 2)
    const last = this.#entries.length - 1
    const moves: { readonly [key: string]: Place | undefined } = {
      ArrowDown: { ...at, index: at.index + 1 },
      ArrowUp: { ...at, index: at.index - 1 },
      ArrowRight: { ...at, column: at.column + 1 },
      ArrowLeft: { ...at, column: Math.max(0, at.column - 1) },
      PageDown: { ...at, index: at.index + page },
      PageUp: { ...at, index: at.index - page },
      Home: event.ctrlKey ? { index: 0, column: 0 } : { ...at, column: 0 },
      End: event.ctrlKey ? { index: last, column: LAST_COLUMN } : { ...at, column: LAST_COLUMN }
    }
    const to = moves[event.key]
    if (to !== undefined) {
      event.preventDefault()
      this.#go({ ...to, column: Math.min(to.column, stopsOf(this.#rowOf(this.#entries[at.index]!)).length - 1) })
    } else if (event.key === 'Enter' && event.target instanceof HTMLElement && event.target.role !== null) {
      const isPassword = event.target.classList.contains('password')
      find(HTMLElement, isPassword ? '[data-act=reveal]' : '[data-act=edit]', event.target.parentElement!).click()
    }
  }
}

const LAST_COLUMN = Number.MAX_SAFE_INTEGER
/** What an arrow key moves a text by, as a share of what of it is in sight. */
const STEPS: { readonly [key: string]: number } = { ArrowRight: .8, ArrowLeft: -.8 }

/** Scrolls a revealed password that is wider than its cell; false where there is no more of it on that side. */
function scrolls(cell: HTMLElement, key: string): boolean {
  if (!cell.classList.contains('revealed') || !Object.hasOwn(STEPS, key)) return false
  const before = cell.scrollLeft
  cell.scrollBy({ left: STEPS[key]! * cell.clientWidth, behavior: 'instant' })
  return cell.scrollLeft !== before
}

function stopsOf(row: HTMLElement): readonly HTMLElement[] {
  return [...row.querySelectorAll<HTMLElement>('[data-stop]:not([hidden])')]
}
