/**
 * Fairness between instances, by courtesy: no append depends on a turn, so turns lose and repeat no
 * change, and stop nobody beyond the bound.
 *
 * An append that came too late puts `PREFIX.turn/ID`; its next success removes it. Before an
 * append, an instance waits until all turns before its own are gone, at most as long as the longest
 * asks. It then removes the rest, so that a dead instance is waited for once.
 */
import type { Turn } from './etcd-keys.ts'
import type { EtcdLog } from './etcd-log.ts'
import type { WatchedChange } from './watch.ts'

export class Turns {
  readonly #log: EtcdLog
  readonly #waiting = new Map<string, Turn>()
  /** Waits since this revision; infinite: it does not. */
  #since = Infinity
  #onChange = (): void => {}

  constructor(log: EtcdLog) {
    this.#log = log
  }

  see({ turns, ended }: Pick<WatchedChange, 'turns' | 'ended'>): void {
    for (const turn of turns) if (turn.key !== this.#log.turnKey) this.#waiting.set(turn.key, turn)
    for (const key of ended) this.#waiting.delete(key)
    this.#onChange()
  }

  /** Without a watch, turns are unknown. */
  forget(): void {
    this.#waiting.clear()
    this.#onChange()
  }

  /** `lostAt`: the revision at which the append came too late. */
  note(lostAt: number | undefined): void {
    this.#since = lostAt === undefined ? Infinity : Math.min(lostAt, this.#since)
  }

  /** Resolves with whether it had to wait. */
  async wait(endMs: number): Promise<boolean> {
    const ahead = [...this.#waiting.values()].filter(
      ({ revision }) => Number(revision) < this.#since
    )
    if (ahead.length === 0) return false
    const left = (): Turn[] =>
      ahead.filter(({ key, revision }) => this.#waiting.get(key)?.revision === revision)
    const turnsEndMs = Math.min(
      endMs,
      performance.now() + Math.max(...ahead.map(({ waitMs }) => waitMs))
    )
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, turnsEndMs - performance.now())
      this.#onChange = () => {
        if (left().length > 0) return
        clearTimeout(timer)
        resolve()
      }
    })
    this.#onChange = () => {}
    // else the wait was cut short: they may be alive
    const dead = performance.now() < endMs ? left() : []
    for (const { key } of dead) this.#waiting.delete(key)
    // the next append reports failures
    if (dead.length > 0) this.#log.drop(dead, endMs).catch(() => {})
    return true
  }
}
