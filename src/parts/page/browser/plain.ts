/** The text of an entry such that no control, format or direction in it goes unseen, or changes what is around it. */

/** A piece of a text: as it is, or the number of a character that cannot be seen. */
export interface Piece {
  readonly text: string
  readonly isName: boolean
}

/** How much of a name the list shows, and a message; the dialog shows all of it. */
const MAX_SHOWN_LENGTH = 400
const MAX_BRIEF_LENGTH = 40
/** Controls, formats (direction overrides among them), separators of lines, and halves of pairs. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
/** A text in which there is nothing to be seen. */
const BLANK = /^\p{Zs}+$/u

/** The pieces of a name; one of nothing but spaces shows them. */
export function pieces(text: string): readonly Piece[] {
  return BLANK.test(text) ? [...text].map(one => ({ text: numberOf(one), isName: true })) : unseenIn(text)
}

/** The pieces of a text, spaces as they are; line breaks too, if they are to be kept. */
export function unseenIn(text: string, keepsBreaks: boolean = false): readonly Piece[] {
  const found: Piece[] = []
  let start = 0
  for (const { 0: one, index } of text.matchAll(UNSEEN)) {
    if (keepsBreaks && (one === '\n' || (one === '\r' && text[index + 1] === '\n'))) continue
    if (index > start) found.push({ text: text.slice(start, index), isName: false })
    found.push({ text: numberOf(one), isName: true })
    start = index + one.length
  }
  if (start < text.length) found.push({ text: text.slice(start), isName: false })
  return found
}

export function plainText(text: string, length: number = MAX_SHOWN_LENGTH): string {
  return pieces(shortened(text, length)).map(one => one.isName ? `⟨${one.text}⟩` : one.text).join('')
}

export function briefName(text: string): string { return plainText(text, MAX_BRIEF_LENGTH) }

/** Sentences in a row: a full stop where one has none of its own. */
export function sentences(...all: readonly string[]): string {
  const said = all.filter(one => one !== '')
  return said.map((one, i) => i < said.length - 1 && !/[.!?…]$/.test(one) ? `${one}.` : one).join(' ')
}

/** A text, cut if it is longer; a pair of surrogates stays whole. */
export function shortened(text: string, length: number = MAX_SHOWN_LENGTH): string {
  return text.length <= length ? text : `${text.slice(0, length).replace(/[\ud800-\udbff]$/, '')}…`
}

export function linesIn(text: string): number { return text.split('\n').length }

export function numberOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
}

/** The web address that a text is; undefined if it is none, or carries a user or a password. */
export function webAddress(text: string): URL | undefined {
  const url = /^https?:\/\/\S+$/i.test(text) && URL.canParse(text) ? new URL(text) : undefined
  return url?.username === '' && url.password === '' ? url : undefined
}
