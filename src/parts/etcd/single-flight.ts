/**
 * A question whose answer many may share, as long as it is not older than their asking for it: to ask is to join those
 * who wait. It is sent after that, one at a time. Rejects as the question does, or as the one before it: whatever
 * waited for that has waited long enough.
 */
export function singleFlight<T>(question: () => Promise<T>): () => Promise<T> {
  /** The one that is not sent yet, and the last one that was. */
  let next: Promise<T> | undefined
  let last: Promise<T> | undefined
  const send = async (): Promise<T> => {
    try {
      await last
      // Those whose requests came in the same turn of the event loop come along.
      await new Promise(resolve => setImmediate(resolve))
    } catch (error) {
      next = undefined
      throw error
    }
    const own = last = next
    next = undefined
    try {
      return await question()
    } finally {
      if (last === own) last = undefined
    }
  }
  return () => next ??= send()
}
