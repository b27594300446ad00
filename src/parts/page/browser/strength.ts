/** How hard a typed password is to guess: an estimate in bits, worked out in the page. */
import { ENGLISH_WORDS, SPANISH_WORDS } from './words.ts'

/** From here on a password counts as fair, and as strong. */
export const FAIR_BITS = 50
export const STRONG_BITS = 80

/** What is tried first. */
const COMMON = ('password contraseña contrasena passwort qwerty qwertz azerty admin administrador root letmein ' +
  'welcome ' +
  'bienvenido iloveyou teamo tequiero dragon monkey football futbol barcelona realmadrid master login abc123 secret ' +
  'secreto secreta hola hello princess princesa sunshine estrella shadow superman batman pokemon google usuario user ' +
  'test prueba default guest invitado changeme access temporal clave passw0rd p@ssw0rd pass router wifi').split(' ')
const ROWS = ['abcdefghijklmnopqrstuvwxyz', '01234567890', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm']
  .flatMap(row => [row, [...row].reverse().join('')])
const ALPHABETS: readonly (readonly [RegExp, number])[] =
  [[/[a-z]/, 26], [/[A-Z]/, 26], [/\d/, 10], [/[!-/:-@[-`{-~ ]/, 33], [/[^\x20-\x7e]/, 100]]
const WORDS = new Set([...ENGLISH_WORDS, ...SPANISH_WORDS])
/** More of a text than this changes nothing. */
const MAX_LENGTH = 200

/**
 * The bits of the cheapest way to put the text together from known words, rows of keys, repeats, years and
 * characters.
 */
export function estimateBits(text: string): number {
  const whole = text.slice(0, MAX_LENGTH)
  const lower = whole.toLowerCase()
  const alphabet = ALPHABETS.reduce((sum, [characters, size]) => characters.test(whole) ? sum + size : sum, 0)
  const best = [0]
  for (let end = 1; end <= whole.length; end++) {
    let least = Infinity
    for (let start = 0; start < end; start++) {
      least = Math.min(least, best[start]! + bitsOfPart(whole, lower, start, end, alphabet))
    }
    best.push(least)
  }
  return Math.floor(best.at(-1)!)
}

function bitsOfPart(whole: string, lower: string, start: number, end: number, alphabet: number): number {
  const part = lower.slice(start, end)
  const capitals = whole.slice(start, end) === part ? 0 : 1
  if (part.length === 1) {
    // The same sign between all words is chosen once.
    const isRepeatedSign = !/[\p{L}\p{N}]/u.test(part) && whole.slice(0, start).includes(part)
    return isRepeatedSign ? 1 : Math.log2(alphabet)
  }
  if (COMMON.includes(part)) return Math.log2(COMMON.length) + capitals
  if (part.length > 2 && WORDS.has(part)) return Math.log2(WORDS.size) + capitals
  if (part.length > 2 && part === part[0]!.repeat(part.length)) return Math.log2(alphabet * part.length)
  if (part.length > 2 && ROWS.some(row => row.includes(part))) return Math.log2(100 * part.length) + capitals
  if (/^(19|20)\d\d$/.test(part)) return Math.log2(200)
  return Infinity
}
