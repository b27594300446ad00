/** Deletions that can be undone: each takes effect when its message goes, or when the page is left or hidden. */
import type { Entry } from './api.ts'
import { say } from './language.ts'
import { tell } from './messages.ts'
import { briefName } from './plain.ts'

interface Pending {
  readonly entry: Entry
  /** Whether the service was asked to. */
  isSent: boolean
  /** Takes back its message. */
  readonly untell: () => void
}

interface RemovalOptions {
  /** Carries a deletion out; false if that failed. */
  remove(entry: Entry): Promise<boolean>
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
    this.#pending.set(entry.id, { entry, untell, isSent: false })
  }

  /** Takes a deletion back, the newest unless another is named; false if there is none. */
  undo(id?: number): boolean {
    const found = [...this.#pending.values()].findLast(({ entry, isSent }) => !isSent && (id ?? entry.id) === entry.id)
    if (found === undefined) return false
    this.#pending.delete(found.entry.id)
    found.untell()
    this.#options.restore(found.entry)
    return true
  }

  /** Carries out what is pending, now; gives what could not be. */
  async flush(): Promise<readonly Entry[]> {
    const all = [...this.#pending.values()].map(({ entry }) => entry)
    const done = await Promise.all(all.map(({ id }) => this.#carryOut(id)))
    return all.filter((_entry, at) => !done[at])
  }

  /** Forgets what is pending, and gives it: the session that it belongs to has ended, and its messages go with it. */
  forget(): readonly Entry[] {
    const all = [...this.#pending.values()].map(({ entry }) => entry)
    this.#pending.clear()
    return all
  }

  async #carryOut(id: number): Promise<boolean> {
    const found = this.#pending.get(id)
    if (found === undefined || found.isSent) return true
    found.isSent = true
    found.untell()
    const isDone = await this.#options.remove(found.entry)
    if (this.#pending.get(id) === found) this.#pending.delete(id)
    return isDone
  }
}
