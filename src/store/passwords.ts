/**
 * Password hashes: scrypt (RFC 7914) in PHC strings, base64 without padding. Two run at once: a flood of logins leaves
 * the service memory and threads. If too many wait, a random call gives way, so that nobody can keep all others out.
 */
import { Buffer } from 'node:buffer'
import { randomBytes, randomInt, scrypt, timingSafeEqual } from 'node:crypto'
import { Failure } from '../errors.ts'
import { MAX_HASH_QUEUE, MAX_HASH_WAIT_MS, MAX_HASHES } from '../limits.ts'

/** N = 2^ln, block size r, parallelism p. */
export interface ScryptCost { readonly ln: number, readonly r: number, readonly p: number }

const SCRYPT_COST: ScryptCost = { ln: 15, r: 8, p: 3 }
const SALT_BYTES = 16
const HASH_BYTES = 32
const PHC = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/

/** UTF-8 has no bytes for half of a surrogate pair: all halves would hash alike. */
export const LONE_SURROGATE: RegExp = /\p{Surrogate}/u

interface Waiting {
  readonly isGone: () => boolean
  readonly sinceMs: number
  readonly begin: () => void
  readonly reject: (error: Failure) => void
}

const STAYS = (): boolean => false

/** Methods reject with `hashes-busy` if too many calls wait, or one waits too long. */
export class PasswordHasher {
  readonly #cost: ScryptCost
  readonly #dummy: string
  readonly #waiting: Waiting[] = []
  #running = 0

  constructor(cost: ScryptCost = SCRYPT_COST) {
    this.#cost = cost
    this.#dummy = format(cost, randomBytes(SALT_BYTES), randomBytes(HASH_BYTES))
  }

  async hash(password: string, isGone: () => boolean = STAYS): Promise<string> {
    const salt = randomBytes(SALT_BYTES)
    return format(this.#cost, salt, await this.#derive(password, salt, this.#cost, isGone))
  }

  /** Without a hash (no such user) it takes the same time. */
  async verify(password: string, phc: string | undefined, isGone: () => boolean = STAYS): Promise<boolean> {
    const [, ln, r, p, salt, hash] = PHC.exec(phc ?? this.#dummy) ?? []
    if (hash === undefined) throw new Error('a stored password hash is not an scrypt PHC string')
    const cost = { ln: Number(ln), r: Number(r), p: Number(p) }
    const expected = Buffer.from(hash, 'base64')
    const found = await this.#derive(password, Buffer.from(salt!, 'base64'), cost, isGone)
    const isSame = found.length === expected.length && timingSafeEqual(found, expected)
    return isSame && phc !== undefined && !LONE_SURROGATE.test(password)
  }

  async #derive(password: string, salt: Buffer, { ln, r, p }: ScryptCost, isGone: () => boolean): Promise<Buffer> {
    if (this.#running < MAX_HASHES) this.#running++
    else await this.#turn(isGone)
    try {
      const N = 2 ** ln
      return await new Promise((resolve, reject) => {
        scrypt(password.normalize('NFC'), salt, HASH_BYTES, { N, r, p, maxmem: 256 * N * r }, (error, hash) =>
          error ? reject(error) : resolve(hash)) // Bun gives no null
      })
    } finally {
      this.#endTurn()
    }
  }

  #turn(isGone: () => boolean): Promise<void> {
    if (this.#waiting.length >= MAX_HASH_QUEUE) {
      const [dropped] = this.#waiting.splice(randomInt(this.#waiting.length), 1)
      dropped!.reject(new Failure('hashes-busy', `${MAX_HASH_QUEUE} wait`))
    }
    return new Promise((begin, reject) => this.#waiting.push({ isGone, sinceMs: performance.now(), begin, reject }))
  }

  #endTurn(): void {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const isLate = performance.now() - next.sinceMs > MAX_HASH_WAIT_MS
      if (!isLate && !next.isGone()) return next.begin()
      const why = isLate ? `it has waited ${MAX_HASH_WAIT_MS} ms` : 'the client is gone'
      next.reject(new Failure('hashes-busy', why))
    }
    this.#running--
  }
}

function format({ ln, r, p }: ScryptCost, salt: Buffer, hash: Buffer): string {
  const base64 = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '')
  return `$scrypt$ln=${ln},r=${r},p=${p}$${base64(salt)}$${base64(hash)}`
}
