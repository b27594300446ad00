/** How throughput and p99 change with the number of entries, of connections, and with the size of a body. */
import { BODY_BYTES } from './journal.ts'
import { measureSides, type Bench, type Report } from './measure.ts'
import { creates, gets } from './works.ts'

/** A point of a curve, and what was measured there, a report a round. */
export interface Point {
  /** What changes from point to point, and its value. */
  readonly quantity: string
  readonly value: number
  readonly work: 'get' | 'create'
  readonly program: readonly Report[]
  /** Bare `node:http` with the same answers. */
  readonly floor: readonly Report[]
}

interface Sweep {
  readonly quantity: string
  readonly values: readonly number[]
  /** The entries, connections and bytes of a body at a value. */
  readonly at: (value: number) => readonly [entries: number, connections: number, bodyBytes: number]
}

const SWEEPS: readonly Sweep[] = [
  { quantity: 'entries', values: [100, 1_000, 10_000, 100_000, 1_000_000], at: value => [value, 64, BODY_BYTES] },
  { quantity: 'connections', values: [1, 4, 16, 64, 256, 1_000], at: value => [1_000, value, BODY_BYTES] },
  { quantity: 'bytes of a body', values: [100, 1_024, 4_096, 16_384, 65_536], at: value => [1_000, 64, value] }
]

/** Measures every point, each in fresh processes in each round. */
export async function measureCurve(bench: Bench, rounds: number): Promise<Point[]> {
  const points = SWEEPS.flatMap(({ quantity, values, at }) => values.flatMap(value =>
    (['get', 'create'] as const).map(work =>
      ({ quantity, value, work, sizes: at(value), program: [] as Report[], floor: [] as Report[] }))))
  for (let round = 0; round < rounds; round++) {
    for (const { quantity, value, work, sizes: [entries, connections, bodyBytes], program, floor } of points) {
      console.error(`round ${round + 1} of ${rounds}: ${quantity} ${value}, ${work}`)
      const load = work === 'get' ? gets(entries, connections) : creates(entries, connections, bodyBytes)
      const reports = await measureSides(bench, load, ['program', 'floor'], bodyBytes)
      program.push(reports.program!)
      floor.push(reports.floor!)
    }
  }
  return points
}
