/**
 * Releases whatever was opened, however much goes wrong on the way: the last opened first, each one attempted, the
 * first error thrown when all were.
 */
type Close = () => void | Promise<void>

export class Closers {
  readonly #open: Close[] = []

  /** Notes how something that was just opened is released. */
  add(close: Close): void { this.#open.push(close) }

  /** Releases everything, once; what is added meanwhile too. */
  async close(): Promise<void> {
    const errors: unknown[] = []
    while (this.#open.length > 0) {
      const close = this.#open.pop()!
      try {
        await close()
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 0) throw errors[0]
  }
}
