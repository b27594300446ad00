/** A file that others change. */
import assert from 'node:assert/strict'
import { renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { disk } from '../../src/journal/files.ts'
import { WatchedFile } from '../../src/journal/watched-file.ts'
import { FaultyFiles } from '../support/faulty-files.ts'
import { freshFolder } from '../support/service.ts'

test('every change of a watched file is seen, also one of the same length within a tick of the clock', t => {
  const path = join(freshFolder(t), 'watched')
  const file = new WatchedFile(disk, path)
  assert.equal(file.read(), undefined)
  for (let n = 0; n < 50; n++) {
    writeFileSync(path, String(n % 10))
    assert.equal(String(file.read()), String(n % 10))
  }
  writeFileSync(`${path}.new`, '9')
  renameSync(`${path}.new`, path)
  const bytes = file.read()
  assert.equal(file.read(), bytes, 'the same bytes are the same object')
  rmSync(path)
  assert.equal(file.read(), undefined)
})

test('a watched file that nobody has changed for a while is looked at and not read', async t => {
  const path = join(freshFolder(t), 'watched')
  writeFileSync(path, 'a')
  const faulty = new FaultyFiles()
  const file = new WatchedFile(faulty.files, path)
  await new Promise(resolve => setTimeout(resolve, 1_100))
  const bytes = file.read()
  for (let n = 0; n < 9; n++) assert.equal(file.read(), bytes)
  assert.deepEqual([faulty.count('read'), faulty.count('stat')], [1, 10])
  utimesSync(path, 1, 1) // its content is as it was
  assert.equal(file.read(), bytes)
  assert.equal(faulty.count('read'), 2)
})

test('what cannot be read of a watched file is asked for again, though nobody has changed it since', async t => {
  const path = join(freshFolder(t), 'watched')
  writeFileSync(path, 'old')
  const faulty = new FaultyFiles()
  const file = new WatchedFile(faulty.files, path)
  const isRefused = (): void => {
    faulty.fail({ of: 'read', code: 'EACCES' })
    assert.throws(() => file.read(), { code: 'EACCES' })
  }
  await new Promise(resolve => setTimeout(resolve, 1_100))
  isRefused()
  isRefused()
  assert.equal(String(file.read()), 'old')
  writeFileSync(path, 'new')
  await new Promise(resolve => setTimeout(resolve, 1_100))
  isRefused()
  isRefused()
  assert.equal(String(file.read()), 'new')
})
