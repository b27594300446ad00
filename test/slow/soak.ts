/**
 * An hour of a busy service in minutes: `node --import tsx test/slow/soak.ts`, MINUTES (default 3) from the
 * environment. The program as it is shipped (`npm run build` first) is killed and stopped in turn under load, and what
 * was acknowledged is looked for after each restart. Prints a line a slice; fails when something was lost, or when
 * memory, descriptors or latency grow beyond the bounds below. Its figures want a machine that is otherwise quiet.
 */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Latencies, Order, Report } from './load.ts'

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

interface Server {
  readonly child: ChildProcess
  readonly url: string
  readonly startMs: number
}

async function startServer(folder: string): Promise<Server> {
  const path = fileURLToPath(new URL('../../dist/server.js', import.meta.url))
  const beganMs = performance.now()
  const child = spawn(process.execPath, [path, '--port=0', '--rate-limit=0', `--data=${folder}`],
    { stdio: ['ignore', 'pipe', 'inherit'], env: {} })
  let said = ''
  for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    said += String(text)
    if (/^ready$/m.test(said)) break
  }
  child.stdout.resume()
  const url = /^address +(\S+)$/m.exec(said)?.[1]
  assert.ok(url !== undefined, `the service did not start: ${said}`)
  return { child, url, startMs: performance.now() - beganMs }
}

async function endServer({ child }: Server, signal: NodeJS.Signals): Promise<void> {
  const ended = once(child, 'exit')
  child.kill(signal)
  const [code] = await ended
  assert.equal(code, signal === 'SIGKILL' ? null : 0, `the exit code after ${signal}`)
}

/** The process that makes the load. */
class Load {
  readonly #child: ChildProcess
  #take: (report: Report) => void = () => {}

  constructor() {
    const path = fileURLToPath(new URL('load.ts', import.meta.url))
    this.#child = spawn(process.execPath, ['--import', 'tsx', path], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.#child.on('message', report => this.#take(report as Report))
    this.#child.on('exit', () => this.#take({ kind: 'error', message: 'the load has ended by itself' }))
  }

  /** Waits for a report; rejects when something went wrong instead. */
  report<K extends Report['kind']>(kind: K): Promise<Extract<Report, { kind: K }>> {
    return new Promise((resolve, reject) => {
      this.#take = report => {
        if (report.kind === 'error') reject(new Error(report.message))
        else if (report.kind === kind) resolve(report as Extract<Report, { kind: K }>)
      }
    })
  }

  ask<K extends Order['kind']>(order: Order & { readonly kind: K }): Promise<Extract<Report, { kind: K }>> {
    const answered = this.report(order.kind)
    this.#child.send(order)
    return answered
  }

  end(): void { this.#child.removeAllListeners('exit').kill() }
}

type Times = Pick<Slice, 'reads' | 'writes'>

function measure(life: number, { child }: Server, folder: string, { reads, writes }: Times): Slice {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
  return {
    life, reads, writes,
    memoryMiB: Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024,
    descriptors: readdirSync(`/proc/${child.pid}/fd`).length,
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

/** Gives what has grown too much. */
async function soak(folder: string, load: Load): Promise<string[]> {
  const slices: Slice[] = []
  const starts: number[] = []
  let requests = 0
  await load.report('ready')
  print('life', 'requests/s', 'read p50', 'p99 ms', 'write p50', 'p99 ms', 'RSS MiB', 'fds', 'journal MiB')
  for (let life = 1; life <= LIVES; life++) {
    const server = await startServer(folder)
    starts.push(server.startMs)
    try {
      await load.ask({ kind: 'begin', url: server.url })
      for (let n = life === LIVES ? LAST_SLICES : SLICES; n > 0; n--) {
        await new Promise(resolve => setTimeout(resolve, SLICE_MS))
        const slice = measure(life, server, folder, await load.ask({ kind: 'slice' }))
        slices.push(slice)
        const { reads, writes, memoryMiB, descriptors, journalMiB } = slice
        requests += reads.count + writes.count
        const rate = Math.round((reads.count + writes.count) / SLICE_MS * 1000)
        print(life, rate, reads.p50, reads.p99, writes.p50, writes.p99, memoryMiB, descriptors, journalMiB)
      }
      // The load goes on meanwhile, so that requests are under way.
      await endServer(server, life % 2 === 0 ? 'SIGTERM' : 'SIGKILL')
      await load.ask({ kind: 'end' })
    } finally {
      server.child.kill('SIGKILL')
    }
  }
  const last = await startServer(folder)
  const audited = await load.ask({ kind: 'begin', url: last.url })
  await load.ask({ kind: 'end' })
  await endServer(last, 'SIGTERM')
  console.log(`${requests} requests, an hour at ${Math.round(requests / 3600)} a second; ${LIVES} restarts; ` +
    `${audited.acknowledged} changes acknowledged and none lost; ${audited.entries} entries; ` +
    `starts ${starts[1]?.toFixed(0)} → ${last.startMs.toFixed(0)} ms`)
  const lifeOf = (life: number): Slice[] => slices.filter(slice => slice.life === life)
  const long = lifeOf(LIVES)
  const third = Math.floor(long.length / 3)
  return [
    ...judge('over all lives', lifeOf(2), lifeOf(LIVES - 1)),
    ...judge('within the last', long.slice(0, third), long.slice(-third))
  ]
}

const folder = mkdtempSync(join(tmpdir(), 'pes-soak-'))
const load = new Load()
try {
  const faults = await soak(folder, load)
  for (const fault of faults) console.error(`beyond its bound: ${fault}`)
  if (faults.length > 0) process.exitCode = 1
} finally {
  load.end()
  rmSync(folder, { recursive: true, force: true })
}
