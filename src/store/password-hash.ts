/**
 * Password hashes: scrypt (RFC 7914) in PHC strings, `$scrypt$ln=15,r=8,p=3$<salt>$<hash>`, base64 without padding. Few
 * are computed at once, so that a flood of logins takes neither the memory nor the threads that the service needs. The
 * others wait, each client in a queue of its own, and the clients take turns.
 */
import { Buffer } from 'node:buffer'
import { scrypt, timingSafeEqual } from 'node:crypto'
import { nowMs } from '../clock.ts'
import { Failure } from '../errors.ts'
import { MAX_HASH_QUEUE, MAX_HASH_QUEUE_PER_CLIENT, MAX_HASH_WAIT_MS, MAX_HASHES } from '../limits.ts'

/** What a hash costs: N = 2^ln, block size r, parallelism p. */
export interface ScryptCost {
  readonly ln: number
  readonly r: number
  readonly p: number
}

const SCRYPT_COST: ScryptCost = { ln: 15, r: 8, p: 3 }

const SALT_BYTES = 16
const HASH_BYTES = 32
const PHC = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/

/** Half of a surrogate pair, which UTF-8 has no bytes for: every one would be hashed as the same character. */
export const LONE_SURROGATE: RegExp = /\p{Surrogate}/u

/** The result of a verification; `isOutdated`: the hash was made at a lower cost than new ones. */
export interface Verified {
  readonly isRight: boolean
  readonly isOutdated: boolean
}

/** Who waits for a hash: clients take turns by `key`, and one that is gone loses its turn. */
export interface HashClient {
  readonly key: string
  readonly isGone: () => boolean
}

const NO_CLIENT: HashClient = { key: '', isGone: () => false }

interface Waiting {
  readonly isGone: () => boolean
  readonly sinceMs: number
  readonly resolve: () => void
  readonly reject: (error: Failure) => void
}

/** Makes and verifies password hashes, in turns by client. Both reject with `hashes-busy` when too many wait. */
export class PasswordHasher {
  readonly #cost: ScryptCost
  readonly #random: (bytes: number) => Buffer
  readonly #nowMs: () => number
  readonly #dummy: string
  #running = 0
  /** The waiting calls by client; the client whose turn is next comes first. */
  readonly #lines = new Map<string, Waiting[]>()
  #waiting = 0

  constructor(random: (bytes: number) => Buffer, cost: ScryptCost = SCRYPT_COST, clockMs: () => number = nowMs) {
    this.#cost = cost
    this.#random = random
    this.#nowMs = clockMs
    this.#dummy = format(cost, random(SALT_BYTES), random(HASH_BYTES))
  }

  async hash(password: string, client: HashClient = NO_CLIENT): Promise<string> {
    const salt = this.#random(SALT_BYTES)
    return format(this.#cost, salt, await this.#derive(password, salt, this.#cost, client))
  }

  /** Verifies a password. Without a hash (no such user) it takes the same time, and the password is wrong. */
  async verify(password: string, phc: string | undefined, client: HashClient = NO_CLIENT): Promise<Verified> {
    const [, ln, r, p, salt, hash] = PHC.exec(phc ?? this.#dummy) ?? []
    if (hash === undefined) throw new Error('a stored password hash is not an scrypt PHC string')
    const cost = { ln: Number(ln), r: Number(r), p: Number(p) }
    const expected = Buffer.from(hash, 'base64')
    const found = await this.#derive(password, Buffer.from(salt!, 'base64'), cost, client)
    const isSame = found.length === expected.length && timingSafeEqual(found, expected) && phc !== undefined
    return { isRight: isSame && !LONE_SURROGATE.test(password), isOutdated: work(cost) < work(this.#cost) }
  }

  async #derive(password: string, salt: Buffer, { ln, r, p }: ScryptCost, client: HashClient): Promise<Buffer> {
    if (this.#running < MAX_HASHES) this.#running++
    else await this.#turn(client)
    try {
      const N = 2 ** ln
      return await new Promise((resolve, reject) => {
        scrypt(password.normalize('NFC'), salt, HASH_BYTES, { N, r, p, maxmem: 256 * N * r }, (error, hash) =>
          error ? reject(error) : resolve(hash)) // Bun gives no null where there is none
      })
    } finally {
      if (!this.#callNext()) this.#running--
    }
  }

  /** Waits. If all places are taken, the client with the most of them gives one up to a client with fewer. */
  #turn({ key, isGone }: HashClient): Promise<void> {
    const line = this.#lines.get(key) ?? []
    const busy = new Failure('hashes-busy', `${this.#waiting} wait`)
    if (line.length === MAX_HASH_QUEUE_PER_CLIENT) return Promise.reject(busy)
    if (this.#waiting === MAX_HASH_QUEUE) {
      const longest = [...this.#lines.values()].reduce((a, b) => b.length > a.length ? b : a)
      if (longest.length <= line.length + 1) return Promise.reject(busy)
      longest.pop()!.reject(busy)
      this.#waiting--
    }
    this.#waiting++
    this.#lines.set(key, line)
    return new Promise((resolve, reject) => line.push({ isGone, sinceMs: this.#nowMs(), resolve, reject }))
  }

  /** Passes a place to the longest waiting call of the client whose turn it is; false if none waits. */
  #callNext(): boolean {
    for (const [key, line] of this.#lines) { // a line that goes to the end is met again
      this.#lines.delete(key)
      this.#waiting--
      const { isGone, sinceMs, resolve, reject } = line.shift()!
      if (line.length > 0) this.#lines.set(key, line)
      const isLate = this.#nowMs() - sinceMs > MAX_HASH_WAIT_MS
      if (!isLate && !isGone()) { resolve(); return true }
      reject(new Failure('hashes-busy', isLate ? `it has waited ${MAX_HASH_WAIT_MS} ms` : 'the client is gone'))
    }
    return false
  }
}

function work({ ln, r, p }: ScryptCost): number { return 2 ** ln * r * p }

function format({ ln, r, p }: ScryptCost, salt: Buffer, hash: Buffer): string {
  const base64 = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '')
  return `$scrypt$ln=${ln},r=${r},p=${p}$${base64(salt)}$${base64(hash)}`
}
