/** The page's texts in the language in use; and the one place that says what an answer means. */
import { isWait, type Refusal } from './answers.ts'
import { remember } from './dom.ts'
import { first, preferred, textsIn, type Language, type Texts } from './first.ts'
import { plainText, sentences } from './plain.ts'
import type { TextName } from './texts-es.ts'

const DAY_MS = 86_400_000
/** Days; longest first. */
const UNITS = [
  ['year', 365],
  ['month', 30.44],
  ['day', 1]
] as const

let chosen = preferred
let texts: Texts

/** Before anything is said. */
export async function startLanguage(): Promise<void> {
  texts = await first
}

export function languageNow(): Language {
  return chosen
}

export async function setLanguage(next: Language): Promise<void> {
  texts = await textsIn(next)
  chosen = next
  remember('lang', next)
}

export function say(
  name: TextName,
  filled: { readonly [name: string]: string | number } = {}
): string {
  return texts[name].replace(/\{(\w+)\}/g, (_whole, key: string) => String(filled[key]))
}

export function sayCount(count: number, one: TextName, many: TextName): string {
  return say(count === 1 ? one : many, { count: number(count) })
}

/** An address, or the number of a removed user. */
export function nameOfUser(by: string): string {
  return /^#\d+$/.test(by) ? say('removedUser', { id: by }) : plainText(by)
}

/** The same after "deleted". */
export function number(value: number): string {
  return value.toLocaleString(languageNow())
}

export function moment(time: string): string {
  return new Date(time).toLocaleString(languageNow())
}

export function dateOf(time: string): string {
  return new Date(time).toLocaleDateString(languageNow(), { dateStyle: 'long' })
}

export function hourOf(time: string): string {
  return new Date(time).toLocaleTimeString(languageNow(), { timeStyle: 'short' })
}

/** "today", "yesterday", or the date. */
export function dayOf(time: string): string {
  const midnight = new Date().setHours(0, 0, 0, 0)
  const days = Math.round((new Date(time).setHours(0, 0, 0, 0) - midnight) / DAY_MS)
  if (days < -1 || days > 0) return dateOf(time)
  return new Intl.RelativeTimeFormat(languageNow(), { numeric: 'auto' }).format(days, 'day')
}

/** "today 13:52", or the date; with its hour if `isExact`. */
export function when(time: string, isExact: boolean = false): string {
  const day = dayOf(time)
  return isExact || day !== dateOf(time) ? `${day}\u00a0${hourOf(time)}` : day
}

export function daysSince(time: string | undefined): number {
  return Math.floor((Date.now() - Date.parse(time ?? '')) / DAY_MS)
}

/** In whole years, months or days ("3 months"); empty if unknown. */
export function age(time: string | undefined, isAgo: boolean = false): string {
  const days = daysSince(time)
  if (Number.isNaN(days)) return ''
  const [unit, length] = UNITS.find(([, length]) => days >= length) ?? ['day', 1]
  const count = Math.max(0, Math.floor(days / length))
  if (count === 0) return say('today')
  if (isAgo) return new Intl.RelativeTimeFormat(languageNow()).format(-count, unit)
  return new Intl.NumberFormat(languageNow(), { style: 'unit', unit, unitDisplay: 'long' }).format(
    count
  )
}

type Asked = Refusal['asked']

/** Whole sentences, by what was asked for; those of `other` are for all else. */
const MEANINGS: {
  readonly [why in Refusal['why']]?: { readonly [asked in Asked | 'other']?: TextName }
} = {
  unknown: {
    other: 'gone',
    oneTimeCode: 'noCode',
    formerPassword: 'noFormer',
    formerNotes: 'noFormer',
    endOwnSessions: 'noSession'
  },
  changed: { other: 'conflictChanged' },
  large: { other: 'tooLong' },
  login: { other: 'ended', login: 'badLogin', proxyLogin: 'proxyRefused' },
  forbidden: { other: 'forbiddenText', endOwnSessions: 'newerSession' }
}

/** A title, or none, and a sentence; `secondsLeft` counts down the wait. */
export function explain(
  refusal: Refusal,
  secondsLeft: number = refusal.waitSeconds
): readonly [string, string] {
  const { why, asked, message, requestId } = refusal
  const meaning = MEANINGS[why]?.[asked] ?? MEANINGS[why]?.other
  if (meaning !== undefined) return ['', say(meaning)]
  if (why === 'lost') {
    return navigator.onLine
      ? [say('lostTitle'), say('lostText')]
      : [say('offlineTitle'), say('offlineText')]
  }
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

export function explained(refusal: Refusal): string {
  return sentences(...explain(refusal))
}

/** The service's sentences about a field, in their English; names of groups may have spaces. */
const REFUSED: readonly (readonly [sentence: RegExp, text: TextName])[] = [
  [/field is required\.$/, 'required'],
  [/at least (?<count>\d+) characters\.$/, 'atLeast'],
  [/not be greater than (?<count>\d+) characters\.$/, 'atMost'],
  [/halves of surrogate pairs|NUL/, 'notWritable'],
  [/current password is not correct/, 'badCurrent'],
  [/be another password/, 'samePassword'],
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

/** A sentence about a field that the page does not know is said as it is. */
export function refused(sentence: string): string {
  for (const [pattern, text] of REFUSED) {
    const found = pattern.exec(sentence)
    if (found !== null) return say(text, found.groups)
  }
  return say('refusedValue', { message: plainText(sentence) })
}
