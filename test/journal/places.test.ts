/** Where the journal and its keys are, when that is not quite where it seems. */
import assert from 'node:assert/strict'
import { lstatSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { disk } from '../../src/disk/files.ts'
import { freshFolder } from '../support/service.ts'
import { openJournal, startAndStop } from '../support/journal.ts'

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
  disk.sync(folder)
  assert.throws(() => disk.sync('/proc'), { code: 'EINVAL' }) // where nothing can be synced
  assert.equal(open(), before)
})

test('a key file and a journal that are symbolic links stay links, also when they are replaced', async t => {
  const folder = freshFolder(t)
  const elsewhere = freshFolder(t)
  writeFileSync(join(elsewhere, 'real.key'), `${'ab'.repeat(32)}\n`, { mode: 0o600 })
  writeFileSync(join(elsewhere, 'real.jsonl'), '', { mode: 0o600 })
  symlinkSync(join(elsewhere, 'real.key'), join(folder, 'journal.key'))
  symlinkSync(join(elsewhere, 'real.jsonl'), join(folder, 'journal.jsonl'))
  const { journal } = await openJournal(folder)
  await journal.record(1)
  await journal.rotateKey()
  await journal.reencrypt()
  await journal.close()
  for (const name of ['journal.key', 'journal.jsonl']) assert.ok(lstatSync(join(folder, name)).isSymbolicLink(), name)
  assert.equal(readFileSync(join(elsewhere, 'real.key'), 'latin1').split('\n').length, 3)
  await startAndStop(folder)
})

test('a key file that is the journal itself is refused', async t => {
  const folder = realpathSync(freshFolder(t))
  await assert.rejects(openJournal(folder, { keyFile: join(folder, 'journal.jsonl') }), { code: 'key-invalid' })
})
