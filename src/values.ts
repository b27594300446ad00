/** The values of settings: each takes a text and gives the value, or throws an `Error` that says what it must be. */
import { OPERATIONS } from './api/entries.ts'
import { parseAddressSet, type AddressSet } from './http/address.ts'
import { MAX_TOKEN_TTL_MINUTES } from './limits.ts'

/** Throws what a value must be. */
function fail(mustBe: string): never { throw new Error(mustBe) }

/** An IP address, or a name; what is all digits at its end is an address gone wrong. */
export function listenAddress(text: string): string {
  const isName = /^[A-Za-z0-9.-]*[A-Za-z][A-Za-z0-9-]*$/.test(text)
  const isAddress = !text.includes('/') && parseAddressSet([text]) !== undefined
  return isName || isAddress ? text : fail('an IP address or a name')
}

/** Any text but none. */
export function nonEmpty(text: string): string { return text === '' ? fail('given') : text }

/** A whole number in a range, its ends included. */
export function integer(least: number, most: number): (text: string) => number {
  return text => {
    const value = /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : -1
    return value >= least && value <= most ? value : fail(`a whole number from ${least} to ${most}`)
  }
}

/** One of some words. */
export function oneOf<T extends string>(...words: readonly T[]): (text: string) => T {
  return text => words.find(word => word === text) ?? fail(words.join(' or '))
}

/** `on` or `off`. */
export function onOrOff(text: string): boolean { return oneOf('on', 'off')(text) === 'on' }

/** Addresses and ranges, but not everybody's. */
export function addresses(text: string): AddressSet {
  const items = list(text)
  if (items.some(item => item.endsWith('/0'))) fail('the addresses of your proxies; everybody is not one')
  return (items.length === 0 ? undefined : parseAddressSet(items)) ??
    fail('IP addresses or CIDR ranges, separated by commas')
}

/** A number of minutes, fractions allowed. */
export function minutes(text: string): number {
  const value = /^[0-9]{1,9}(\.[0-9]{1,6})?$/.test(text) ? Number(text) : 0
  if (value > 0 && value <= MAX_TOKEN_TTL_MINUTES) return value
  return fail(`a number of minutes above 0 and at most ${MAX_TOKEN_TTL_MINUTES}`)
}

/** An origin as a browser writes it; `*` would let every page in, and credentials do not go with it anyway. */
export function exactOrigin(text: string): string {
  const mustBe = 'origins such as https://example.org, separated by commas; * is not one'
  if (!/^https?:[^*]+$/.test(text) || !URL.canParse(text)) fail(mustBe)
  return new URL(text).origin === text ? text : fail(mustBe)
}

/** Items separated by commas. */
export function list(text: string): string[] {
  return text.split(',').map(item => item.trim()).filter(item => item !== '')
}

/** A host's name, with or without a port. */
export function hostName(text: string): string {
  return /^[A-Za-z0-9.-]+(:[0-9]+)?$/.test(text) ? text.toLowerCase() : fail('host names, separated by commas')
}

/** Origins of servers, one or more: a scheme, a host, perhaps a port, and nothing else. */
export function serverOrigins(text: string): string[] {
  const items = list(text)
  const isOrigin = (item: string): boolean => /^https?:\/\/[^/?#@]+\/?$/.test(item) && URL.canParse(item)
  if (items.length === 0 || !items.every(isOrigin)) fail('addresses such as https://10.0.0.1:2379, separated by commas')
  return items.map(item => new URL(item).origin)
}

/** The beginning of a key, without the slash that follows it; so that what is below another one is not its record. */
export function keyPrefix(text: string): string {
  const isPrefix = /^(?!.*\/(?![1-9A-Za-z]))[\x21-\x7e]{1,200}$/.test(text)
  return isPrefix ? text : fail('printable ASCII, with a letter or 1 to 9 behind each slash')
}

/** Which ability an operation needs: `operation=ability` pairs. */
export function abilities(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const pair of list(text)) {
    const [operation = '', ability = '', ...rest] = pair.split('=')
    if (!OPERATIONS.includes(operation)) fail(`operations out of ${OPERATIONS.join(', ')}, each with =ability`)
    if (found.has(operation)) fail('operation=ability pairs, each operation once')
    if (rest.length > 0 || !/^[A-Za-z0-9:._-]+$/.test(ability)) fail('operation=ability pairs')
    found.set(operation, ability)
  }
  return found
}
