/**
 * Lets callers share one request.
 *
 * **No answer is older than its call**: a caller shares only a request that is sent after the call.
 * So `waiting` is emptied before the request is sent, and whoever calls from then on shares the
 * next one.
 *
 * One request is under way at a time. The next one waits for it, fails if it fails, and its
 * `boundMs` count from the first call, so that nobody waits for two bounds.
 */
export function singleFlight<T>(
  request: (endMs: number) => Promise<T>,
  boundMs: number
): () => Promise<T> {
  /** Not sent yet: new callers share it. */
  let waiting: Promise<T> | undefined
  let underWay: Promise<T> | undefined
  const queued = async (): Promise<T> => {
    const endMs = performance.now() + boundMs
    try {
      await underWay
      // callers in the same turn of the loop share it, too
      await new Promise(resolve => setImmediate(resolve))
    } catch (error) {
      waiting = undefined
      throw error
    }
    underWay = waiting
    waiting = undefined
    try {
      return await request(endMs)
    } finally {
      underWay = undefined
    }
  }
  return () => (waiting ??= queued())
}
