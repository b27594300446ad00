/**
 * Password hashes: scrypt (RFC 7914) in PHC strings, base64 without padding. Two run at once, so
 * that a flood of logins leaves memory and threads. Others wait in a bounded queue, known clients
 * first: nothing else tells them from a flood.
 */
import { Buffer } from 'node:buffer'
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { Failure } from '../errors.ts'
import { MAX_HASH_QUEUE, MAX_HASH_WAIT_MS, MAX_HASHES, SCRYPT_COST } from '../limits.ts'

/** N = 2^ln, block size r, parallelism p. */
export interface ScryptCost {
  readonly ln: number
  readonly r: number
  readonly p: number
}

const SALT_BYTES = 16
const HASH_BYTES = 32
const PHC = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/

/** UTF-8 has no bytes for half of a surrogate pair: all halves would hash alike. */
export const LONE_SURROGATE: RegExp = /\p{Surrogate}/u

interface WaitingHash {
  readonly sinceMs: number
  readonly begin: () => void
  readonly reject: (error: Failure) => void
}

/**
 * Methods reject with `hashes-busy` if too many calls wait, or one waits too long. The operator's
 * calls are known.
 */
export class PasswordHasher {
  readonly #cost: ScryptCost
  readonly #dummy: string
  readonly #known: WaitingHash[] = []
  readonly #unknown: WaitingHash[] = []
  #running = 0

  constructor(cost: ScryptCost = SCRYPT_COST) {
    this.#cost = cost
    this.#dummy = format(cost, randomBytes(SALT_BYTES), randomBytes(HASH_BYTES))
  }

  async hash(password: string, isKnown: boolean = true): Promise<string> {
    const salt = randomBytes(SALT_BYTES)
    return format(this.#cost, salt, await this.#derive(password, salt, this.#cost, isKnown))
  }

  /** Takes the same time without a hash (no such user). */
  async verify(
    password: string,
    phc: string | undefined,
    isKnown: boolean = true
  ): Promise<boolean> {
    const [, ln, r, p, salt, hash] = PHC.exec(phc ?? this.#dummy) ?? []
    if (hash === undefined) throw new Error('a stored password hash is not an scrypt PHC string')
    const cost = { ln: Number(ln), r: Number(r), p: Number(p) }
    const expected = Buffer.from(hash, 'base64')
    const found = await this.#derive(password, Buffer.from(salt!, 'base64'), cost, isKnown)
    const isSame = found.length === expected.length && timingSafeEqual(found, expected)
    return isSame && phc !== undefined && !LONE_SURROGATE.test(password)
  }

  async #derive(
    password: string,
    salt: Buffer,
    { ln, r, p }: ScryptCost,
    isKnown: boolean
  ): Promise<Buffer> {
    if (this.#running < MAX_HASHES) this.#running++
    else await this.#turn(isKnown)
    try {
      const N = 2 ** ln
      return await new Promise((resolve, reject) => {
        scrypt(
          password.normalize('NFC'),
          salt,
          HASH_BYTES,
          { N, r, p, maxmem: 256 * N * r },
          (error, hash) => (error ? reject(error) : resolve(hash))
        ) // Bun gives no null
      })
    } finally {
      this.#endTurn()
    }
  }

  /** In a full queue, a known call takes the place of the last unknown one. */
  #turn(isKnown: boolean): Promise<void> {
    const isFull = this.#known.length + this.#unknown.length >= MAX_HASH_QUEUE
    const dropped = isFull && isKnown ? this.#unknown.pop() : undefined
    const busy = new Failure('hashes-busy', `${MAX_HASH_QUEUE} wait`)
    if (isFull && dropped === undefined) return Promise.reject(busy)
    dropped?.reject(busy)
    const queue = isKnown ? this.#known : this.#unknown
    return new Promise((begin, reject) => queue.push({ sinceMs: performance.now(), begin, reject }))
  }

  #endTurn(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      if (performance.now() - next.sinceMs <= MAX_HASH_WAIT_MS) return next.begin()
      next.reject(new Failure('hashes-busy', `it has waited ${MAX_HASH_WAIT_MS} ms`))
    }
    this.#running--
  }

  #next(): WaitingHash | undefined {
    return this.#known.shift() ?? this.#unknown.shift()
  }
}

function format({ ln, r, p }: ScryptCost, salt: Buffer, hash: Buffer): string {
  const base64 = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '')
  return `$scrypt$ln=${ln},r=${r},p=${p}$${base64(salt)}$${base64(hash)}`
}
