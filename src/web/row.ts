/** One entry as a row of the grid. */
import type { Entry, Operation } from './api.ts'
import { find } from './dom.ts'
import { say } from './language.ts'
import { plainText, showName, showText } from './plain.ts'
import type { TextName } from './texts.ts'

/** What can be done with an entry. */
export type Act = 'reveal' | 'copy' | 'edit' | 'remove'

const NEEDS: { readonly [act in Act]: Operation | undefined } = {
  reveal: undefined, copy: undefined, edit: 'update', remove: 'remove'
}
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
    const needed = NEEDS[button.dataset['act'] as Act]
    button.hidden = needed !== undefined && denied.has(needed)
    label(button, button.dataset['act'] as Act, entry)
  }
  showPassword(row, entry, isRevealed)
  return row
}

/** Shows an entry's password in its row, or hides it; how long it is stays hidden too. */
export function showPassword(row: HTMLElement, entry: Entry, isRevealed: boolean): void {
  const cell = find(HTMLElement, '.password', row)
  const text = find(HTMLElement, 'bdi', cell)
  cell.classList.toggle('revealed', isRevealed)
  cell.ariaLabel = isRevealed ? null : say('hidden')
  if (isRevealed) showText(text, entry.password)
  else text.textContent = DOTS
  const button = find(HTMLButtonElement, '[data-act=reveal]', row)
  find(SVGUseElement, 'use', button).setAttribute('href', isRevealed ? '#i-hide' : '#i-eye')
  label(button, isRevealed ? 'hide' : 'reveal', entry)
}

function label(button: HTMLButtonElement, act: Act | 'hide', entry: Entry): void {
  button.ariaLabel = say(`${act}Of` satisfies TextName, { name: plainText(entry.sistema) })
  button.title = say(act)
}
