/**
 * Fairness between instances, by courtesy: no append depends on a turn, so turns can lose no change, make none twice,
 * and stop nobody for longer than the bound.
 *
 * An append that came too late leaves `PREFIX.turn/ID` in etcd, which its next success removes; every watch shows both.
 * Before its next append an instance waits until all turns are gone that were there before its own, or before it asked:
 * for all of them at the same time, and no longer than the one that asked for most. It then removes those that are left,
 * so that a dead instance is waited for once.
 *
 * Instances that write at the same pace need no turns: each lets as many others write as wrote between its own last two
 * writes, but no more than have lately waited, and only as long as their writes keep coming. So they fall into an order
 * in which no append comes too late. A silence is borne four times as long as all these writes take: an instance that
 * gives up too early comes too late, takes a turn, and puts all out of step.
 */
import type { Turn } from './etcd-keys.ts'
import { ETCD_RIVAL_MS, MAX_ETCD_PACE_MS, MAX_ETCD_TURN_MS } from './etcd-limits.ts'
import type { EtcdLog } from './etcd-log.ts'
import type { Replica } from './replica.ts'
import type { Change } from './watch.ts'

export class Turns {
  readonly #log: EtcdLog
  readonly #replica: Replica
  /** The other instances that wait, by key, as the watch has shown. */
  readonly #waiting = new Map<string, Turn>()
  /** The revision since which this instance waits; infinite: it does not. */
  #since = Infinity
  /** When each other one has last taken a turn. */
  readonly #rivals = new Map<string, number>()
  /** How many writes there were with its own last one, and how many of others it lets come before its next. */
  #ownWrite = 0
  #others = 0
  #onChange = (): void => {}

  constructor(log: EtcdLog, replica: Replica) { this.#log = log; this.#replica = replica }

  see({ turns, ended }: Pick<Change, 'turns' | 'ended'>): void {
    for (const turn of turns.filter(({ key }) => key !== this.#log.turnKey)) {
      this.#waiting.set(turn.key, turn)
      this.#rivals.set(turn.key, performance.now())
    }
    for (const key of ended) this.#waiting.delete(key)
    this.#onChange()
  }

  /** Without a watch nothing is known of turns. */
  forget(): void {
    this.#waiting.clear()
    this.#onChange()
  }

  /** Takes note of how an append ended: it was made, or, as of a revision, came too late. */
  note(lostAt: number | undefined): void {
    this.#since = lostAt === undefined ? Infinity : Math.min(lostAt, this.#since)
    if (lostAt !== undefined) return
    const { writes } = this.#replica
    const lastMs = performance.now() - ETCD_RIVAL_MS
    for (const [key, atMs] of this.#rivals) if (atMs < lastMs) this.#rivals.delete(key)
    this.#others = Math.min(writes - this.#ownWrite - 1, this.#rivals.size)
    this.#ownWrite = writes
  }

  /** Waits for those ahead; resolves with whether there was anybody. */
  async wait(endMs: number): Promise<boolean> {
    const { tookMs } = this.#log
    const nextWrite = this.#ownWrite + this.#others
    const silenceMs = Math.min(4 * tookMs * this.#others, MAX_ETCD_PACE_MS)
    this.#others = 0
    const paceEndMs = Math.min(endMs, performance.now() + MAX_ETCD_TURN_MS)
    const hasPaced = await this.#until(() => this.#replica.writes >= nextWrite,
      () => Math.min(paceEndMs, performance.now() + silenceMs))

    const ahead = [...this.#waiting.values()].filter(({ revision }) => Number(revision) < this.#since)
    const left = (): Turn[] => ahead.filter(({ key, revision }) => this.#waiting.get(key)?.revision === revision)
    const turnsEndMs = Math.min(endMs, performance.now() + Math.max(0, ...ahead.map(({ waitMs }) => waitMs)))
    const hasWaited = await this.#until(() => left().length === 0, () => turnsEndMs)
    const dead = performance.now() < endMs ? left() : [] // else the wait was cut short
    for (const { key } of dead) this.#waiting.delete(key)
    // The append that follows says how etcd is.
    if (dead.length > 0) this.#log.drop(dead, endMs).catch(() => {})
    return hasPaced || hasWaited
  }

  /** Waits until something holds, or a time, which each change may put off; false: it held already. */
  async #until(holds: () => boolean, untilMs: () => number): Promise<boolean> {
    if (holds()) return false
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>(resolve => {
      this.#onChange = () => {
        clearTimeout(timer)
        if (holds()) resolve()
        else timer = setTimeout(resolve, untilMs() - performance.now())
      }
      this.#onChange()
    })
    this.#onChange = () => {}
    return true
  }
}
