/** What is in memory once the garbage is gone. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** The heap, and what buffers hold outside of it. */
export function heldMiB(): number {
  collect()
  collect() // the first one may leave buffers to a thread that sweeps; the second waits for it
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return (heapUsed + arrayBuffers) / 2 ** 20
}

/** The heap alone. */
export function heapMiB(): number {
  collect()
  return process.memoryUsage().heapUsed / 2 ** 20
}
