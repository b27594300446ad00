/** Brings the document to what is known: the bar, and below it the list, or what is shown in its place. */
import { isWait, type Listed } from './answers.ts'
import { Bar, type BarActs } from './bar.ts'
import { announce, isModal, keepFocus } from './dialogs.ts'
import { icon, iconButton, isThere, make, recall, remember, textButton } from './dom.ts'
import { COLUMNS, type Column } from './entries.ts'
import { countDown } from './form.ts'
import { Grid } from './grid.ts'
import { explain, languageNow, number, say, sayCount } from './language.ts'
import { briefName } from './plain.ts'
import type { Act } from './showing.ts'
import {
  deleted, entries, entriesNow, isAtList, onShow, rights, screenNow, service, show, type Screen
} from './state.ts'
import type { TextName } from './texts.ts'

/** How long typing pauses before the number of hits is read out. */
const SPOKEN_AFTER_MS = 600
/** Names of this machine: who is elsewhere reaches the service by another one. */
const LOCAL = /^(localhost|127(\.\d+){3}|\[::1\]|.*\.localhost)$/

interface ScreenOptions extends BarActs {
  onAct(act: Act, entry: Listed, button?: HTMLElement): void
  refresh(): void
  unlock(): void
  /** The card that asks for a login. */
  loginCard(note: TextName): HTMLElement
}

/** The page below its dialogs. */
export class PageView {
  readonly grid: Grid
  readonly #options: ScreenOptions
  readonly bar: Bar
  readonly #main = make('main')
  #count = make('p', { id: 'count' })
  #body = make('div', { className: 'body' })
  #refresh = make('button')
  /** What the document shows. */
  #shown: Screen | undefined
  #stopCount = (): void => {}
  #spokenTimer: ReturnType<typeof setTimeout> | undefined

  constructor(options: ScreenOptions) {
    this.#options = options
    this.grid = new Grid({ onAct: options.onAct, onSort: by => this.#sort(by) })
    const order = recall('order') ?? ''
    const by = COLUMNS.find(one => order.endsWith(one)) ?? 'sistema'
    entries.sort({ by, isReversed: order.startsWith('-') })
    deleted.sort({ by: 'sistema', isReversed: false })
    this.bar = new Bar({
      ...options, onSearch: query => this.#search(query), onKey: key => this.#key(key),
      onLanguage: () => {
        this.renew()
        this.focus()
      }
    })
    document.body.prepend(this.bar.element, this.#main, this.bar.menu)
    onShow(() => this.#draw())
  }

  /** Puts the focus where a person goes on: into the list, or the search. */
  focus(): void {
    if (isModal()) return keepFocus()
    if (isAtList() && entriesNow().shown.length > 0) return this.grid.focus()
    const parts = [this.#main, this.bar.element]
    parts.flatMap(part => [...part.querySelectorAll<HTMLElement>('input, button')]).find(isThere)?.focus()
  }

  /** Brings an entry into sight, also if the search hides it, and focuses it. */
  focusOn(id: number, isNew: boolean = false): void {
    if (isModal() || !isAtList()) return
    if (!entriesNow().shown.some(entry => entry.id === id)) this.bar.clearSearch()
    if (!this.grid.focusOn(id, isNew)) this.focus()
  }

  /** Marks what asks for the list as busy. */
  setLoading(isLoading: boolean): void { this.#refresh.ariaBusy = isLoading ? 'true' : null }

  /** Shows all again: in another language, or with other rights. */
  renew(): void {
    this.#shown = undefined
    this.bar.renew()
    this.grid.renew()
    show()
  }

  #draw(): void {
    const screen = screenNow()
    document.documentElement.lang = languageNow()
    document.title = say('title')
    this.bar.draw()
    if (screen !== this.#shown) {
      this.#stopCount()
      this.#shown = screen
      const content = this.#content(screen)
      this.#main.className = `at-${screen.name}`
      this.#main.replaceChildren(...this.#lasting(), ...content)
    }
    if (isAtList()) this.#drawList(screen.name === 'deleted')
  }

  #content(screen: Screen): readonly HTMLElement[] {
    const { loginCard, unlock } = this.#options
    if (screen.name === 'login') return [loginCard(screen.note)]
    if (screen.name === 'locked') {
      return [card('key', say('lockedTitle'), [say('lockedText')], textButton('main', say('unlock'), unlock), 'locked')]
    }
    if (screen.name === 'failed') return [this.#failed(screen)]
    if (isAtList()) return [this.#summary(screen.name === 'deleted'), this.#body]
    return [make('p', { id: 'loading', className: 'loading', role: 'status' }, say('loading'))]
  }

  /** What is to be known as long as it is so. */
  #lasting(): readonly HTMLElement[] {
    const print = make('p', { className: 'print' }, say('noPrint'))
    const texts: TextName[] = []
    if (isAtList() && rights.isOpen && !LOCAL.test(location.hostname)) texts.push('open')
    if (isAtList() && !rights.may('listEntries')) texts.push('noList')
    else if (isAtList() && !rights.may('getPassword')) texts.push('noSecrets')
    return [print, ...texts.map(text => make('p', { id: `note-${text}`, className: 'lasting' }, say(text)))]
  }

  #summary(isDeleted: boolean): HTMLElement {
    this.#refresh = Object.assign(iconButton('renew', say('refresh'), this.#options.refresh), { id: 'refresh' })
    if (isDeleted) {
      const back = Object.assign(iconButton('back', say('backToList'), this.#options.showDeleted), { id: 'back' })
      return make('div', { className: 'summary' }, back, this.#count, this.#refresh)
    }
    const select = make('select', { id: 'order', ariaLabel: say('order') },
      ...COLUMNS.map(by => make('option', { value: by, selected: by === entries.order.by }, say(`by_${by}`))))
    select.addEventListener('change', () => this.#sort(select.value as Column, false))
    const order = make('span', { className: 'order' }, select, icon('down'))
    return make('div', { className: 'summary' }, this.#count, order, this.#refresh)
  }

  #drawList(isDeleted: boolean): void {
    const all = entriesNow()
    const isEmpty = all.total === 0
    const hasHits = all.shown.length > 0
    this.#main.classList.toggle('empty', isEmpty && !isDeleted)
    const isOff = !rights.may('listEntries')
    if (hasHits && this.grid.element.parentElement !== this.#body) this.#body.replaceChildren(this.grid.element)
    this.grid.show(all.shown, all.order, isDeleted)
    if (!hasHits) this.#body.replaceChildren(...isOff ? [] : [isEmpty ? this.#empty(isDeleted) : this.#noHit()])
    const [some, count] = [number(all.shown.length), number(all.total)]
    const text = all.shown.length === all.total ? sayCount(all.total, 'countOne', 'countAll')
      : say('countSome', { some, count })
    this.#count.textContent = isDeleted ? sentence(say('showDeleted'), text) : text
    clearTimeout(this.#spokenTimer)
    this.#spokenTimer = setTimeout(() => announce(hasHits ? text : say('noHitTitle')), SPOKEN_AFTER_MS)
    if (all.query === '') clearTimeout(this.#spokenTimer)
  }

  #empty(isDeleted: boolean): HTMLElement {
    if (isDeleted) return card('bin', say('noDeleted'), [], undefined, 'blank')
    const mayCreate = rights.may('createPassword')
    const button = mayCreate ? textButton('main', say('emptyAction'), this.#options.create) : undefined
    if (button !== undefined) button.id = 'create'
    const command = make('code', {}, 'admin import FILE')
    const moving = make('span', {}, say('moving'), ' ', command)
    const open = rights.isOpen ? [say('open')] : []
    return card('key', say('emptyTitle'), [...open, ...mayCreate ? [moving] : [say('emptyOnly')]], button, 'blank')
  }

  #noHit(): HTMLElement {
    const { query } = entriesNow()
    const clear = textButton('second', say('noHitAction'), () => {
      this.bar.clearSearch()
      this.bar.focusSearch()
    })
    const blank = card('search', say('noHitTitle'), [say('noHitText', { query: briefName(query) })], clear, 'blank')
    blank.append(textButton('link', say('refresh'), this.#options.refresh))
    return blank
  }

  #failed({ refusal, retry }: Extract<Screen, { name: 'failed' }>): HTMLElement {
    const button = textButton('main', say('retry'), () => { if (button.ariaDisabled !== 'true') retry() })
    const [title, text] = explain(refusal)
    const sentenceOf = make('span', {}, text)
    const alert = card(isWait(refusal) ? 'clock' : 'unlinked', title, [sentenceOf], button, 'notice')
    alert.role = 'alert'
    this.#stopCount = countDown(isWait(refusal) ? refusal.waitSeconds : 0, left => {
      sentenceOf.textContent = explain(refusal, left)[1]
      button.ariaDisabled = left > 0 ? 'true' : null
      // Read out once, and not each second.
      alert.ariaLive = isWait(refusal) && left > 0 ? 'off' : 'assertive'
    })
    return alert
  }

  #sort(by: Column, isReversed: boolean = entries.order.by === by && !entries.order.isReversed): void {
    entries.sort({ by, isReversed })
    remember('order', `${isReversed ? '-' : ''}${by}`)
    show()
    this.grid.toTop()
  }

  #search(query: string): void {
    entries.search(query)
    deleted.search(query)
    show()
    this.grid.toTop()
  }

  /** Whether a key in the search was for the list. */
  #key(key: string): boolean {
    const [first] = entriesNow().shown
    if (first === undefined) return false
    if (key === 'ArrowDown') this.grid.focus()
    else if (key === 'Enter' && screenNow().name === 'list') this.#options.onAct('view', first)
    else return false
    return true
  }
}

/** Whether the service has users; without one, nobody can log in. */
export function noUsersHint(): readonly HTMLElement[] {
  if (service.hasUsers) return []
  const command = make('code', {}, 'admin user add EMAIL')
  return [make('p', { id: 'no-users', className: 'alert' }, say('noUsers'), ' ', command)]
}

/** What is said in the place of a list. */
function card(
  drawing: string, title: string, texts: readonly (string | HTMLElement)[], button: HTMLElement | undefined, id: string
): HTMLElement {
  return make('section', { id, className: 'blank' }, make('span', { className: 'badge-tile' }, icon(drawing)),
    make('h2', {}, title), ...texts.map(text => make('p', {}, text)), ...button === undefined ? [] : [button])
}

function sentence(...parts: readonly string[]): string { return parts.join(' · ') }
