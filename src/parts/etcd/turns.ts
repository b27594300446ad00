/**
 * Fairness between instances, by courtesy: turns are no condition of an append, so nothing that is done with them, or
 * left undone, can lose a change, make it twice, or stop anybody for longer than the bound.
 *
 * An append that came too late leaves `PREFIX.turn/ID` in etcd, which its next success removes; every watch shows both.
 * Before its next append an instance waits until all turns are gone that were there before its own, or before it asked:
 * for all of them at the same time, and no longer than the one that asked for most. Those that are left then it
 * removes, so that a dead instance is waited for once.
 */
import type { Turn } from './etcd-keys.ts'
import type { Change, EtcdLog } from './etcd-log.ts'

export class Turns {
  readonly #log: EtcdLog
  /** Who waits, by key, as the watch has shown; without this instance. */
  readonly #waiting = new Map<string, Turn>()
  /** The revision since which this instance waits; infinite: it does not. */
  #since = Infinity
  #onChange = (): void => {}

  constructor(log: EtcdLog) { this.#log = log }

  /** Takes note of what a watch brings. */
  see({ turns, ended }: Pick<Change, 'turns' | 'ended'>): void {
    for (const turn of turns) if (turn.key !== this.#log.turnKey) this.#waiting.set(turn.key, turn)
    for (const key of ended) this.#waiting.delete(key)
    this.#onChange()
  }

  /** Without a watch nothing is known of turns. */
  forget(): void {
    this.#waiting.clear()
    this.#onChange()
  }

  /** Takes note of how an append ended: it was made, or, as of a revision, came too late. */
  note(lostAt: number | undefined): void { this.#since = lostAt === undefined ? Infinity : Math.min(lostAt, this.#since) }

  /** Waits for those ahead; resolves with whether there was anybody. */
  async wait(endMs: number): Promise<boolean> {
    const ahead = [...this.#waiting.values()].filter(({ revision }) => Number(revision) < this.#since)
    if (ahead.length === 0) return false
    const left = (): Turn[] => ahead.filter(({ key, revision }) => this.#waiting.get(key)?.revision === revision)
    const untilMs = Math.min(endMs, performance.now() + Math.max(...ahead.map(({ waitMs }) => waitMs)))
    while (left().length > 0 && performance.now() < untilMs) await this.#change(untilMs - performance.now())
    const dead = left()
    if (dead.length === 0) return true
    for (const { key } of dead) this.#waiting.delete(key)
    this.#log.drop(dead, endMs).catch(() => {}) // the append that follows says how etcd is
    return true
  }

  #change(ms: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, ms)
      this.#onChange = () => { clearTimeout(timer); resolve() }
    })
  }
}
