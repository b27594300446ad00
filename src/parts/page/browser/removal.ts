/** Deletions that can be undone: each takes effect after a few seconds, or when the page is left or hidden. */
import type { Entry } from './api.ts'

/** How long a deletion can be undone. */
const UNDO_MS = 6_000

interface Pending {
  readonly entry: Entry
  readonly timer: ReturnType<typeof setTimeout>
}

/** The deletions that have not taken effect; `remove` carries one out. */
export class Removals {
  readonly #pending: Pending[] = []
  readonly #remove: (entry: Entry) => Promise<void>

  constructor(remove: (entry: Entry) => Promise<void>) {
    this.#remove = remove
    // Firefox may end the scripts of a page in the midst of `pagehide`, and a phone may end a hidden page without it.
    addEventListener('beforeunload', () => void this.flush())
    document.addEventListener('visibilitychange', () => { if (document.hidden) void this.flush() })
  }

  /** Whether there is nothing to undo. */
  get isEmpty(): boolean { return this.#pending.length === 0 }

  /** Deletes an entry after a while. */
  add(entry: Entry): void {
    this.#pending.push({ entry, timer: setTimeout(() => void this.#carryOut(entry), UNDO_MS) })
  }

  /** Takes the newest deletion back, and gives its entry; undefined if there is none. */
  undo(): Entry | undefined {
    const last = this.#pending.pop()
    clearTimeout(last?.timer)
    return last?.entry
  }

  /** Carries out what is pending, now. */
  async flush(): Promise<void> { await Promise.all([...this.#pending].map(({ entry }) => this.#carryOut(entry))) }

  async #carryOut(entry: Entry): Promise<void> {
    const at = this.#pending.findIndex(one => one.entry.id === entry.id)
    if (at < 0) return
    const [taken] = this.#pending.splice(at, 1)
    clearTimeout(taken!.timer)
    await this.#remove(entry)
  }
}
