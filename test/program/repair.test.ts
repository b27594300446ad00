/** What a service still holds whose file is damaged, replaced or gone: it writes it again while it runs, or as it stops. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createEntry } from '../../src/store/commands.ts'
import { admin, done, initialized, refused } from '../support/admin.ts'
import { fileStore } from '../support/compose.ts'
import { runProgram, startProgram } from '../support/program.ts'
import { repair } from '../support/rewrite.ts'
import { atEnd, freshFolder, send } from '../support/service.ts'

const ENTRY = { password: 'SECRET', sistema: 's', usuario: 'u' }
const IN_MEMORY = /the service has everything in memory: do not stop it; journal repair/

const LOSSES: { readonly [what: string]: (folder: string) => void } = {
  'removed': folder => rmSync(join(folder, 'journal.jsonl')),
  'replaced by another file': folder => {
    rmSync(join(folder, 'journal.jsonl'))
    writeFileSync(join(folder, 'journal.jsonl'), 'what another program wrote')
  },
  'damaged in the middle': folder => {
    const bytes = readFileSync(join(folder, 'journal.jsonl'))
    bytes[Math.floor(bytes.length / 2)]! ^= 1
    writeFileSync(join(folder, 'journal.jsonl'), bytes, { flag: 'r+' })
  },
  'removed with its key': folder => { for (const name of ['journal.jsonl', 'journal.key']) rmSync(join(folder, name)) }
}

for (const [what, lose] of Object.entries(LOSSES)) {
  test(`a journal that is ${what}: messages name journal repair, which writes it again, and changes go on`, async t => {
    const { url, folder, stop } = await startProgram(t, { flags: { page: 'off' } })
    const create = async (): Promise<number> => (await send(url, 'POST', '/api/createPassword', ENTRY)).status
    for (let n = 0; n < 3; n++) assert.equal(await create(), 200)
    lose(folder)
    for (const words of ['journal verify', 'journal compact', `journal backup ${join(freshFolder(t), 'copy')}`]) {
      const { code, error } = await admin(folder, words)
      assert.ok(code === 1 || code === 3, words)
      assert.match(error, IN_MEMORY, words)
    }
    assert.match(await done(folder, 'entry list'), /^3 /m, 'entries are read from the service')
    assert.match(await done(folder, 'journal repair'), /journal\.jsonl: 3 records, head [0-9a-f]{64}; changes go on$/m)
    assert.equal(await create(), 200)
    assert.equal((await send(url, 'GET', '/healthz')).status, 200)
    assert.match(await done(folder, 'journal verify'), /^entries 4 \(4 active\)$/m)
    assert.equal(readdirSync(folder).some(name => name.includes('.replaced-')), !what.startsWith('removed'))
    assert.equal((await stop()).code, 0)
    assert.match(await done(folder, 'entry list'), /^4 /m, 'also after the service')
  })
}

for (const [what, code, isHeld] of [
  ['lock is lost before', undefined, () => false], ['lock is lost while', undefined, n => n < 2],
  ['key file is lost while', 'key-unknown', (n, folder) => { if (n === 2) rmSync(join(folder, 'journal.key')); return true }]
] satisfies [string, string | undefined, (look: number, folder: string) => boolean][]) {
  test(`a repair whose ${what} it writes is refused, and leaves the file that has the name`, async t => {
    const folder = freshFolder(t)
    const store = await fileStore(folder)
    atEnd(t, () => store.close())
    await createEntry(store, ENTRY, null)
    const [before, names] = [readFileSync(join(folder, 'journal.jsonl')), readdirSync(folder)]
    let looks = 0
    await assert.rejects(repair(store, () => isHeld(++looks, folder)), code === undefined ? /the lock of the data folder was removed/ : { code })
    assert.ok(before.equals(readFileSync(join(folder, 'journal.jsonl'))))
    assert.deepEqual(names.filter(name => !readdirSync(folder).includes(name)), code === undefined ? [] : ['journal.key'])
  })
}

test('a folder that was emptied: the service writes what it holds as it stops, and a restore brings it back', async t => {
  const { url, folder, stop } = await startProgram(t, { flags: { page: 'off' } })
  for (let n = 0; n < 3; n++) await send(url, 'POST', '/api/createPassword', ENTRY)
  for (const name of readdirSync(folder)) rmSync(join(folder, name))
  assert.equal((await send(url, 'POST', '/api/createPassword', ENTRY)).status, 500)
  const { code, stderr } = await stop()
  assert.equal(code, 0)
  assert.match(stderr, /the journal had failed: all that was in memory is in .*journal\.rescued-/)
  const rescued = readdirSync(folder).find(name => name.startsWith('journal.rescued-'))!
  assert.match((await runProgram(t, { flags: { data: folder } })).stderr, /though its key .* is there; if entries were stored there, restore a backup/)
  assert.match(await done(folder, `journal restore ${join(folder, rescued)}`), /: 3 records, head /)
  assert.match(await done(folder, 'entry get 3 --field password'), /^SECRET$/m)
})

test('without a service journal repair names restore, then salvage; a restore ends tokens unless they are to be kept', async t => {
  const folder = await initialized(t)
  await refused(folder, 'journal repair', 1, /no service has the lock .* by SIGTERM, .* leaves journal\.rescued-TIME\.jsonl .* restore a backup \(journal restore\), or .*\(journal salvage\)$/m)
  await done(folder, 'user add ana@x --password-stdin', 'a long password')
  await done(folder, 'token issue ana@x')
  const copy = join(freshFolder(t), 'copy')
  assert.match(await done(folder, `journal backup ${copy}`), /^it is read with the keys \w{8} of .*journal\.key: keep a copy of that file elsewhere$/m)
  await refused(folder, `journal backup ${copy}`, 1, /exists already; --timestamp adds the time to the name$/m)
  await done(folder, `journal backup ${copy}.jsonl --timestamp`)
  for (const [flag, tokens, says] of [['', '[]', /^1 token ended/m], [' --keep-tokens', 'ana@x', /^users and tokens are as of .*: ana@x$/m]] as const) {
    renameSync(join(folder, 'journal.jsonl'), join(freshFolder(t), 'old'))
    const restored = await done(folder, `journal restore ${copy}${flag}`)
    assert.match(restored, says)
    assert.match(restored, /remove those who have left: user remove EMAIL/)
    assert.ok((await done(folder, 'token list --json')).includes(tokens))
  }
})
