/**
 * Lets many callers share one request, which is sent only after they have called: so nobody gets an answer older than
 * the call. One is sent at a time; its deadline counts the wait for the one before. Rejects as either does.
 */
export function singleFlight<T>(request: (endMs: number) => Promise<T>, boundMs: number): () => Promise<T> {
  let next: Promise<T> | undefined
  let last: Promise<T> | undefined
  const send = async (): Promise<T> => {
    const endMs = performance.now() + boundMs
    try {
      await last
      // Those who call in the same turn of the event loop share it as well.
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
