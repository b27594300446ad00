/** Brings the document to the state: the bar, and below it the list or a card. */
import { act, create, loadList, toggleDeleted } from './acts.ts'
import { isWait } from './answers.ts'
import { Bar } from './bar.ts'
import { announce, isModal, keepFocus } from './dialogs.ts'
import { icon, iconButton, isThere, make, recall, remember, textButton } from './dom.ts'
import { COLUMNS, type Column } from './entries.ts'
import { countDown } from './form.ts'
import { Grid } from './grid.ts'
import { explain, languageNow, number, say, sayCount } from './language.ts'
import { briefName } from './plain.ts'
import { beginSession, loginCard } from './session.ts'
import { deleted, entries, entriesNow, isAtList, page, rights, screenNow, show, type Screen } from './state.ts'
import type { TextName } from './texts.ts'

/** The pause in typing before the number of hits is read out. */
const SPOKEN_AFTER_MS = 600
/** Names of this machine, which do not reach it from elsewhere. */
const LOCAL = /^(localhost|127(\.\d+){3}|\[::1\]|.*\.localhost)$/

export const grid: Grid = new Grid({ onAct: act, onSort: by => sort(by) })
export const bar: Bar = new Bar({ onSearch: search, onKey: searchKey })
const main = make('main')
const count = make('p', { id: 'count' })
const body = make('div', { className: 'body' })
const refresh = Object.assign(iconButton('renew', '', () => void loadList(true)), { id: 'refresh' })
let shown: Screen | undefined
let stopCount = (): void => {}
let spokenTimer: ReturnType<typeof setTimeout> | undefined

export function startScreen(): void {
  const order = recall('order') ?? ''
  const by = COLUMNS.find(one => order.endsWith(one)) ?? 'sistema'
  entries.sort({ by, isReversed: order.startsWith('-') })
  document.body.prepend(bar.element, main, bar.menu)
  Object.assign(page, {
    draw, renew, focus, focusOn,
    toTop: () => grid.toTop(),
    clearSearch: (isForGood?: boolean) => bar.clearSearch(isForGood),
    setLoading: (isLoading: boolean) => { refresh.ariaBusy = isLoading ? 'true' : null }
  } satisfies typeof page)
}

function focus(): void {
  if (isModal()) return keepFocus()
  if (isAtList() && entriesNow().shown.length > 0) return grid.focus()
  const parts = [main, bar.element]
  parts.flatMap(part => [...part.querySelectorAll<HTMLElement>('input, button')]).find(isThere)?.focus()
}

function focusOn(id: number): void {
  if (isModal() || !isAtList()) return
  if (!entriesNow().shown.some(entry => entry.id === id)) bar.clearSearch()
  if (!grid.focusOn(id)) focus()
}

function renew(): void {
  shown = undefined
  bar.renew()
  grid.renew()
  draw()
}

function draw(): void {
  const screen = screenNow()
  document.documentElement.lang = languageNow()
  document.title = say('title')
  bar.draw()
  if (screen !== shown) {
    stopCount()
    shown = screen
    main.className = `at-${screen.name}`
    const print = make('p', { className: 'print' }, say('noPrint'))
    main.replaceChildren(print, ...isAtList() ? lastingNotes() : [], ...contentOf(screen))
  }
  if (isAtList()) drawList(screen.name === 'deleted')
}

function contentOf(screen: Screen): readonly HTMLElement[] {
  if (screen.name === 'login') return [loginCard(screen.note)]
  if (screen.name === 'failed') return [failedCard(screen)]
  if (isAtList()) return [summary(screen.name === 'deleted'), body]
  if (screen.name === 'loading') {
    return [make('p', { id: 'loading', className: 'loading', role: 'status' }, say('loading'))]
  }
  const button = textButton('main', say('unlock'), beginSession)
  return [card('locked', 'key', say('lockedTitle'), [say('lockedText')], button)]
}

function lastingNotes(): readonly HTMLElement[] {
  const texts: TextName[] = rights.isOpen && !LOCAL.test(location.hostname) ? ['open'] : []
  if (!rights.may('listEntries')) texts.push('noList')
  else if (!rights.may('getPassword')) texts.push('noSecrets')
  return texts.map(text => make('p', { id: `note-${text}`, className: 'lasting' }, say(text)))
}

function summary(isDeleted: boolean): HTMLElement {
  refresh.ariaLabel = refresh.title = say('refresh')
  if (isDeleted) {
    const back = Object.assign(iconButton('back', say('backToList'), toggleDeleted), { id: 'back' })
    return make('div', { className: 'summary' }, back, count, refresh)
  }
  const select = make('select', { id: 'order', ariaLabel: say('order') },
    ...COLUMNS.map(by => make('option', { value: by, selected: by === entries.order.by }, say(`by_${by}`))))
  select.addEventListener('change', () => sort(select.value as Column, false))
  const own = make('span', { className: 'order' }, select, icon('down'))
  return make('div', { className: 'summary' }, count, own, refresh)
}

function drawList(isDeleted: boolean): void {
  const { shown, total, order, query } = entriesNow()
  const hasHits = shown.length > 0
  main.classList.toggle('empty', total === 0 && !isDeleted)
  if (hasHits && grid.element.parentElement !== body) body.replaceChildren(grid.element)
  grid.show(shown, order, isDeleted)
  const blank = (): HTMLElement => total === 0 ? emptyCard(isDeleted) : noHitCard()
  if (!hasHits) {
    const hadFocus = body.contains(document.activeElement)
    body.replaceChildren(...rights.may('listEntries') ? [blank()] : [])
    if (hadFocus) focus()
  }
  const text = shown.length === total ? sayCount(total, 'countOne', 'countAll')
    : say('countSome', { some: number(shown.length), count: number(total) })
  count.textContent = isDeleted ? `${say('showDeleted')} · ${text}` : text
  clearTimeout(spokenTimer)
  if (query === '') return
  spokenTimer = setTimeout(() => announce(hasHits ? text : say('noHitTitle')), SPOKEN_AFTER_MS)
}

function emptyCard(isDeleted: boolean): HTMLElement {
  if (isDeleted) return card('blank', 'bin', say('noDeleted'), [])
  const open = rights.isOpen ? [say('open')] : []
  if (!rights.may('createPassword')) return card('blank', 'key', say('emptyTitle'), [...open, say('emptyOnly')])
  const moving = make('span', {}, say('moving'), ' ', make('code', {}, 'admin import FILE'))
  const button = Object.assign(textButton('main', say('emptyAction'), create), { id: 'create' })
  return card('blank', 'key', say('emptyTitle'), [...open, moving], button)
}

function noHitCard(): HTMLElement {
  const clear = textButton('second', say('noHitAction'), () => {
    bar.clearSearch()
    bar.focusSearch()
  })
  const again = textButton('link', say('refresh'), () => void loadList(true))
  const text = say('noHitText', { query: briefName(entriesNow().query) })
  return card('blank', 'search', say('noHitTitle'), [text], clear, again)
}

function failedCard({ refusal, retry }: Extract<Screen, { name: 'failed' }>): HTMLElement {
  const button = textButton('main', say('retry'), () => { if (button.ariaDisabled !== 'true') retry() })
  const [title, text] = explain(refusal)
  const sentence = make('span', {}, text)
  const alert = card('notice', isWait(refusal) ? 'clock' : 'unlinked', title, [sentence], button)
  alert.role = 'alert'
  stopCount = countDown(isWait(refusal) ? refusal.waitSeconds : 0, left => {
    sentence.textContent = explain(refusal, left)[1]
    button.ariaDisabled = left > 0 ? 'true' : null
    // Read out once, not each second.
    alert.ariaLive = isWait(refusal) && left > 0 ? 'off' : 'assertive'
  })
  return alert
}

function card(
  id: string, drawing: string, title: string, texts: readonly (string | HTMLElement)[],
  ...buttons: readonly HTMLElement[]
): HTMLElement {
  return make('section', { id, className: 'blank' }, make('span', { className: 'badge-tile' }, icon(drawing)),
    make('h2', {}, title), ...texts.map(text => make('p', {}, text)), ...buttons)
}

function sort(by: Column, isReversed: boolean = entries.order.by === by && !entries.order.isReversed): void {
  entries.sort({ by, isReversed })
  remember('order', `${isReversed ? '-' : ''}${by}`)
  show()
  grid.toTop()
}

function search(query: string): void {
  entries.search(query)
  deleted.search(query)
  show()
  grid.toTop()
}

function searchKey(key: string): boolean {
  const [first] = entriesNow().shown
  if (first === undefined) return false
  if (key === 'ArrowDown') grid.focus()
  else if (key === 'Enter' && screenNow().name === 'list') act('view', first)
  else return false
  return true
}
