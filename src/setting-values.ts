/** Parsers of settings; each throws an `Error` that says what the value must be. */
import { NOT_UTF8 } from './journal/files.ts'
import { parseAddressSet, type AddressSet } from './http/client.ts'
import { MAX_TOKEN_TTL_MINUTES } from './limits.ts'

export function fail(mustBe: string): never { throw new Error(mustBe) }

/** Node replaces bytes that are not UTF-8. */
export function parseUtf8(text: string): string {
  return text.includes(NOT_UTF8) ? fail('UTF-8 without U+FFFD: type it so, or rename what has such a name') : text
}

/** A name whose last label is all digits is a malformed address. */
export function parseListenAddress(text: string): string {
  const isName = /^[A-Za-z0-9.-]*[A-Za-z][A-Za-z0-9-]*$/.test(text)
  const isAddress = !text.includes('/') && parseAddressSet([text]) !== undefined
  return isName || isAddress ? text : fail('an IP address or a name')
}

export function eitherOf(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}

export function parseNonEmpty(text: string): string { return text === '' ? fail('given') : text }

export function parseInteger(least: number, most: number): (text: string) => number {
  return text => {
    const value = /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : -1
    return value >= least && value <= most ? value : fail(`a whole number from ${least} to ${most}`)
  }
}

export function parseWord<T extends string>(...words: readonly T[]): (text: string) => T {
  return text => words.find(word => word === text) ?? fail(eitherOf(words))
}

export function parseSwitch(text: string): boolean { return parseWord('on', 'off')(text) === 'on' }

export function parseAddresses(text: string): AddressSet {
  const items = parseList(text)
  if (items.some(item => item.endsWith('/0'))) fail('the addresses of your proxies, not the range of all addresses')
  return (items.length === 0 ? undefined : parseAddressSet(items)) ??
    fail('IP addresses or CIDR ranges, separated by commas')
}

export function parseMinutes(text: string): number {
  const value = /^[0-9]{1,9}(\.[0-9]{1,6})?$/.test(text) ? Number(text) : 0
  if (value > 0 && value <= MAX_TOKEN_TTL_MINUTES) return value
  return fail(`a number of minutes above 0 and at most ${MAX_TOKEN_TTL_MINUTES}`)
}

/** Of extensions or apps: chrome-extension://…, capacitor://localhost. */
const OTHER_ORIGIN = /^(?!https?:|wss?:|ftp:|file:)[a-z][a-z0-9+.-]*:\/\/[a-z0-9_.-]+(:[1-9][0-9]{0,4})?$/

/** An origin as a browser writes it. `*` would let every page in. */
export function parseOrigin(text: string): string {
  const isSite = /^https?:[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text
  if (isSite || OTHER_ORIGIN.test(text)) return text
  return fail('origins such as https://example.org, separated by commas; * is not one')
}

export function parseList(text: string): string[] {
  return text.split(',').map(item => item.trim()).filter(item => item !== '')
}

export function parseHostName(text: string): string {
  return /^[A-Za-z0-9.-]+(:[0-9]+)?$/.test(text) ? text.toLowerCase() : fail('host names, separated by commas')
}

const ANY_TOKEN = 'any'

/** Undefined: any token. A default may name another operation, whose ability then counts. */
export function parseAbilities(
  defaults: { readonly [operation: string]: string }
): (text: string) => ReadonlyMap<string, string | undefined> {
  return text => {
    const found = new Map<string, string | undefined>(Object.entries(defaults))
    const named = new Set<string>()
    for (const pair of parseList(text)) {
      const [operation = '', ability = '', ...rest] = pair.split('=')
      if (!Object.hasOwn(defaults, operation)) {
        fail(`operations out of ${Object.keys(defaults).join(', ')}, each with =ability`)
      }
      if (named.has(operation)) fail('operation=ability pairs, each operation once')
      if (rest.length > 0 || !/^[A-Za-z0-9:._-]+$/.test(ability)) fail('operation=ability pairs')
      named.add(operation)
      found.set(operation, ability === ANY_TOKEN ? undefined : ability)
    }
    for (const [operation, other] of Object.entries(defaults)) {
      if (Object.hasOwn(defaults, other) && !named.has(operation)) found.set(operation, found.get(other))
    }
    return found
  }
}
