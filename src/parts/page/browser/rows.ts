/**
 * Rows of the list, whose cells stand in one grid that the style sheet has; and an entry's texts, shown
 * so that nothing is invisible or ambiguous.
 */
import type { Listed } from './answers.ts'
import { breakable, icon, iconButton, make } from './dom.ts'
import { age, daysSince, moment, nameOfUser, number, say, sayCount } from './language.ts'
import { hostIn, pieces, plainText, shortened, unseenIn, webAddress } from './plain.ts'
import { rights } from './state.ts'
import type { TextName } from './texts-es.ts'

/** Older passwords stand out. */
const QUIET_DAYS = 90
const HUES = 8

function userName(text: string): HTMLElement {
  const element = make('bdi', { dir: 'auto' })
  append(element, shortened(text))
  return element
}

/** A web address shows its host, then its path; long names are cut. */
export function nameOf(text: string): HTMLElement {
  const element = make('bdi', { dir: 'auto' })
  const url = webAddress(text)
  const path =
    url === undefined ? '' : decoded(url.pathname + url.search + url.hash).replace(/^\/$/, '')
  append(element, shortened(hostIn(text) ?? text))
  if (path !== '') element.append(make('span', { className: 'path' }))
  if (path !== '') append(element.lastElementChild!, shortened(path))
  return element
}

export function longText(text: string): HTMLElement {
  const element = make('bdi', { dir: 'auto' })
  for (const piece of unseenIn(text, true))
    element.append(...(piece.isName ? [spanOf('unseeable', piece.text)] : breakable(piece.text)))
  return element
}

export function tileOf(sistema: string): HTMLElement {
  const text = hostIn(sistema) ?? sistema
  const tile = make('span', { className: 'tile', ariaHidden: 'true' })
  tile.textContent = /[\p{L}\p{N}]/u.exec(text)?.[0].toUpperCase() ?? '·'
  const sum = [...text.slice(0, 40)].reduce((sum, one) => sum + one.codePointAt(0)!, 0)
  tile.style.setProperty('--hue', String(((sum % HUES) * 360) / HUES))
  return tile
}

/** Undefined if the text is no web address. */
export function linkTo(text: string): HTMLAnchorElement | undefined {
  const url = webAddress(text)
  if (url === undefined) return undefined
  const label = say('visitOf', { name: plainText(text) })
  const link = make(
    'a',
    {
      className: 'icon',
      href: url.href,
      target: '_blank',
      rel: 'noopener noreferrer',
      referrerPolicy: 'no-referrer',
      ariaLabel: label,
      title: say('visit')
    },
    icon('visit')
  )
  link.dataset['act'] = 'visit'
  return link
}

function decoded(path: string): string {
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

export function spanOf(kind: string, text: string): HTMLElement {
  return make('span', { className: kind }, text)
}

function append(element: Element, text: string): void {
  for (const { text: piece, isName } of pieces(text))
    element.append(...(isName ? [spanOf('unseeable', piece)] : breakable(piece)))
}

export type Act =
  | 'view'
  | 'reveal'
  | 'copy'
  | 'copyNotes'
  | 'copyCode'
  | 'copyUser'
  | 'edit'
  | 'change'
  | 'remove'
  | 'restore'
  | 'reused'
  | 'exposed'
  | 'visit'

const ICONS = {
  view: 'eye',
  reveal: 'eye',
  copy: 'copy',
  copyCode: 'code',
  copyUser: 'copy-user',
  edit: 'edit',
  remove: 'delete',
  restore: 'restore'
} as const

type Content = readonly (Node | string)[]

const cell = (className: string, ...content: Content): HTMLElement =>
  make('div', { className, role: 'gridcell' }, ...content)
const place = (className: string, ...cells: readonly HTMLElement[]): HTMLElement =>
  make('div', { className, role: 'none' }, ...cells)

function stop<T extends HTMLElement>(element: T): T {
  element.dataset['stop'] = ''
  element.tabIndex = -1
  return element
}

/** Its name begins with the number that is seen. */
function badge(act: 'exposed' | 'reused', drawing: string, count: number): readonly HTMLElement[] {
  if (count === 0) return []
  const text = `${number(count)}: ${sayCount(count, `${act}One`, `${act}Many`)}`
  const made = make(
    'button',
    { type: 'button', className: `badge ${act}`, ariaLabel: text, title: text },
    icon(drawing),
    number(count)
  )
  made.dataset['act'] = act
  return [stop(made)]
}

function sinceCell({ changed, deleted, deletedBy }: Listed): HTMLElement {
  const time = deleted ?? changed
  const title = time === undefined ? '' : moment(time)
  const since = make('span', { className: 'since', title }, age(time, deleted !== undefined))
  if (deletedBy !== undefined) since.append(spanOf('by-whom', nameOfUser(deletedBy)))
  const isOld = deleted === undefined && daysSince(time) > QUIET_DAYS
  return stop(cell(isOld ? 'changed aged' : 'changed', since))
}

export function createRow(entry: Listed, isDeleted: boolean): HTMLElement {
  const { sistema, usuario, url, grupo, reused = 0, exposed = 0, hasCode } = entry
  const name = plainText(hostIn(sistema) ?? sistema)
  const button = (act: keyof typeof ICONS, isOffered: boolean): HTMLElement => {
    if (!isOffered) return cell(`act ${act}`)
    const own = iconButton(ICONS[act], say(`${act}Of` satisfies TextName, { name }))
    own.title = say(act)
    own.dataset['act'] = act
    if (act === 'restore') own.append(make('span', {}, say(act)))
    return cell(`act ${act}`, stop(own))
  }
  const may = (operation: Parameters<typeof rights.may>[0]): boolean =>
    !isDeleted && rights.may(operation)
  const link = isDeleted ? undefined : linkTo(webAddress(sistema) === undefined ? url : sistema)
  const marks = isDeleted
    ? []
    : [...badge('exposed', 'known', exposed), ...badge('reused', 'same', reused)]
  const system = make('div', { className: 'system', role: 'rowheader' }, tileOf(sistema))
  system.append(nameOf(sistema))
  const row = make(
    'div',
    { className: 'row', role: 'row' },
    stop(system),
    cell('visit', ...(link === undefined ? [] : [stop(link)])),
    place('user-place', stop(cell('user', userName(usuario))), button('copyUser', !isDeleted)),
    cell('group', userName(grupo)),
    cell('marks', ...marks),
    sinceCell(entry),
    place(
      'acts',
      button('reveal', may('getPassword')),
      button('edit', may('updatePassword')),
      button('remove', may('deletePassword'))
    ),
    button('copyCode', hasCode && may('oneTimeCode')),
    isDeleted
      ? button('restore', rights.may('restorePassword'))
      : button('copy', may('getPassword'))
  )
  row.dataset['id'] = String(entry.id)
  return row
}

export function stopsOf(row: HTMLElement): readonly HTMLElement[] {
  return [...row.querySelectorAll<HTMLElement>('[data-stop]')].filter(one => one.checkVisibility())
}

export function explainCut({ target }: Event): void {
  const cell =
    target instanceof Element ? target.closest<HTMLElement>('.system, .user, .group') : null
  const name = cell?.querySelector('bdi')
  if (cell === null || name === null || name === undefined) return
  if (name.scrollWidth > name.clientWidth) cell.title = name.textContent ?? ''
  else cell.removeAttribute('title')
}
