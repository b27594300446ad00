/** Releases resources, the last opened first. All are tried; then the first error is thrown. */
type Close = () => void | Promise<void>

export class Closers {
  readonly #open: Close[] = []

  add(close: Close): void { this.#open.push(close) }

  /** Once, including resources added meanwhile. */
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
