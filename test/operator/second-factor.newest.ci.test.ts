/** Second factors, and what they had of codes, come through whatever rewrites, copies or saves a journal. */
import assert from 'node:assert/strict'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { createEntry } from '../../src/entries/entry-commands.ts'
import { newFactor } from '../../src/accounts/logins.ts'
import { PasswordHasher } from '../../src/accounts/passwords.ts'
import { codeAt, otpIn, stepAt } from '../../src/accounts/totp.ts'
import { admin, done } from '../support/admin.ts'
import { ANA, PASSWORD } from '../support/accounts.ts'
import { CHEAP } from '../support/hashes.ts'
import { bytesOf, journalBytes, journalPath, linesOf } from '../support/journal.ts'
import { startProgram } from '../support/program.ts'
import { freshFolder } from '../support/service.ts'
import { fileStore, type FullStore } from '../support/stores.ts'

const FACTOR = newFactor()
const BEA = 'bea@example.org'
const stepNow = (): number => stepAt(otpIn(FACTOR)!, Date.now())
const codeOf = (step: number): string => codeAt(otpIn(FACTOR)!, step)
const openStore = (folder: string): Promise<FullStore> => fileStore(folder, { hasher: new PasswordHasher(CHEAP) })
const isIn = async ({ accounts }: FullStore, code?: string): Promise<boolean> =>
  await accounts.login({ email: ANA, password: PASSWORD, code, client: '' }, undefined) !== undefined

/** Puts a file that a command has made in the place of the journal. */
async function takeBack(folder: string, file: string): Promise<void> {
  rmSync(journalPath(folder), { force: true })
  await done(folder, `journal restore ${file}`)
}

/** A bit of the newest entry is another one. */
function damage(folder: string): string {
  const lines = linesOf(journalBytes(folder))
  const at = lines.findLastIndex(line => line.includes('"type":"entry.created"'))
  lines[at] = lines[at]!.replace(/("sealed":"[^"]{20})(.)/, (_, start, one) => `${start}${one === 'A' ? 'B' : 'A'}`)
  const bad = join(folder, 'bad.jsonl')
  writeFileSync(bad, bytesOf(lines))
  return bad
}

const WAYS: { readonly [what: string]: (folder: string, file: string, t: TestContext) => Promise<void> } = {
  compaction: async folder => { await done(folder, 'journal compact --yes') },
  'a new key for all records': async folder => {
    await done(folder, 'key rotate')
    await done(folder, 'key rewrite')
  },
  'backup and restore': async (folder, file) => {
    await done(folder, `journal backup ${file}`)
    await takeBack(folder, file)
  },
  'a rescue': async (folder, file, t) => {
    const program = await startProgram(t, { flags: { data: folder, auth: 'bearer' } })
    renameSync(journalPath(folder), join(folder, 'away.jsonl'))
    await done(folder, `journal rescue ${file}`)
    await program.stop()
    await takeBack(folder, file)
  },
  'a salvage that keeps access': async (folder, file) => {
    const { code } = await admin(folder, `journal salvage ${damage(folder)} --to ${file} --keep-tokens`)
    assert.equal(code, 3, 'an entry is lost')
    await takeBack(folder, file)
  }
}

async function withFactor(t: TestContext): Promise<{ readonly folder: string, readonly file: string, step: number }> {
  const folder = freshFolder(t)
  const store = await openStore(folder)
  const step = stepNow()
  await store.accounts.addUser(ANA, 'Ana', ['*'], PASSWORD)
  await store.accounts.addUser(BEA, 'Bea', ['*'], null)
  await store.accounts.giveFactor(ANA, FACTOR, codeOf(step - 1))
  assert.equal(await isIn(store, codeOf(step)), true)
  for (let n = 0; n < 3; n++) await createEntry(store, { password: 'p', sistema: 's', usuario: 'u' }, null)
  await store.close()
  return { folder, file: join(freshFolder(t), 'made.jsonl'), step }
}

for (const [what, way] of Object.entries(WAYS)) {
  test(`after ${what} a login needs a code that was not used, and users without a password have none`, async t => {
    const { folder, file, step } = await withFactor(t)
    await way(folder, file, t)
    const store = await openStore(folder)
    assert.deepEqual(store.accounts.users().map(({ secondFactor, hasNoPassword }) => [secondFactor, hasNoPassword]),
      [[true, undefined], [undefined, true]])
    assert.deepEqual([await isIn(store), await isIn(store, codeOf(step)), await isIn(store, codeOf(step - 1))],
      [false, false, false])
    assert.equal(await isIn(store, codeOf(step + 1)), true)
    assert.ok(await store.accounts.loginVouched(BEA, 60))
    await store.close()
  })
}

test('a salvage with losses locks all users, with password or not, until the operator sets or takes one', async t => {
  const { folder, file, step } = await withFactor(t)
  const { code, out } = await admin(folder, `journal salvage ${damage(folder)} --to ${file}`)
  assert.equal(code, 3)
  assert.match(out, /these need a new password: ana@example\.org, bea@example\.org/)
  await takeBack(folder, file)
  assert.match(await done(folder, 'user list'), /^ID +EMAIL +NAME +ABILITIES +(SECOND FACTOR +)?LOCKED/)
  let store = await openStore(folder)
  assert.equal(await isIn(store, codeOf(step + 1)), false)
  for (const email of [ANA, BEA]) assert.equal(await store.accounts.loginVouched(email, 60), undefined, email)
  await store.close()
  assert.equal(await done(folder, `user password ${BEA} --remove`), `${BEA}: has no password now, all tokens revoked\n`)
  await done(folder, 'journal compact --yes')
  store = await openStore(folder)
  assert.ok(await store.accounts.loginVouched(BEA, 60))
  assert.equal(await store.accounts.loginVouched(ANA, 60), undefined, 'also after a compaction')
  await store.close()
})
