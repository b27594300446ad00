/**
 * A table of bounds: each command of the operator on a heap of 64 MiB, with 100,000 entries whose passwords thirty
 * users know, who may be told none of them any more; with a service on the folder, which has the same heap, and
 * without one. A row holds how many lines come, and in processor time how long the service may keep others waiting.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, createReadStream, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { event } from '../../src/store/events.ts'
import { idLists } from '../../src/knowledge/ids.ts'
import { SERVER, startProgram, type Program } from '../support/program.ts'
import { memoryMiB } from '../support/system.ts'
import { freshFolder } from '../support/service.ts'
import { fileStore } from '../support/stores.ts'

const ENTRIES = 100_000
const USERS = 30
/** The rows to run alone, as a pattern. */
const ONLY = new RegExp(process.env['BOUNDS_ROWS'] ?? '')
/** Another build of the same program, to compare with. */
const DIST = process.env['BOUNDS_DIST'] ?? join(SERVER, '..')
const HEAP = '--max-old-space-size=64'
const NODE = [process.execPath, HEAP]

const emailOf = (n: number): string => `u${n}@example.org`
const fieldsOf = (n: number): object =>
  ({ password: `Pass-${n}-${(n * 7919) % 100_003}-abcdef`, sistema: `system ${n}`, usuario: `user${n}` })

/** Half of the entries were made by a user, half imported: others may know those. */
async function filled(folder: string): Promise<void> {
  mkdirSync(folder, { mode: 0o700 })
  const store = await fileStore(folder)
  const commit = (events: readonly ReturnType<typeof event>[]): Promise<unknown> => store.commit(() => [events, 0])
  await commit([event('recording.begun', null, {})])
  for (let n = 1; n <= USERS + 1; n++) await store.accounts.addUser(emailOf(n), 'A Name of Somebody', ['*'], null)
  for (let first = 1; first <= ENTRIES / 2; first += 1_000)
    await commit(Array.from({ length: 1_000 }, (_, i) =>
      event('entry.created', 1, { id: first + i, ...fieldsOf(first + i) } as never)))
  for (let first = ENTRIES / 2 + 1; first <= ENTRIES; first += 1_000) {
    const entries = Array.from({ length: 1_000 }, (_, i) => ({ ...fieldsOf(first + i), status: 1 }))
    await commit([event('entries.imported', null, { first, entries } as never)])
  }
  const all = idLists(Array.from({ length: ENTRIES }, (_, i) => i + 1))
  for (let n = 1; n <= USERS + 1; n++)
    await commit(all.map(entryIds => event('passwords.told', n, { operation: 'listPassword', entryIds })))
  for (let n = 1; n <= USERS; n++) {
    if (n > USERS / 2) await store.accounts.removeUser(emailOf(n))
    else await store.accounts.changeUser(emailOf(n), undefined, ['password:create'])
  }
  await store.close()
}

interface Row {
  /** USER is a user who is there; ROWS a file to import; FILE a new one; COPY the first backup. */
  readonly words: string
  readonly code?: number
  readonly lines?: number
  /** It wants the folder for itself. */
  readonly isAlone?: boolean
  readonly mostTurnMs?: number
}

/** A slice of what goes over all entries takes about 20. */
const TURN_MS = 250
/** An import is one record, which is taken whole. */
const IMPORT_TURN_MS = 2_500
/** A list over HTTP is made in one piece. */
const LIST_TURN_MS = 1_000

const ROWS: readonly Row[] = [
  { words: 'entry list', lines: ENTRIES + 1 },
  { words: 'entry list --json', lines: 1 },
  { words: 'entry list --exposed', code: 1, lines: ENTRIES + 1 },
  { words: 'entry list --exposed --json', code: 1, lines: 1 },
  { words: 'entry list --reused', lines: 0 },
  { words: 'entry list --old 0', lines: ENTRIES + 1 },
  { words: 'entry get --of-system=system_77 --reveal', lines: 5 },
  { words: 'entry history 77 --reveal', lines: 1 },
  { words: 'audit 77' },
  { words: 'audit u1@example.org', code: 1, lines: ENTRIES + 1 },
  { words: 'audit', code: 1 },
  { words: 'audit --json', code: 1, lines: 1 },
  { words: 'user list' },
  { words: 'token list' },
  { words: 'user edit USER --abilities password:create', lines: 3 },
  { words: 'user remove USER', lines: 3 },
  { words: 'export --output - --format jsonl --yes', lines: ENTRIES },
  { words: 'export --output - --format csv --yes', lines: ENTRIES + 1 },
  { words: 'export --output - --format bitwarden --yes' },
  { words: 'import ROWS --dry-run', mostTurnMs: IMPORT_TURN_MS },
  { words: 'import MORE', code: 1, lines: 0 },
  { words: 'journal verify', lines: 5 },
  { words: 'journal show' },
  { words: 'journal show --reveal' },
  { words: 'journal backup FILE', lines: 3 },
  { words: 'key rotate', lines: 2 },
  { words: 'key list' },
  { words: 'key rewrite', isAlone: true },
  { words: 'journal salvage JOURNAL --to FILE', isAlone: true },
  { words: 'journal restore COPY --data EMPTY --key-file KEYS', isAlone: true },
  { words: 'journal compact', isAlone: true },
  { words: 'import ROWS', isAlone: true }
]

const script = (text: string): string => `data:text/javascript,${encodeURIComponent(text)}`
/** Says at its end how much memory it had. */
const AT_END = script(`import fs from 'node:fs'; process.on('exit', () =>
  fs.writeFileSync(process.env.LEFT, /VmHWM:\\s+(\\d+)/.exec(fs.readFileSync('/proc/self/status'))[1]))`)
/** Says at a signal the most processor time between two turns since the last signal. */
const TURNS = script(`let most = 0, last = 0
  setInterval(() => {
    const { user, system } = process.cpuUsage(), now = (user + system) / 1000
    most = Math.max(most, now - last); last = now
  }, 1).unref()
  process.on('SIGUSR2', () => { process.stderr.write('turn ' + most.toFixed(0) + '\\n'); most = 0 })`)

async function turnMs(program: Program): Promise<number> {
  const turns = (): readonly string[] => program.stderr.match(/^turn \d+$/gm) ?? []
  const { length } = turns()
  program.child.kill('SIGUSR2')
  while (turns().length === length) await new Promise(resolve => setTimeout(resolve, 5))
  return Number(turns().at(-1)!.slice('turn '.length))
}

async function linesIn(file: string): Promise<number> {
  let lines = 0
  for await (const some of createReadStream(file)) for (const byte of some as Buffer) if (byte === 0x0a) lines++
  return lines
}

test('each command of the operator fits into a heap of 64 MiB, and keeps nobody waiting for longer than a slice',
  { skip: process.platform !== 'linux' && 'memory is read from /proc' }, async t => {
    const scratch = freshFolder(t)
    const [folder, out, left] = ['data', 'out', 'left'].map(name => join(scratch, name)) as [string, string, string]
    await filled(folder)
    const files: Record<string, number> = { ROWS: 15_000, MORE: 60_000 }
    for (const [name, count] of Object.entries(files)) {
      const rows = Array.from({ length: count }, (_, i) => {
        const { password, sistema, usuario } = fieldsOf(ENTRIES / 2 + i + 1) as Record<string, string>
        return `${sistema}${i % 2 === 0 ? '' : ' new'},,${usuario},${password},`
      })
      writeFileSync(join(scratch, name), ['name,url,username,password,note', ...rows, ''].join('\n'))
    }
    mkdirSync(join(scratch, 'empty'), { mode: 0o700 })
    let user = USERS / 2
    let copies = 0
    const ran = async (words: string): Promise<{ code: number | null, error: string, ms: number }> => {
      const args = words.replace('JOURNAL', join(folder, 'journal.jsonl')).replace('KEYS', join(folder, 'journal.key'))
        .replace('FILE', () => join(scratch, `copy-${++copies}`)).replace('COPY', join(scratch, 'copy-1'))
        .replace('EMPTY', join(scratch, 'empty'))
        .replace(/ROWS|MORE/, file => join(scratch, file)).replace('USER', () => emailOf(user--))
        .split(' ').map(word => word.replace('_', ' '))
      const output = openSync(out, 'w')
      const began = performance.now()
      const child = spawn(NODE[0]!, [HEAP, '--import', AT_END, join(DIST, 'admin.js'), ...args],
        { env: { DATA_DIR: folder, LEFT: left }, stdio: ['ignore', output, 'pipe'] })
      let error = ''
      child.stderr!.setEncoding('utf8').on('data', text => { error += text })
      const [code] = await once(child, 'close')
      closeSync(output)
      return { code, error, ms: performance.now() - began }
    }
    for (const isServed of [true, false]) {
      const flags = { data: folder, auth: 'bearer', 'extra-routes': 'on' }
      const program = isServed
        ? await startProgram(t, { command: [...NODE, '--import', TURNS, join(DIST, 'server.js')], flags }) : undefined
      if (program) await turnMs(program)
      for (const { words, code = 0, lines, isAlone = false, mostTurnMs = TURN_MS } of ROWS) {
        if (!ONLY.test(words) || (isServed && isAlone)) continue
        const what = `${words}, ${isServed ? 'with a service' : 'alone'}`
        const done = await ran(words)
        assert.equal(done.code, code, `${what}: ${done.error}`)
        if (lines !== undefined) assert.equal(await linesIn(out), lines, what)
        const turn = program && await turnMs(program)
        if (turn !== undefined) assert.ok(turn <= mostTurnMs, `${what}: others wait ${turn} ms`)
        t.diagnostic(`${what}: ${done.ms.toFixed(0)} ms, ${Math.round(Number(readFileSync(left, 'utf8')) / 1024)} MiB${
          program ? `; a turn of the service ${turn} ms, ${memoryMiB(program.pid).toFixed(0)} MiB` : ''}`)
      }
      if (program !== undefined) {
        const owner = (await ran(`token issue ${emailOf(USERS + 1)}`)).code === 0 && readFileSync(out, 'utf8').trim()
        for (const path of ['listEntries', 'whoKnows/77', 'listPassword']) {
          const answer = await fetch(`${program.url}/api/${path}`, { headers: { Authorization: `Bearer ${owner}` } })
          const bytes = (await answer.arrayBuffer()).byteLength
          const turn = await turnMs(program)
          assert.equal(answer.status, 200)
          assert.ok(turn <= LIST_TURN_MS, `${path}: others wait ${turn} ms`)
          const mib = memoryMiB(program.pid).toFixed(0)
          t.diagnostic(`${path}: ${bytes} bytes; a turn of the service ${turn} ms, ${mib} MiB`)
        }
        await program.stop()
      }
    }
  })
