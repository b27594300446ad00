/**
 * The text of an entry such that nothing in it is invisible, and nothing changes the direction of what is around it.
 */

/** A piece of a text: as it is, or the number of a character that cannot be seen. */
interface Piece {
  readonly text: string
  readonly isName: boolean
}

/** How much of a name the list shows; the dialog shows all of it. */
const MAX_SHOWN_LENGTH = 400

/** Emoji, with what joins and styles them. */
const EMOJI = String.raw`[0-9#*]\ufe0f\u20e3|\p{Extended_Pictographic}(?:[\ufe0e\ufe0f]|\p{Emoji_Modifier})?` +
  String.raw`(?:\u200d\p{Extended_Pictographic}(?:[\ufe0e\ufe0f]|\p{Emoji_Modifier})?)*`
/**
 * Controls, formats (direction overrides among them), separators, surrogates, fillers and what else is drawn as
 * nothing; the first group is an emoji, which is no such thing. (WebKit gets a lookbehind within a lookahead wrong.)
 */
const UNSEEN = new RegExp(
  String.raw`(${EMOJI})|[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]`, 'gu')

function pieces(text: string): readonly Piece[] {
  const found: Piece[] = []
  let start = 0
  for (const match of text.matchAll(UNSEEN)) {
    if (match[1] !== undefined) continue
    if (match.index > start) found.push({ text: text.slice(start, match.index), isName: false })
    found.push({ text: nameOf(match[0]), isName: true })
    start = match.index + match[0].length
  }
  if (start < text.length) found.push({ text: text.slice(start), isName: false })
  return found
}

/** A name as one text, for a label; a long one is cut. */
export function plainText(text: string): string {
  return shortened(text).replace(UNSEEN, (found, emoji?: string) => emoji ?? `⟨${nameOf(found)}⟩`)
}

/** Shows a name in an element; a long one is cut. */
export function showName(element: Element, text: string): void { showText(element, shortened(text)) }

/** Shows all of a text in an element. */
function showText(element: Element, text: string): void {
  element.replaceChildren()
  for (const { text: piece, isName } of pieces(text)) {
    if (isName) element.append(spanOf('unseeable', piece))
    else element.append(piece)
  }
}

/** The kinds of characters in a password that are taken for each other, or cannot be seen; letters come last. */
const KINDS = {
  digit: /^\p{Nd}+/u, space: /^ +/, odd: /^\p{Zs}/u, symbol: /^[^\p{L}\p{M}\p{Nd}\p{Zs}]+/u
} as const

/**
 * Shows a password: digits and symbols are marked, so that 0 and O or 1 and l differ, spaces can be seen, and where
 * Latin letters are mixed with others, the others are marked as well.
 */
export function showSecret(element: Element, text: string): void {
  element.replaceChildren()
  const isLatin = /\p{Script=Latin}/u.test(text)
  const letters = isLatin ? { foreign: /^(?!\p{Script=Latin})\p{L}\p{M}*/u,
    plain: /^(?:\p{Script=Latin}|\p{M})+/u } : { plain: /^[\p{L}\p{M}]+/u }
  for (const piece of pieces(text)) {
    if (piece.isName) { element.append(spanOf('unseeable', piece.text)); continue }
    let rest = piece.text
    while (rest !== '') {
      const found = Object.entries({ ...KINDS, ...letters }).map(([kind, run]) => [kind,
        run.exec(rest)?.[0] ?? ''] as const)
        .find(([, run]) => run !== '')
      const [kind, run] = found ?? ['plain', String.fromCodePoint(rest.codePointAt(0)!)]
      if (kind === 'plain') element.append(run)
      else if (kind === 'odd') element.append(spanOf('unseeable', nameOf(run)))
      else element.append(...(kind === 'space' ? [...run] : [run]).map(one => spanOf(kind, one)))
      rest = rest.slice(run.length)
    }
  }
}

function spanOf(kind: string, text: string): HTMLElement {
  const span = document.createElement('span')
  span.className = kind
  span.textContent = text
  return span
}

function shortened(text: string): string {
  // A pair of surrogates stays whole.
  return text.length <= MAX_SHOWN_LENGTH ? text : `${text.slice(0, MAX_SHOWN_LENGTH).replace(/[\ud800-\udbff]$/, '')}…`
}

function nameOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
}
