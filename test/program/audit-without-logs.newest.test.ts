/** The ways in which logs were wrong about who was told a password: `audit` is right in each, on the built program. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { admin, done, initialized } from '../support/admin.ts'
import { SERVER, startProgram, type Program } from '../support/program.ts'

const LOG = { 'access-log': 'on' }
const YEAR_MS = 365 * 24 * 60 * 60 * 1000

interface Served {
  readonly folder: string
  readonly program: Program
  ask(method: string, path: string, by: 'ana@x' | 'bea@x', body?: object): Promise<number>
  start(flags?: Record<string, string>, command?: readonly string[]): Promise<void>
}

interface Row {
  readonly flags?: Record<string, string>
  readonly command?: readonly string[]
  /** Ana has set the entries 1 to 3; what Bea is told besides entry 1, which she gets first. */
  readonly act: (served: Served) => Promise<readonly number[]>
}

/** The program under a clock that is so much ahead. */
function ahead(ms: number): readonly string[] {
  const source = `const Right = Date
    globalThis.Date = class extends Right {
      constructor(...given) { if (given.length > 0) super(...given); else super(Right.now() + ${ms}) }
      static now() { return Right.now() + ${ms} }
    }`
  return [process.execPath, '--import', `data:text/javascript,${encodeURIComponent(source)}`, SERVER]
}

const ROWS: { readonly [what: string]: Row } = {
  'a compaction': {
    act: async ({ folder, program, start }) => {
      await program.stop()
      await done(folder, 'journal compact')
      await done(folder, 'journal compact --drop-history --yes')
      await start()
      return []
    }
  },
  'a reader of the access log that has ended': {
    flags: LOG,
    act: async ({ program, ask }) => {
      program.child.stdout!.destroy()
      await ask('GET', 'getPassword/2', 'bea@x')
      await ask('GET', 'getPassword/3', 'bea@x')
      return [2, 3]
    }
  },
  'a full pipe of the access log': {
    flags: LOG,
    act: async ({ program, ask }) => {
      program.child.stdout!.removeAllListeners('data').pause()
      for (let n = 0; n < 10; n++) await Promise.all(Array.from({ length: 100 }, () => ask('GET', 'getPassword/1',
        'ana@x')))
      await ask('GET', 'getPassword/2', 'bea@x')
      return [2]
    }
  },
  'a kill right after the answer': {
    flags: LOG,
    act: async ({ program, ask, start }) => {
      await ask('GET', 'listPassword', 'bea@x')
      await program.stop('SIGKILL')
      await start()
      return [2, 3]
    }
  },
  'a clock that is a year ahead, and put right': {
    command: ahead(YEAR_MS),
    act: async ({ program, ask, start }) => {
      await ask('GET', 'getPassword/2', 'bea@x')
      await program.stop()
      await start()
      await ask('GET', 'getPassword/3', 'bea@x')
      await ask('POST', 'updatePassword/2', 'ana@x', { password: 'another' })
      return [3]
    }
  },
  'a run without an access log, HEAD, a refusal, and a list without secrets': {
    act: async ({ ask }) => {
      for (const path of ['getPassword/2', 'listPassword']) await ask('HEAD', path, 'bea@x')
      await ask('GET', 'getPassword/9', 'bea@x')
      await ask('GET', 'listEntries', 'bea@x')
      await ask('POST', 'updatePassword/3', 'bea@x', { usuario: 7 })
      return []
    }
  }
}

async function served(t: TestContext, { flags, command }: Partial<Row> = {}): Promise<Served> {
  const folder = await initialized(t)
  const tokens: Record<string, string> = {}
  for (const email of ['ana@x', 'bea@x']) {
    await done(folder, `user add ${email} --no-password`)
    tokens[email] = JSON.parse(await done(folder, `token issue ${email} --json`)).token
  }
  const made = {
    folder, program: undefined as unknown as Program,
    start: async (more: Record<string, string> = {}, command?: readonly string[]) => {
      const all = { data: folder, auth: 'bearer', 'extra-routes': 'on', ...more }
      made.program = await startProgram(t, { flags: all, ...command && { command } })
    },
    ask: async (method: string, path: string, by: string, body?: object) => {
      const headers = { Authorization: `Bearer ${tokens[by]}`, ...body && { 'Content-Type': 'application/json' } }
      const answer = await fetch(`${made.program.url}/api/${path}`,
        { method, headers, ...body && { body: JSON.stringify(body) } })
      await answer.arrayBuffer()
      return answer.status
    }
  }
  await made.start(flags, command)
  for (const n of [1, 2, 3]) await made.ask('POST', 'createPassword', 'ana@x', { ...FIELDS, password: `p${n}` })
  return made
}

const FIELDS = { sistema: 's', usuario: 'u' }

async function audited(folder: string): Promise<{ readonly code: number | null, readonly error: string,
  readonly known: readonly string[] }> {
  const { code, out, error } = await admin(folder, 'audit --json')
  const knows: readonly any[] = out === '' ? [] : JSON.parse(out).knows
  return { code, error, known: knows.map(({ id, who, how }) => `${id} ${who} ${how}`) }
}

describe('audit names whoever was told, and nobody else', { concurrency: 3 }, () => {
  for (const [what, row] of Object.entries(ROWS)) {
    it(`after ${what}`, async t => {
      const service = await served(t, row)
      assert.equal(await service.ask('GET', 'getPassword/1', 'bea@x'), 200)
      const told = [1, ...await row.act(service)]
      const expected = [1, 2, 3].flatMap(id =>
        [`${id} ana@x read`, ...told.includes(id) ? [`${id} bea@x read`] : []])
      assert.deepEqual(await audited(service.folder), { code: 0, error: '', known: expected })
    })
  }

  it('after kills among many answers: whoever was answered is named, and nobody who has not asked', async t => {
    const service = await served(t)
    for (let n = 0; n < 57; n++) await service.ask('POST', 'createPassword', 'ana@x', { ...FIELDS, password: `q${n}` })
    const answered = new Set<number>()
    for (const least of [1, 10, 20]) {
      const ids = Array.from({ length: 20 }, (_, n) => least + (least === 1 ? 0 : 10) + n)
      const asked = ids.map(async id => {
        if (await service.ask('GET', `getPassword/${id}`, 'bea@x') === 200) answered.add(id)
        if (answered.size >= least) service.program.child.kill('SIGKILL')
      })
      await Promise.allSettled(asked)
      await service.program.ended
      await service.start()
    }
    const { code, known } = await audited(service.folder)
    const named = known.flatMap(one => / bea@x read$/.test(one) ? [Number.parseInt(one)] : [])
    assert.equal(code, 0)
    assert.deepEqual([...answered].filter(id => !named.includes(id)), [])
    assert.deepEqual(named.filter(id => id > 50), [], 'which nobody asked for')
    assert.ok(answered.size >= 3)
  })

  it('and says nothing at all where a line of the journal is gone', async t => {
    const { folder, ask, program } = await served(t)
    await ask('GET', 'getPassword/1', 'bea@x')
    await ask('GET', 'getPassword/2', 'bea@x')
    await program.stop()
    const path = join(folder, 'journal.jsonl')
    const lines = readFileSync(path, 'utf8').split('\n')
    const at = lines.findIndex(line => line.includes('"passwords.told"'))
    writeFileSync(path, lines.filter((_, n) => n !== at).join('\n'))
    const { code, known, error } = await audited(folder)
    assert.deepEqual([code, known], [3, []])
    assert.match(error, /journal\.jsonl/)
  })
})
