/**
 * Lets callers share one request, sent only after they call, so no answer is older than the call. The deadline counts
 * the wait for the request before. Rejects as either does.
 */
export function singleFlight<T>(request: (endMs: number) => Promise<T>, boundMs: number): () => Promise<T> {
  let next: Promise<T> | undefined
  let last: Promise<T> | undefined
  const send = async (): Promise<T> => {
    const endMs = performance.now() + boundMs
    try {
      await last
      // Calls in the same turn of the event loop share it too.
      await new Promise(resolve => setImmediate(resolve))
    } catch (error) {
      next = undefined
      throw error
    }
    const own = last = next
    next = undefined
    try {
      return await request(endMs)
    } finally {
      if (last === own) last = undefined
    }
  }
  return () => next ??= send()
}
