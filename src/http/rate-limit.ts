/**
 * The rate limit: a sliding window in one-second buckets (contract §8). Refused requests do not count. The table has
 * two generations: a client that is seen moves to the younger. If the younger is full, or a window old, it replaces the
 * older, so memory is bounded.
 */
import { MAX_RATE_LIMIT_CLIENTS, RATE_LIMIT_WINDOW_SECONDS } from '../limits.ts'

const WINDOW_SECONDS = RATE_LIMIT_WINDOW_SECONDS

export interface Verdict {
  readonly allowed: boolean
  readonly limit: number
  /** After this request. */
  readonly remaining: number
  /** At least 1 if refused, otherwise 0. */
  readonly retryAfterSeconds: number
}

interface Client {
  /** Second s is in bucket s % WINDOW_SECONDS. */
  readonly buckets: Uint32Array
  total: number
  second: number
}

/** Decides which requests pass (contract §8.1). */
export class RateLimit {
  readonly #limit: number
  readonly #maxClients: number
  readonly #nowMs: () => number
  #young = new Map<string, Client>()
  #old = new Map<string, Client>()
  #youngSinceSecond = 0

  /** `maxClients` bounds each generation. */
  constructor(
    limit: number, maxClients: number = MAX_RATE_LIMIT_CLIENTS, nowMs: () => number = () => performance.now()
  ) {
    this.#limit = limit
    this.#maxClients = maxClients
    this.#nowMs = nowMs
  }

  get clients(): number { return this.#young.size + this.#old.size }

  take(key: string): Verdict {
    const nowMs = this.#nowMs()
    const client = this.#client(key, Math.floor(nowMs / 1000))
    const verdict = this.#verdict(client, nowMs)
    if (!verdict.allowed) return verdict
    client.buckets[client.second % WINDOW_SECONDS]!++
    client.total++
    return { ...verdict, remaining: verdict.remaining - 1 }
  }

  /** As `take`, without counting. */
  peek(key: string): Verdict { return this.#verdict(this.#young.get(key) ?? this.#old.get(key), this.#nowMs()) }

  #client(key: string, second: number): Client {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const client = this.#old.get(key) ?? { buckets: new Uint32Array(WINDOW_SECONDS), total: 0, second }
    if (second - this.#youngSinceSecond >= WINDOW_SECONDS || this.#young.size >= this.#maxClients) {
      this.#old = this.#young
      this.#young = new Map()
      this.#youngSinceSecond = second
    }
    this.#old.delete(key)
    this.#young.set(key, client)
    return client
  }

  #verdict(client: Client | undefined, nowMs: number): Verdict {
    const limit = this.#limit
    if (client !== undefined) advance(client, Math.floor(nowMs / 1000))
    if (client === undefined || client.total < limit) {
      return { allowed: true, limit, remaining: limit - (client?.total ?? 0), retryAfterSeconds: 0 }
    }
    let oldest = Math.max(0, client.second - WINDOW_SECONDS + 1)
    while (client.buckets[oldest % WINDOW_SECONDS] === 0) oldest++
    const waitMs = (oldest + WINDOW_SECONDS) * 1000 - nowMs
    return { allowed: false, limit, remaining: 0, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) }
  }
}

function advance(client: Client, second: number): void {
  const first = Math.max(client.second + 1, second - WINDOW_SECONDS + 1)
  for (let s = first; s <= second; s++) {
    client.total -= client.buckets[s % WINDOW_SECONDS]!
    client.buckets[s % WINDOW_SECONDS] = 0
  }
  client.second = second
}

/** Counts a request in both limits, or in neither if either is used up. The verdict shows the general limit, if any. */
export function takeBoth(
  general: RateLimit | undefined, key: string, own: RateLimit | undefined, address: string
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

/** The header fields of a verdict (contract §8.3). */
export function limitHeaders({ limit, remaining, allowed, retryAfterSeconds }: Verdict): string[] {
  const headers = ['X-RateLimit-Limit', String(limit), 'X-RateLimit-Remaining', String(remaining)]
  if (!allowed) headers.push('Retry-After', String(retryAfterSeconds))
  return headers
}
