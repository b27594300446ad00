/** Reads access logs: who was given what, and which times they cover without a gap. */

/** Which entries, unless one is named. */
type Shown = 'active' | 'deleted' | 'all'
const SHOWS: { readonly [route: string]: Shown } = {
  getPassword: 'all', updatePassword: 'all', historyPassword: 'all', listPassword: 'active',
  deletedPasswords: 'deleted', olderDeletedPasswords: 'deleted'
}
/** 499: the client left, and may have had the answer. */
const GIVEN: readonly unknown[] = [200, 499]
/** A change has its line within this time; a longer pause is reported. */
const MAX_LATE_MS = 60_000
/** The log's clock may have been set back a little. */
const MAX_EARLY_MS = 5_000

export interface Given {
  readonly who: string
  readonly how: string
  readonly ms: number
  readonly id?: number | undefined
  readonly shown: Shown
}

interface Gap { readonly from: string, readonly to: string, readonly why: string }

export class Logs {
  readonly given: Given[] = []
  readonly gaps: Gap[] = []
  unreadable = 0
  readonly #times: number[] = []
  readonly #changes: number[] = []
  readonly #starts: number[] = []
  readonly #addresses: ReadonlyMap<number, string>
  #last = NaN

  constructor(addresses: ReadonlyMap<number, string>) { this.#addresses = addresses }

  /** Skips lines of other programs, which are not JSON. */
  take(line: string): void {
    if (!line.startsWith('{')) return
    const { time, service, dropped, method, route, entry, status, user, client } = parsed(line)
    const ms = time === undefined && dropped !== undefined ? this.#last : Date.parse(String(time))
    if (Number.isNaN(ms)) { this.unreadable++; return }
    if (dropped !== undefined) this.gaps.push(gap(this.#last, ms, `${String(dropped)} lines were lost`))
    this.#last = ms
    this.#times.push(ms)
    if (service === 'started') this.#starts.push(ms)
    if (method !== undefined && method !== 'GET') this.#changes.push(ms)
    const shown = SHOWS[String(route)]
    const isSet = route === 'createPassword' && user === null && status === 200
    if (!isSet && (shown === undefined || !GIVEN.includes(status))) return
    const who = typeof user === 'number' ? this.#addresses.get(user) ?? `#${user}` : `client ${String(client)}`
    const id = typeof entry === 'number' ? entry : undefined
    this.given.push({ who, how: isSet ? 'set it' : String(route), ms, id, shown: shown ?? 'all' })
  }

  /** `changes` are times of clients' changes in the journal, in ms: each should have a line. */
  covered(
    changes: readonly number[]
  ): { readonly fromMs: number, readonly toMs: number, readonly pauses: readonly Gap[] } {
    for (const list of [this.#times, this.#changes]) list.sort((a, b) => a - b)
    const times = this.#times
    const [fromMs = Infinity, toMs = -Infinity] = [times[0], times.at(-1)]
    const found = new Map<number, Gap>()
    for (const ms of changes) {
      const line = this.#changes[firstFrom(this.#changes, ms - MAX_EARLY_MS)] ?? Infinity
      if (ms < fromMs || line <= ms + MAX_LATE_MS) continue
      const next = firstFrom(times, ms)
      const why = 'clients changed something: the service ran without ACCESS_LOG, or lines are missing'
      found.set(next, gap(times[next - 1]!, times[next] ?? ms, why))
    }
    for (const one of found.values()) this.gaps.push(one)
    const pauses = this.#starts.map(ms => [times[firstFrom(times, ms) - 1] ?? ms, ms, firstFrom(times, ms)] as const)
      .filter(([from, to, at]) => to - from > MAX_LATE_MS && !found.has(at))
      .map(([from, to]) => gap(from, to, 'the service was stopped, or nothing was changed without ACCESS_LOG'))
    return { fromMs, toMs, pauses }
  }
}

function parsed(line: string): { readonly [member: string]: unknown } {
  try {
    return JSON.parse(line) as { readonly [member: string]: unknown }
  } catch {
    return {}
  }
}

function gap(fromMs: number, toMs: number, why: string): Gap {
  return { from: timeOf(Number.isNaN(fromMs) ? toMs : fromMs), to: timeOf(toMs), why }
}

export function timeOf(ms: number): string { return new Date(ms).toISOString() }

/** Index of the first number that is at least `least`. */
function firstFrom(ascending: readonly number[], least: number): number {
  let [from, to] = [0, ascending.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if (ascending[middle]! < least) from = middle + 1
    else to = middle
  }
  return from
}
