/** Texts of entries and users, as commands show them at a terminal. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { done, initialized } from '../support/admin.ts'
import { fileStore } from '../support/stores.ts'
import { createEntry, deleteEntry, updateEntry } from '../../src/entries/entry-commands.ts'

/** An escape, its 8-bit form, a carriage return, a bell, a tabulator, a direction, a line of Unicode. */
const EVIL = '\u001b[2J\u009b2J\r\u0007\t\u202e\u2028'
const SHOWING = [
  'entry list', 'entry list --deleted', 'entry get 1', 'entry get 1 --reveal', 'entry history 1',
  'entry history 1 --reveal', 'entry delete 1', 'entry restore 1', 'user list', 'journal show', 'journal show --reveal',
  'journal verify', 'entry list --json', 'entry get 1 --reveal --json', 'user list --json'
]

test('an entry that is written to attack its reader writes no control sequence to a terminal', async t => {
  const folder = await initialized(t)
  const store = await fileStore(folder)
  const fields = { password: `p${EVIL}`, sistema: `s${EVIL}`, usuario: `u${EVIL}`, notas: `n${EVIL}`, url: `x${EVIL}` }
  for (let n = 0; n < 2; n++) await createEntry(store, fields, null)
  await updateEntry(store, 1, { password: `q${EVIL}`, notas: `m${EVIL}` }, null)
  await deleteEntry(store, 2, null)
  await store.accounts.addUser('ana@x', `A${EVIL}`, ['*'], 'a long password')
  await store.close()
  let shown = 0
  for (const words of SHOWING) {
    const out = await done(folder, words)
    assert.doesNotMatch(out, /[\0-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]/, words)
    if (/\\u001b/.test(out)) shown++
  }
  assert.ok(shown >= SHOWING.length - 3, `${shown} show it`)
})
