/** What logins need beside passwords: known clients, and the second factor (RFC 6238). */
import { randomBytes } from 'node:crypto'
import { MAX_KNOWN_CLIENTS, MAX_WRONG_CODES, WRONG_CODES_MS } from '../limits.ts'
import { RecentMap } from '../store/recent-map.ts'
import type { State } from '../store/state.ts'
import { base32Of, codeAt, otpIn, stepAt } from './totp.ts'
import type { User } from '../rights/rights.ts'

export interface Login {
  readonly email: string
  readonly password: string
  readonly code?: string | undefined
  readonly client: string
}

/** The user as of now; undefined if removed, or given another password since. */
export function stillAs({ id, passwords }: User, { users }: State): User | undefined {
  const now = users.get(id)
  return now?.isRemoved !== true && now?.passwords === passwords ? now : undefined
}

/**
 * The user of exactly this address, except for the case of A to Z: whoever vouches may tell apart
 * addresses that `State.userOf` takes for one (the Kelvin sign and `k`).
 */
export function vouchedUser(state: State, email: string): User | undefined {
  const given = email.replace(/[A-Z]/g, letter => letter.toLowerCase())
  const user = state.userOf(given)
  return user?.email === given ? user : undefined
}

/**
 * Client addresses from which a valid token was seen since the start: nothing else tells honest
 * people from a flood of logins. It is not kept whose token it was: then the order of answers would
 * say who is a user.
 */
export class KnownClients {
  readonly #clients = new RecentMap<true>(MAX_KNOWN_CLIENTS / 2, Infinity)

  add(client: string): void {
    this.#clients.use(client, 0, isKnown)
  }

  has(client: string): boolean {
    return this.#clients.peek(client) === true
  }
}

const isKnown = (): true => true

const FACTOR_BYTES = 20
const TOLERATED_STEPS = 1

/** 160 bits in base32, as RFC 4226 recommends. */
export function newFactor(): string {
  return base32Of(randomBytes(FACTOR_BYTES))
}

const NOBODYS = newFactor()

/**
 * The step whose code this is: the present one, or one before or after it. Undefined for another
 * code, and without a factor, after the same work.
 */
export function stepOfCode(
  factor: string | undefined,
  code: string = '',
  wallMs: number
): number | undefined {
  const otp = otpIn(factor ?? NOBODYS)!
  const given = code.replaceAll(' ', '')
  const present = stepAt(otp, wallMs)
  let found: number | undefined
  for (let ahead = -TOLERATED_STEPS; ahead <= TOLERATED_STEPS; ahead++) {
    if (codeAt(otp, present + ahead) === given) found = present + ahead
  }
  return factor === undefined ? undefined : found
}

/** Whether the clock went back so far that no present code can be later than the last one. */
export function isAhead({ factor, step = -1 }: User, wallMs: number): boolean {
  return factor !== undefined && step > stepAt(otpIn(factor)!, wallMs) + TOLERATED_STEPS
}

interface Wrong {
  readonly passwords: number
  readonly factor: string | undefined
  readonly timesMs: readonly number[]
  readonly refusedUntilMs: number
}

/** Only codes with the right password count: nobody else can have codes refused. In memory. */
export class WrongCodes {
  readonly #ofUsers = new Map<number, Wrong>()

  isRefused(user: User, nowMs: number): boolean {
    return this.#of(user).refusedUntilMs > nowMs
  }

  /** True if codes are refused from now on. */
  add(user: User, nowMs: number): boolean {
    if (this.isRefused(user, nowMs)) return false
    const since = nowMs - WRONG_CODES_MS
    const timesMs = [...this.#of(user).timesMs, nowMs].filter(ms => ms > since)
    const isFull = timesMs.length >= MAX_WRONG_CODES
    const { id, passwords, factor } = user
    this.#ofUsers.set(id, {
      passwords,
      factor,
      timesMs: isFull ? [] : timesMs,
      refusedUntilMs: isFull ? nowMs + WRONG_CODES_MS : -Infinity
    })
    return isFull
  }

  #of({ id, passwords, factor }: User): Pick<Wrong, 'timesMs' | 'refusedUntilMs'> {
    const wrong = this.#ofUsers.get(id)
    const isSame = wrong?.passwords === passwords && wrong.factor === factor
    return isSame ? wrong : { timesMs: [], refusedUntilMs: -Infinity }
  }
}
