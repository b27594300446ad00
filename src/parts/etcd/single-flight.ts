/**
 * Lets callers share one request, sent only after they call, so no answer is older than its call. The deadline counts
 * the wait for the request before. Rejects as either does.
 */
export function singleFlight<T>(request: (endMs: number) => Promise<T>, boundMs: number): () => Promise<T> {
  let next: Promise<T> | undefined
  let last: Promise<T> | undefined
  const send = async (): Promise<T> => {
    const endMs = performance.now() + boundMs
    try {
      await last
      // callers in the same turn share it too
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
