/**
 * Fairness between instances, by courtesy: turns are no condition of an append, so nothing that is done with them, or
 * left undone, can lose a change, make it twice, or stop anybody for longer than the bound.
 *
 * An append that came too late leaves `PREFIX.turn/ID` in etcd, which its next success removes. Every answer to an
 * append brings these keys. Before its next append an instance lets those write who have waited longer than it does: it
 * waits until as many writes of others have come as there were, all of them at the same time, and no longer than the
 * one that asked for most. Then it removes the turns that were not taken, so that a dead instance is waited for once.
 */
import type { Turn } from './etcd-keys.ts'
import type { EtcdLog } from './etcd-log.ts'
import type { Follower } from './follower.ts'

export class Turns {
  readonly #log: EtcdLog
  readonly #follower: Follower
  /** Who goes first, and the record after which. */
  #ahead: readonly Turn[] = []
  #seq = 0

  constructor(log: EtcdLog, follower: Follower) { this.#log = log; this.#follower = follower }

  /** Takes note of who waited when an append was answered. */
  note(ahead: readonly Turn[]): void {
    this.#ahead = ahead
    this.#seq = this.#follower.replica.newest.seq
  }

  /** Waits for those ahead; resolves with whether there was anybody. */
  async wait(endMs: number): Promise<boolean> {
    const ahead = this.#ahead
    if (ahead.length === 0) return false
    this.#ahead = []
    const { replica } = this.#follower
    const untilMs = Math.min(endMs, performance.now() + Math.max(...ahead.map(({ waitMs }) => waitMs)))
    const isDone = (): boolean => replica.writesAfter(this.#seq) >= ahead.length
    while (!isDone()) {
      const leftMs = untilMs - performance.now()
      if (leftMs <= 0) break
      await this.#follower.next(leftMs)
    }
    if (!isDone()) this.#log.drop(ahead, endMs).catch(() => {}) // only a courtesy: the next append says how etcd is
    return true
  }
}
