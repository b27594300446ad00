/**
 * Every two commands of the operator at once, beside clients that change entries: each is done, or refused by a sentence;
 * no change that was acknowledged is lost, the journal is whole, and a restart shows what was served.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { call, startProtected, tokenOf } from '../support/accounts.ts'
import { admin, done } from '../support/admin.ts'
import { freshFolder, startService, within } from '../support/service.ts'

const FLAGS = { auth: 'bearer', 'login-limit': '0', 'extra-routes': 'on' }

/** Commands, by number so that each is another one; `HOME` is a folder of the test's own. */
const COMMANDS: readonly ((n: number) => string)[] = [
  () => 'key rotate', () => 'key rewrite', () => 'journal compact', () => 'journal compact --drop-history --yes',
  n => `journal backup HOME/backup-${n}.jsonl`, () => 'import HOME/import.jsonl --keep-duplicates', () => 'entry purge 1 --yes',
  () => 'entry restore 2', n => `entry add --system two-${n} --user u --generate`, n => `export --output HOME/export-${n}.jsonl --yes`,
  n => `user edit ana@example.org --name A${n}`, () => 'token issue ana@example.org', () => 'journal verify', () => 'entry list'
]

test('every two commands at once, beside changes: each is done or says why not, and nothing is lost', async t => {
  const home = freshFolder(t)
  writeFileSync(join(home, 'import.jsonl'), `${JSON.stringify({ password: 'i', sistema: 's', usuario: 'i', status: 1 })}\n`)
  const started = await startProtected(t, FLAGS)
  const { url, folder } = started
  const token = await tokenOf(started)
  const acknowledged = new Set<string>()
  let serial = 0
  const create = async (): Promise<void> => {
    const usuario = `change ${++serial}`
    const { status } = await call(t, url, 'POST', '/api/createPassword', { token, body: { password: 'p', sistema: 's', usuario } })
    // A change that waits too long for a rewriting is withdrawn.
    assert.ok(status === 200 || status === 503, `a change is answered ${status}`)
    if (status === 200) acknowledged.add(usuario)
  }
  for (let n = 0; n < 3; n++) await create()
  acknowledged.delete('change 1') // which is purged
  let counted = 0
  for (const [i, one] of COMMANDS.entries()) {
    for (const other of COMMANDS.slice(i)) {
      const pair = [one, other].map(words => words(++counted).replace('HOME', home))
      const ends = await Promise.all([...pair.map(words => admin(folder, words)), create(), create()])
      for (const [at, words] of pair.entries()) {
        const { code, error } = ends[at] as Awaited<ReturnType<typeof admin>>
        if (code === 0) continue
        const what = `${pair.join(' beside ')}: ${words} ends with ${code}: ${error}`
        assert.match(error, /^([^\n]+\n)*error: [^\n]{10,}\n$/, what)
        // An entry is purged by now; a journal is being rewritten, or has been; another import has begun.
        assert.match(words, /purge|restore|rotate|rewrite|compact|import/, what)
      }
    }
    await done(folder, 'journal verify')
  }
  const list = async (at: string): Promise<string> => (await call(t, at, 'GET', '/api/listPassword', { token })).text
  const shown = await list(url)
  const users = new Map<string, number>()
  for (const { usuario } of JSON.parse(shown)) users.set(usuario, (users.get(usuario) ?? 0) + 1)
  assert.deepEqual([...acknowledged].filter(usuario => users.get(usuario) !== 1), [], 'each that was acknowledged is there once')
  await started.service.close()
  await within(async scope => {
    const again = await startService(scope, { ...FLAGS, data: folder })
    assert.equal(await list(again.url), shown)
  })
})
