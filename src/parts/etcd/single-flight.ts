/** A question whose answer many may share, as long as it is not older than their asking for it. */
export class SingleFlight<T> {
  readonly #ask: () => Promise<T>
  /** The one that is not sent yet, and the last one that was. */
  #next: Promise<T> | undefined
  #last: Promise<T> | undefined

  constructor(ask: () => Promise<T>) { this.#ask = ask }

  /**
   * Asks, or joins those who wait; the question is sent after this call, one at a time. Rejects as that does, or as the
   * question before it: whatever waited for that has waited long enough.
   */
  ask(): Promise<T> { return this.#next ??= this.#send(this.#last) }

  async #send(before: Promise<T> | undefined): Promise<T> {
    try {
      await before
      // Those whose requests came in the same turn of the event loop come along.
      await new Promise(resolve => setImmediate(resolve))
    } catch (error) {
      this.#next = undefined
      throw error
    }
    const own = this.#last = this.#next
    this.#next = undefined
    try {
      return await this.#ask()
    } finally {
      if (this.#last === own) this.#last = undefined
    }
  }
}
