/** The page's texts, in the browser's language unless the address or a person chooses another. */
import { isWait, type Refusal } from './answers.ts'
import { recall, remember } from './dom.ts'
import { plainText, sentences } from './plain.ts'
import { TEXTS, type TextName } from './texts.ts'

export type Language = keyof typeof TEXTS

const DAY_MS = 86_400_000
/** Days; longest first. */
const UNITS = [
  ['year', 365],
  ['month', 30.44],
  ['day', 1]
] as const

let chosen: Language | undefined

export function languageNow(): Language {
  return (chosen ??= preferred())
}

export function setLanguage(next: Language): void {
  chosen = next
  remember('lang', next)
}

export function say(
  name: TextName,
  filled: { readonly [name: string]: string | number } = {}
): string {
  return TEXTS[languageNow()][name].replace(/\{(\w+)\}/g, (_whole, key: string) =>
    String(filled[key])
  )
}

export function sayCount(count: number, one: TextName, many: TextName): string {
  return say(count === 1 ? one : many, { count: number(count) })
}

export function number(value: number): string {
  return value.toLocaleString(languageNow())
}

export function moment(time: string): string {
  return new Date(time).toLocaleString(languageNow())
}

/** In whole years, months or days ("3 months"); empty if unknown. */
export function age(time: string | undefined, isAgo: boolean = false): string {
  const days = Math.floor((Date.now() - Date.parse(time ?? '')) / DAY_MS)
  if (Number.isNaN(days)) return ''
  const [unit, length] = UNITS.find(([, length]) => days >= length) ?? ['day', 1]
  const count = Math.max(0, Math.floor(days / length))
  if (count === 0) return say('today')
  if (isAgo) return new Intl.RelativeTimeFormat(languageNow()).format(-count, unit)
  return new Intl.NumberFormat(languageNow(), { style: 'unit', unit, unitDisplay: 'long' }).format(
    count
  )
}

function preferred(): Language {
  const known = [recall('lang'), ...navigator.languages]
    .map(tag => tag?.slice(0, 2))
    .find(tag => tag === 'es' || tag === 'en')
  return known === 'es' || known === 'en' ? known : 'en'
}

/** A title and a sentence; `secondsLeft` counts down the wait. */
export function explain(
  refusal: Refusal,
  secondsLeft: number = refusal.waitSeconds
): readonly [string, string] {
  const { why, message, requestId } = refusal
  if (why === 'lost') return [say(navigator.onLine ? 'lostTitle' : 'offlineTitle'), say('lostText')]
  if (why === 'forbidden') return [say('forbiddenTitle'), say('forbiddenText')]
  if (why === 'unknown' || why === 'changed') return [say('failedTitle'), say('gone')]
  if (why === 'large') return [say('failedTitle'), say('tooLong')]
  if (isWait(refusal)) {
    const text = secondsLeft > 0 ? say('waitText', { seconds: secondsLeft }) : say('waitOver')
    return [say(why === 'busy' ? 'busyTitle' : 'limitedTitle'), text]
  }
  const text = say('failedText', { message: plainText(message) })
  return [
    say('failedTitle'),
    requestId === '' ? text : `${text} · ${say('request', { id: requestId })}`
  ]
}

/** The service's sentences about a field, in their English; names of groups may have spaces. */
const REFUSED: readonly (readonly [sentence: RegExp, text: TextName])[] = [
  [/field is required\.$/, 'required'],
  [/at least (?<count>\d+) characters\.$/, 'atLeast'],
  [/not be greater than (?<count>\d+) characters\.$/, 'atMost'],
  [/halves of surrogate pairs|NUL/, 'notWritable'],
  [/current password is not correct/, 'badCurrent'],
  [/be the address|of the address/, 'notAddress'],
  [/common/, 'common'],
  [/keys/, 'keyRow'],
  [/digits/, 'onlyDigits'],
  [/email address\.$/, 'badEmail'],
  [/base32 secret/, 'badOtp'],
  [/^The grupo field must be one of (?<names>.*)\.$/, 'badGroup'],
  [/^The grupo field must be a group of yours/, 'noGroup'],
  [/^The grupo field must be a name of/, 'badGroupName']
]

/**
 * A sentence of the service about a field, in the page's language; one that the page does not know,
 * as it is.
 */
export function refused(sentence: string): string {
  for (const [pattern, text] of REFUSED) {
    const found = pattern.exec(sentence)
    if (found !== null) return say(text, found.groups)
  }
  return say('refusedValue', { message: plainText(sentence) })
}

export function explained(refusal: Refusal): string {
  return sentences(...explain(refusal))
}
