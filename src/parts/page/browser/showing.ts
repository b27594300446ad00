/** Shows the texts of an entry in elements, such that nothing in them is invisible or taken for something else. */
import { MAX_SHOWN_LENGTH, nameOf, pieces, shortened, splitAt, unmarked, unseenIn } from './plain.ts'

/** How much of a text is shown character by character; what comes behind is plain text, so that no tab stops. */
const MAX_MARKED_LENGTH = 2_000

const KINDS = {
  digit: /^\p{Nd}+/u, space: /^ +/, odd: /^\p{Zs}/u, symbol: /^[^\p{L}\p{M}\p{Nd}\p{Zs}]+/u
} as const

/** Shows a name in an element; a long one is cut. */
export function showName(element: Element, text: string): void {
  element.replaceChildren()
  append(element, shortened(text, MAX_SHOWN_LENGTH))
}

/** Shows all of a text. */
export function showLong(element: Element, text: string): void {
  const [head, rest] = splitAt(text, MAX_MARKED_LENGTH)
  element.replaceChildren()
  append(element, head)
  element.append(unmarked(rest))
}

/**
 * Shows a password: digits and symbols are marked, so that 0 and O or 1 and l differ, spaces can be seen, and where
 * Latin letters are mixed with others, the others are marked as well.
 */
export function showSecret(element: Element, text: string): void {
  const [head, rest] = splitAt(text, MAX_MARKED_LENGTH)
  element.replaceChildren()
  const isLatin = /\p{Script=Latin}/u.test(head)
  const letters = isLatin ? { foreign: /^(?!\p{Script=Latin})\p{L}\p{M}*/u,
    plain: /^(?:\p{Script=Latin}|\p{M})+/u } : { plain: /^[\p{L}\p{M}]+/u }
  const runs = Object.entries({ ...KINDS, ...letters })
  for (const piece of unseenIn(head)) {
    if (piece.isName) { element.append(spanOf('unseeable', piece.text)); continue }
    let left = piece.text
    while (left !== '') {
      const found = runs.map(([kind, run]) => [kind, run.exec(left)?.[0] ?? ''] as const).find(([, run]) => run !== '')
      const [kind, run] = found ?? ['plain', String.fromCodePoint(left.codePointAt(0)!)]
      if (kind === 'plain') element.append(run)
      else if (kind === 'odd') element.append(spanOf('unseeable', nameOf(run)))
      else element.append(...(kind === 'space' ? [...run] : [run]).map(one => spanOf(kind, one)))
      left = left.slice(run.length)
    }
  }
  element.append(unmarked(rest))
}

function spanOf(kind: string, text: string): HTMLElement {
  const span = document.createElement('span')
  span.className = kind
  span.textContent = text
  return span
}

function append(element: Element, text: string): void {
  for (const { text: piece, isName } of pieces(text)) {
    if (isName) element.append(spanOf('unseeable', piece))
    else element.append(piece)
  }
}
