/**
 * A busy service for some minutes: `node --import tsx test/campaigns/soak.ts`, MINUTES (default 3) from the
 * environment. The
 * program as it is shipped (`npm run build` first) is killed and stopped in turn under changes, and what was
 * acknowledged is looked for after each restart. Prints a line a slice; fails when something was lost, or when memory,
 * descriptors or latency grow beyond the bounds below. Its figures want a machine that is otherwise quiet.
 */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import test from 'node:test'
import { Life, now } from '../support/restarts.ts'
import { memoryMiB } from '../support/system.ts'
import { randomOf } from '../support/random.ts'
import { freshFolder } from '../support/service.ts'

const MINUTES = Number(process.env['MINUTES'] ?? 3)
/** Lives of equal length, and a last one, three times as long, in which a leak has time to show. */
const LIVES = 8
const SLICES = 3
const LAST_SLICES = 3 * SLICES
const SLICE_MS = MINUTES * 60_000 / ((LIVES - 1) * SLICES + LAST_SLICES)
/** So many entries are made first and then only changed, so that memory has no reason to grow. */
const ENTRIES = 5_000
const CLIENTS = 32

/** How many times as much the last slices may have as the first ones of the same kind, and how much more. */
const BOUNDS = { memoryMiB: [1.25, 24], descriptors: [1, 8], p50Ms: [2, 3], p99Ms: [2, 3] } as const

type Slice = { readonly [figure in keyof typeof BOUNDS]: number }

/** What has grown too much: by the best slices, for what the machine does beside this makes some of them worse. */
function grown(first: readonly Slice[], last: readonly Slice[]): string[] {
  return (Object.keys(BOUNDS) as (keyof Slice)[]).flatMap(name => {
    const [before, after] = [first, last].map(slices => Math.min(...slices.map(slice => slice[name]))) as [number,
      number]
    const [growth, slack] = BOUNDS[name]
    console.log(`${name} ${before.toFixed(2)} → ${after.toFixed(2)} (at most ${(before * growth + slack).toFixed(2)})`)
    return after <= before * growth + slack ? [] : [name]
  })
}

test('what was acknowledged outlives kills and stops, and nothing grows', async t => {
  const life = new Life(t, freshFolder(t), randomOf(t))
  await life.start()
  await life.load({ clients: CLIENTS, changes: ENTRIES / CLIENTS, ms: Infinity, bytes: 100 })
  const lives: Slice[][] = []
  for (let n = 1; n <= LIVES; n++) {
    await life.restart(n % 2 === 0 ? 'SIGTERM' : 'SIGKILL')
    // It goes on until the program is stopped, so that changes are under way.
    const load = life.load({ clients: CLIENTS, ms: Infinity, bytes: 100, onlyUpdates: true })
    const slices: Slice[] = []
    for (let rest = n === LIVES ? LAST_SLICES : SLICES; rest > 0; rest--) {
      const sinceNs = now()
      await new Promise(resolve => setTimeout(resolve, SLICE_MS))
      const ms = life.known.latenciesMs(sinceNs)
      const { pid } = life.program
      const descriptors = readdirSync(`/proc/${pid}/fd`).length
      const at = (share: number): number => ms[Math.floor(ms.length * share)] ?? NaN
      slices.push({ memoryMiB: memoryMiB(pid), descriptors, p50Ms: at(0.5), p99Ms: at(0.99) })
      console.log(`life ${n}: ${ms.length} changes, ${JSON.stringify(slices.at(-1))}`)
    }
    lives.push(slices)
    await life.program.stop(n % 2 === 0 ? 'SIGKILL' : 'SIGTERM')
    await load
  }
  assert.deepEqual(await life.start(), [])
  await life.program.stop()
  console.log(`${life.known.acknowledged} changes and sights of them, none lost`)
  const last = lives.at(-1)!
  assert.deepEqual([...grown(lives[1]!, lives[LIVES - 2]!), ...grown(last.slice(0, SLICES), last.slice(-SLICES))], [])
})
