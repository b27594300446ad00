/** Which new passwords of users are guessed at once (NIST SP 800-63B, §5.1.1.2). */
import { MAX_LOGIN_PASSWORD_LENGTH, MIN_LOGIN_PASSWORD_CHARACTERS } from '../limits.ts'
import { COMMONEST } from './common-words.ts'
import { LONE_SURROGATE } from './passwords.ts'
import { also, textUpTo, type Rule } from '../rights/validate.ts'

const SERVICE = ['password', 'entry', 'service', 'passwordentryservice']
/** Keys in the order in which fingers go over them. */
const ROWS = [
  '01234567890',
  'abcdefghijklmnopqrstuvwxyz',
  'qwertyuiop',
  'asdfghjkl',
  'zxcvbnm',
  '1q2w3e4r5t6y7u8i9o0p',
  'q1w2e3r4t5y6u7i8o9p0',
  'a1s2d3f4g5h6j7k8l9',
  '1a2s3d4f5g6h7j8k9l',
  'z1x2c3v4b5n6m7',
  '1z2x3c4v5b6n7m',
  'qazwsxedcrfvtgbyhnujmikolp',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p',
  '1qazxsw23edcvfr45tgbnhy6',
  'qazxswedcvfrtgbnhy',
  'zaqxswcdevfrbgtnhy',
  'zaq1xsw2cde3vfr4bgt5nhy6',
  'qwaszxerdfcv',
  'qawsedrftgyhujikolp',
  'azsxdcfvgbhnjm',
  '1qa2ws3ed4rf5tg',
  '12qw34er56ty'
]
const RUNS = [...ROWS, ...ROWS.map(row => [...row].reverse().join(''))]
const LEAST_RUN_CHARACTERS = 3
const MOST_PIECES = 3
/** Nobody guesses longer ones by these rules. */
const MOST_JUDGED_CHARACTERS = 128
const ALIKE: { readonly [character: string]: string } = {
  '@': 'a',
  '4': 'a',
  '0': 'o',
  '1': 'i',
  '!': 'i',
  '3': 'e',
  '$': 's',
  '5': 's',
  '7': 't'
}
/** One to four characters, again and again. */
const REPEATED = /^(.{1,4}?)\1+$/s
const NO_LETTERS = /^\P{L}{1,4}$/u

let commonest: ReadonlySet<string> | undefined

/** For new passwords; old ones may break it. */
export const newPassword: Rule<string> = also(
  textUpTo(MAX_LOGIN_PASSWORD_LENGTH),
  (field, password) => {
    if (LONE_SURROGATE.test(password))
      return `The ${field} field must be Unicode without halves of surrogate pairs.`
    // HMAC fills keys with NUL: `a` and `a` with a NUL would be one password.
    if (password.includes('\0')) return `The ${field} field must not have a NUL character.`
    if ([...password.normalize('NFC')].length >= MIN_LOGIN_PASSWORD_CHARACTERS) return undefined
    return `The ${field} field must be at least ${MIN_LOGIN_PASSWORD_CHARACTERS} characters.`
  }
)

/** Undefined for a good password. */
export function passwordFault(
  password: string,
  email: string,
  field: string = 'password'
): string | undefined {
  return (
    newPassword.fault(field, password) ??
    (isGuessed(password, email)
      ? `The ${field} field must not be made of a few common words, digits, keys in their order, ` +
        'the address or the name of this service: such passwords are guessed first.'
      : undefined)
  )
}

function isGuessed(password: string, email: string): boolean {
  const text = comparable(password)
  const unit = /^(.+?)\1+$/s.exec(text)?.[1] ?? text
  const own = new Set([...SERVICE, ...partsOf(comparable(email))])
  return REPEATED.test(text) || piecesOf(unit, own) <= MOST_PIECES
}

function lettersOf(piece: string): string {
  return [...piece].map(one => ALIKE[one] ?? one).join('')
}

function comparable(text: string): string {
  return text
    .toLowerCase()
    .normalize('NFD')
    .replace(/\p{M}+/gu, '')
}

/** The whole, what stands before and behind the @, and their words. */
function partsOf(email: string): readonly string[] {
  return [email, ...email.split('@'), ...email.split(/[^\p{L}]+/u)].filter(part => part.length > 1)
}

/**
 * The least number of words, runs of keys and short texts without letters that make the whole text.
 * Own words do not count. Infinity above `MOST_PIECES`.
 */
function piecesOf(text: string, own: ReadonlySet<string>): number {
  commonest ??= new Set(COMMONEST.trim().split(/\s+/))
  const words = commonest
  if (text.length > MOST_JUDGED_CHARACTERS) return Infinity
  const countOf = (piece: string): number => {
    if (own.has(piece)) return 0
    const isRun =
      piece.length >= LEAST_RUN_CHARACTERS &&
      (REPEATED.test(piece) || RUNS.some(run => run.includes(piece)))
    return isRun || words.has(piece) || words.has(lettersOf(piece)) || NO_LETTERS.test(piece)
      ? 1
      : Infinity
  }
  const least = [0]
  for (let end = 1; end <= text.length; end++) {
    least[end] = Infinity
    for (let start = 0; start < end; start++) {
      if (least[start]! > MOST_PIECES) continue
      least[end] = Math.min(least[end]!, least[start]! + countOf(text.slice(start, end)))
    }
  }
  return least[text.length]!
}
