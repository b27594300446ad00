/** A store on a disk that fails and loses power, thousands of times, each driven by a seed. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { Failure } from '../../src/errors.ts'
import type { FileJournal, FolderOptions } from '../../src/journal/file-journal.ts'
import type { Files } from '../../src/journal/files.ts'
import { openJournalFile } from '../../src/journal/folder.ts'
import type { JournalRecord } from '../../src/journal/journal.ts'
import { importEntries, reencryptJournal, rotateKey } from '../support/rewrite.ts'
import { emptyState } from '../../src/slices.ts'
import { Store } from '../../src/store/store.ts'
import { checkState } from '../support/check.ts'
import { seeded, type Random } from '../support/random.ts'
import { SimulatedDisk } from '../support/simulated-disk.ts'
import { createEntry, deleteEntry, updateEntry } from '../../src/entries/entry-commands.ts'

const FOLDER = '/data'
const SEEDS = Number(process.env['SEEDS'] ?? 1)
const FIRST_SEED = Number(process.env['SEED'] ?? 1)
const FIRST_TYPE_BYTES = 60 // a line is longer where its type is whole

/** One life of a store, from a first start to a last one, over any number of power cuts and restarts. */
class Life {
  readonly #random: Random
  readonly #disk: SimulatedDisk
  #store!: Store
  #journal!: FileJournal
  #repaired = false
  /** Every record that was ever applied, in order: what was served, or could have been. */
  #applied: string[] = []
  /** The data of every record that anybody ever asked for. */
  readonly #attempted = new Set<string>()
  #acknowledged: string[] = []
  /** What was answered by `write-failed`: nothing was recorded, and never will be. */
  readonly #refused = new Set<string>()
  #nowMs = Date.parse('2026-01-31T12:00:00.000Z')
  #serial = 0
  /** Counts what happened, so that the test can tell that it has tried something. */
  readonly seen: { [what: string]: number } = {
    acknowledged: 0, failed: 0, cuts: 0, stops: 0, torn: 0, stuck: 0, rotated: 0, rewritten: 0,
    refused: 0, restored: 0
  }

  constructor(seed: number) {
    this.#random = seeded(seed)
    this.#disk = new SimulatedDisk(this.#random)
    this.#disk.refusesSync = this.#random.next() < 0.1
  }

  async run(): Promise<void> {
    await this.#start()
    // Most lives are short: a start reads all that came before, so that the cost grows with the square of the length.
    for (let steps = 10 + this.#random.int(this.#random.next() < 0.1 ? 90 : 20); steps > 0; steps--) {
      const chance = this.#random.next()
      if (chance < 0.55) await this.#changes()
      else if (chance < 0.7) await this.#cut()
      else if (chance < 0.8) await this.#stop()
      else if (chance < 0.95) this.#weather()
      else if (chance < 0.975) await this.#rotate()
      else await this.#rewrite()
      checkState(this.#store.state)
      if (this.#store.journal.status().fault !== undefined) {
        this.seen['stuck']!++
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

  /** Makes a new key beside changes, and goes on with more, or a power cut, beside it. */
  async #rotate(): Promise<void> {
    const done = rotateKey(this.#journal, bytes => this.#randomBytes(bytes))
      .then(() => { this.seen['rotated']!++ }, (error: unknown) => this.#failed(error))
    if (this.#random.next() < 0.5) await done
  }

  /** Seals everything anew while no service has the journal; half of the time the power is cut at any call. */
  async #rewrite(): Promise<void> {
    await this.#store.close()
    let calls = this.#random.next() < 0.5 ? this.#random.int(80) : Infinity
    const isCut = calls < Infinity
    const files = new Proxy(this.#disk.boot(), {
      get: (disk, name: keyof Files) => (...given: never[]) => {
        if (calls-- <= 0) throw Object.assign(new Error('power cut'), { code: 'EIO' })
        return (disk[name] as (...given: never[]) => unknown).apply(disk, given)
      }
    })
    try {
      const journal = openJournalFile({ ...this.#opening(), files }, () => {})
      await reencryptJournal(journal, () => {})
      await journal.close()
      this.seen['rewritten']!++
    } catch (error) {
      this.#failed(error)
    }
    if (isCut) await this.#cut()
    else await this.#restart()
  }

  #failed(error: unknown): void {
    assert.ok(error instanceof Failure || 'code' in (error as Error), String(error))
    this.seen['failed']!++
  }

  async #change(): Promise<void> {
    this.#nowMs += this.#random.int(2)
    const id = 1 + this.#random.int(this.#store.state.entries.count + 1)
    // Mostly short, for speed; a long one is torn in more places.
    const password = `${++this.#serial}${'x'.repeat(this.#random.int(this.#random.next() < 0.2 ? 600 : 60))}`
    const chance = this.#random.next()
    let asked: string | undefined
    try {
      let record: string | undefined
      if (chance < 0.1) {
        const entries = Array.from({ length: 1 + this.#random.int(4) }, (_, i) =>
          ({ password: `${password}-${i}`, sistema: 's', usuario: 'u', status: this.#random.pick([0, 1] as const) }))
        const note = asked = this.#attempt('entries.imported', { entries })
        await importEntries(this.#store, entries)
        record = note
      } else if (chance < 0.5) {
        const note = asked = this.#attempt('entry.created', { password, sistema: 's', usuario: 'u' })
        await createEntry(this.#store, { password, sistema: 's', usuario: 'u' }, null)
        record = note
      } else if (chance < 0.8) {
        const note = asked = this.#attempt('entry.updated', { id, password })
        if (await updateEntry(this.#store, id, { password }, null) !== undefined) record = note
      } else {
        this.#attempt('entry.deleted', { id })
        await deleteEntry(this.#store, id, null)
      }
      if (record !== undefined) this.#acknowledged.push(record)
      this.seen['acknowledged']!++
    } catch (error) {
      assert.ok(error instanceof Failure, String(error))
      this.seen['failed']!++
      if (error.code !== 'write-failed' || asked === undefined) return
      this.#refused.add(asked)
      this.seen['refused']!++
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

  /** Stops; now and then everything is then replaced by a copy, which only the cache holds. */
  async #stop(): Promise<void> {
    await this.#store.close()
    this.seen['stops']!++
    if (this.#random.next() < 0.2 && !this.#disk.refusesSync) { // who copies there must sync
      for (const name of ['journal.key', 'journal.jsonl']) {
        const bytes = this.#disk.contents(`${FOLDER}/${name}`)!
        this.#disk.remove(`${FOLDER}/${name}`)
        this.#disk.put(`${FOLDER}/${name}`, bytes)
      }
      this.seen['restored']!++
    }
    await this.#restart()
  }

  /** Starts again and holds what is there against what must and what may be there. */
  async #restart(): Promise<void> {
    Object.assign(this.#disk.faults, { full: 0, broken: 0, truncate: 0 })
    const before = this.#applied
    await this.#start().catch(async (error: unknown) => {
      // What is left of the very first write is refused where it does not show that it was an append.
      const file = `${FOLDER}/journal.jsonl`
      const left = this.#disk.contents(file)!
      if (this.#acknowledged.length > 0 || (left.length > FIRST_TYPE_BYTES && left[0] !== 0)) throw error
      this.#disk.remove(file)
      await this.#start()
    })
    assertStartsWith(this.#applied, before, 'what was applied is there, and as it was')
    const notes = new Set(this.#applied)
    for (const note of this.#acknowledged) assert.ok(notes.has(note), `acknowledged, but lost: ${note}`)
    for (const note of notes) {
      assert.ok(this.#attempted.has(note), `never asked for: ${note}`)
      assert.ok(!this.#refused.has(note), `refused, but there: ${note}`)
    }
    let created = 0
    for (const note of this.#applied) {
      if (note.startsWith('entry.created')) created++
      if (note.startsWith('entries.imported')) created += note.split('"status"').length - 1
    }
    assert.equal(this.#store.state.entries.count, created, 'an id for each entry')
    checkState(this.#store.state)
    // Two replays give the same state: always where the first has repaired something, else now and then, since the
    // next restart is a second replay as well.
    if (!this.#repaired && this.#random.next() < 0.7) return
    const first = this.#applied
    const list = this.#store.state.entries.list()
    await this.#store.close()
    await this.#start()
    assertStartsWith(this.#applied, first, 'a second replay gives the same')
    assert.equal(this.#applied.length, first.length)
    assert.deepEqual(this.#store.state.entries.list(), list)
  }

  /** Four bytes a number: the journal asks for thousands at each start. */
  #randomBytes(bytes: number): Buffer {
    const whole = Buffer.allocUnsafe(Math.ceil(bytes / 4) * 4)
    for (let at = 0; at < whole.length; at += 4) whole.writeUInt32LE(this.#random.int(2 ** 32), at)
    return whole.subarray(0, bytes)
  }

  #opening(): FolderOptions {
    const warn = (line: string): void => {
      if (line.includes('unfinished write')) { this.#repaired = true; this.seen['torn']!++ }
    }
    const random = (bytes: number): Buffer => this.#randomBytes(bytes)
    const wallMs = (): number => this.#nowMs
    return { files: this.#disk.boot(), folder: FOLDER, keyFile: `${FOLDER}/journal.key`, wallMs, random, warn }
  }

  async #start(): Promise<void> {
    this.#applied = []
    this.#repaired = false
    this.#nowMs++ // as any start is later than the one before
    const applied = this.#applied
    const state = emptyState()
    const apply = (record: JournalRecord): void => {
      state.apply(record)
      if (!record.type.startsWith('journal.')) applied.push(noteOf(record.type, record.data as object))
    }
    this.#journal = openJournalFile(this.#opening(), apply)
    this.#store = new Store(this.#journal, state)
  }
}

function assertStartsWith(notes: readonly string[], before: readonly string[], what: string): void {
  if (before.some((note, i) => notes[i] !== note)) assert.deepEqual(notes.slice(0, before.length), before, what)
}

/** What a record says, without the ids of new entries, which are not known when they are asked for. */
function noteOf(type: string, data: object): string {
  const { id, first: _, ...rest } = data as { id?: number, first?: number }
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
  if (SEEDS < 100) return
  for (const [what, count] of Object.entries(total)) assert.ok(count > SEEDS / 20, `${what}: ${count}`)
})
