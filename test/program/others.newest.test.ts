/** What was read unrecorded: whatever says who knows a password says that others may. */
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { admin, done, initialized } from '../support/admin.ts'
import { joined } from '../support/patterns.ts'
import { freshFolder, startService, type Started } from '../support/service.ts'
import { fileStore } from '../support/stores.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'

const FIELDS = { sistema: 's', usuario: 'u' }

function served(t: TestContext, folder: string, auth: 'bearer' | 'none' = 'bearer'): Promise<Started> {
  return startService(t, { data: folder, auth, 'extra-routes': 'on' })
}

async function ask(program: Started, path: string, token?: string, body?: object): Promise<any> {
  const answer = await fetch(`${program.url}/api/${path}`, { ...body && { method: 'POST', body: JSON.stringify(body) },
    headers: { ...token && { Authorization: `Bearer ${token}` }, 'Content-Type': 'application/json' } })
  assert.equal(answer.status, 200, path)
  return answer.json()
}

async function tokenOf(folder: string, email: string): Promise<string> {
  return (await done(folder, `token issue ${email}`)).trim()
}

async function withUsers(folder: string): Promise<void> {
  for (const email of ['ana@x', 'bea@x']) await done(folder, `user add ${email} --no-password`)
}

async function withEntries(folder: string): Promise<void> {
  for (const n of [1, 2]) await done(folder, `entry add --system s${n} --user u --password-stdin`, `p${n}`)
}

/** A service with tokens that has ended, and a copy of its journal; Bea has read nothing. */
async function copied(t: TestContext, folder: string): Promise<string> {
  await withUsers(folder)
  const program = await served(t, folder)
  for (const n of [1, 2])
    await ask(program, 'createPassword', await tokenOf(folder, 'ana@x'), { ...FIELDS, password: `p${n}` })
  await program.service.close()
  const copy = join(freshFolder(t), 'copy.jsonl')
  await done(folder, `journal backup ${copy}`)
  return copy
}

/** Each leaves two entries, whose passwords others may know, and Ana and Bea as users. */
const WAYS: { readonly [what: string]: (t: TestContext, folder: string) => Promise<void> } = {
  'an upgrade of a service that had tokens before knowledge was recorded': async (_t, folder) => {
    const store = await fileStore(folder)
    for (const n of [1, 2]) await createEntry(store, { ...FIELDS, password: `p${n}` }, null)
    await store.close()
    await withUsers(folder)
  },
  'AUTH=none for a while': async (t, folder) => {
    await withUsers(folder)
    await withEntries(folder)
    await (await served(t, folder)).service.close()
    const open = await served(t, folder, 'none')
    await ask(open, 'listPassword')
    await open.service.close()
  },
  'a value that was listed with AUTH=none, had left its entry, and is set again': async (t, folder) => {
    await withUsers(folder)
    await withEntries(folder)
    const open = await served(t, folder, 'none')
    await ask(open, 'listPassword')
    await open.service.close()
    const tokens = await served(t, folder)
    for (const id of [1, 2]) await done(folder, `entry edit ${id} --generate`)
    assert.equal((await admin(folder, 'entry list --exposed')).code, 0, 'meanwhile nobody knows them')
    for (const id of [1, 2]) await done(folder, `entry edit ${id} --password-stdin`, `p${id}`)
    await tokens.service.close()
  },
  'a restore': async (t, folder) => {
    const copy = await copied(t, folder)
    rmSync(join(folder, 'journal.jsonl'))
    await done(folder, `journal restore ${copy}`)
  },
  'a salvage': async (t, folder) => {
    const copy = await copied(t, folder)
    const salvaged = join(freshFolder(t), 'salvaged.jsonl')
    const [, head] = / head (\w+)$/m.exec(await done(folder, `journal salvage ${copy} --to ${salvaged}`))!
    rmSync(join(folder, 'journal.jsonl'))
    // With the head a restore says nothing of its own.
    const { code } = await admin(folder, `journal restore ${salvaged} --head ${head}`)
    assert.equal(code, 0)
  },
  'an import, since its passwords were in use elsewhere': async (t, folder) => {
    await withUsers(folder)
    const program = await served(t, folder)
    const file = join(freshFolder(t), 'rows.csv')
    writeFileSync(file, 'name,url,username,password\ns1,,u,p1\ns2,,u,p2\n')
    const { code, error } = await admin(folder, `import ${file}`)
    assert.equal(code, 0, error)
    await program.service.close()
  }
}

describe('others may know what was read unrecorded: every place says so in the same breath, after', () => {
  for (const [what, happens] of Object.entries(WAYS)) it(what, async t => {
    const folder = await initialized(t)
    await happens(t, folder)
    const program = await served(t, folder)
    const token = await tokenOf(folder, 'ana@x')
    const said = (who: string, ids: string): RegExp =>
      new RegExp(`(some )?reads before \\d{4}-\\S+Z were not recorded: ${who} may know ${ids}`)
    const both = (who = 'others'): RegExp => said(who, '2 passwords, of ids 1, 2\n')

    const edited = await admin(folder, 'user edit bea@x --groups Web')
    assert.deepEqual([edited.code, both('bea@x and others').test(edited.out)], [0, true], edited.out)
    const removed = await admin(folder, 'user remove bea@x')
    assert.match(removed.out, joined(/^bea@x: removed, all tokens revoked\n/, both('bea@x and others'), /$/))
    assert.equal(removed.code, 0, 'what it was asked for is done')
    const exposed = await admin(folder, 'entry list --exposed')
    assert.deepEqual([exposed.code, exposed.out], [1, ''])
    assert.match(exposed.error, joined(/^no entries like that\nwarning: /, both(), /$/))
    const json = await admin(folder, 'entry list --exposed --json')
    assert.deepEqual([json.code, JSON.parse(json.out).map((row: any) => [row.id, row.exposed, row.exposedTo])],
      [1, [[1, 0, []], [2, 0, []]]])
    const audit = await admin(folder, 'audit')
    assert.deepEqual([audit.code, both().test(audit.error)], [1, true], audit.error)

    const before = JSON.parse(json.out).map((row: any) => row.unrecordedBefore)
    assert.deepEqual(Object.keys(JSON.parse((await admin(folder, 'audit --json')).out).unrecordedBefore),
      [...new Set(before)])
    for (const [n, id] of [1, 2].entries())
      assert.equal((await ask(program, `whoKnows/${id}`, token)).unrecordedBefore, before[n])
    const listed = async (): Promise<unknown[]> =>
      (await ask(program, 'listEntries', token)).map((row: any) => row.unrecordedBefore)
    assert.deepEqual(await listed(), before)

    await done(folder, 'entry edit 1 --generate')
    assert.deepEqual(await listed(), [undefined, before[1]])
    assert.match((await admin(folder, 'entry list --exposed')).error, said('others', '1 password, of ids 2\n$'))
    assert.match(await done(folder, 'entry purge 2 --yes'),
      /^reads before \S+ were not recorded: others may know the password$/m)
    assert.deepEqual(await admin(folder, 'entry list --exposed'),
      { code: 0, out: '', error: 'no entries like that\n' })
  })
})
