/**
 * Refuses a request that is too large for the heap: it would end the process, perhaps a service.
 */
import { getHeapStatistics } from 'node:v8'
import { OperatorError } from '../../commands/command.ts'
import type { State } from '../../../store/state.ts'

/** Measured: bytes of an entry in memory; of a byte of an import until it is in the state. */
const ENTRY_BYTES = 350
const TIMES_HELD = 10
/** Node counts the young generation, but nothing stays in it. */
const YOUNG_BYTES = 48 * 1024 * 1024

/** `bytes`: of the request as JSON. Throws an `OperatorError`. */
export function assertHeapRoom({ entries }: State, bytes: number): void {
  const heapBytes = getHeapStatistics().heap_size_limit - YOUNG_BYTES
  const needed = entries.count * ENTRY_BYTES + bytes * TIMES_HELD
  if (needed <= heapBytes) return
  const [has, needs] = [heapBytes, needed].map(one => Math.round(one / 2 ** 20))
  throw new OperatorError(
    `this would take ${needs} MiB of a heap of ${has} MiB (--max-old-space-size), ` +
      'and nothing was done: split the file'
  )
}
