/** Random passwords: each possible password is equally likely. */

/** As `crypto.getRandomValues` does. */
export type Random = (into: Uint32Array) => unknown

/** Without characters easily taken for another. */
export const CLASSES = {
  lower: 'abcdefghijkmnopqrstuvwxyz',
  upper: 'ABCDEFGHJKLMNPQRSTUVWXYZ',
  digits: '23456789',
  symbols: '!#$%&()*+,-./:;<=>?@[]^_{}~'
} as const

export type Class = keyof typeof CLASSES

const RANGE = 2 ** 32

/** From 0 to below `bound`. Draws again beyond the last whole multiple: no modulo bias. */
export function randomBelow(bound: number, random: Random): number {
  const one = new Uint32Array(1)
  const limit = RANGE - (RANGE % bound)
  do random(one)
  while (one[0]! >= limit)
  return one[0]! % bound
}

/**
 * At least one character of each class. Whole passwords are redrawn, so that all stay equally
 * likely.
 */
export function characters(length: number, classes: readonly Class[], random: Random): string {
  const alphabet = classes.map(name => CLASSES[name]).join('')
  for (;;) {
    const drawn = Array.from({ length }, () => alphabet[randomBelow(alphabet.length, random)]!)
    if (classes.every(name => drawn.some(one => CLASSES[name].includes(one)))) return drawn.join('')
  }
}

/** Some services ask for these. */
export interface Extras {
  readonly hasCapital: boolean
  readonly hasDigit: boolean
}

export function passphrase(
  count: number,
  words: readonly string[],
  extras: Extras,
  random: Random
): string {
  const drawn = Array.from({ length: count }, () => words[randomBelow(words.length, random)]!)
  const change = (to: (word: string) => string): void => {
    const at = randomBelow(count, random)
    drawn[at] = to(drawn[at]!)
  }
  if (extras.hasCapital) change(word => word[0]!.toUpperCase() + word.slice(1))
  if (extras.hasDigit) change(word => word + randomBelow(10, random))
  return drawn.join('-')
}

/** The entropy of draws with that many choices each. */
export function bitsOf(...choices: readonly number[]): number {
  return Math.floor(choices.reduce((sum, one) => sum + Math.log2(one), 0))
}
