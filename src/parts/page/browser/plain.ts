/**
 * The text of an entry such that nothing in it is invisible, and nothing changes the direction of what is around it.
 */

/** A piece of a text: as it is, or the number of a character that cannot be seen. */
export interface Piece {
  readonly text: string
  readonly isName: boolean
}

/** How much of a name the list shows, and a message; the dialog shows all of it. */
export const MAX_SHOWN_LENGTH = 400
const MAX_BRIEF_LENGTH = 60
/** Emoji, with what joins and styles them. */
const EMOJI = String.raw`[0-9#*]\ufe0f\u20e3|\p{Extended_Pictographic}(?:[\ufe0e\ufe0f]|\p{Emoji_Modifier})?` +
  String.raw`(?:\u200d\p{Extended_Pictographic}(?:[\ufe0e\ufe0f]|\p{Emoji_Modifier})?)*`
/**
 * Controls, formats (direction overrides among them), separators, surrogates, fillers, what else is drawn as nothing,
 * and what is no character at all; the first group is an emoji, which is no such thing. (WebKit gets a lookbehind
 * within a lookahead wrong.)
 */
const UNSEEN = new RegExp(
  String.raw`(${EMOJI})|[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}` +
  String.raw`\p{Noncharacter_Code_Point}\u2800]`, 'gu')
/** A text in which there is nothing to be seen. */
const BLANK = /^\p{Zs}+$/u

/** The pieces of a name; one of nothing but spaces shows them. */
export function pieces(text: string): readonly Piece[] {
  if (BLANK.test(text)) return [...text].map(one => ({ text: nameOf(one), isName: true }))
  return unseenIn(text)
}

/** The pieces of a text, spaces as they are. */
export function unseenIn(text: string): readonly Piece[] {
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
export function plainText(text: string, length: number = MAX_SHOWN_LENGTH): string {
  return unmarked(shortened(text, length))
}

/** A name within a message: a longer one is cut earlier. */
export function briefName(text: string): string { return plainText(text, MAX_BRIEF_LENGTH) }

/** Sentences in a row: a full stop where one has none of its own. */
export function sentences(...all: readonly string[]): string {
  const said = all.filter(one => one !== '')
  return said.map((one, i) => i < said.length - 1 && !/[.!?…]$/.test(one) ? `${one}.` : one).join(' ')
}

/** Without elements: what cannot be seen is shown by its number between brackets. */
export function unmarked(text: string): string {
  if (BLANK.test(text)) return [...text].map(one => `⟨${nameOf(one)}⟩`).join('')
  return text.replace(UNSEEN, (found, emoji?: string) => emoji ?? `⟨${nameOf(found)}⟩`)
}

/** A text, cut if it is longer. */
export function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${splitAt(text, length)[0]}…`
}

/** A text in two; a pair of surrogates stays whole. */
export function splitAt(text: string, length: number): readonly [string, string] {
  const at = /[\ud800-\udbff]/.test(text[length - 1] ?? '') && text.length > length ? length - 1 : length
  return [text.slice(0, at), text.slice(at)]
}

/** The number of a character. */
export function nameOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
}
