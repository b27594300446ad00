/** Brings the document to what is known: the list, or what is shown in its place. */
import { recall, remember } from './address.ts'
import type { Order } from './entries.ts'
import { emptyFields, find, part } from './dom.ts'
import { number, say } from './language.ts'
import type { Grid } from './grid.ts'
import { announce } from './messages.ts'
import { briefName, plainText } from './plain.ts'
import { api, entries, loaded, rights } from './state.ts'

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
    if (entries.total === 0) return create()
    clear()
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
  emptyFields(part('search'))
  entries.search('')
}

/** Shows what is known. */
export function show(grid: Grid): void {
  const hasHits = entries.shown.length > 0
  part('tools').hidden = !loaded.is && rights.may('listPassword')
  part('search').hidden = !loaded.is
  part('logout').hidden = api.user === undefined
  part('show-account').hidden = api.user === undefined
  part('who').textContent = api.user === undefined ? '' : plainText(api.user.name)
  part('show-trash').hidden = !rights.may('deletedPasswords')
  part('list').hidden = !loaded.is
  part('grid').hidden = !hasHits
  grid.show(entries.shown, entries.groups)
  blank.hidden = hasHits || !loaded.is
  showBlank()
  showCount()
}

/** Offers what the account allows, and says where that is not even the list. */
export function showRights(grid: Grid): void {
  part('limits').hidden = rights.may('listPassword')
  part('limits').textContent = say('limits', { what: say('ability_listPassword') })
  part('create').hidden = !rights.may('createPassword')
  grid.renew()
}

/** Says how much of the list has come. */
export function showProgress(count: number, share: number | undefined): void {
  const text = share === undefined ? say('loadingCount', { count: number(count) })
    : say('loadingShare', { count: number(count), share: Math.floor(share * 100) })
  find(HTMLElement, 'span', part('loading')).textContent = count === 0 ? say('loading') : text
  const bar = find(HTMLProgressElement, 'progress', part('loading'))
  if (share === undefined) bar.removeAttribute('value')
  else bar.value = share
}

/** Shows none of it, and nothing of it stays in the document. */
export function hideList(): void {
  const ids = ['tools', 'list', 'blank', 'loading', 'logout', 'limits', 'show-trash', 'show-account']
  for (const id of ids) part(id).hidden = true
  const said = '#who, #count, #blank p, #account p, #conflict p'
  for (const one of document.querySelectorAll(said)) one.textContent = ''
  clearTimeout(spokenTimer)
  announce('')
}

function showBlank(): void {
  const isEmpty = entries.total === 0
  const mayCreate = rights.may('createPassword')
  find(HTMLElement, 'h2', blank).textContent = say(isEmpty ? 'emptyTitle' : 'noHitTitle')
  find(HTMLElement, 'p', blank).textContent = isEmpty
    ? say(mayCreate ? 'emptyText' : 'emptyOnly')
    : say('noHitText', { query: briefName(query.value) })
  const button = find(HTMLButtonElement, 'button', blank)
  button.textContent = say(isEmpty ? 'emptyAction' : 'noHitAction')
  button.hidden = isEmpty && !mayCreate
  find(SVGUseElement, 'use', blank).setAttribute('href', isEmpty ? '#i-key' : '#i-search')
}

function showCount(): void {
  const [some, all] = [number(entries.shown.length), number(entries.total)]
  const isOne = entries.total === 1 && entries.shown.length === 1
  const text = isOne ? say('countOne') : say(some === all ? 'countAll' : 'countSome', { some, all })
  part('count').textContent = text
  clearTimeout(spokenTimer)
  spokenTimer = setTimeout(() => {
    announce(blank.hidden ? text : find(HTMLElement, 'h2', blank).textContent ?? '')
  }, SPOKEN_AFTER_MS)
}
