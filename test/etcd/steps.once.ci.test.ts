/**
 * An instance killed between its own steps. A step is a system call of the program as built: one run tells which calls
 * it makes from a request to its answer, and for each of them strace kills another program that is about to make it.
 * Another instance must show what was answered, and what was not once or not at all, and must go on writing.
 *
 * With ALL_STEPS=1 in the environment (`npm run test:etcd`) every call on a descriptor, a file or the network counts,
 * for each kind of change, also of an instance that has no connection to etcd yet, with and without a rival.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test, type TestContext } from 'node:test'
import { done } from '../support/admin.ts'
import { etcdMissing, pause, startCluster } from '../support/etcd.ts'
import { assertEqual, FIELDS, flagsOf } from '../support/instances.ts'
import { straceMissing, trace, type Traced } from '../support/system.ts'
import { soon, startProgram, type Program } from '../support/program.ts'
import { connectRaw, message, type RawClient } from '../support/raw.ts'
import { send, startService, type Started } from '../support/service.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'

const NOT_TRACED = etcdMissing() || straceMissing()
const ALL_STEPS = process.env['ALL_STEPS'] === '1'
/** How long a step is waited for that may come after the answer. */
const AFTER_MS = 100

/** A change, by the passwords that are listed with it and no longer listed; no password is used twice. */
interface Change {
  readonly request: Buffer
  readonly adds: readonly string[]
  readonly removes: readonly string[]
}

const post = (path: string, password?: string): Buffer =>
  message('POST', `/api/${path}`, password === undefined ? undefined : JSON.stringify({ ...FIELDS, password }))

/** From a new password and an entry that is there. */
const CHANGES = {
  create: word => ({ request: post('createPassword', word), adds: [word], removes: [] }),
  update: (word, { id, password }) =>
    ({ request: post(`updatePassword/${id}`, word), adds: [word], removes: [password] }),
  delete: (_word, { id, password }) => ({ request: post(`deletePassword/${id}`), adds: [], removes: [password] })
} satisfies { [kind: string]: (word: string, entry: { readonly id: number, readonly password: string }) => Change }

interface Trial {
  readonly name: string
  /** What is sent at once, each on a connection of its own. */
  readonly kinds: readonly (keyof typeof CHANGES)[]
  /** The calls that are steps, as strace names them. */
  readonly calls: string
  /** Whether this is the first change that the instance makes. */
  readonly isFirst?: boolean
  /** Whether the other instance writes at the same moment. */
  readonly isContended?: boolean
}

const SEVERAL = ['create', 'update', 'create', 'delete'] as const

const TRIALS: readonly Trial[] = ALL_STEPS
  ? ([['create'], ['update'], ['delete'], SEVERAL] as const).flatMap(kinds => [true, false].flatMap(isFirst =>
      [true, false].map(isContended => ({
        name: `${kinds.join(', ')}${isFirst ? ', its first' : ''}${isContended ? ', while another writes' : ''}`,
        kinds, calls: '%desc,%file,%network', isFirst, isContended
      }))))
  : [
      { name: 'create', kinds: ['create'], calls: 'read,write,writev,epoll_pwait' },
      { name: SEVERAL.join(', '), kinds: SEVERAL, calls: 'read,write,writev', isContended: true }
    ]

type Outcome = 'not made' | 'made, not answered' | 'answered'

/** An instance that is never killed, and what it must show. */
class Survivor {
  readonly started: Started
  readonly #expected = new Set<string>()
  #serial = 0

  constructor(started: Started) { this.started = started }

  async create(): Promise<{ readonly id: number, readonly password: string }> {
    const password = this.#word()
    const created = createEntry(this.started.service.store, { ...FIELDS, password }, null)
    const { id } = await soon(created, () => 'the other instance to write')
    this.#expected.add(password)
    return { id, password }
  }

  /** Prepares changes for another instance to make. */
  prepare(kinds: Trial['kinds']): Promise<Change[]> {
    return Promise.all(kinds.map(async kind => CHANGES[kind](this.#word(), await this.create())))
  }

  /** Holds what it shows to what was answered; gives what became of each change. */
  async learn(changes: readonly Change[], isAnswered: readonly boolean[]): Promise<Outcome[]> {
    await this.create() // What was on its way to etcd has come before this, or never will.
    const { json } = await send(this.started.url, 'GET', '/api/listPassword')
    const shown: string[] = json.map(({ password }: { password: string }) => password)
    const outcomes = changes.map(({ adds, removes }, i): Outcome => {
      const isMade = adds.every(one => shown.includes(one)) && !removes.some(one => shown.includes(one))
      if (!isAnswered[i] && !isMade) return 'not made'
      for (const one of removes) this.#expected.delete(one)
      for (const one of adds) this.#expected.add(one)
      return isAnswered[i] ? 'answered' : 'made, not answered'
    })
    assert.deepEqual(shown.sort(), [...this.#expected].sort())
    return outcomes
  }

  #word(): string { return `word ${this.#serial++}` }
}

function make(clients: readonly RawClient[], changes: readonly Change[]): Promise<boolean[]> {
  return Promise.all(clients.map(async (client, i) => {
    await client.send(changes[i]!.request)
    const answer = await client.answer().catch((error: Error) => {
      assert.match(error.message, /^the connection ended after ""/)
      return undefined
    })
    if (answer !== undefined) assert.equal(answer.status, 200, answer.text)
    return answer !== undefined
  }))
}

/** The calls of the program's own thread, up to the one behind the last answer, each with its number of that name. */
function stepsOf({ calls }: Traced, { pid }: Program): { readonly call: string, readonly nth: number }[] {
  const made = new Map<string, number>()
  const steps = calls().filter(line => line.startsWith(`${pid} `)).map(line => {
    const call = /\w+(?=\()/.exec(line)![0]
    const nth = (made.get(call) ?? 0) + 1
    made.set(call, nth)
    return { call, nth }
  })
  return steps.slice(0, steps.findLastIndex(({ call }) => call.startsWith('write')) + 2)
}

async function tryAll(t: TestContext, { kinds, calls, isFirst = false, isContended = false }: Trial): Promise<void> {
  const { endpoints } = await startCluster(t)
  const secret = randomBytes(32)
  const flags = (): Promise<Record<string, string>> => flagsOf(t, endpoints, secret)
  const other = new Survivor(await startService(t, await flags()))

  /** Has a program make changes under strace, which may kill it, and then ends it. */
  const attempt = async (
    program: Program, what: string, ...kill: readonly string[]
  ): Promise<{ traced: Traced, isKilled: boolean, outcomes: Outcome[] }> => {
    const changes = await other.prepare(kinds)
    if (!isFirst) await send(program.url, 'GET', '/api/listPassword') // so it has a connection to etcd, and all records
    const clients = await Promise.all(kinds.map(() => connectRaw(t, program.url)))
    const traced = await trace(t, program.pid, '-e', `trace=${what}`, ...kill)
    const [isAnswered] = await Promise.all([make(clients, changes), isContended ? other.create() : undefined])
    const isKilled = isAnswered.includes(false) ||
      await Promise.race([program.ended.then(() => true), pause(AFTER_MS).then(() => false)])
    // strace is not told to end before the program has: told while threads of it are dying, it waits for ever.
    await (isKilled ? soon(program.ended, () => `the end by ${kill.join(' ')}`) : program.kill())
    await traced.end()
    return { traced, isKilled, outcomes: await other.learn(changes, isAnswered) }
  }

  const start = async (): Promise<Program> => startProgram(t, { flags: await flags() })
  let program = await start()
  const { traced, outcomes: alive } = await attempt(program, calls)
  assert.deepEqual(new Set(alive), new Set(['answered']))
  const steps = stepsOf(traced, program)
  const counts: { [of in Outcome]: number } = { 'not made': 0, 'made, not answered': 0, 'answered': 0 }
  let killed = 0
  for (const { call, nth } of steps) {
    program = await start()
    try {
      const kill = `inject=${call}:signal=SIGKILL:when=${nth}`
      const { isKilled, outcomes } = await attempt(program, call, '-e', kill)
      if (!isKilled) continue // it made fewer calls this time
      for (const outcome of outcomes) counts[outcome]++
      killed++
    } catch (error) {
      throw new Error(`killed before ${call} ${nth}: ${(error as Error).message}`, { cause: error })
    }
  }
  t.diagnostic(JSON.stringify({ steps: steps.length, killed, ...counts }))
  assert.ok(counts['not made'] > 0 && counts['made, not answered'] > 0, 'kills before etcd had it, and after')
  const again = await startService(t, { ...await flags(), data: program.folder })
  await assertEqual([other.started, again])
  const report = await done(again.folder, `journal verify --journal etcd --etcd-endpoints ${endpoints}`)
  assert.match(report, new RegExp(`^head +${again.service.store.journal.status().head}$`, 'm'))
}

describe('an instance killed at each step', { concurrency: 2 }, () => {
  for (const trial of TRIALS) test(trial.name, { skip: NOT_TRACED }, t => tryAll(t, trial))
})
