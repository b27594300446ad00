/** How long a revealed password stays, and a countdown by the second. */

/** How long a password stays revealed, in the list and in the dialog. */
export const REVEALED_MS = 60_000

/** Calls `each` with the seconds that are left, at last with 0; gives the function that stops it. */
export function countDown(seconds: number, each: (left: number) => void): () => void {
  const endMs = performance.now() + seconds * 1000
  const count = (): void => {
    const left = Math.max(0, Math.ceil((endMs - performance.now()) / 1000))
    each(left)
    if (left === 0) clearInterval(timer)
  }
  const timer = setInterval(count, 1000)
  count()
  return () => clearInterval(timer)
}
