/**
 * Makes invisible characters of an entry's text visible, so that they cannot change the text
 * around.
 */

/** Literal text, or the number (`U+…`) of an invisible character. */
export interface Piece {
  readonly text: string
  readonly isName: boolean
}

const MAX_SHOWN_LENGTH = 400
const MAX_BRIEF_LENGTH = 40
/** Controls, formats (direction overrides among them), line separators, and lone surrogates. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
const BLANK = /^\p{Zs}+$/u
/** A zero width joiner between two emoji makes them one; elsewhere it is unseen. */
const BEFORE_JOINER = /\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]?$/u
const AFTER_JOINER = /^\p{Extended_Pictographic}/u

/** A name of spaces only shows each space. */
export function pieces(text: string): readonly Piece[] {
  return BLANK.test(text)
    ? [...text].map(one => ({ text: numberOf(one), isName: true }))
    : unseenIn(text)
}

/** Spaces stay; line breaks stay if `keepsBreaks`. */
export function unseenIn(text: string, keepsBreaks: boolean = false): readonly Piece[] {
  const found: Piece[] = []
  let start = 0
  for (const { 0: one, index } of text.matchAll(UNSEEN)) {
    const end = index + one.length
    const isJoiner =
      one === '\u200d' &&
      BEFORE_JOINER.test(text.slice(Math.max(0, index - 4), index)) &&
      AFTER_JOINER.test(text.slice(end, end + 2))
    if (isJoiner) continue
    if (keepsBreaks && (one === '\n' || (one === '\r' && text[index + 1] === '\n'))) continue
    if (index > start) found.push({ text: text.slice(start, index), isName: false })
    found.push({ text: numberOf(one), isName: true })
    start = end
  }
  if (start < text.length) found.push({ text: text.slice(start), isName: false })
  return found
}

export function plainText(text: string, length: number = MAX_SHOWN_LENGTH): string {
  return pieces(shortened(text, length))
    .map(one => (one.isName ? `⟨${one.text}⟩` : one.text))
    .join('')
}

export function briefName(text: string): string {
  return plainText(text, MAX_BRIEF_LENGTH)
}

/** Adds full stops between them. */
export function sentences(...all: readonly string[]): string {
  const said = all.filter(one => one !== '')
  return said
    .map((one, i) => (i < said.length - 1 && !/[.!?…]$/.test(one) ? `${one}.` : one))
    .join(' ')
}

/** Never splits what is seen as one character. */
export function shortened(text: string, length: number = MAX_SHOWN_LENGTH): string {
  if (text.length <= length) return text
  const segments = new Intl.Segmenter().segment(text.slice(0, length + MAX_BRIEF_LENGTH))
  return `${text.slice(0, segments.containing(length)?.index ?? length)}…`
}

export function linesIn(text: string): number {
  return text.split('\n').length
}

export function numberOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
}

/** Undefined for other texts, and if it carries a user or a password. */
export function webAddress(text: string): URL | undefined {
  const url = /^https?:\/\/\S+$/i.test(text) && URL.canParse(text) ? new URL(text) : undefined
  return url?.username === '' && url.password === '' ? url : undefined
}

/** Letters that look like Latin ones. */
const ALIKE = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}]/u

/**
 * As it was typed, and not in Punycode, unless it could be taken for another host. Undefined if
 * `webAddress` is.
 */
export function hostIn(text: string): string | undefined {
  const host = webAddress(text)?.host
  const typed = /^https?:\/\/([^/?#\\]+)/i.exec(text)?.[1]?.toLowerCase() ?? ''
  const isMixed = ALIKE.test(typed) && /\p{Script=Latin}/u.test(typed)
  if (host === undefined || isMixed || /^[\0-\x7f]*$/.test(typed)) return host
  return URL.canParse(`https://${typed}`) && new URL(`https://${typed}`).host === host
    ? typed
    : host
}
