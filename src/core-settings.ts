/** The core's settings, and the parsers of their values. */
import { parseAddressSet, type AddressSet } from './http/client.ts'
import {
  LOGIN_LIMIT_REQUESTS,
  MAX_BODY_BYTES,
  MAX_BODY_SETTING_BYTES,
  MAX_TOKEN_TTL_MINUTES,
  RATE_LIMIT_REQUESTS,
  RATE_LIMIT_WINDOW,
  TOKENS_PER_USER
} from './limits.ts'
import { mayCall, type NeededAbilities, type NeededByOperation } from './rights/rights.ts'

export interface CoreSettings {
  readonly host: string
  readonly port: number
  readonly dataDir: string
  readonly keyFile: string | undefined
  readonly rateLimit: number
  readonly rateLimitBy: 'ip' | 'user'
  readonly loginLimit: number
  readonly auth: 'none' | 'bearer'
  readonly tokenTtlMinutes: number | undefined
  readonly tokensPerUser: number
  readonly abilities: NeededByOperation
  readonly corsOrigins: ReadonlySet<string>
  readonly allowedHosts: ReadonlySet<string>
  readonly trustProxy: AddressSet | undefined
  readonly tlsCert: string | undefined
  readonly tlsKey: string | undefined
  readonly maxBodyBytes: number
  readonly journal: string
}

export type StorageSettings = Pick<CoreSettings, 'dataDir' | 'keyFile' | 'journal'>

/** `rateLimit` is read from `--rate-limit` and `RATE_LIMIT`. */
export interface SettingRow<T> {
  /** If it differs from the row's name. */
  readonly flag?: string
  /** The name of the value in `--help`. */
  readonly value: string
  readonly fallback: T
  /** For people, if `fallback` does not say it. */
  readonly shown?: string
  readonly help: string
  readonly serverOnly?: boolean
  readonly parse: Parse<T>
}

export interface Parse<T> {
  /** Throws an `Error` that says what the value must be. */
  (text: string): T
  /** All that is taken, if it is a choice of words. */
  readonly words?: readonly string[]
}

export type SettingRows<S> = { readonly [K in keyof S]: SettingRow<S[K]> }

export function setting<T>(
  value: string,
  fallback: T,
  parse: Parse<T>,
  help: string,
  more: Partial<Pick<SettingRow<T>, 'flag' | 'shown' | 'serverOnly'>> = {}
): SettingRow<T> {
  return { value, fallback, parse, help, ...more }
}

export type Setting<T> = SettingRow<T> & {
  readonly variable: string
  readonly flag: string
  readonly shown: string
}

export type SettingsTable<S> = { readonly [K in keyof S]: Setting<S[K]> }

/**
 * A token needs one of these. The name of another operation stands for that operation's. Undefined:
 * any token will do.
 */
export type DefaultAbilities = {
  readonly [operation: string]: string | readonly string[] | undefined
}

export const coreSettings = (
  journals: { readonly [name: string]: { readonly help: string } },
  abilities: DefaultAbilities
): SettingRows<CoreSettings> => ({
  host: setting('ADDRESS', '127.0.0.1', parseListenAddress, 'The address to listen on.'),
  port: setting('N', 3000, parseInteger(0, 65535), 'The port to listen on; 0 takes a free one.'),
  dataDir: setting('FOLDER', 'data', parseNonEmpty, 'The folder of the journal.', {
    flag: 'data',
    shown: '`data` in the working folder'
  }),
  keyFile: setting(
    'FILE',
    undefined,
    parseNonEmpty,
    'The file of the keys that seal the journal.',
    { shown: '`journal.key` in the data folder' }
  ),
  rateLimit: setting(
    'N',
    RATE_LIMIT_REQUESTS,
    parseInteger(0, 1_000_000),
    `Requests under \`/api\` that a client may make in ${RATE_LIMIT_WINDOW}; 0 is off.`
  ),
  rateLimitBy: setting(
    'KEY',
    'ip',
    parseWord('ip', 'user'),
    'How requests are counted: by client address, or with `user` by the user of the token.'
  ),
  loginLimit: setting(
    'N',
    LOGIN_LIMIT_REQUESTS,
    parseInteger(0, 1_000_000),
    `Logins that a client may try in ${RATE_LIMIT_WINDOW}; 0 is off.`
  ),
  // contract §1, §5.1
  auth: setting(
    'KIND',
    'none',
    parseWord('none', 'bearer'),
    'Who may use the service: `none`, anyone who reaches it; `bearer`, anyone with a token.'
  ),
  // contract §5.5
  tokenTtlMinutes: setting(
    'N',
    undefined,
    parseMinutes,
    'The lifetime of a token from a login, in minutes, fractions allowed; without it, ' +
      'until it is revoked.'
  ),
  tokensPerUser: setting(
    'N',
    TOKENS_PER_USER,
    parseInteger(1, 1_000_000),
    'Tokens from logins that a user may have; beyond that, the oldest ends.'
  ),
  abilities: setting(
    'OP=ABILITY,…',
    parseAbilities(abilities)(''),
    parseAbilities(abilities),
    'The ability that a token needs for an operation, `any` for none; ' +
      'operations that are not named keep their default.',
    { shown: 'one of its own for each operation' }
  ),
  corsOrigins: setting(
    'ORIGIN,…',
    new Set(),
    text => new Set(parseList(text).map(parseOrigin)),
    'Origins whose pages may use the service, exactly as a browser sends them.'
  ),
  allowedHosts: setting(
    'NAME,…',
    new Set(),
    text => new Set(parseList(text).map(parseHostName)),
    'Host names besides `localhost` and IP addresses that requests may name in `Host`.'
  ),
  trustProxy: setting(
    'ADDRESS,…',
    undefined,
    parseAddresses,
    'Addresses or CIDR ranges of proxies whose `X-Forwarded-For` counts.'
  ),
  tlsCert: setting(
    'FILE',
    undefined,
    parseNonEmpty,
    'The certificate chain to serve HTTPS with, PEM; reloaded when it changes.'
  ),
  tlsKey: setting('FILE', undefined, parseNonEmpty, 'The private key of the certificate, PEM.'),
  maxBodyBytes: setting(
    'N',
    MAX_BODY_BYTES,
    parseInteger(1, MAX_BODY_SETTING_BYTES),
    'The size that a request body may have, in bytes.'
  ),
  journal: setting(
    'KIND',
    'file',
    parseWord('file', 'memory', ...Object.keys(journals)),
    [
      'Where records are kept: `file`',
      ...Object.values(journals).map(({ help }) => help),
      'or `memory`, which keeps nothing beyond the process.'
    ].join('; ')
  )
})

export function withNames<S>(rows: SettingRows<S>): SettingsTable<S> {
  const table = {} as { [K in keyof S]: Setting<S[K]> }
  for (const name of Object.keys(rows as object) as (keyof S & string)[]) {
    const words = name.replace(/[A-Z]/g, '-$&').toLowerCase()
    const variable = words.replaceAll('-', '_').toUpperCase()
    table[name] = { variable, flag: words, shown: defaultText(rows[name].fallback), ...rows[name] }
  }
  return table
}

function defaultText(fallback: unknown): string {
  if (typeof fallback === 'boolean') return fallback ? '`on`' : '`off`'
  return ['string', 'number'].includes(typeof fallback) ? `\`${fallback}\`` : 'none'
}

export function fail(mustBe: string): never {
  throw new Error(mustBe)
}

/** A name whose last label is all digits is a malformed address. */
function parseListenAddress(text: string): string {
  const isName = /^[A-Za-z0-9.-]*[A-Za-z][A-Za-z0-9-]*$/.test(text)
  const isAddress = !text.includes('/') && parseAddressSet([text]) !== undefined
  return isName || isAddress ? text : fail('an IP address or a name')
}

export function eitherOf(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}

export function parseNonEmpty(text: string): string {
  return text === '' ? fail('given') : text
}

function parseInteger(least: number, most: number): (text: string) => number {
  return text => {
    const value = /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : -1
    return value >= least && value <= most ? value : fail(`a whole number from ${least} to ${most}`)
  }
}

export function parseWord<T extends string>(...words: readonly T[]): Parse<T> {
  return Object.assign(
    (text: string): T => words.find(word => word === text) ?? fail(eitherOf(words)),
    { words }
  )
}

const SWITCH = ['on', 'off'] as const

export const parseSwitch: Parse<boolean> = Object.assign(
  (text: string): boolean => parseWord(...SWITCH)(text) === 'on',
  { words: SWITCH }
)

function parseAddresses(text: string): AddressSet {
  const items = parseList(text)
  if (items.some(item => item.endsWith('/0')))
    fail('the addresses of your proxies, not the range of all addresses')
  return (
    (items.length === 0 ? undefined : parseAddressSet(items)) ??
    fail('IP addresses or CIDR ranges, separated by commas')
  )
}

export function parseMinutes(text: string): number {
  const value = /^[0-9]{1,9}(\.[0-9]{1,6})?$/.test(text) ? Number(text) : 0
  if (value > 0 && value <= MAX_TOKEN_TTL_MINUTES) return value
  return fail(`a number of minutes above 0 and at most ${MAX_TOKEN_TTL_MINUTES}`)
}

/** Of extensions or apps: chrome-extension://…, capacitor://localhost. */
const OTHER_ORIGIN =
  /^(?!https?:|wss?:|ftp:|file:)[a-z][a-z0-9+.-]*:\/\/[a-z0-9_.-]+(:[1-9][0-9]{0,4})?$/

/** An origin as a browser writes it. `*` would let every page in. */
function parseOrigin(text: string): string {
  const isSite = /^https?:[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text
  if (isSite || OTHER_ORIGIN.test(text)) return text
  return fail('origins such as https://example.org, separated by commas; * is not one')
}

export function parseList(text: string): string[] {
  return text
    .split(',')
    .map(item => item.trim())
    .filter(item => item !== '')
}

function parseHostName(text: string): string {
  return /^[A-Za-z0-9.-]+(:[0-9]+)?$/.test(text)
    ? text.toLowerCase()
    : fail('host names, separated by commas')
}

const ANY_TOKEN = 'any'

function parseAbilities(defaults: DefaultAbilities): (text: string) => NeededByOperation {
  return text => {
    const given = givenAbilities(defaults, text)
    const operations = Object.keys(defaults)
    return new Map(operations.map(operation => [operation, askedBy(operation, defaults, given)]))
  }
}

function askedBy(
  operation: string,
  defaults: DefaultAbilities,
  given: NeededByOperation
): NeededAbilities {
  if (given.has(operation)) return given.get(operation)
  const asked: string[] = []
  for (const one of [defaults[operation]].flat()) {
    if (one === undefined) return undefined
    const wanted = Object.hasOwn(defaults, one) ? askedBy(one, defaults, given) : [one]
    if (wanted === undefined) return undefined
    // One that includes an earlier one adds nothing.
    for (const ability of wanted) if (!mayCall([ability], asked)) asked.push(ability)
  }
  return asked
}

function givenAbilities(defaults: DefaultAbilities, text: string): NeededByOperation {
  const given = new Map<string, NeededAbilities>()
  for (const pair of parseList(text)) {
    const [operation = '', ability = '', ...rest] = pair.split('=')
    if (!Object.hasOwn(defaults, operation)) {
      fail(`operations out of ${Object.keys(defaults).join(', ')}, each with =ability`)
    }
    if (given.has(operation)) fail('operation=ability pairs, each operation once')
    if (rest.length > 0 || !/^[A-Za-z0-9:._-]+$/.test(ability)) fail('operation=ability pairs')
    given.set(operation, ability === ANY_TOKEN ? undefined : [ability])
  }
  return given
}
