/**
 * Fairness between instances, by courtesy: no append depends on a turn, so turns lose and repeat no
 * change, and stop nobody beyond the bound.
 *
 * An append that came too late puts `PREFIX.turn/ID`; its next success removes it. Before an
 * append, an instance waits until all turns before its own are gone, at most as long as the longest
 * asks. It then removes the rest, so that a dead instance is waited for once.
 *
 * Instances of the same pace need no turns: each lets as many others write as wrote between its own
 * last two writes, but no more than have lately waited. So no append comes too late. A silence is
 * borne four times as long as these writes take: giving up too early puts all out of step.
 */
import type { Turn } from './etcd-keys.ts'
import { ETCD_RIVAL_MS, MAX_ETCD_PACE_MS, MAX_ETCD_TURN_MS } from './etcd-limits.ts'
import type { EtcdLog } from './etcd-log.ts'
import type { Replica } from './replica.ts'
import type { Change } from './watch.ts'

export class Turns {
  readonly #log: EtcdLog
  readonly #replica: Replica
  readonly #waiting = new Map<string, Turn>()
  /** Waits since this revision; infinite: it does not. */
  #since = Infinity
  /** When others last took a turn, by key. */
  readonly #rivals = new Map<string, number>()
  /** At its own last write; and writes of others before its next. */
  #ownWrite = 0
  #others = 0
  #onChange = (): void => {}

  constructor(log: EtcdLog, replica: Replica) {
    this.#log = log
    this.#replica = replica
  }

  see({ turns, ended }: Pick<Change, 'turns' | 'ended'>): void {
    for (const turn of turns.filter(({ key }) => key !== this.#log.turnKey)) {
      this.#waiting.set(turn.key, turn)
      this.#rivals.set(turn.key, performance.now())
    }
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
    if (lostAt !== undefined) return
    const { writes } = this.#replica
    const lastMs = performance.now() - ETCD_RIVAL_MS
    for (const [key, atMs] of this.#rivals) if (atMs < lastMs) this.#rivals.delete(key)
    this.#others = Math.min(writes - this.#ownWrite - 1, this.#rivals.size)
    this.#ownWrite = writes
  }

  /** Resolves with whether it had to wait. */
  async wait(endMs: number): Promise<boolean> {
    const { tookMs } = this.#log
    const nextWrite = this.#ownWrite + this.#others
    const silenceMs = Math.min(4 * tookMs * this.#others, MAX_ETCD_PACE_MS)
    this.#others = 0
    const paceEndMs = Math.min(endMs, performance.now() + MAX_ETCD_TURN_MS)
    const hasPaced = await this.#until(
      () => this.#replica.writes >= nextWrite,
      () => Math.min(paceEndMs, performance.now() + silenceMs)
    )

    const ahead = [...this.#waiting.values()].filter(
      ({ revision }) => Number(revision) < this.#since
    )
    const left = (): Turn[] =>
      ahead.filter(({ key, revision }) => this.#waiting.get(key)?.revision === revision)
    const turnsEndMs = Math.min(
      endMs,
      performance.now() + Math.max(0, ...ahead.map(({ waitMs }) => waitMs))
    )
    const hasWaited = await this.#until(
      () => left().length === 0,
      () => turnsEndMs
    )
    // else the wait was cut short: they may be alive
    const dead = performance.now() < endMs ? left() : []
    for (const { key } of dead) this.#waiting.delete(key)
    // the next append reports failures
    if (dead.length > 0) this.#log.drop(dead, endMs).catch(() => {})
    return hasPaced || hasWaited
  }

  /** Each change may extend the time; false: it held already. */
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
