/** Appends that are timed: the file layer stays what it was. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { measuredFiles } from '../../src/journal/measured.ts'
import { fileStore } from '../support/compose.ts'
import { FaultyFiles } from '../support/faulty-files.ts'
import { freshFolder } from '../support/service.ts'

test('each append is told once it is over, with its time, and whether all of it was written', async t => {
  const faulty = new FaultyFiles()
  let nowMs = 0
  faulty.afterAppend = () => { nowMs += 7 }
  const told: (readonly [ms: number, isWhole: boolean])[] = []
  const files = measuredFiles(faulty.files, () => nowMs, (ms, isWhole) => { told.push([ms, isWhole]) })
  const store = fileStore(freshFolder(t), files)
  const create = (): Promise<unknown> => store.createEntry({ password: 'p', sistema: 's', usuario: 'u' }, null)
  await create()
  faulty.shorten(5)
  await assert.rejects(create(), { code: 'write-failed' })
  faulty.fail({ at: 1, of: 'append', code: 'ENOSPC' })
  await assert.rejects(create(), { code: 'write-failed' })
  faulty.heal()
  await create()
  await store.close()
  assert.deepEqual(told, [[7, true], [7, false], [0, false], [7, true]])
})
