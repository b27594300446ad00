/** Brings the document to what is known: the list, or what is shown in its place. */
import { recall, remember } from './address.ts'
import type { Order } from './entries.ts'
import { find, part } from './dom.ts'
import { number, say } from './language.ts'
import type { Grid } from './grid.ts'
import { plainText } from './plain.ts'
import { api, denied, entries, loaded } from './state.ts'

/** How long typing pauses before the number of hits is read out. */
const SPOKEN_AFTER_MS = 600

const query = find(HTMLInputElement, '#query')
const order = find(HTMLSelectElement, '#order')
const group = find(HTMLButtonElement, '#group')
const blank = part('blank')
let spokenTimer: ReturnType<typeof setTimeout> | undefined

/** Lets a person search, sort and group. `create` opens the dialog for a new entry. */
export function startView(grid: Grid, create: () => void): void {
  const search = (): void => {
    entries.search(query.value)
    show(grid)
    grid.toTop()
  }
  const clear = (): void => {
    query.value = ''
    search()
    query.focus()
  }
  const arrange = (): void => {
    entries.arrange(order.value as Order, group.ariaPressed === 'true')
    show(grid)
  }
  query.addEventListener('input', search)
  query.addEventListener('keydown', event => {
    if (event.key === 'ArrowDown' && entries.shown.length > 0) { event.preventDefault(); grid.focus() }
    if (event.key === 'Escape') clear()
  })
  find(HTMLButtonElement, 'button', blank).addEventListener('click', () => {
    if (entries.total === 0) create()
    else clear()
  })
  order.value = ['usuario', 'newest'].find(one => one === recall('order')) ?? 'sistema'
  group.ariaPressed = String(recall('group') === 'yes')
  order.addEventListener('change', () => {
    remember('order', order.value)
    arrange()
    grid.toTop()
  })
  group.addEventListener('click', () => {
    group.ariaPressed = String(group.ariaPressed !== 'true')
    remember('group', group.ariaPressed === 'true' ? 'yes' : 'no')
    arrange()
    grid.toTop()
  })
  entries.arrange(order.value as Order, group.ariaPressed === 'true')
}

/** Takes the search back, so that nothing is hidden by it. */
export function clearSearch(): void {
  query.value = ''
  entries.search('')
}

/** Shows what is known. */
export function show(grid: Grid): void {
  const hasHits = entries.shown.length > 0
  part('tools').hidden = !loaded.is && !denied.has('list')
  part('logout').hidden = api.user === undefined
  part('who').textContent = api.user === undefined ? '' : plainText(api.user.name)
  part('list').hidden = !loaded.is
  part('grid').hidden = !hasHits
  grid.show(entries.shown, entries.groups)
  blank.hidden = hasHits || !loaded.is
  showBlank()
  showCount()
}

/** Says what the token does not allow, and takes that away. */
export function showAbilities(grid: Grid): void {
  const what = [...denied].map(operation => say(`ability_${operation}`)).join(', ')
  part('limits').textContent = say('limits', { what })
  part('limits').hidden = denied.size === 0
  part('create').hidden = denied.has('create')
  grid.renew(denied)
}

/** Shows none of it. */
export function hideList(): void {
  for (const id of ['tools', 'list', 'blank', 'loading', 'logout', 'limits']) part(id).hidden = true
  part('who').textContent = ''
}

function showBlank(): void {
  const isEmpty = entries.total === 0
  const mayCreate = !denied.has('create')
  find(HTMLElement, 'h2', blank).textContent = say(isEmpty ? 'emptyTitle' : 'noHitTitle')
  find(HTMLElement, 'p', blank).textContent = isEmpty
    ? say(mayCreate ? 'emptyText' : 'emptyOnly')
    : say('noHitText', { query: plainText(query.value) })
  const button = find(HTMLButtonElement, 'button', blank)
  button.textContent = say(isEmpty ? 'emptyAction' : 'noHitAction')
  button.hidden = isEmpty && !mayCreate
  find(SVGUseElement, 'use', blank).setAttribute('href', isEmpty ? '#i-key' : '#i-search')
}

function showCount(): void {
  const [some, all] = [number(entries.shown.length), number(entries.total)]
  const text = entries.total === 1 && entries.shown.length === 1 ? say('countOne')
    : say(some === all ? 'countAll' : 'countSome', { some, all })
  part('count').textContent = text
  clearTimeout(spokenTimer)
  spokenTimer = setTimeout(() => {
    part('spoken').textContent = blank.hidden ? text : find(HTMLElement, 'h2', blank).textContent
  }, SPOKEN_AFTER_MS)
}
