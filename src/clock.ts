/** A monotonic clock, in milliseconds. */
export const nowMs = (): number => performance.now()
