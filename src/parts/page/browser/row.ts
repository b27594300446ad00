/** One entry as a row of the grid. */
import type { Entry, Operation } from './api.ts'
import { find } from './dom.ts'
import { number, say } from './language.ts'
import { plainText, showName, showSecret } from './plain.ts'
import type { TextName } from './texts.ts'

/** What can be done with an entry. */
export type Act = 'reveal' | 'copy' | 'copyUser' | 'edit' | 'remove'

const HUES = 8
const DOTS = '•'.repeat(8)

/** A new row for an entry. */
export function createRow(entry: Entry, isRevealed: boolean, denied: ReadonlySet<Operation>): HTMLElement {
  const copy = find(HTMLTemplateElement, '#row').content.cloneNode(true) as DocumentFragment
  const row = find(HTMLElement, '.row', copy)
  row.dataset['id'] = String(entry.id)
  const tile = find(HTMLElement, '.tile', row)
  tile.textContent = /[\p{L}\p{N}]/u.exec(entry.sistema)?.[0].toUpperCase() ?? '·'
  const sum = [...entry.sistema.slice(0, 40)].reduce((sum, one) => sum + one.codePointAt(0)!, 0)
  tile.dataset['hue'] = String(sum % HUES)
  showName(find(HTMLElement, '.system bdi', row), entry.sistema)
  showName(find(HTMLElement, '.user bdi', row), entry.usuario)
  for (const button of row.querySelectorAll('button')) {
    const act = button.dataset['act'] as Act
    label(button, act === 'edit' && denied.has('update') ? 'open' : act, entry)
    button.hidden = act === 'remove' && denied.has('remove')
  }
  link(row, entry)
  showPassword(row, entry, isRevealed)
  return row
}

/** Shows an entry's password in its row, or hides it; its length is hidden too. */
export function showPassword(row: HTMLElement, entry: Entry, isRevealed: boolean): void {
  const cell = find(HTMLElement, '.password', row)
  const text = find(HTMLElement, 'bdi', cell)
  row.classList.toggle('open', isRevealed)
  cell.classList.toggle('revealed', isRevealed)
  cell.ariaLabel = isRevealed ? null : say('hidden')
  if (isRevealed) showSecret(text, entry.password)
  else text.textContent = DOTS
  const button = find(HTMLButtonElement, '[data-act=reveal]', row)
  find(SVGUseElement, 'use', button).setAttribute('href', isRevealed ? '#i-hide' : '#i-eye')
  label(button, isRevealed ? 'hide' : 'reveal', entry)
}

/** A system that is a web address can be visited; the address must not carry a user or a password. */
function link(row: HTMLElement, { sistema }: Entry): void {
  const anchor = find(HTMLAnchorElement, '.visit a', row)
  const url = /^https?:\/\/\S+$/i.test(sistema) && URL.canParse(sistema) ? new URL(sistema) : undefined
  const isSafe = url !== undefined && url.username === '' && url.password === ''
  anchor.hidden = !isSafe
  row.classList.toggle('linked', isSafe)
  if (!isSafe) return
  anchor.href = url.href
  anchor.ariaLabel = say('visitOf', { name: plainText(sistema) })
  anchor.title = say('visit')
}

function label(button: HTMLButtonElement, act: Act | 'hide' | 'open', entry: Entry): void {
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

/** The elements of a row that the keyboard can reach. */
export function stopsOf(row: HTMLElement): readonly HTMLElement[] {
  return [...row.querySelectorAll<HTMLElement>('[data-stop]:not([hidden])')]
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
