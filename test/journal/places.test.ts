/** Where the journal and its keys are, when that is not quite where it seems. */
import assert from 'node:assert/strict'
import { lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { readSettings } from '../../src/config.ts'
import { clientKey } from '../../src/http/address.ts'
import { openFileJournal } from '../../src/journal/file.ts'
import { disk } from '../../src/journal/files.ts'
import type { FileJournal } from '../../src/journal/writer.ts'
import { reachStore } from '../../src/operator/reach.ts'
import { Terminal } from '../../src/operator/terminal.ts'
import { freshFolder } from '../support/service.ts'
import { decisionOn } from '../support/journal.ts'

function open(folder: string, keyFile: string): FileJournal {
  return openFileJournal({
    files: disk, folder, keyFile, fold: { begin: () => {}, apply: () => {} }, wallMs: Date.now, random: randomBytes,
    warn: () => {}
  })
}

test('a folder that cannot be made is an error, and not a wait for ever', { timeout: 5_000 }, () => {
  assert.throws(() => disk.makeFolder('/proc/none/at/all'), /mkdir/)
})

test('a folder that is there by the time that it is to be made is as good as one that was made', t => {
  const folder = freshFolder(t)
  disk.makeFolder(`${folder}/a/b/.`) // which stands as soon as what it is in does
  assert.ok(lstatSync(join(folder, 'a', 'b')).isDirectory())
})

test('syncing a folder asks the system for it, and leaves nothing open', t => {
  const folder = freshFolder(t)
  const open = (): number => readdirSync('/proc/self/fd').length
  const before = open()
  disk.syncFolder(folder)
  assert.throws(() => disk.syncFolder('/proc'), { code: 'EINVAL' }) // where nothing can be synced
  assert.equal(open(), before)
})

test('a key file and a journal behind links stay behind them, also when they are replaced', async t => {
  const folder = freshFolder(t)
  const elsewhere = freshFolder(t)
  writeFileSync(join(elsewhere, 'real.key'), `${'ab'.repeat(32)}\n`, { mode: 0o600 })
  writeFileSync(join(elsewhere, 'real.jsonl'), '', { mode: 0o600 })
  symlinkSync(join(elsewhere, 'real.key'), join(folder, 'journal.key'))
  symlinkSync(join(elsewhere, 'real.jsonl'), join(folder, 'journal.jsonl'))
  const journal = open(folder, join(folder, 'journal.key'))
  await journal.commit(decisionOn({ type: 'entry.created', by: null, data: {} }))
  await journal.rotateKey()
  await journal.rewrite(() => {})
  await journal.close()
  for (const name of ['journal.key', 'journal.jsonl']) assert.ok(lstatSync(join(folder, name)).isSymbolicLink(), name)
  assert.equal(readFileSync(join(elsewhere, 'real.key'), 'latin1').split('\n').length, 3)
  await open(folder, join(folder, 'journal.key')).close()
})

test('a key file that is the journal itself is refused', t => {
  const folder = realpathSync(freshFolder(t))
  assert.throws(() => open(folder, join(folder, 'journal.jsonl')), { code: 'key-invalid' })
})

test('a rewrite names no key that still seals, wherever it stands in the key file', async t => {
  const folder = freshFolder(t)
  const [a, b] = ['ab'.repeat(32), 'cd'.repeat(32)]
  writeFileSync(join(folder, 'journal.key'), `${a}\n${b}\n${a}\n`, { mode: 0o600 })
  const journal = open(folder, join(folder, 'journal.key'))
  await journal.commit(decisionOn({ type: 'entry.created', by: null, data: {} }))
  const { unneeded } = await journal.rewrite(() => {})
  await journal.close()
  const sealing = /"key":"(\w+)"/.exec(readFileSync(join(folder, 'journal.jsonl'), 'latin1'))![1]
  assert.equal(unneeded.length, 1)
  assert.notEqual(unneeded[0], sealing)
})

test('the operator\'s program opens nobody else\'s folder', async t => {
  const folder = join(freshFolder(t), 'data')
  mkdirSync(folder)
  const terminal = new Terminal({ input: process.stdin, output: process.stdout, error: process.stderr })
  const store = reachStore(readSettings([`--data=${folder}`], {}), true, 54_321, terminal)
  await assert.rejects(store.ask('GET', '/operator/status'), /belongs to user/)
})

test('an IPv4 client is the same over a dual-stack socket', () => {
  assert.equal(clientKey('::ffff:127.0.0.2'), '127.0.0.2')
  assert.notEqual(clientKey('::ffff:127.0.0.2'), clientKey('::ffff:127.0.0.3'))
})
