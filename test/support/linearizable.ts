/**
 * Whether a history of one register could have come from a register that does one thing at a time, each within the
 * time from its call to its answer (Herlihy and Wing, 1990; the search is that of Wing and Gong, with a memory).
 */

/** A write or a read of a value. A write that nobody knows the outcome of ends never: it may have been, or not. */
export interface Operation {
  readonly kind: 'write' | 'read'
  readonly value: string
  readonly startMs: number
  readonly endMs: number
}

/** Looks for an order that explains the history of a register that had a value before. */
export function isLinearizable(initial: string, history: readonly Operation[]): boolean {
  const operations = [...history].sort((a, b) => a.startMs - b.startMs)
  const seen = new Set<string>()
  const search = (done: bigint, value: string): boolean => {
    const isDone = (i: number): boolean => ((done >> BigInt(i)) & 1n) === 1n
    let firstEndMs = Infinity
    for (const [i, { endMs }] of operations.entries()) if (!isDone(i)) firstEndMs = Math.min(firstEndMs, endMs)
    if (firstEndMs === Infinity) return true // what is left may never have been
    const key = `${done} ${value}`
    if (seen.has(key)) return false
    seen.add(key)
    const possible = [...operations.entries()].filter(([i, { startMs }]) => !isDone(i) && startMs <= firstEndMs)
    // A read that fits now takes nothing from those that follow.
    const read = possible.find(([, operation]) => operation.kind === 'read' && operation.value === value)
    if (read !== undefined) return search(done | 1n << BigInt(read[0]), value)
    return possible.some(([i, operation]) =>
      operation.kind === 'write' && search(done | 1n << BigInt(i), operation.value))
  }
  return search(0n, initial)
}
