/** How throughput and p99 change with the number of entries, of connections, and with the size of a body. */
import { measureSides, type Bench } from './measure.ts'
import { creates, gets } from './works.ts'

/** What one point measures; `floor` is bare `node:http` with the same answers. */
export interface Point {
  /** What changes from point to point, and its value. */
  readonly quantity: string
  readonly value: number
  readonly work: 'get' | 'create'
  readonly side: 'program' | 'floor'
  readonly rate: number
  readonly p99Ms: number
}

interface Sweep {
  readonly quantity: string
  readonly values: readonly number[]
  /** The entries, connections and bytes of a body at a value. */
  readonly at: (value: number) => readonly [entries: number, connections: number, bodyBytes: number]
}

const SWEEPS: readonly Sweep[] = [
  { quantity: 'entries', values: [100, 1_000, 10_000, 100_000, 1_000_000], at: value => [value, 64, 0] },
  { quantity: 'connections', values: [1, 4, 16, 64, 256, 1_000], at: value => [1_000, value, 0] },
  { quantity: 'bytes of a body', values: [100, 1_024, 4_096, 16_384, 65_536], at: value => [1_000, 64, value] }
]

/** Measures all points, each once. */
export async function measureCurve(bench: Bench): Promise<Point[]> {
  const points: Point[] = []
  for (const { quantity, values, at } of SWEEPS) {
    for (const value of values) {
      const [entries, connections, bodyBytes] = at(value)
      const works = { get: gets(entries, connections), create: creates(entries, connections, bodyBytes) }
      for (const work of ['get', 'create'] as const) {
        console.error(`${quantity} ${value}: ${work}`)
        const reports = await measureSides(bench, works[work], ['program', 'floor'], bodyBytes)
        for (const side of ['program', 'floor'] as const) {
          const { rate, p99Ms } = reports[side]!
          points.push({ quantity, value, work, side, rate, p99Ms })
        }
      }
    }
  }
  return points
}
