/** What a compaction of large entries and many users costs. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { putJournal, referenceLines, writeKeys } from '../support/journal.ts'
import { compact, reencrypt } from '../support/rewrite.ts'
import { freshFolder } from '../support/service.ts'
import { fileStore as open } from '../support/stores.ts'
import { createEntry, deleteEntry, updateEntry } from '../../src/entries/entry-commands.ts'
import { event } from '../../src/store/events.ts'

const fields = { password: 'p', sistema: 's', usuario: 'u' }

test('an entry cannot outgrow compaction and export; one that an older version let grow is compacted', async t => {
  const folder = freshFolder(t)
  const store = await open(folder)
  const part = 'x'.repeat(9 * 1024 * 1024)
  await createEntry(store, { ...fields, password: part }, null)
  await assert.rejects(updateEntry(store, 1, { sistema: part }, null), { code: 'entry-too-large' })
  await assert.rejects(createEntry(store, { password: part, sistema: part, usuario: 'u' }, null),
    { code: 'entry-too-large' })
  assert.equal(store.state.entries.get(1)!.sistema, fields.sistema)
  for (const field of ['sistema', 'usuario']) {
    await store.commit(() => [[event('entry.updated', null, { id: 1, [field]: part })], undefined])
  }
  await deleteEntry(store, 1, null)
  const before = store.state.entries.text(1)!
  assert.ok(before.length > 27 * 1024 * 1024)
  await assert.rejects(updateEntry(store, 1, { usuario: `${part}y` }, null), { code: 'entry-too-large' })
  await updateEntry(store, 1, { usuario: part }, null)
  await compact(store, false)
  await reencrypt(store)
  await store.close()
  const again = await open(folder)
  assert.equal(again.state.entries.text(1)!, before)
  await again.close()
})

test('replaying users and ending tokens costs no more for each when there are many', async t => {
  const made = async (users: number): Promise<string> => {
    const folder = freshFolder(t)
    const secret = randomBytes(32)
    writeKeys(folder, secret)
    const add = (id: number) => ({ type: 'user.added', data: { id, email: `${id}@x`, name: 'n', abilities: [],
      passwordHash: 'h' } })
    const issue = (n: number) => ({ type: 'token.issued',
      data: { hash: `${n}`.padStart(64, '0'), user: 1 + n % users, abilities: [], issued: '', expires: null } })
    const end = (user: number) => ({ type: 'tokens.revoked', data: { user } })
    const ids = Array.from({ length: users }, (_, i) => i + 1)
    putJournal(folder, referenceLines(secret, [...ids.map(add), ...ids.map(issue),
      ...ids.map(end)].map(record => [record])))
    return folder
  }
  const cost = async (folder: string): Promise<number> => {
    const { user } = process.cpuUsage()
    await (await open(folder)).close()
    return process.cpuUsage().user - user
  }
  const [few, many] = [await made(500), await made(8_000)]
  await cost(few)
  const [least, most] = [await cost(few), await cost(many)]
  assert.ok(most < 16 * 4 * least, `${least} us for 500, ${most} us for 8,000`)
})
