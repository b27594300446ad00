/** A command that makes a file, and gets a signal while it does: what it says, and what it leaves. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createEntry, updateEntry } from '../../src/entries/entry-commands.ts'
import { ADMIN, done } from '../support/admin.ts'
import { startProgram } from '../support/program.ts'
import { freshFolder } from '../support/service.ts'
import { fileStore } from '../support/stores.ts'

const AT_PART = fileURLToPath(new URL('../support/signal-at-part.js', import.meta.url))
const CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const
type Signal = keyof typeof CODES

interface Row {
  /** `there` is a folder elsewhere. */
  readonly words: (folder: string, there: string) => string
  /** Of the sentence, with `FOLDER` and `THERE`. */
  readonly state: string
  /** At which of its files the signal comes; 1 unless given. */
  readonly part?: number
  /** What is done before. */
  readonly first?: (t: TestContext, folder: string, there: string) => unknown
}

const COMMANDS: { readonly [command: string]: Row } = {
  'journal backup': { words: (_, there) => `journal backup ${there}/b.jsonl`, state: 'THERE/b.jsonl was not made' },
  'journal backup --timestamp': {
    words: (_, there) => `journal backup ${there}/b.jsonl --timestamp`, state: 'THERE/b-TIME.jsonl was not made'
  },
  'journal restore': {
    words: (_, there) => `journal restore ${there}/copy.jsonl`, state: 'FOLDER/journal.jsonl was not made',
    first: (_, folder, there) => renameSync(join(folder, 'journal.jsonl'), join(there, 'copy.jsonl'))
  },
  'journal restore over an empty journal': {
    words: (_, there) => `journal restore ${there}/copy.jsonl`, state: 'FOLDER/journal.jsonl is as it was',
    first: (_, folder, there) => {
      renameSync(join(folder, 'journal.jsonl'), join(there, 'copy.jsonl'))
      writeFileSync(join(folder, 'journal.jsonl'), '')
    }
  },
  'journal compact': { words: () => 'journal compact', state: 'FOLDER/journal.jsonl is as it was' },
  'key rewrite': { words: () => 'key rewrite', state: 'FOLDER/journal.jsonl is as it was' },
  'journal salvage': {
    words: (_, there) => `journal salvage ${there}/damaged.jsonl --to ${there}/new.jsonl`,
    state: 'THERE/new.jsonl was not made',
    first: (_, folder, there) => copyFileSync(join(folder, 'journal.jsonl'), join(there, 'damaged.jsonl'))
  },
  'journal salvage with records that do not fit': {
    words: (_, there) => `journal salvage ${there}/damaged.jsonl --to ${there}/new.jsonl`,
    state: 'THERE/new.jsonl was not made', part: 2,
    first: (_, folder, there) => unplaced(folder, there)
  },
  'journal rescue': {
    words: (_, there) => `journal rescue ${there}/rescued.jsonl`, state: 'THERE/rescued.jsonl was not made',
    first: async (t, folder) => {
      await startProgram(t, { flags: { data: folder } })
      rmSync(join(folder, 'journal.jsonl'))
    }
  },
  'export': { words: (_, there) => `export --output ${there}/e.csv --yes`, state: 'THERE/e.csv was not made' }
}

/** A damaged copy whose second line, which made an entry that a later line changes, does not open. */
async function unplaced(folder: string, there: string): Promise<void> {
  const store = await fileStore(folder)
  await updateEntry(store, 2, { usuario: 'v' }, null)
  await store.close()
  const [one, two, ...others] = readFileSync(join(folder, 'journal.jsonl'), 'utf8').split('\n')
  const damaged = two!.replace(/"sealed":"..../, '"sealed":"....')
  writeFileSync(join(there, 'damaged.jsonl'), [one, damaged, ...others].join('\n'))
}

/** Every file with its contents, but for what a lock leaves and what the journal has gained. */
function filesIn(folder: string): { readonly [name: string]: string } {
  const names = readdirSync(folder).filter(name => !name.endsWith('.sock'))
  return Object.fromEntries(names.map(name => [name, readFileSync(join(folder, name), 'latin1')]))
}

for (const [command, { words, state, part = 1, first }] of Object.entries(COMMANDS)) {
  test(`${command}: a signal while it makes its file ends it with a sentence and without a half of a file`, async t => {
    const signals: readonly Signal[] = command === 'journal backup' ? ['SIGINT', 'SIGTERM', 'SIGHUP'] : ['SIGINT']
    for (const signal of signals) {
      const [folder, there] = [freshFolder(t), freshFolder(t)]
      const store = await fileStore(folder)
      for (let n = 0; n < 3; n++) await createEntry(store, { password: 'p', sistema: `s${n}`, usuario: 'u' }, null)
      await store.close()
      await first?.(t, folder, there)
      const before = [filesIn(folder), filesIn(there)]
      const args = ['--import', AT_PART, ADMIN, ...words(folder, there).split(' ')]
      const env = { DATA_DIR: folder, AT_PART: signal, PART: String(part) }
      const { status, stderr, stdout } = spawnSync(process.execPath, args, { env, encoding: 'utf8', timeout: 60_000 })
      const said = stderr.replaceAll(folder, 'FOLDER').replaceAll(there, 'THERE').replace(/-\d{8}T\d{6}Z/, '-TIME')
      assert.deepEqual([status, stdout], [CODES[signal], ''], said)
      assert.ok(said.endsWith(`\nended by ${signal}: ${state}\n`), said)
      const after = [filesIn(folder), filesIn(there)]
      // An export is recorded before it is written.
      if (command === 'export') assert.ok(after[0]!['journal.jsonl']!.startsWith(before[0]!['journal.jsonl']!))
      else assert.deepEqual(after, before, signal)
      assert.deepEqual(Object.keys(after[1]!), Object.keys(before[1]!))
      if (first === undefined) assert.match(await done(folder, 'journal verify'), /^records/m)
    }
  })
}
