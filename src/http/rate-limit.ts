/** A sliding window in one-second buckets (contract §8). Refused requests do not count. */
import { MAX_RATE_LIMIT_CLIENTS, RATE_LIMIT_WINDOW_SECONDS } from '../limits.ts'
import { RecentMap } from '../store/recent-map.ts'

const WINDOW_SECONDS = RATE_LIMIT_WINDOW_SECONDS

export interface Verdict {
  readonly allowed: boolean
  readonly limit: number
  /** After this request. */
  readonly remaining: number
  /** At least 1 if refused, otherwise 0. */
  readonly retryAfterSeconds: number
}

/** In the window that ends with `second`. */
interface Counts {
  /** Second s is in bucket s % WINDOW_SECONDS. */
  readonly buckets: Uint32Array
  total: number
  second: number
}

/** Which requests pass (contract §8.1). */
export class RateLimit {
  readonly #limit: number
  readonly #nowMs: () => number
  readonly #clients: RecentMap<Counts>

  /** `maxClients` bounds each of two generations of clients. */
  constructor(
    limit: number,
    maxClients: number = MAX_RATE_LIMIT_CLIENTS,
    nowMs: () => number = () => performance.now()
  ) {
    this.#limit = limit
    this.#nowMs = nowMs
    this.#clients = new RecentMap(maxClients, WINDOW_SECONDS)
  }

  get clients(): number {
    return this.#clients.size
  }

  take(key: string): Verdict {
    const nowMs = this.#nowMs()
    const second = Math.floor(nowMs / 1000)
    const none = (): Counts => ({ buckets: new Uint32Array(WINDOW_SECONDS), total: 0, second })
    const counts = this.#clients.use(key, second, none)
    const verdict = this.#verdict(counts, nowMs)
    if (!verdict.allowed) return verdict
    counts.buckets[counts.second % WINDOW_SECONDS]!++
    counts.total++
    return { ...verdict, remaining: verdict.remaining - 1 }
  }

  peek(key: string): Verdict {
    return this.#verdict(this.#clients.peek(key), this.#nowMs())
  }

  #verdict(counts: Counts | undefined, nowMs: number): Verdict {
    const limit = this.#limit
    if (counts !== undefined) slideTo(counts, Math.floor(nowMs / 1000))
    if (counts === undefined || counts.total < limit) {
      return { allowed: true, limit, remaining: limit - (counts?.total ?? 0), retryAfterSeconds: 0 }
    }
    const waitMs = (oldestSecond(counts) + WINDOW_SECONDS) * 1000 - nowMs
    return {
      allowed: false,
      limit,
      remaining: 0,
      retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000))
    }
  }
}

function slideTo(counts: Counts, second: number): void {
  const first = Math.max(counts.second + 1, second - WINDOW_SECONDS + 1)
  for (let s = first; s <= second; s++) {
    counts.total -= counts.buckets[s % WINDOW_SECONDS]!
    counts.buckets[s % WINDOW_SECONDS] = 0
  }
  counts.second = second
}

/** The second of the oldest counted request; there must be one. */
function oldestSecond({ buckets, second }: Counts): number {
  let oldest = Math.max(0, second - WINDOW_SECONDS + 1)
  while (buckets[oldest % WINDOW_SECONDS] === 0) oldest++
  return oldest
}

/**
 * Counts a request in both limits, or in neither if one of them refuses it. The verdict is the
 * general limit's, if there is one.
 */
export function takeBoth(
  general: RateLimit | undefined,
  key: string,
  own: RateLimit | undefined,
  address: string
): Verdict | undefined {
  const refused = own?.peek(address)
  if (refused?.allowed === false) {
    const shown = general?.peek(key) ?? refused
    const retryAfterSeconds = Math.max(shown.retryAfterSeconds, refused.retryAfterSeconds)
    return { ...shown, allowed: false, retryAfterSeconds }
  }
  const verdict = general?.take(key)
  const ofOwn = verdict?.allowed === false ? undefined : own?.take(address)
  return verdict ?? ofOwn
}

/** Contract §8.3. */
export function limitHeaders({ limit, remaining, allowed, retryAfterSeconds }: Verdict): string[] {
  const headers = ['X-RateLimit-Limit', String(limit), 'X-RateLimit-Remaining', String(remaining)]
  if (!allowed) headers.push('Retry-After', String(retryAfterSeconds))
  return headers
}
