/** Writes that are watched: for the metrics. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileStore } from '../support/compose.ts'
import { FaultyFiles } from '../support/faulty-files.ts'
import { freshFolder } from '../support/service.ts'

test('each write is told when it begins, and when it is over, with whether all of it was written', async t => {
  const faulty = new FaultyFiles()
  const told: string[] = []
  faulty.afterAppend = () => { told.push('appended') }
  const store = await fileStore(freshFolder(t), {
    files: faulty.files,
    onWrite: () => {
      told.push('begins')
      return isMade => { told.push(isMade ? 'made' : 'not made') }
    }
  })
  const create = (): Promise<unknown> => store.createEntry({ password: 'p', sistema: 's', usuario: 'u' }, null)
  await create()
  faulty.shorten(5)
  await assert.rejects(create(), { code: 'write-failed' })
  faulty.fail({ at: 1, of: 'append', code: 'ENOSPC' })
  await assert.rejects(create(), { code: 'write-failed' })
  faulty.heal()
  await create()
  await store.close()
  assert.deepEqual(told, [
    'begins', 'appended', 'made', 'begins', 'appended', 'not made', 'begins', 'not made', 'begins', 'appended', 'made'
  ])
})
