/** Deletions that can be undone: each takes effect when its message goes, or when the page is left or hidden. */
import type { Entry } from './api.ts'
import { say } from './language.ts'
import { tell } from './messages.ts'
import { briefName } from './plain.ts'

interface Pending {
  readonly entry: Entry
  /** Takes back its message. */
  readonly untell: () => void
}

interface RemovalOptions {
  /** Carries a deletion out. */
  remove(entry: Entry): Promise<void>
  /** Shows an entry again whose deletion was undone. */
  restore(entry: Entry): void
}

/** The deletions that have not taken effect. */
export class Removals {
  readonly #pending = new Map<number, Pending>()
  readonly #options: RemovalOptions

  constructor(options: RemovalOptions) {
    this.#options = options
    // Firefox may end the scripts of a page in the midst of `pagehide`, and a phone may end a hidden page without it.
    addEventListener('beforeunload', event => { if (!event.defaultPrevented) void this.flush() })
    document.addEventListener('visibilitychange', () => { if (document.hidden) void this.flush() })
  }

  /** Deletes an entry after a while. */
  add(entry: Entry): void {
    const untell = tell(say('removing', { name: briefName(entry.sistema) }), {
      label: say('undo'), act: () => this.undo(entry.id), onOver: () => void this.#carryOut(entry.id)
    })
    this.#pending.set(entry.id, { entry, untell })
  }

  /** Takes a deletion back, the newest unless another is named; false if there is none. */
  undo(id: number | undefined = [...this.#pending.keys()].at(-1)): boolean {
    const found = this.#pending.get(id ?? 0)
    if (found === undefined) return false
    this.#pending.delete(found.entry.id)
    found.untell()
    this.#options.restore(found.entry)
    return true
  }

  /** Carries out what is pending, now. */
  async flush(): Promise<void> { await Promise.all([...this.#pending.keys()].map(id => this.#carryOut(id))) }

  /** Forgets what is pending: the session that it belongs to has ended. */
  forget(): void {
    for (const { untell } of this.#pending.values()) untell()
    this.#pending.clear()
  }

  async #carryOut(id: number): Promise<void> {
    const found = this.#pending.get(id)
    if (found === undefined) return
    this.#pending.delete(id)
    found.untell()
    await this.#options.remove(found.entry)
  }
}
