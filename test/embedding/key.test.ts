/** The key as a value of the host, and not in a file. */
import assert from 'node:assert/strict'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { openService, type Failure, type Options } from '../../src/embedding/embedded-service.ts'
import { admin } from '../support/admin.ts'
import { atEnd, freshFolder } from '../support/service.ts'

const ENTRY = { password: 'a', sistema: 'b', usuario: 'c' }

test('with a key of the host the journal is made, read and continued, and no key file is', async t => {
  const dataDir = freshFolder(t)
  const [old, newer] = [randomBytes(32), randomBytes(32)]
  const warnings: string[] = []
  const log = { info: () => {}, warn: (line: string) => { warnings.push(line) } }
  const first = await openService({ dataDir, page: false, key: old, log })
  await first.createPassword(ENTRY)
  await first.close()
  for (const key of [[old], [old, newer], [new Uint8Array(old), newer]]) {
    const service = await openService({ dataDir, page: false, key, production: true, auth: 'none', log })
    await service.updatePassword(1, { usuario: `w${key.length}` })
    assert.ok((await service.historyPassword(1))!.length > 1)
    await service.close()
  }
  assert.deepEqual([existsSync(join(dataDir, 'journal.key')), warnings], [false, []])
  for (const key of [randomBytes(32), old, newer]) {
    await assert.rejects(openService({ dataDir, page: false, key }), ({ code }: Failure) => code === 'key-unknown')
  }
  await assert.rejects(openService({ dataDir, page: false }), { code: 'key-missing' })
  const third = await openService({ dataDir, page: false, key: [old, newer] })
  atEnd(t, () => third.close())
  assert.equal((await third.getPassword(1))?.usuario, 'w2')
})

test('a key rotation of the operator is refused beside a host that gives its key, and nothing is written', async t => {
  const dataDir = freshFolder(t)
  const service = await openService({ dataDir, page: false, key: randomBytes(32) })
  atEnd(t, () => service.close())
  const { code, error } = await admin(dataDir, 'key rotate')
  assert.deepEqual([code, /the program that embeds the service gives its keys/.test(error)], [1, true], error)
  assert.equal((await admin(dataDir, 'entry list --json')).code, 0)
  assert.equal(existsSync(join(dataDir, 'journal.key')), false)
})

test('beside a host that gives its key, commands that read the file take the key file that they are given', async t => {
  const dataDir = freshFolder(t)
  const key = randomBytes(32)
  const service = await openService({ dataDir, page: false, key, auth: 'bearer' })
  atEnd(t, () => service.close())
  await service.createPassword(ENTRY)
  const folder = freshFolder(t)
  const keyFile = join(folder, 'k')
  writeFileSync(keyFile, `${key.toString('hex')}\n`, { mode: 0o600 })
  for (const command of [`journal backup ${join(folder, 'b')}`, 'journal verify', 'journal show', 'key list',
    'audit', 'entry history 1']) {
    assert.equal((await admin(dataDir, command)).code, 3, `${command} without the key file`)
    const { code, error } = await admin(dataDir, `${command} --key-file ${keyFile}`)
    assert.equal(code, 0, `${command}: ${error}`)
  }
  rmSync(join(dataDir, 'journal.jsonl'))
  await assert.rejects(service.createPassword(ENTRY), { code: 'journal-failed' })
  const { code, error } = await admin(dataDir, `journal rescue ${join(folder, 'r')} --key-file ${keyFile}`)
  assert.equal(code, 0, error)
})

test('messages call settings by their options, and name init where a key of the host has no journal', async t => {
  type Given = Omit<Options, 'auth'> & { readonly vouches?: boolean, readonly key?: Buffer }
  const lacking: readonly (readonly [options: Given, says: RegExp])[] = [
    [{ key: randomBytes(32) }, /does not exist; .*a new, empty store, open it with the option init: true$/],
    [{}, /run the operator's command init$/], [{ tlsCert: 'x' }, /: tlsCert and tlsKey go together$/],
    [{ proxyLoginHeader: 'X-Auth-Request-Email' }, /: proxyLoginHeader and proxyLoginSecretFile go together$/],
    [{ vouches: true }, /: vouches needs auth: 'bearer', and tokenTtlMinutes, such as 720$/],
    [{ journal: 'etcd' }, /: journal: 'etcd' needs etcdEndpoints$/],
    [{ journal: 'etcd', etcdEndpoints: 'http://10.0.0.1:2379' }, /which etcdPlainHttp: true would allow$/],
    [{ etcdUser: 'u' }, /: etcdUser and etcdPasswordFile go together$/]
  ]
  for (const [options, message] of lacking) {
    const vouched = options.vouches === true ? { init: true } : {}
    await assert.rejects(
      openService({ dataDir: freshFolder(t), page: false, production: true, auth: 'none', ...vouched, ...options }),
      { message })
  }
  const dataDir = freshFolder(t)
  await (await openService({ dataDir, page: false })).close()
  rmSync(join(dataDir, 'journal.key'))
  await assert.rejects(openService({ dataDir, page: false }), { message: /; is keyFile right\?$/ })
  const warnings: string[] = []
  const service = await openService({ journal: 'memory', page: false,
    log: { info: () => {}, warn: line => { warnings.push(line) } } })
  atEnd(t, () => service.close())
  assert.deepEqual(warnings, ["journal: 'memory' keeps nothing beyond this process"])
})

test('what is no key, or does not go with one, is refused by name', async t => {
  const dataDir = freshFolder(t)
  const key = randomBytes(32)
  const wrong: readonly (readonly [object, RegExp])[] = [
    ...[randomBytes(31), randomBytes(33), 'a'.repeat(32), [], [key, 'x'], null,
      5].map(one => [{ key: one }, /key must be a Buffer of 32 bytes/] as const),
    [{ key, keyFile: 'x' }, /key and keyFile/],
    [{ key, journal: 'etcd', etcdEndpoints: 'http://127.0.0.1:1' }, /does not go with journal: 'etcd'/]
  ]
  for (const [options, message] of wrong) {
    await assert.rejects(openService({ dataDir, ...options } as Options), { code: 'setting-invalid', message })
  }
  assert.equal(existsSync(join(dataDir, 'journal.jsonl')), false)
})
