/**
 * Lets many callers share the answer of one request, which is sent only after they have called: so none gets an answer
 * older than its call. One is sent at a time. `request` gets the time of the first caller's deadline, which counts the
 * wait for the request before. Rejects as the request does, or as the one before it: whatever waited for that has
 * waited long enough.
 */
export function singleFlight<T>(request: (endMs: number) => Promise<T>, boundMs: number): () => Promise<T> {
  /** The request that is not sent yet, and the one that is under way. */
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
