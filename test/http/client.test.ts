import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { heapMiB } from '../support/heap.ts'
import {
  clientAddress, clientKey, isFromOtherSite, isLoopback, isTrusted, parseAddressSet, peerOf, type Peer
} from '../../src/http/client.ts'
import type { AddressSet } from '../../src/http/client.ts'

const peerAt = (remoteAddress: string): Peer => peerOf({ remoteAddress } as Socket)!

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
    '::ffff:10.0.0.0/8', '::ffff:10.0.0.0/95', '::ffff:0:0/96', '::ffff:0.0.0.0/96', '10.0.0.0/8/8', '10.0.0.0/ 8',
    '10.0.0.0/1e1', ' 10.0.0.1', ':::', '::1/129', '[::1]', '::1/', 'g::', '*', '/8'
  ]
  for (const item of malformed) {
    assert.equal(parseAddressSet([item]), undefined, item)
    assert.equal(parseAddressSet(['10.0.0.1', item]), undefined, `10.0.0.1 and ${item}`)
  }
})

test('a range of IPv4 addresses holds them also as they are mapped into IPv6', () => {
  assert.equal(isTrusted('::ffff:10.1.2.3', setOf('10.0.0.0/8')), true)
  assert.equal(isTrusted('::FFFF:0a01:0203', setOf('10.0.0.0/8')), true)
  assert.equal(isTrusted('::ffff:11.1.2.3', setOf('10.0.0.0/8')), false)
  assert.equal(isTrusted('::10.1.2.3', setOf('10.0.0.0/8')), false, 'compatible is not mapped')
  assert.deepEqual(['fd00:1::7', 'fd00:2::7'].map(address => isTrusted(address, setOf('fd00:1::/32'))), [true, false])
})

test('a range that is written as mapped into IPv6 is one of IPv4, and no range of IPv6 holds an IPv4 address', () => {
  for (const item of ['::ffff:10.0.0.0/104', '::FFFF:a00:0/104']) {
    const set = setOf(item)
    const held = ['10.1.2.3', '::ffff:10.1.2.3', '11.1.2.3', '::ffff:11.1.2.3', '::'].map(address =>
      isTrusted(address, set))
    assert.deepEqual(held, [true, true, false, false, false], item)
  }
  for (const item of ['::ffff:10.1.2.3', '0::ffff:10.1.2.3', '0:0:0::ffff:a01:203', '::ffff:10.1.2.3/128',
    '::ffff:10.1.2.3%eth0']) {
    assert.deepEqual(['10.1.2.3', '10.1.2.4'].map(address => isTrusted(address, setOf(item))), [true, false], item)
  }
  for (const item of ['::/1', '::/8', '::/80', '::fffe:0:0/95']) {
    assert.deepEqual(['10.1.2.3', '::ffff:10.1.2.3'].map(address => isTrusted(address, setOf(item))), [false, false],
      item)
  }
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
    assert.equal(clientKey(clientAddress(peerAt(peer), undefined)), '192.0.2.7', peer)
  }
})

test('§8 an IPv6 client is counted by its /64, however the address is written', () => {
  const keyOf = (written: string): string => clientKey(clientAddress(peerAt(written), undefined))
  for (const [first, ...others] of [
    ['2001:db8:1:2::1', '2001:DB8:1:2::', '2001:0db8:0001:0002:0000:0000:0000:0001', '2001:db8:1:2:ffff:ffff:ffff:ffff',
      '2001:db8:1:2::192.0.2.1', '2001:db8:1:2:0:0:192.0.2.1', '2001:db8:1:2:3::'],
    ['2001:db8::1', '2001:db8:0:0::', '2001:db8::ffff:0:0:1', '2001:db8:0:0:1::'], ['::2', '0:0:0:0:0:0:0:3', '::'],
    ['0:0:0:1::', '::1:0:0:0:0', '::1:0:0:0:1', '0:0:0:1:2:3:4:5'], ['1::', '1:0:0:0::', '1::5:6:7:8', '1:0:0:0:5::8']
  ] as const) {
    for (const other of others) assert.equal(keyOf(other), keyOf(first), `${other} and ${first}`)
    for (const stranger of ['2001:db8:1:3::1', '2001:db8:0:1::', '2000:db8::1', '0:0:1:1::', '2::']) {
      assert.notEqual(keyOf(stranger), keyOf(first), `${stranger} and ${first}`)
    }
  }
})

test('§8 the zone of an IPv6 address does not make another client', () => {
  assert.equal(clientAddress(peerAt('fe80::1%eth0'), undefined), 'fe80::1')
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
    assert.equal(clientAddress(peerAt(peer), forwardedFor, proxies), client, what)
  }
  assert.equal(clientAddress(peerAt('10.0.0.1'), '192.0.2.7', undefined), '10.0.0.1')
})

test('an address that is kept keeps nothing of the header field that it came in', () => {
  for (const address of ['203.100.100.', '::ffff:203.100.100.', '2001:db8::1:', 'fe80::1%']) {
    const before = heapMiB()
    const kept = Array.from({ length: 1_000 }, (_, i) =>
      clientAddress(peerAt('10.0.0.1'), `${'x'.repeat(15_000)}${i}, ${address}${i % 200}`, proxies))
    const added = heapMiB() - before
    assert.ok(added < 2, `${address}: ${added} MiB for ${kept.length}`) // all fields are 15 MB
  }
})

test('a page of a subdomain is another site\'s as much as any: same-site is not same-origin', () => {
  const sites = ['cross-site', 'same-site', 'same-origin', 'none', undefined]
  assert.deepEqual(sites.map(isFromOtherSite), [true, true, false, false, false])
})
