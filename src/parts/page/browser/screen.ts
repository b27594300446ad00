/** Brings the document to the state: the bar, and below it the list or a card. */
import { openAccount } from './account.ts'
import { act, create, loadList, restoreShown, toggleDeleted } from './acts.ts'
import { isWait } from './answers.ts'
import { Bar, filterParts, isFiltered, whereOf } from './bar.ts'
import { announce, isModal, settleFocus } from './dialogs.ts'
import {
  countDown,
  icon,
  iconButton,
  isThere,
  make,
  recall,
  remember,
  setIcon,
  textButton
} from './dom.ts'
import { COLUMNS, type Column, type Filter } from './entries.ts'
import { Grid, MAX_WHOLE_ROWS } from './grid.ts'
import { dateOf, explain, languageNow, number, say, sayCount } from './language.ts'
import { briefName, sentences } from './plain.ts'
import { copyText } from './secrets.ts'
import { beginSession, loginCard } from './session.ts'
import {
  api,
  deleted,
  entries,
  entriesNow,
  isAtList,
  rights,
  screenNow,
  startPage,
  type Screen
} from './state.ts'
import type { TextName } from './texts-es.ts'

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
const lead = make('span', { className: 'lead' })
const tools = make('span', { className: 'tools' })
let toolsMadeFor = ''
const about = make('p', { id: 'about', className: 'note' })
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
    select,
    toTop: () => grid.toTop(),
    clearSearch: (isForGood?: boolean) => bar.clearSearch(isForGood),
    setLoading: (isLoading: boolean) => {
      refresh.ariaBusy = isLoading ? 'true' : null
    },
    setLine: (isUp: boolean) => {
      refresh.classList.toggle('down', !isUp)
      labelRefresh()
    }
  })
}

function focus(): void {
  if (isModal()) return settleFocus()
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
  if (isAtList()) return [summary(screen.name === 'deleted'), about, body]
  if (screen.name === 'loading') return [loading()]
  const button = textButton('main', say('unlock'), beginSession)
  return [card('locked', 'key', say('lockedTitle'), [say('lockedText')], button)]
}

function loading(): HTMLElement {
  return make('p', { id: 'loading', className: 'loading', role: 'status' }, say('loading'))
}

function lastingNotes(): readonly HTMLElement[] {
  const texts: TextName[] = rights.isOpen && !LOCAL.test(location.hostname) ? ['open'] : []
  if (rights.may('listEntries') && !rights.may('getPassword')) texts.push('noSecrets')
  const notes = texts.map(text =>
    make('p', { id: `note-${text}`, className: 'lasting' }, say(text))
  )
  if (api.user?.firstPassword !== true || !rights.may('changeOwnPassword')) return notes
  const change = textButton('link', say('changeIt'), () => openAccount(true))
  const first = make(
    'p',
    { id: 'note-first', className: 'lasting' },
    say('firstPassword'),
    ' ',
    change
  )
  return [...notes, first]
}

function summary(isDeleted: boolean): HTMLElement {
  labelRefresh()
  if (!isDeleted) {
    // "Deleted" had it.
    tools.append(refresh)
    return make('div', { className: 'summary' }, lead, tools)
  }
  const back = Object.assign(iconButton('back', say('backToList'), toggleDeleted), { id: 'back' })
  return make('div', { className: 'summary' }, back, count, restoreAll, refresh)
}

function labelRefresh(): void {
  const isDown = refresh.classList.contains('down')
  const why = say(navigator.onLine ? 'lostTitle' : 'offlineTitle')
  setIcon(refresh, isDown ? 'unlinked' : 'renew')
  refresh.ariaLabel = refresh.title = isDown
    ? sentences(say('refresh'), why, say('offlineText'))
    : say('refresh')
}

/** What stands above the list. */
function drawSummary(hasGroups: boolean): void {
  const { filter, order, total } = entries
  const [chip, ...choices] = filterParts()
  lead.replaceChildren(isFiltered(filter) ? chip : count)
  const columns = COLUMNS.filter(by => by !== 'grupo' || hasGroups)
  const made = [languageNow(), order.by, total === 0, ...columns].join(' ')
  if (made !== toolsMadeFor) {
    toolsMadeFor = made
    const sorts = columns.map(by => [by, say(`by_${by}`)] as const)
    const chosen = chooser(sorts, order.by, by => sort(by as Column, false))
    const hadFocus = tools.contains(document.activeElement) ? document.activeElement : undefined
    tools.replaceChildren(...(total === 0 ? [] : [...choices, chosen]), refresh)
    if (hadFocus) document.getElementById(hadFocus.id)?.focus()
  }
  const times = entries.shown.flatMap(({ unrecordedBefore = [] }) => unrecordedBefore)
  about.hidden = filter.state !== 'exposed' || times.length === 0
  const date = about.hidden ? '' : dateOf(times.sort().at(-1)!)
  about.textContent = say('unrecorded', { date })
}

/** A quiet select; in a narrow window, its icon alone. */
function chooser(
  all: readonly (readonly [value: string, text: string])[],
  chosen: string,
  onChoice: (value: string) => void
): HTMLElement {
  const select = make(
    'select',
    { id: 'order', ariaLabel: say('order') },
    ...all.map(([value, text]) => make('option', { value, selected: value === chosen }, text))
  )
  select.addEventListener('change', () => onChoice(select.value))
  return make('span', { className: 'by tool order' }, icon('sort'), select, icon('down'))
}

function select(filter: Filter): void {
  entries.select(filter)
  grid.toTop()
}

function drawList(isDeleted: boolean): void {
  const { shown, total, order, query, groups } = entriesNow()
  const hasGroups = groups.length > 0 && api.user?.groups?.length !== 1
  if (!isDeleted) drawSummary(hasGroups)
  restoreAll.hidden = shown.length === 0 || !rights.may('restorePassword')
  restoreAll.textContent = sayCount(shown.length, 'restoreOne', 'restoreAll')
  const hasHits = shown.length > 0
  const isKnown = !isDeleted || deleted.isLoaded
  main.classList.toggle('empty', total === 0 && !isDeleted)
  grid.element.classList.toggle('no-group', !hasGroups)
  if (hasHits && grid.element.parentElement !== body) body.replaceChildren(grid.element)
  grid.show(shown, order, isDeleted, total <= MAX_WHOLE_ROWS)
  const blank = (): HTMLElement => {
    if (!isKnown) return loading()
    return total === 0 ? emptyCard(isDeleted) : noHitCard()
  }
  if (!hasHits) {
    const hadFocus = body.contains(document.activeElement)
    body.replaceChildren(blank())
    if (hadFocus) focus()
  }
  const isAll = shown.length === total
  const some = number(shown.length)
  const brief = isAll ? some : say('countShort', { some, count: number(total) })
  const whole = isAll
    ? sayCount(total, 'countOne', 'countAll')
    : say('countSome', { some, count: number(total) })
  const ofDeleted = say(total === 1 ? 'removedOne' : 'removedSome', { count: brief })
  const text = isDeleted ? ofDeleted : whole
  // In a narrow window, the number alone.
  if (isKnown) count.replaceChildren(brief, make('span', {}, text.slice(brief.length)))
  else count.textContent = say('showDeleted')
  clearTimeout(spokenTimer)
  if (query === '') return
  spokenTimer = setTimeout(() => announce(hasHits ? text : say('noHitTitle')), SPOKEN_AFTER_MS)
}

function emptyCard(isDeleted: boolean): HTMLElement {
  if (isDeleted) return card('blank', 'bin', say('noDeleted'), [])
  const button = (text: TextName): readonly HTMLElement[] =>
    rights.may('createPassword')
      ? [Object.assign(textButton('main', say(text), create), { id: 'create' })]
      : []
  if (!rights.may('listEntries'))
    return card('blank', 'key', say('noList'), [], ...button('createTitle'))
  const { groups, email = '' } = api.user ?? {}
  if (groups?.length === 0) {
    const command = `admin user edit ${email} --groups ${say('groupName')}`
    const copy = iconButton('copy', say('copy'), () => void copyText(command, copy))
    const again = textButton('second', say('refresh'), () => void loadList(true))
    const texts = [say('noGroupText'), make('span', {}, say('askForGroup'))]
    const line = make('span', { className: 'command' }, make('code', {}, command), copy)
    return card('blank', 'key', say('noGroup'), texts, line, again)
  }
  const open = rights.isOpen ? [say('open')] : []
  const title = say(groups === undefined ? 'emptyTitle' : 'emptyInGroups')
  if (!rights.may('createPassword')) return card('blank', 'key', title, [...open, say('emptyOnly')])
  const moving = make('span', {}, say('moving'), make('br'), make('code', {}, 'admin import FILE'))
  const texts = [...open, ...(groups === undefined ? [moving] : [])]
  return card('blank', 'key', title, texts, ...button('emptyAction'))
}

function noHitCard(): HTMLElement {
  const { filter, query } = entriesNow()
  const isOn = isFiltered(filter)
  const all = (text: string, className: string): HTMLElement =>
    textButton(className, text, () => {
      select({})
      grid.focus()
    })
  if (query === '')
    return card('blank', 'check', say('noneLeft'), [], all(say('filter_none'), 'second'))
  const clear = textButton('link', say('noHitAction'), () => {
    bar.clearSearch()
    bar.focusSearch()
  })
  const elsewhere = isOn ? entries.count({}, query) : 0
  const named = { query: briefName(query), where: whereOf(filter) }
  const text = say(elsewhere > 0 ? 'noHitIn' : 'noHitText', named)
  const button = all(say('searchAll', { count: number(elsewhere) }), 'main')
  const buttons = elsewhere > 0 ? [button, clear] : [clear]
  return card('blank', 'search', say('noHitTitle'), [text], ...buttons)
}

function failedCard({ refusal, retry }: Extract<Screen, { name: 'failed' }>): HTMLElement {
  const button = textButton('main', say('retry'), () => {
    if (button.ariaDisabled !== 'true') retry()
  })
  const [title, text] = explain(refusal)
  const sentence = make('span', {}, text)
  const alert = card(
    'notice',
    isWait(refusal) ? 'clock' : 'unlinked',
    title || say('failedTitle'),
    [sentence],
    button
  )
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
  grid.toTop()
}

function search(query: string): void {
  entries.search(query)
  deleted.search(query)
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
