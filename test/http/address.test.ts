import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientAddress, clientKey, isLoopback, isTrusted, parseAddressSet } from '../../src/http/address.ts'
import type { AddressSet } from '../../src/http/address.ts'
import { randomOf, type Random } from '../support/random.ts'

function setOf(...items: readonly string[]): AddressSet {
  const set = parseAddressSet(items)
  assert.ok(set !== undefined, `${items} should be a set`)
  return set
}

test('addresses and ranges make a set; one that is malformed makes none', () => {
  for (const item of ['10.0.0.1', '10.0.0.0/8', '0.0.0.0/0', '10.0.0.1/32', '::1', 'fd00::/8', '::/0', '::1/128']) {
    assert.notEqual(parseAddressSet([item]), undefined, item)
  }
  const malformed = [
    '', 'localhost', '10.0.0', '10.0.0.256', '010.0.0.1', '10.0.0.0/', '10.0.0.0/33', '10.0.0.0/08', '10.0.0.0/-1',
    '10.0.0.0/8/8', '10.0.0.0/ 8', '10.0.0.0/1e1', ' 10.0.0.1', ':::', '::1/129', '[::1]', '::1/', 'g::', '*', '/8'
  ]
  for (const item of malformed) {
    assert.equal(parseAddressSet([item]), undefined, item)
    assert.equal(parseAddressSet(['10.0.0.1', item]), undefined, `10.0.0.1 and ${item}`)
  }
})

test('an address is in a range when they share the range\'s bits', t => {
  const random = randomOf(t)
  for (const [size, written] of [[4, (bytes: Buffer) => bytes.join('.')], [16, ipv6]] as const) {
    for (let i = 0; i < 500; i++) {
      const prefix = random.int(size * 8 + 1)
      const [network, near] = [random.bytes(size), random.bytes(size)]
      network.copy(near, 0, 0, random.int(size + 1))
      const range = `${written(network)}/${prefix}`
      const isIn = shareBits(network, near, prefix)
      assert.equal(isTrusted(written(near), setOf(range)), isIn, `${written(near)} in ${range}`)
    }
  }
})

test('a range of IPv4 addresses holds them also as they are mapped into IPv6', () => {
  assert.equal(isTrusted('::ffff:10.1.2.3', setOf('10.0.0.0/8')), true)
  assert.equal(isTrusted('::FFFF:0a01:0203', setOf('10.0.0.0/8')), true)
  assert.equal(isTrusted('::ffff:11.1.2.3', setOf('10.0.0.0/8')), false)
  assert.equal(isTrusted('::10.1.2.3', setOf('10.0.0.0/8')), false, 'compatible is not mapped')
})

test('without a set, or for what is no address, nothing is trusted', () => {
  assert.equal(isTrusted('127.0.0.1', undefined), false)
  assert.equal(isTrusted('', setOf('0.0.0.0/0', '::/0')), false)
})

test('loopback is 127.0.0.0/8 and ::1 in every way to write it, and nothing else', () => {
  for (const address of ['127.0.0.1', '127.255.0.3', '::1', '0:0:0:0:0:0:0:1', '::0001', '::ffff:127.0.0.1']) {
    assert.equal(isLoopback(address), true, address)
  }
  const others = ['128.0.0.1', '0.0.0.0', '::', '::2', '1::1', '::127.0.0.1', '127.0.0.1.evil', '', 'localhost']
  for (const address of others) {
    assert.equal(isLoopback(address), false, address)
  }
})

test('§8 an IPv4 client is counted by its address, also where it is mapped into IPv6', () => {
  for (const peer of ['192.0.2.7', '::ffff:192.0.2.7', '::ffff:c000:207', '0:0:0:0:0:FFFF:192.0.2.7']) {
    assert.equal(clientKey(clientAddress(peer, undefined)), '192.0.2.7', peer)
  }
})

test('§8 an IPv6 client is counted by its /64, however the address is written', t => {
  const random = randomOf(t)
  for (let i = 0; i < 500; i++) {
    const bytes = random.bytes(16)
    // Runs of zeros are what the short forms are about.
    for (let group = 0; group < 8; group++) if (random.int(2) === 0) bytes.fill(0, group * 2, group * 2 + 2)
    if (bytes.readUInt32BE(0) === 0) bytes[0] = 0x20 // not mapped IPv4
    const neighbour = Buffer.concat([bytes.subarray(0, 8), random.bytes(8)])
    const stranger = Buffer.from(bytes)
    stranger[random.int(8)]! ^= 1 << random.int(8)
    if (stranger.readUInt32BE(0) === 0) stranger[1]! ^= 0xff
    const key = clientKey(clientAddress(ipv6(bytes), undefined))
    for (const written of spellings(bytes, random)) {
      assert.equal(clientKey(clientAddress(written, undefined)), key, written)
    }
    assert.equal(clientKey(clientAddress(ipv6(neighbour), undefined)), key, `${ipv6(neighbour)} and ${ipv6(bytes)}`)
    assert.notEqual(clientKey(clientAddress(ipv6(stranger), undefined)), key, `${ipv6(stranger)} and ${ipv6(bytes)}`)
  }
})

test('§8 the zone of an IPv6 address does not make another client', () => {
  assert.equal(clientKey(clientAddress('fe80::1%eth0', undefined)), clientKey('fe80::1'))
})

const proxies = setOf('10.0.0.0/8', '127.0.0.1', 'fd00::/8')

const walks: readonly (readonly [what: string, peer: string, forwardedFor: string | undefined, client: string])[] = [
  ['no header', '10.0.0.1', undefined, '10.0.0.1'],
  ['one client behind one proxy', '10.0.0.1', '192.0.2.7', '192.0.2.7'],
  ['the right end is what the proxy wrote, the rest is the client\'s word', '10.0.0.1',
    '1.1.1.1, 192.0.2.7', '192.0.2.7'],
  ['trusted hops are passed over', '10.0.0.1', '1.1.1.1, 192.0.2.7, 10.0.0.9, 127.0.0.1', '192.0.2.7'],
  ['behind an untrusted hop nobody is believed', '10.0.0.1', '10.0.0.3, 192.0.2.7, 10.0.0.9', '192.0.2.7'],
  ['a peer that is not trusted is the client', '192.0.2.1', '192.0.2.7', '192.0.2.1'],
  ['all are trusted: the farthest', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
  ['garbage ends the walk at who wrote it', '10.0.0.1', '192.0.2.7, garbage, 10.0.0.9', '10.0.0.9'],
  ['garbage at the right end', '10.0.0.1', '192.0.2.7, unknown', '10.0.0.1'],
  ['an empty header', '10.0.0.1', '', '10.0.0.1'],
  ['an empty entry', '10.0.0.1', '192.0.2.7,', '10.0.0.1'],
  ['an address with a port', '10.0.0.1', '192.0.2.7:4711, [fd12::1]:80, 10.0.0.3:1', '192.0.2.7'],
  ['an address with a port that is none', '10.0.0.1', '192.0.2.7:x', '10.0.0.1'],
  ['white space around entries', '10.0.0.1', '1.1.1.1 ,\t192.0.2.7\t, 10.0.0.2 ', '192.0.2.7'],
  ['no white space', '10.0.0.1', '1.1.1.1,192.0.2.7,10.0.0.2', '192.0.2.7'],
  ['a mapped peer and a mapped entry', '::ffff:10.0.0.1', '::ffff:192.0.2.7', '192.0.2.7'],
  ['a mapped hop is the proxy that it maps', '10.0.0.1', '192.0.2.7, ::ffff:10.0.0.2', '192.0.2.7'],
  ['IPv6 on the way', 'fd00::1', '2001:db8::7, fd12::1', '2001:db8::7']
]
test('X-Forwarded-For names the client as far as proxies are trusted', () => {
  for (const [what, peer, forwardedFor, client] of walks) {
    assert.equal(clientAddress(peer, forwardedFor, proxies), client, what)
  }
  assert.equal(clientAddress('10.0.0.1', '192.0.2.7', undefined), '10.0.0.1')
})

function shareBits(a: Buffer, b: Buffer, count: number): boolean {
  for (let bit = 0; bit < count; bit++) {
    const mask = 0x80 >> bit % 8
    if ((a[bit >> 3]! & mask) !== (b[bit >> 3]! & mask)) return false
  }
  return true
}

function groupsOf(bytes: Buffer): number[] { return [0, 2, 4, 6, 8, 10, 12, 14].map(at => bytes.readUInt16BE(at)) }

/** An IPv6 address in full. */
function ipv6(bytes: Buffer): string { return groupsOf(bytes).map(group => group.toString(16)).join(':') }

/** Other ways to write it: leading zeros, upper case, one run of zeros left out, the last 32 bits as IPv4. */
function spellings(bytes: Buffer, random: Random): string[] {
  const groups = groupsOf(bytes)
  const written = groups.map(group => {
    const hex = group.toString(16).padStart(1 + random.int(4), '0')
    return random.int(2) === 0 ? hex.toUpperCase() : hex
  })
  const all = [written.join(':'), `${written.slice(0, 6).join(':')}:${bytes.subarray(12).join('.')}`]
  for (let start = 0; start < 8; start++) {
    for (let end = start + 1; end <= 8 && groups[end - 1] === 0; end++) {
      all.push(`${written.slice(0, start).join(':')}::${written.slice(end).join(':')}`)
    }
  }
  return all
}
