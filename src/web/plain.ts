/** Text of an entry as a person can trust it: nothing in it is invisible, and nothing turns what stands around it. */

/** A piece of a text: as it is, or the name of a character that cannot be seen. */
interface Piece {
  readonly text: string
  readonly isName: boolean
}

/** What is shown of a name in a list; the whole is in the dialog. */
const MAX_SHOWN_LENGTH = 400

/**
 * Controls, formats (direction overrides among them), separators, surrogates, fillers and what else is drawn as
 * nothing; not what joins or styles an emoji.
 */
const UNSEEN = new RegExp(String.raw`(?!(?<=[\p{Extended_Pictographic}\ufe0f\p{Emoji_Modifier}])\u200d)` +
  String.raw`(?!(?<=\p{Extended_Pictographic})[\ufe0e\ufe0f])(?!(?<=[0-9#*])\ufe0f\u20e3)` +
  String.raw`[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]`, 'gu')

function pieces(text: string): readonly Piece[] {
  const found: Piece[] = []
  let start = 0
  for (const match of text.matchAll(UNSEEN)) {
    if (match.index > start) found.push({ text: text.slice(start, match.index), isName: false })
    found.push({ text: nameOf(match[0]), isName: true })
    start = match.index + match[0].length
  }
  if (start < text.length) found.push({ text: text.slice(start), isName: false })
  return found
}

/** A name as one text, for a label; a long one is cut. */
export function plainText(text: string): string {
  return shortened(text).replace(UNSEEN, character => `⟨${nameOf(character)}⟩`)
}

/** Shows a name in an element; a long one is cut. */
export function showName(element: Element, text: string): void { showText(element, shortened(text)) }

/** Shows a text in an element, all of it. */
export function showText(element: Element, text: string): void {
  element.replaceChildren()
  for (const piece of pieces(text)) {
    if (!piece.isName) { element.append(piece.text); continue }
    const name = document.createElement('span')
    name.className = 'unseeable'
    name.textContent = piece.text
    element.append(name)
  }
}

function shortened(text: string): string {
  // A pair of surrogates stays whole.
  return text.length <= MAX_SHOWN_LENGTH ? text : `${text.slice(0, MAX_SHOWN_LENGTH).replace(/[\ud800-\udbff]$/, '')}…`
}

function nameOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
}
