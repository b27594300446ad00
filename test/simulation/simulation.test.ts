/** A store on a disk that fails and loses power, thousands of times, each driven by a seed. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { Failure } from '../../src/errors.ts'
import { openFileJournal } from '../../src/journal/file.ts'
import type { Committed } from '../../src/journal/journal.ts'
import { PasswordHasher } from '../../src/store/password.ts'
import { Store } from '../../src/store/store.ts'
import { seeded, type Random } from '../support/random.ts'
import { SimulatedDisk } from '../support/simulated-disk.ts'

const FOLDER = '/data'
const SEEDS = Number(process.env['SEEDS'] ?? 2_000)
const FIRST_SEED = Number(process.env['SEED'] ?? 1)
const STEPS = 40

/** One life of a store, from a first start to a last one, over any number of power cuts and restarts. */
class Life {
  readonly #random: Random
  readonly #disk: SimulatedDisk
  #store!: Store
  /** Every record that was ever applied, in order: what was served, or could have been. */
  #applied: string[] = []
  /** The data of every record that anybody ever asked for. */
  readonly #attempted = new Set<string>()
  #acknowledged: string[] = []
  #nowMs = Date.parse('2026-01-31T12:00:00.000Z')
  #serial = 0
  /** Counts what happened, so that the test can tell that it has tried something. */
  readonly seen: { [what: string]: number } = { acknowledged: 0, failed: 0, cuts: 0, stops: 0, torn: 0, latched: 0 }

  constructor(seed: number) {
    this.#random = seeded(seed)
    this.#disk = new SimulatedDisk(this.#random)
    this.#start()
  }

  async run(): Promise<void> {
    for (let step = 0; step < STEPS; step++) {
      const chance = this.#random.next()
      if (chance < 0.6) await this.#changes()
      else if (chance < 0.75) await this.#cut()
      else if (chance < 0.85) await this.#stop()
      else this.#weather()
      this.#store.check()
      if (this.#store.journal.health().fault !== undefined) {
        this.seen['latched']!++
        await this.#stop()
      }
    }
    await this.#stop()
  }

  /** Sets what the disk will suffer from for a while. */
  #weather(): void {
    const isFine = this.#random.next() < 0.4
    this.#disk.faults.full = isFine ? 0 : this.#random.next() * 0.5
    this.#disk.faults.broken = isFine ? 0 : this.#random.next() * 0.1
    this.#disk.faults.truncate = isFine ? 0 : this.#random.next() * 0.3
  }

  /** Some changes at once; waits for all of them, or for none. */
  async #changes(): Promise<void> {
    const all = Array.from({ length: 1 + this.#random.int(6) }, () => this.#change())
    if (this.#random.next() < 0.8) await Promise.all(all)
    else await new Promise(resolve => setImmediate(resolve))
  }

  async #change(): Promise<void> {
    this.#nowMs += this.#random.int(2)
    const id = 1 + this.#random.int(this.#store.entries + 1)
    const password = `${++this.#serial}${'x'.repeat(this.#random.int(600))}`
    const chance = this.#random.next()
    try {
      let record: string | undefined
      if (chance < 0.5) {
        const note = this.#attempt('entry.created', { password, sistema: 's', usuario: 'u' })
        await this.#store.createEntry({ password, sistema: 's', usuario: 'u' }, null)
        record = note
      } else if (chance < 0.8) {
        const note = this.#attempt('entry.updated', { id, password })
        if (await this.#store.updateEntry(id, { password }, null) !== undefined) record = note
      } else {
        this.#attempt('entry.deleted', { id })
        await this.#store.deleteEntry(id, null)
      }
      if (record !== undefined) this.#acknowledged.push(record)
      this.seen['acknowledged']!++
    } catch (error) {
      assert.ok(error instanceof Failure, String(error))
      this.seen['failed']!++
    }
  }

  #attempt(type: string, data: object): string {
    const note = noteOf(type, data)
    this.#attempted.add(note)
    return note
  }

  async #cut(): Promise<void> {
    this.#disk.cut()
    this.seen['cuts']!++
    await this.#restart()
  }

  async #stop(): Promise<void> {
    await this.#store.close()
    this.seen['stops']!++
    await this.#restart()
  }

  /** Starts again and holds what is there against what must and what may be there. */
  async #restart(): Promise<void> {
    Object.assign(this.#disk.faults, { full: 0, broken: 0, truncate: 0 })
    const before = this.#applied
    this.#start()
    assert.deepEqual(this.#applied.slice(0, before.length), before, 'what was applied is there, and as it was')
    const notes = new Set(this.#applied)
    for (const note of this.#acknowledged) assert.ok(notes.has(note), `acknowledged, but lost: ${note}`)
    for (const note of notes) assert.ok(this.#attempted.has(note), `never asked for: ${note}`)
    const created = this.#applied.filter(note => note.startsWith('entry.created')).length
    assert.equal(this.#store.entries, created, 'an id for each entry')
    this.#store.check()
    const list = JSON.stringify(this.#store.list()?.map(String))
    const first = this.#applied
    // Two replays give the same state.
    await this.#store.close()
    this.#start()
    assert.deepEqual(this.#applied, first)
    assert.equal(JSON.stringify(this.#store.list()?.map(String)), list)
  }

  #start(): void {
    this.#applied = []
    const warn = (line: string): void => { if (line.includes('unfinished write')) this.seen['torn']!++ }
    const random = (bytes: number): Buffer => Buffer.from(Array.from({ length: bytes }, () => this.#random.int(256)))
    const wallMs = (): number => this.#nowMs
    const applied = this.#applied
    this.#store = new Store(fold => openFileJournal({
      files: this.#disk.boot(), folder: FOLDER, keyFile: `${FOLDER}/journal.key`, wallMs, random, warn,
      fold: {
        begin: () => fold.begin(),
        apply: (record: Committed) => { fold.apply(record); applied.push(noteOf(record.type, record.data as object)) }
      }
    }), { hasher: new PasswordHasher(random), random, wallMs })
  }
}

/** What a record says, without the id of a created entry, which is not known when it is asked for. */
function noteOf(type: string, data: object): string {
  const { id, ...rest } = data as { id?: number }
  return `${type} ${JSON.stringify(type === 'entry.created' ? rest : { id, ...rest })}`
}

test(`what was acknowledged survives full and broken disks, power cuts and restarts (${SEEDS} seeds)`, async t => {
  const total: { [what: string]: number } = {}
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
    try {
      const life = new Life(seed)
      await life.run()
      for (const [what, count] of Object.entries(life.seen)) total[what] = (total[what] ?? 0) + count
    } catch (error) {
      t.diagnostic(`failing seed: SEED=${seed} SEEDS=1`)
      throw error
    }
  }
  t.diagnostic(JSON.stringify(total))
  if (SEEDS >= 100) for (const [what, count] of Object.entries(total)) assert.ok(count > SEEDS / 20, `${what}: ${count}`)
})
