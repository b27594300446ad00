/** Brings the document to the state: the bar, and below it the list or a card. */
import { act, create, loadList, restoreShown, toggleDeleted } from './acts.ts'
import { isWait } from './answers.ts'
import { Bar } from './bar.ts'
import { announce, isModal, keepFocus } from './dialogs.ts'
import { icon, iconButton, isThere, make, recall, remember, textButton } from './dom.ts'
import { COLUMNS, FILTERS, type Column, type Filter } from './entries.ts'
import { countDown } from './form.ts'
import { Grid, MAX_WHOLE_ROWS } from './grid.ts'
import { explain, languageNow, number, say, sayCount } from './language.ts'
import { briefName, plainText } from './plain.ts'
import { beginSession, loginCard } from './session.ts'
import {
  deleted,
  entries,
  entriesNow,
  isAtList,
  rights,
  screenNow,
  show,
  startPage,
  type Screen
} from './state.ts'
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
const refresh = Object.assign(
  iconButton('renew', '', () => void loadList(true)),
  { id: 'refresh' }
)
const filterPlace = make('span', { className: 'filter-place' })
let filterMadeFor = ''
const restoreAll = Object.assign(
  textButton('link', '', () => void restoreShown()),
  { id: 'restore-all' }
)
let shown: Screen | undefined
let stopCount = (): void => {}
let spokenTimer: ReturnType<typeof setTimeout> | undefined

export function startScreen(): void {
  const order = recall('order') ?? ''
  const by = COLUMNS.find(one => order.endsWith(one)) ?? 'sistema'
  entries.sort({ by, isReversed: order.startsWith('-') })
  document.body.prepend(bar.element, main)
  startPage({
    draw,
    renew,
    focus,
    focusOn,
    keep,
    toTop: () => grid.toTop(),
    clearSearch: (isForGood?: boolean) => bar.clearSearch(isForGood),
    setLoading: (isLoading: boolean) => {
      refresh.ariaBusy = isLoading ? 'true' : null
    }
  })
}

function focus(): void {
  if (isModal()) return keepFocus()
  if (isAtList() && entriesNow().shown.length > 0) return grid.focus()
  const parts = [main, bar.element]
  parts
    .flatMap(part => [...part.querySelectorAll<HTMLElement>('input, button')])
    .find(isThere)
    ?.focus()
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
    main.replaceChildren(print, ...(isAtList() ? lastingNotes() : []), ...contentOf(screen))
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
    return make('div', { className: 'summary' }, back, count, restoreAll, refresh)
  }
  const order = chooser(
    'order',
    'sort',
    COLUMNS.map(by => [by, say(`by_${by}`)] as const),
    entries.order.by,
    by => sort(by as Column, false)
  )
  return make('div', { className: 'summary' }, count, filterPlace, order, refresh)
}

/** A quiet select; in a narrow window, its icon alone. */
function chooser(
  id: string,
  drawing: string,
  all: readonly (readonly [value: string, text: string])[],
  chosen: string,
  onChoice: (value: string) => void
): HTMLElement {
  const select = make(
    'select',
    { id, ariaLabel: say(id as 'order' | 'filter') },
    ...all.map(([value, text]) => make('option', { value, selected: value === chosen }, text))
  )
  select.addEventListener('change', () => onChoice(select.value))
  return make('span', { className: `by ${id}` }, icon(drawing), select, icon('down'))
}

const GROUP = 'group '

function valueOf(filter: Filter | undefined): string {
  if (filter === undefined) return ''
  return 'group' in filter ? GROUP + filter.group : filter.by
}

/** Only what some entry matches is offered. */
function drawFilter(): void {
  const { kept, offers } = entries
  const chosen = valueOf(kept)
  const names = Object.keys(FILTERS) as (keyof typeof FILTERS)[]
  const all = [
    ...names
      .map(by => [by, offers[by]] as const)
      .filter(([by, count]) => count > 0 || by === chosen)
      .map(([by, count]) => [by, say(`filter_${by}`, { count: number(count) })] as const),
    ...offers.groups.map(name => [GROUP + name, plainText(name)] as const)
  ]
  const made = [languageNow(), chosen, ...all.flat()].join('\n')
  if (made === filterMadeFor) return
  filterMadeFor = made
  if (all.length === 0) return filterPlace.replaceChildren()
  const own = chooser('filter', 'filter', [['', say('filter_none')], ...all], chosen, value => {
    if (value === '') keep()
    else
      keep(
        value.startsWith(GROUP)
          ? { group: value.slice(GROUP.length) }
          : { by: value as keyof typeof FILTERS }
      )
  })
  own.classList.toggle('on', kept !== undefined)
  const hadFocus = filterPlace.contains(document.activeElement)
  filterPlace.replaceChildren(own)
  if (hadFocus) own.querySelector('select')!.focus()
}

function keep(filter?: Filter): void {
  entries.keep(filter)
  show()
  grid.toTop()
}

function drawList(isDeleted: boolean): void {
  const { shown, total, order, query } = entriesNow()
  if (!isDeleted) drawFilter()
  restoreAll.hidden = shown.length === 0 || !rights.may('restorePassword')
  restoreAll.textContent = sayCount(shown.length, 'restoreOne', 'restoreAll')
  const hasHits = shown.length > 0
  main.classList.toggle('empty', total === 0 && !isDeleted)
  if (hasHits && grid.element.parentElement !== body) body.replaceChildren(grid.element)
  grid.show(shown, order, isDeleted, total <= MAX_WHOLE_ROWS)
  const blank = (): HTMLElement => (total === 0 ? emptyCard(isDeleted) : noHitCard())
  if (!hasHits) {
    const hadFocus = body.contains(document.activeElement)
    body.replaceChildren(...(rights.may('listEntries') ? [blank()] : []))
    if (hadFocus) focus()
  }
  const isAll = shown.length === total
  const text = isAll
    ? sayCount(total, 'countOne', 'countAll')
    : say('countSome', { some: number(shown.length), count: number(total) })
  const brief = isAll ? number(total) : `${number(shown.length)} / ${number(total)}`
  count.textContent = isDeleted ? `${say('showDeleted')}: ${brief}` : text
  clearTimeout(spokenTimer)
  if (query === '') return
  spokenTimer = setTimeout(() => announce(hasHits ? text : say('noHitTitle')), SPOKEN_AFTER_MS)
}

function emptyCard(isDeleted: boolean): HTMLElement {
  if (isDeleted) return card('blank', 'bin', say('noDeleted'), [])
  const open = rights.isOpen ? [say('open')] : []
  if (!rights.may('createPassword'))
    return card('blank', 'key', say('emptyTitle'), [...open, say('emptyOnly')])
  const moving = make('span', {}, say('moving'), ' ', make('code', {}, 'admin import FILE'))
  const button = Object.assign(textButton('main', say('emptyAction'), create), { id: 'create' })
  return card('blank', 'key', say('emptyTitle'), [...open, moving], button)
}

function noHitCard(): HTMLElement {
  const { kept, query } = entriesNow()
  if (kept !== undefined && query === '') {
    return card(
      'blank',
      'check',
      say('noneLeft'),
      [],
      textButton('second', say('filter_none'), () => keep())
    )
  }
  const clear = textButton('second', say('noHitAction'), () => {
    bar.clearSearch()
    bar.focusSearch()
  })
  const again = textButton('link', say('refresh'), () => void loadList(true))
  const text = say('noHitText', { query: briefName(query) })
  return card('blank', 'search', say('noHitTitle'), [text], clear, again)
}

function failedCard({ refusal, retry }: Extract<Screen, { name: 'failed' }>): HTMLElement {
  const button = textButton('main', say('retry'), () => {
    if (button.ariaDisabled !== 'true') retry()
  })
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
  id: string,
  drawing: string,
  title: string,
  texts: readonly (string | HTMLElement)[],
  ...buttons: readonly HTMLElement[]
): HTMLElement {
  return make(
    'section',
    { id, className: 'blank' },
    make('span', { className: 'badge-tile' }, icon(drawing)),
    make('h2', {}, title),
    ...texts.map(text => make('p', {}, text)),
    ...buttons
  )
}

function sort(
  by: Column,
  isReversed: boolean = entries.order.by === by && !entries.order.isReversed
): void {
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
