/** The field that every owner will add one day: in a copy of the sources it takes one file, and the whole way works. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startProgram } from '../support/program.ts'
import { send } from '../support/service.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

/** What its owner writes, all of it in one file. */
const EDITS = [
  ['  readonly notas?: string | undefined\n',
    '  readonly notas?: string | undefined\n  readonly note?: string | undefined\n'],
  ["example: 'recovery code: 1234-5678'\n  },\n", "example: 'recovery code: 1234-5678'\n  },\n" +
    "  note: { isRequired: false, isAnswered: true, flag: 'note', value: 'N', isSecret: false, help: 'a note', " +
      "example: 'x' },\n"]
] as const

test('an optional field is added in one file: requests, restart, compaction, restore, history, transfer', async t => {
  const tree = mkdtempSync(join(tmpdir(), 'pes-field-'))
  t.after(() => rmSync(tree, { recursive: true }))
  for (const name of ['src', 'tsconfig.json', 'package.json']) cpSync(join(ROOT, name), join(tree, name),
    { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
  const file = join(tree, 'src/entries/entry.ts')
  const edited = EDITS.reduce((text, [from, to]) => {
    assert.ok(text.includes(from), from)
    return text.replace(from, to)
  }, readFileSync(file, 'utf8'))
  writeFileSync(file, edited)
  await run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', tree], { cwd: tree })

  const folder = join(tree, 'data')
  const command = [process.execPath, join(tree, 'dist/server.js')]
  const admin = async (words: string, at = folder): Promise<string> =>
    (await run(process.execPath, [join(tree, 'dist/admin.js'), ...words.split(' ')], { env: { DATA_DIR: at } })).stdout
  const start = (at = folder): ReturnType<typeof startProgram> =>
    startProgram(t, { command, flags: { data: at, page: 'off', 'extra-routes': 'on' } })

  let program = await start()
  const ask = async (method: string, path: string, body?: object): Promise<any> =>
    (await send(program.url, method, `/api/${path}`, body)).json
  const first = { password: 'p', sistema: 's', usuario: 'u', note: 'first' }
  await ask('POST', 'createPassword', first)
  await ask('POST', 'createPassword', { password: 'p', sistema: 's', usuario: 'without' })
  assert.deepEqual((await ask('POST', 'updatePassword/1', { note: 'second' })).password,
    { id: 1, ...first, note: 'second', status: 1 })
  await run(process.execPath, [join(tree, 'dist/admin.js'), 'entry', 'edit', '2', '--note', 'at last'],
    { env: { DATA_DIR: folder } })
  assert.match(await admin('entry get 2'), /^note +at last$/m)
  const list = await ask('GET', 'listPassword')
  assert.deepEqual(list.map(({ note }: { note?: string }) => note), ['second', 'at last'])
  const { history } = await ask('GET', 'historyPassword/1')
  assert.deepEqual(history.map(({ fields }: any) => fields), [['note'], ['password', 'sistema', 'usuario', 'note']])
  const { password, ...open } = first
  assert.deepEqual(history.map(({ values }: any) => values), [{ note: 'second' }, open])
  assert.equal((await ask('GET', 'formerPassword/1/1')).password, password)
  const schemas = (await send(program.url, 'GET', '/openapi.json')).json.components.schemas
  assert.deepEqual([schemas.Entry.required, Object.keys(schemas.EntryFields.properties)],
    [['id', 'password', 'sistema', 'usuario', 'status'],
      ['password', 'sistema', 'usuario', 'url', 'notas', 'note', 'grupo', 'otp']])

  await program.stop()
  for (const words of ['journal compact --drop-history --yes', `journal backup ${tree}/backup`]) await admin(words)
  program = await start()
  for (const format of ['jsonl',
    'csv']) await admin(`export --yes --output ${tree}/entries.${format} --format ${format}`)
  await program.stop()
  const restored = join(tree, 'restored')
  mkdirSync(restored)
  cpSync(join(folder, 'journal.key'), join(restored, 'journal.key'))
  await admin(`journal restore ${tree}/backup`, restored)
  for (const at of [folder, restored]) {
    program = await start(at)
    assert.deepEqual(await ask('GET', 'listPassword'), list)
    await program.stop()
  }
  for (const format of ['jsonl', 'csv']) {
    const into = join(tree, `from-${format}`)
    await admin('init', into)
    await admin(`import ${tree}/entries.${format}`, into)
    program = await start(into)
    assert.deepEqual(await ask('GET', 'listPassword'), list, format)
    await program.stop()
  }
})
