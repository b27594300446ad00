/** What logins need beside passwords: known clients, and the second factor (RFC 6238). */
import { randomBytes } from 'node:crypto'
import { MAX_KNOWN_CLIENTS, MAX_WRONG_CODES, WRONG_CODES_MS } from '../limits.ts'
import { RecentMap } from '../store/recent-map.ts'
import type { State } from '../store/state.ts'
import { base32Of, codeAt, otpIn, stepAt, type Otp } from './totp.ts'
import type { User } from '../rights/rights.ts'

/** `client` is the client's address, as limits count it. */
export interface Login {
  readonly email: string
  readonly password: string
  /** Of the second factor. */
  readonly code?: string | undefined
  readonly client: string
}

/** The user, if neither removed nor given another password since. */
export function stillAs({ id, passwords }: User): (state: State) => User | undefined {
  return ({ users }) => {
    const now = users.get(id)
    return now?.isRemoved !== true && now?.passwords === passwords ? now : undefined
  }
}

/**
 * Whose address it is, by its very letters but for the case of A to Z: whoever vouches for it may
 * tell apart addresses that `State.userOf` takes for one (the Kelvin sign and `k`).
 */
export function vouchedUser(state: State, email: string): User | undefined {
  const given = email.replace(/[A-Z]/g, letter => letter.toLowerCase())
  const user = state.userOf(given)
  return user?.email === given ? user : undefined
}

/** As `stillAs`, unless the user is locked. No code was used. */
export function stillVouched(user: User): (state: State) => User | undefined {
  return state => {
    const now = stillAs(user)(state)
    return now === undefined || now.isLocked === true ? undefined : { ...now, step: undefined }
  }
}

/**
 * Client addresses from which a valid token was seen since the start. A flood of logins cannot be
 * told from honest people by anything else. Not whose token it was: then the order of answers would
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

const NOBODYS = otpIn(newFactor())!

/**
 * The step whose code this is, one before or after the present one at most, and later than
 * `lastStep`. Undefined for another code; without a factor, after the same work.
 */
export function stepOfCode(
  factor: string | undefined,
  lastStep: number = -1,
  code: string = '',
  wallMs: number
): number | undefined {
  const otp: Otp = factor === undefined ? NOBODYS : otpIn(factor)!
  const given = code.replaceAll(' ', '')
  let found: number | undefined
  for (
    let step = stepAt(otp, wallMs) - TOLERATED_STEPS, count = 0;
    count <= 2 * TOLERATED_STEPS;
    count++, step++
  ) {
    if (codeAt(otp, step) === given && step > lastStep) found ??= step
  }
  return factor === undefined ? undefined : found
}

/** Of each user, with the right password: nobody else can have codes refused. In memory. */
export class WrongCodes {
  readonly #timesMs = new Map<number, readonly number[]>()
  readonly #refusedUntilMs = new Map<number, number>()

  isRefused(user: number, nowMs: number): boolean {
    return (this.#refusedUntilMs.get(user) ?? -Infinity) > nowMs
  }

  /** True if from now on codes are refused. */
  add(user: number, nowMs: number): boolean {
    if (this.isRefused(user, nowMs)) return false
    const times = [...(this.#timesMs.get(user) ?? []), nowMs].filter(
      ms => ms > nowMs - WRONG_CODES_MS
    )
    this.#timesMs.set(user, times)
    if (times.length < MAX_WRONG_CODES) return false
    this.#timesMs.delete(user)
    this.#refusedUntilMs.set(user, nowMs + WRONG_CODES_MS)
    return true
  }
}
