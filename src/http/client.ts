import { Buffer } from 'node:buffer'
import { BlockList, isIP, isIPv4, isIPv6, type Socket } from 'node:net'

export interface Peer {
  /** A mapped IPv4 address as IPv4; empty for a Unix socket. */
  readonly address: string
  readonly key: string
  readonly isSecure: boolean
}

const PEER: unique symbol = Symbol('peer')

/** Kept: a closed socket has no address. Undefined if it was not asked before. */
export function peerOf(socket: Socket & { [PEER]?: Peer }): Peer | undefined {
  if (socket[PEER] !== undefined) return socket[PEER]
  const { remoteAddress, localAddress, destroyed } = socket
  if (remoteAddress === undefined && (destroyed || localAddress !== undefined)) return undefined
  const address = unmapped(remoteAddress ?? '')
  return (socket[PEER] = { address, key: clientKey(address), isSecure: 'encrypted' in socket })
}

/** By family: in one list, a range of IPv6 would also hold the mapped IPv4 addresses. */
export type AddressSet = { readonly [family in 'ipv4' | 'ipv6']: BlockList }

/** Undefined if malformed. A mapped address counts as IPv4; its prefix is 96 bits longer. */
export function parseAddressSet(items: readonly string[]): AddressSet | undefined {
  const set = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const item of items) {
    const [, address = '', prefix] = /^([^/]*)(?:\/(0|[1-9][0-9]{0,2}))?$/.exec(item) ?? []
    if (isIP(address) === 0) return undefined
    const bits = isIPv4(address) ? 32 : 128
    if (Number(prefix ?? 0) > bits) return undefined
    const bare = unmapped(address)
    const type = isIPv4(bare) ? 'ipv4' : 'ipv6'
    const mappedBits = isIPv6(address) && type === 'ipv4' ? 96 : 0
    const length = Number(prefix ?? bits) - mappedBits
    if (mappedBits > 0 && length <= 0) return undefined
    set[type].addSubnet(bare, length, type)
  }
  return set
}

/** 127.0.0.0/8 or ::1. */
export function isLoopback(address: string): boolean {
  const bare = unmapped(address)
  return isIPv4(bare)
    ? bare.startsWith('127.')
    : isIPv6(bare) && hextetsOf(bare).join(':') === '0:0:0:0:0:0:0:1'
}

/**
 * Behind a trusted proxy, the client is the last address in `X-Forwarded-For` that is not trusted.
 * A malformed entry ends the walk: the proxy that wrote it is the nearest known address.
 */
export function clientAddress(
  peer: Peer,
  forwardedFor: string | undefined,
  trusted?: AddressSet
): string {
  let { address } = peer
  if (trusted === undefined || forwardedFor === undefined) return address
  const hops = forwardedFor.split(',')
  while (hops.length > 0 && isTrusted(address, trusted)) {
    const hop = withoutPort(hops.pop()!.trim())
    if (isIP(hop) === 0) break
    address = unmapped(hop)
  }
  // A copy, since a slice would keep the whole header in memory.
  return address === peer.address ? address : Buffer.from(address, 'latin1').toString('latin1')
}

/** Some proxies write ports: `1.2.3.4:5678`, `[::1]:5678`. */
function withoutPort(hop: string): string {
  const parts = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{1,5})?$/.exec(hop)
  return parts?.[1] ?? parts?.[2] ?? hop
}

export function isTrusted(address: string, trusted: AddressSet | undefined): boolean {
  if (trusted === undefined) return false
  const bare = unmapped(address)
  const family = isIPv4(bare) ? 'ipv4' : 'ipv6'
  return isIP(bare) !== 0 && trusted[family].check(bare, family)
}

/** An IPv6 subscriber has a whole /64. */
export function clientKey(address: string): string {
  const bare = unmapped(address)
  return bare.includes(':') ? `${hextetsOf(bare).slice(0, 4).join(':')}::/64` : bare
}

/** One host asks most of the time. */
const lastAllowed = new WeakMap<ReadonlySet<string>, string>()

/** Takes IP literals, `localhost` and allowed names. Any other name may be that of a web page. */
export function isHostAllowed(host: string, allowed: ReadonlySet<string>): boolean {
  if (lastAllowed.get(allowed) === host) return true
  const given = host.toLowerCase()
  const name = /^(\[[^\]]+\]|[^:]*)(?::\d+)?$/.exec(given)?.[1] ?? ''
  const isAllowed =
    name === 'localhost' || allowed.has(given) || allowed.has(name) || isOwnLiteral(name)
  if (isAllowed) lastAllowed.set(allowed, host)
  return isAllowed
}

/**
 * Not the unspecified address, nor mapped IPv4: browsers let pages of other sites reach them
 * without an `Origin`.
 */
function isOwnLiteral(host: string): boolean {
  if (!host.startsWith('[')) return isIPv4(host) && host !== '0.0.0.0'
  const address = host.slice(1, -1)
  return isIPv6(address) && !isMapped(address) && hextetsOf(address).some(group => group !== '0')
}

/** Fetch Metadata. */
export function isFromOtherSite(site: string | undefined): boolean {
  return site === 'cross-site' || site === 'same-site'
}

/** RFC 4291 §2.5.5.2. */
function isMapped(address: string): boolean {
  return (
    address.includes(':') &&
    isIPv6(address) &&
    hextetsOf(address).slice(0, 6).join(':') === '0:0:0:0:0:ffff'
  )
}

/** Without a zone (`%eth0`); IPv6 in its one canonical spelling (RFC 5952). */
function unmapped(address: string): string {
  const bare = address.replace(/%.*$/, '')
  if (!isIPv6(bare)) return bare
  if (!isMapped(bare)) return new URL(`http://[${bare}]`).hostname.slice(1, -1)
  const [high = 0, low = 0] = hextetsOf(bare)
    .slice(6)
    .map(group => parseInt(group, 16))
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.')
}

/** RFC 4291 §2.2, as in a URL. */
function hextetsOf(address: string): readonly string[] {
  const bare = address.replace(/%.*$/, '')
  const [left = [], right] = new URL(`http://[${bare}]`).hostname
    .slice(1, -1)
    .split('::')
    .map(side => (side === '' ? [] : side.split(':')))
  if (right === undefined) return left
  return [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right]
}
