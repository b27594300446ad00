/** What time does on the page: how long a password is to be seen, and a countdown, second by second. */

/** How long a password stays revealed, in the list and in the dialog. */
export const REVEALED_MS = 60_000

/** Calls `each` with the seconds that are left, at last with 0; gives the function that ends it before. */
export function countDown(seconds: number, each: (left: number) => void): () => void {
  const endMs = performance.now() + seconds * 1000
  const tell = (): void => {
    const left = Math.max(0, Math.ceil((endMs - performance.now()) / 1000))
    each(left)
    if (left === 0) clearInterval(timer)
  }
  const timer = setInterval(tell, 1000)
  tell()
  return () => clearInterval(timer)
}
