/**
 * The program as it is shipped, started on one folder again and again, however it ended: clients that create, update
 * and delete, that know at each moment what they were answered, and hold each start to it.
 */
import assert from 'node:assert/strict'
import { execFile, type PromiseWithChild } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { TestContext } from 'node:test'
import { startProgram, type Program } from './program.ts'
import type { Random } from './random.ts'
import { send } from './service.ts'

const run = promisify(execFile)
const ADMIN = fileURLToPath(new URL('../../dist/admin.js', import.meta.url))
const NEVER = Infinity

/** The clock of all that is noted here, in nanoseconds: that of the machine, the same in every process. */
export function now(): number { return Number(process.hrtime.bigint()) }

/** What an entry is to be: password, `sistema` and status as JSON; undefined: it is not there. */
type Value = string | undefined
interface Version { readonly value: Value, readonly sentNs: number, ackedNs: number, failedNs: number }

/** Entries by `usuario`, which none shares with another and which is never changed. */
export type Shown = ReadonlyMap<string, { readonly id: number, readonly value: string }>

export class Known {
  #histories = new Map<string, Version[]>()

  get acknowledged(): number {
    return [...this.#histories.values()].flat().filter(({ ackedNs }) => ackedNs < NEVER).length
  }

  /** How long each change took that was acknowledged since a moment, in ms, ascending. */
  latenciesMs(sinceNs: number): number[] {
    return [...this.#histories.values()].flatMap(history =>
      history.filter(({ sentNs, ackedNs }) => sentNs > sinceNs && ackedNs < NEVER)
      .map(({ sentNs, ackedNs }) => (ackedNs - sentNs) / 1e6)).sort((a, b) => a - b)
  }

  /** Takes note of a request; the caller notes its answer. */
  asked(usuario: string, value: Value): Version {
    const version = { value, sentNs: now(), ackedNs: NEVER, failedNs: NEVER }
    const history = this.#histories.get(usuario)
    if (history === undefined) this.#histories.set(usuario, [version])
    else history.push(version)
    return version
  }

  /** What was shown once stays: reads never see what is not durable. */
  saw(shown: Shown): void {
    const sentNs = now()
    for (const usuario of new Set([...this.#histories.keys(), ...shown.keys()])) {
      const version = this.asked(usuario, shown.get(usuario)?.value)
      version.ackedNs = sentNs
    }
  }

  at(ns: number): Known {
    const before = (when: number): number => when < ns ? when : NEVER
    const then = new Known()
    for (const [usuario, history] of this.#histories) {
      const versions = history.filter(({ sentNs }) => sentNs < ns)
        .map(one => ({ ...one, ackedNs: before(one.ackedNs), failedNs: before(one.failedNs) }))
      if (versions.length > 0) then.#histories.set(usuario, versions)
    }
    return then
  }

  faults(shown: Shown): string[] {
    const faults: string[] = []
    for (const usuario of shown.keys()) {
      if (!this.#histories.has(usuario)) faults.push(`${usuario}: nobody asked for it`)
    }
    for (const [usuario, history] of this.#histories) {
      const acked = history.findLastIndex(({ ackedNs }) => ackedNs < NEVER)
      const found = shown.get(usuario)?.value
      if (found === history[acked]?.value) continue
      const version = history.findLast(({ value }, i) => i > acked && value === found)
      if (version === undefined) faults.push(`${usuario}: an acknowledged ${acked === 0 ? 'create' : 'change'} is lost`)
      else if (version.failedNs < NEVER) faults.push(`${usuario}: a change that was answered 500 has come back`)
    }
    return faults
  }
}

/** One folder and the programs that serve it, one after the other. */
export class Life {
  readonly data: string
  readonly random: Random
  readonly flags: { [flag: string]: string }
  known = new Known()
  /** Files of backups, and when each was reported as made. */
  readonly backups = new Map<string, number>()
  /** Whether what is answered 500 may come back all the same: the device is failing. */
  mayReturn = false
  readonly #t: TestContext
  #program: Program | undefined
  /** The entries that were active at the last start and have not been deleted since. */
  #ids = new Map<string, number>()
  static #words = 0

  constructor(t: TestContext, data: string, random: Random) {
    this.#t = t
    this.data = data
    this.random = random
    this.flags = { data }
  }

  get program(): Program {
    assert.ok(this.#program !== undefined)
    return this.#program
  }

  async start(): Promise<readonly string[]> {
    this.#program = await startProgram(this.#t, { flags: this.flags })
    const shown = await shownBy(this.#program)
    const faults = this.known.faults(shown)
    this.known.saw(shown)
    this.#ids.clear()
    for (const [usuario, { id, value }] of shown) if (value !== 'deleted') this.#ids.set(usuario, id)
    return faults
  }

  async restart(signal: NodeJS.Signals): Promise<void> {
    await this.program.stop(signal)
    assert.deepEqual(await this.start(), [])
  }

  admin(...args: readonly string[]): PromiseWithChild<unknown> {
    const where = Object.entries(this.flags).map(([flag, value]) => `--${flag}=${value}`)
    return run(process.execPath, [ADMIN, ...args, ...where], { env: {} })
  }

  async import(file: string, word: string, count: number): Promise<void> {
    const entries = Array.from({ length: count }, (_, n) => ({ usuario: `${word}-${n}`, sistema: 's'.repeat(n + 1) }))
    const lines = entries.map((entry, id) => JSON.stringify({ id: id + 1, ...entry, password: word, status: 1 }))
    writeFileSync(file, lines.join('\n'))
    const versions = entries.map(({ usuario, sistema }) =>
      this.known.asked(usuario, JSON.stringify([word, sistema, 1])))
    await this.admin('import', file)
    for (const version of versions) version.ackedNs = now()
  }

  async backUp(file: string): Promise<void> {
    this.backups.set(file, NEVER)
    await this.admin('journal', 'backup', file)
    this.backups.set(file, now())
  }

  /** Creates, updates and deletes on several connections for a time; gives how many were refused. */
  async load({ clients = 8, ms = 400, changes = NEVER, bytes = 2_000, onlyUpdates = false }): Promise<number> {
    const word = `${process.pid}-${++Life.#words}`
    const end = performance.now() + ms
    let refused = 0
    await Promise.all(Array.from({ length: clients }, async (_, c) => {
      const owned = [...this.#ids].filter(([, id]) => id % clients === c)
      for (let n = 0; n < changes && performance.now() < end; n++) {
        const status = await this.#change(`${word}-${c}-${n}`, owned, bytes, onlyUpdates)
        if (status === undefined) return
        if (status !== 200) refused++
      }
    }))
    return refused
  }

  /** Makes one change and notes its answer; gives the status, or undefined if none came. */
  async #change(word: string, owned: [string, number][], bytes: number, isUpdate: boolean): Promise<number
    | undefined> {
    const { random } = this
    const dice = owned.length === 0 ? 0 : isUpdate ? 0.7 : random.next()
    const sistema = 'ñ'.repeat(1 + random.int(random.pick([10, bytes])))
    const [usuario, id] = dice < 0.6 ? [word, 0] : random.pick(owned)
    if (dice >= 0.8) {
      owned.splice(owned.findIndex(([one]) => one === usuario), 1)
      this.#ids.delete(usuario)
    }
    const [path, body] = dice < 0.6
      ? ['/api/createPassword', { password: word, sistema, usuario }]
      : dice < 0.8 ? [`/api/updatePassword/${id}`, { password: word, sistema }] : [`/api/deletePassword/${id}`]
    const version = this.known.asked(usuario, body === undefined ? 'deleted' : JSON.stringify([word, sistema, 1]))
    const answer = await send(this.program.url, 'POST', path!, body).catch(() => undefined)
    if (answer?.status === 200) version.ackedNs = now()
    else if (answer !== undefined && !this.mayReturn) version.failedNs = now()
    return answer?.status
  }
}

async function shownBy({ url, stdout }: Program): Promise<Shown> {
  const count = Number(/, (\d+) entr(?:y|ies) /.exec(stdout)?.[1])
  const { status, json } = await send(url, 'GET', '/api/listPassword')
  const active = new Map<number, any>(status === 404 ? [] : json.map((entry: any) => [entry.id, entry]))
  const shown = new Map<string, { id: number, value: string }>()
  assert.deepEqual([...active.keys()], [...active.keys()].sort((a, b) => a - b), 'the list is ascending')
  for (let id = 1; id <= count; id++) {
    const entry = active.get(id) ?? (await send(url, 'GET', `/api/getPassword/${id}`)).json.passwords
    assert.ok(!shown.has(entry.usuario), `${entry.usuario} is there twice`)
    assert.equal(entry.status, active.has(id) ? 1 : 0)
    const value = entry.status === 0 ? 'deleted' : JSON.stringify([entry.password, entry.sistema, entry.status])
    shown.set(entry.usuario, { id, value })
  }
  return shown
}
