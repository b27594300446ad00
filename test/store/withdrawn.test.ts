/** A change that waits for a rewrite: answered 503 after a few seconds, and not carried out later. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'node:test'
import type { DurableJournal } from '../../src/journal/journal.ts'
import { composeService, withAccounts } from '../support/compose.ts'
import { compact, rotateKey } from '../support/rewrite.ts'
import { send } from '../support/service.ts'

/** Holds a rewrite up as long as asked, a moment at each step: to ask all the time would keep a core busy. */
function * held(isHeld: () => boolean): Generator<void> {
  const never = new Int32Array(new SharedArrayBuffer(4))
  for (; isHeld(); yield) Atomics.wait(never, 0, 0, 2)
}

const fields = (password: string) => ({ password, sistema: 's', usuario: 'u' })

test('operator\'s work that waits behind a long rewrite is withdrawn after a few seconds, or when its client has gone', async t => {
  const { store, url } = await composeService(t)
  await send(url, 'POST', '/api/createPassword', fields('before'))
  let isHeld = true
  let rewriting: Promise<unknown> | undefined
  await new Promise<void>(hasBegun => {
    rewriting = compact(withAccounts(store), false, () => {}, made => {
      hasBegun()
      return { ...made, compare: () => held(() => isHeld) }
    })
  })
  const never = async (): Promise<never> => assert.fail('it was begun')
  await assert.rejects(store.exclusive(never), { code: 'journal-busy' })
  const left = store.exclusive(never, () => true) // in time, but nobody waits for it any more
  isHeld = false
  await rewriting
  await assert.rejects(left, { code: 'journal-busy' })
  assert.equal(await store.exclusive(async () => 'done'), 'done')
})

test('where the file of the keys is an older one by the end of a rewrite, the journal stays as it was', async t => {
  const { store, url } = await composeService(t)
  const create = (): ReturnType<typeof send> => send(url, 'POST', '/api/createPassword', fields('one more'))
  await create()
  const journal = store.journal as DurableJournal
  const { path, keyFile } = journal.location()
  const older = readFileSync(keyFile)
  await rotateKey(journal)
  const newer = readFileSync(keyFile)
  for (const keepsHistory of [false, true]) {
    const before = readFileSync(path)
    const putBack = function * (): Generator<void> { writeFileSync(keyFile, older); yield }
    await assert.rejects(compact(withAccounts(store), keepsHistory, () => {}, made => ({ ...made, compare: putBack })),
      { code: 'key-unknown' })
    assert.deepEqual(readFileSync(path), before)
    assert.deepEqual(readdirSync(dirname(path)).filter(name => /part|-/.test(name)), [])
    writeFileSync(keyFile, newer)
    assert.equal((await create()).status, 200)
  }
})
