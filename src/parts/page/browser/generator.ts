/** Passwords by chance: each of the possible ones is as likely as any other. */

/** Fills an array with random numbers, as `crypto.getRandomValues` does. */
export type Random = (into: Uint32Array) => unknown

/** The classes of characters; without those that are easily taken for each other. */
export const CLASSES = {
  lower: 'abcdefghijkmnopqrstuvwxyz',
  upper: 'ABCDEFGHJKLMNPQRSTUVWXYZ',
  digits: '23456789',
  symbols: '!#$%&()*+,-./:;<=>?@[]^_{}~'
} as const

/** The name of a class. */
export type Class = keyof typeof CLASSES

const RANGE = 2 ** 32

/** A number from 0 to below `bound`, without modulo bias: what lies behind the last whole multiple is drawn again. */
export function randomBelow(bound: number, random: Random): number {
  const one = new Uint32Array(1)
  const limit = RANGE - RANGE % bound
  do random(one)
  while (one[0]! >= limit)
  return one[0]! % bound
}

/** Characters of the classes, at least one of each: whole passwords are drawn until one is such. */
export function characters(length: number, classes: readonly Class[], random: Random): string {
  const alphabet = classes.map(name => CLASSES[name]).join('')
  for (;;) {
    const drawn = Array.from({ length }, () => alphabet[randomBelow(alphabet.length, random)]!)
    if (classes.every(name => drawn.some(one => CLASSES[name].includes(one)))) return drawn.join('')
  }
}

/** That many words of a list, with hyphens between them. */
export function passphrase(count: number, words: readonly string[], random: Random): string {
  return Array.from({ length: count }, () => words[randomBelow(words.length, random)]!).join('-')
}

/** How many bits there are to guess in `count` draws out of `choices`. */
export function bitsOf(count: number, choices: number): number { return Math.floor(count * Math.log2(choices)) }
