/** A rewriting that ends without a new journal, because the key file is another one by then. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'node:test'
import type { DurableJournal } from '../../src/journal/journal.ts'
import type { Checkpoint } from '../../src/parts/operator/rewriting/checkpoint.ts'
import { composePipeline } from '../support/pipeline.ts'
import { withAccounts } from '../support/stores.ts'
import { compact, rotateKey } from '../support/rewrite.ts'
import { send } from '../support/service.ts'

const fields = (password: string) => ({ password, sistema: 's', usuario: 'u' })

test('where the file of the keys is an older one by the end of a rewrite, the journal stays as it was', async t => {
  const { store, url } = await composePipeline(t)
  const create = (): ReturnType<typeof send> => send(url, 'POST', '/api/createPassword', fields('one more'))
  await create()
  const journal = store.journal as DurableJournal
  const { path, keyFile } = journal.location()
  const older = readFileSync(keyFile)
  await rotateKey(journal)
  const newer = readFileSync(keyFile)
  for (const keepsHistory of [false, true]) {
    const before = readFileSync(path)
    const withOlderKeys = (made: Checkpoint): Checkpoint => ({
      ...made, digests: () => { writeFileSync(keyFile, older); return made.digests() }
    })
    await assert.rejects(compact(withAccounts(store), keepsHistory, () => {}, withOlderKeys), { code: 'key-unknown' })
    assert.deepEqual(readFileSync(path), before)
    assert.deepEqual(readdirSync(dirname(path)).filter(name => /part|-/.test(name)), [])
    writeFileSync(keyFile, newer)
    assert.equal((await create()).status, 200)
  }
})
