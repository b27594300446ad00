/** One entry as a row of the grid. */
import type { Entry } from './api.ts'
import { find } from './dom.ts'
import { number, say } from './language.ts'
import { plainText } from './plain.ts'
import { showName, showSecret } from './showing.ts'
import { rights } from './state.ts'
import type { TextName } from './texts.ts'

/** What can be done with an entry. */
export type Act = 'view' | 'reveal' | 'copy' | 'copyUser' | 'edit' | 'remove'

const HUES = 8
const HIDDEN = '•'.repeat(8)

/** A new row for an entry. */
export function createRow(entry: Entry, isRevealed: boolean): HTMLElement {
  const copy = find(HTMLTemplateElement, '#row').content.cloneNode(true) as DocumentFragment
  const row = find(HTMLElement, '.row', copy)
  row.dataset['id'] = String(entry.id)
  showTile(find(HTMLElement, '.tile', row), entry)
  showName(find(HTMLElement, '.system bdi', row), entry.sistema)
  showName(find(HTMLElement, '.user bdi', row), entry.usuario)
  for (const button of row.querySelectorAll('button')) label(button, button.dataset['act'] as Act, entry)
  find(HTMLElement, '[data-act=edit]', row).hidden = !rights.may('updatePassword')
  find(HTMLElement, '[data-act=remove]', row).hidden = !rights.may('deletePassword')
  row.classList.toggle('linked', linkTo(find(HTMLAnchorElement, '.visit a', row), entry))
  showPassword(row, entry, isRevealed)
  return row
}

/** The first letter of a system on a colour of its own. */
export function showTile(tile: HTMLElement, { sistema }: Entry): void {
  tile.textContent = /[\p{L}\p{N}]/u.exec(sistema)?.[0].toUpperCase() ?? '·'
  const sum = [...sistema.slice(0, 40)].reduce((sum, one) => sum + one.codePointAt(0)!, 0)
  tile.style.setProperty('--hue', String(sum % HUES * 360 / HUES))
}

/** Shows an entry's password in its row, or hides it; its length is hidden too. */
export function showPassword(row: HTMLElement, entry: Entry, isRevealed: boolean): void {
  const cell = find(HTMLElement, '.password', row)
  const text = find(HTMLElement, 'bdi', cell)
  row.classList.toggle('open', isRevealed)
  cell.classList.toggle('revealed', isRevealed)
  cell.ariaLabel = isRevealed ? null : say('hidden')
  if (isRevealed) showSecret(text, entry.password)
  else text.textContent = HIDDEN
  const button = find(HTMLButtonElement, '[data-act=reveal]', row)
  find(SVGUseElement, 'use', button).setAttribute('href', isRevealed ? '#i-hide' : '#i-eye')
  label(button, isRevealed ? 'hide' : 'reveal', entry)
}

/** A system that is a web address can be visited, unless that carries a user or a password; gives whether it is. */
export function linkTo(anchor: HTMLAnchorElement, { sistema }: Entry): boolean {
  const url = /^https?:\/\/\S+$/i.test(sistema) && URL.canParse(sistema) ? new URL(sistema) : undefined
  const isSafe = url !== undefined && url.username === '' && url.password === ''
  anchor.hidden = !isSafe
  if (!isSafe) return false
  anchor.href = url.href
  anchor.ariaLabel = say('visitOf', { name: plainText(sistema) })
  anchor.title = say('visit')
  return true
}

function label(button: HTMLButtonElement, act: Act | 'hide', entry: Entry): void {
  button.ariaLabel = say(`${act}Of` satisfies TextName, { name: plainText(entry.sistema) })
  button.title = say(act)
}

/** What an arrow key moves a text by, as a share of what of it is in sight. */
const STEPS: { readonly [key: string]: number } = { ArrowDown: .8, ArrowUp: -.8 }

/** Scrolls a revealed password that is higher than its cell; false where there is no more of it on that side. */
export function scrolls(cell: HTMLElement, key: string): boolean {
  if (!cell.classList.contains('revealed') || !Object.hasOwn(STEPS, key)) return false
  const before = cell.scrollTop
  cell.scrollBy({ top: STEPS[key]! * cell.clientHeight, behavior: 'instant' })
  return cell.scrollTop !== before
}

/** The elements of a row that the keyboard can reach; a narrow window shows fewer of them. */
export function stopsOf(row: HTMLElement): readonly HTMLElement[] {
  return [...row.querySelectorAll<HTMLElement>('[data-stop]:not([hidden])')].filter(one => one.checkVisibility())
}

/** A name that is cut shows whole under the pointer. */
export function explainCut({ target }: Event): void {
  const cell = target instanceof Element ? target.closest<HTMLElement>('.system, .user') : null
  if (cell === null) return
  if (cell.scrollWidth > cell.clientWidth) cell.title = cell.textContent ?? ''
  else cell.removeAttribute('title')
}

/** The heading of a group; assistive technology finds the system in every row. */
export function createHeading(entry: Entry, count: number): HTMLElement {
  const heading = document.createElement('div')
  heading.className = 'group'
  heading.ariaHidden = 'true'
  const name = document.createElement('bdi')
  showName(name, entry.sistema)
  heading.append(name, ` ${number(count)}`)
  return heading
}

/** How high a row is, and a heading, once they are in the document. */
export function heightsOf(entry: Entry, holder: HTMLElement): { readonly row: number, readonly heading: number } {
  const [row, heading] = [createRow(entry, false), createHeading(entry, 2)]
  holder.append(row, heading)
  const heights = { row: row.offsetHeight, heading: heading.offsetHeight }
  row.remove()
  heading.remove()
  return heights
}
