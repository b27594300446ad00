/**
 * An hour of a busy service in minutes: `node --import tsx test/slow/soak.ts`, MINUTES (default 3) from the
 * environment. The program as it is shipped (`npm run build` first) is killed and stopped in turn under load, and what
 * was acknowledged is looked for after each restart. Prints a line a slice; fails when something was lost, or when
 * memory, descriptors or latency grow beyond the bounds below. Its figures want a machine that is otherwise quiet.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { startProgram, type Program } from '../support/program.ts'
import { freshFolder } from '../support/service.ts'
import { begin, end, slice, type Latencies } from './load.ts'

const MINUTES = Number(process.env['MINUTES'] ?? 3)
/** Lives of equal length, and a last one, twice as long, in which a leak has time to show. */
const LIVES = 8
const SLICES = 4
const LAST_SLICES = 2 * SLICES
const SLICE_MS = MINUTES * 60_000 / ((LIVES - 1) * SLICES + LAST_SLICES)

/** The bounds: how much the last slices may be above the first ones of the same kind. */
const MEMORY_GROWTH = 1.25
const MEMORY_SLACK_MIB = 24
const LATENCY_GROWTH = 2
const LATENCY_SLACK_MS = 3
const DESCRIPTORS_SLACK = 2

interface Slice {
  readonly life: number
  readonly reads: Latencies
  readonly writes: Latencies
  readonly memoryMiB: number
  readonly descriptors: number
  readonly journalMiB: number
}

function measure(life: number, { pid, folder }: Program): Slice {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return {
    life, ...slice(),
    memoryMiB: Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    journalMiB: statSync(join(folder, 'journal.jsonl')).size / 2 ** 20
  }
}

const WIDTHS = [5, 11, 9, 9, 9, 9, 8, 5, 12]

function print(...cells: readonly (string | number)[]): void {
  const text = (cell: string | number): string =>
    typeof cell === 'string' || Number.isInteger(cell) ? String(cell) : cell.toFixed(2)
  console.log(cells.map((cell, i) => text(cell).padStart(WIDTHS[i]!)).join(' '))
}

/**
 * Holds the last slices against the first; says what has grown too much. Each is judged by its best slice: what the
 * machine does beside this makes some slices worse, but what grows in the program makes all of them worse.
 */
function judge(what: string, first: readonly Slice[], last: readonly Slice[]): string[] {
  const faults: string[] = []
  const hold = (name: string, of: (slice: Slice) => number, growth: number, slack: number): void => {
    const [before, after] = [Math.min(...first.map(of)), Math.min(...last.map(of))]
    const bound = before * growth + slack
    console.log(`${what}: ${name} ${before.toFixed(2)} → ${after.toFixed(2)} (at most ${bound.toFixed(2)})`)
    if (!(after <= bound)) faults.push(`${what}: ${name}`)
  }
  hold('memory MiB', slice => slice.memoryMiB, MEMORY_GROWTH, MEMORY_SLACK_MIB)
  hold('descriptors', slice => slice.descriptors, 1, DESCRIPTORS_SLACK)
  hold('read p50 ms', slice => slice.reads.p50, LATENCY_GROWTH, LATENCY_SLACK_MS)
  hold('read p99 ms', slice => slice.reads.p99, LATENCY_GROWTH, LATENCY_SLACK_MS)
  hold('write p50 ms', slice => slice.writes.p50, LATENCY_GROWTH, LATENCY_SLACK_MS)
  hold('write p99 ms', slice => slice.writes.p99, LATENCY_GROWTH, LATENCY_SLACK_MS)
  return faults
}

test('what was acknowledged outlives kills and stops, and nothing grows', async t => {
  const folder = freshFolder(t)
  const starts: number[] = []
  const start = async (): Promise<Program> => {
    const beganMs = performance.now()
    const program = await startProgram(t, { flags: { data: folder } })
    starts.push(performance.now() - beganMs)
    return program
  }
  const slices: Slice[] = []
  let requests = 0
  print('life', 'requests/s', 'read p50', 'p99 ms', 'write p50', 'p99 ms', 'RSS MiB', 'fds', 'journal MiB')
  for (let life = 1; life <= LIVES; life++) {
    const program = await start()
    await begin(program.url)
    for (let n = life === LIVES ? LAST_SLICES : SLICES; n > 0; n--) {
      await new Promise(resolve => setTimeout(resolve, SLICE_MS))
      const measured = measure(life, program)
      slices.push(measured)
      const { reads, writes, memoryMiB, descriptors, journalMiB } = measured
      requests += reads.count + writes.count
      const rate = Math.round((reads.count + writes.count) / SLICE_MS * 1000)
      print(life, rate, reads.p50, reads.p99, writes.p50, writes.p99, memoryMiB, descriptors, journalMiB)
    }
    // The load goes on meanwhile, so that requests are under way.
    const signal = life % 2 === 0 ? 'SIGTERM' : 'SIGKILL'
    assert.equal((await program.stop(signal)).code, signal === 'SIGKILL' ? null : 0, `the exit code after ${signal}`)
    await end()
  }
  const last = await start()
  const { acknowledged, entries } = await begin(last.url)
  await end()
  await last.stop()
  console.log(`${requests} requests, an hour at ${Math.round(requests / 3600)} a second; ${LIVES} restarts; ` +
    `${acknowledged} changes acknowledged and none lost; ${entries} entries; ` +
    `starts ${starts[1]?.toFixed(0)} → ${starts.at(-1)?.toFixed(0)} ms`)
  const lifeOf = (life: number): Slice[] => slices.filter(slice => slice.life === life)
  const long = lifeOf(LIVES)
  const third = Math.floor(long.length / 3)
  assert.deepEqual([
    ...judge('over all lives', lifeOf(2), lifeOf(LIVES - 1)),
    ...judge('within the last', long.slice(0, third), long.slice(-third))
  ], [], 'beyond its bound')
})
