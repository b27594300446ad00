/**
 * The rate limit: a sliding minute in one-second buckets (contract §8). Refused requests do not count. The table has
 * two generations: a client that is seen moves to the younger. If the younger is full, or a minute old, it replaces the
 * older, so memory is bounded.
 */
import { MAX_RATE_LIMIT_CLIENTS } from '../limits.ts'

const WINDOW_SECONDS = 60

export interface Verdict {
  readonly allowed: boolean
  readonly limit: number
  /** After this request. */
  readonly remaining: number
  /** At least 1 if refused, otherwise 0. */
  readonly retryAfterSeconds: number
}

interface Client {
  /** Second s is in bucket s % 60. */
  readonly buckets: Uint32Array
  total: number
  second: number
}

/** Decides which requests pass (contract §8.1). */
export class RateLimit {
  readonly #limit: number
  readonly #nowMs: () => number
  readonly #maxClients: number
  #young = new Map<string, Client>()
  #old = new Map<string, Client>()
  #youngSinceSecond = 0

  /** `maxClients` bounds each generation. */
  constructor(limit: number, nowMs: () => number, maxClients: number = MAX_RATE_LIMIT_CLIENTS) {
    this.#limit = limit
    this.#nowMs = nowMs
    this.#maxClients = maxClients
  }

  get clients(): number { return this.#young.size + this.#old.size }

  take(key: string): Verdict {
    const nowMs = this.#nowMs()
    const second = Math.floor(nowMs / 1000)
    const client = this.#client(key, second)
    advance(client, second)
    if (client.total < this.#limit) {
      client.buckets[second % WINDOW_SECONDS]!++
      client.total++
      return { allowed: true, limit: this.#limit, remaining: this.#limit - client.total, retryAfterSeconds: 0 }
    }
    return this.#refusal(client, nowMs)
  }

  /** As `take`, without counting. */
  peek(key: string): Verdict {
    const nowMs = this.#nowMs()
    const client = this.#young.get(key) ?? this.#old.get(key)
    if (client !== undefined) advance(client, Math.floor(nowMs / 1000))
    if (client !== undefined && client.total >= this.#limit) return this.#refusal(client, nowMs)
    return { allowed: true, limit: this.#limit, remaining: this.#limit - (client?.total ?? 0), retryAfterSeconds: 0 }
  }

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

  #refusal(client: Client, nowMs: number): Verdict {
    let oldest = Math.max(0, client.second - WINDOW_SECONDS + 1)
    while (client.buckets[oldest % WINDOW_SECONDS] === 0) oldest++
    const waitMs = (oldest + WINDOW_SECONDS) * 1000 - nowMs
    return {
      allowed: false, limit: this.#limit, remaining: 0, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000))
    }
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
