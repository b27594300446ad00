/**
 * Password hashes: scrypt (RFC 7914) in PHC strings, `$scrypt$ln=15,r=8,p=3$<salt>$<hash>`, base64 without padding.
 * Few are computed at once and few wait; the rest is turned away, so that a flood of logins costs neither the memory
 * nor the threads that the service lives on.
 */
import { Buffer } from 'node:buffer'
import { scrypt, timingSafeEqual } from 'node:crypto'
import { Failure } from '../errors.ts'
import { MAX_HASH_QUEUE, MAX_HASHES } from '../limits.ts'

/** What a hash costs: N = 2^ln, block size r, parallelism p. */
export interface ScryptCost {
  readonly ln: number
  readonly r: number
  readonly p: number
}

/** The cost of new hashes. */
const SCRYPT_COST: ScryptCost = { ln: 15, r: 8, p: 3 }

const SALT_BYTES = 16
const HASH_BYTES = 32
const PHC = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/

/** What a verification finds; `isOutdated`: the hash was cheaper to make than new ones are. */
export interface Verified {
  readonly isRight: boolean
  readonly isOutdated: boolean
}

/** Makes and verifies password hashes. Both reject with `hashes-busy` when too many wait. */
export class PasswordHasher {
  readonly #cost: ScryptCost
  readonly #random: (bytes: number) => Buffer
  readonly #dummy: string
  #running = 0
  readonly #waiting: (() => void)[] = []

  constructor(random: (bytes: number) => Buffer, cost: ScryptCost = SCRYPT_COST) {
    this.#cost = cost
    this.#random = random
    this.#dummy = format(cost, random(SALT_BYTES), random(HASH_BYTES))
  }

  async hash(password: string): Promise<string> {
    const salt = this.#random(SALT_BYTES)
    return format(this.#cost, salt, await this.#derive(password, salt, this.#cost))
  }

  /** Verifies a password. Without a hash (no such user) it takes the same time, and the password is wrong. */
  async verify(password: string, phc: string | undefined): Promise<Verified> {
    const [, ln, r, p, salt, hash] = PHC.exec(phc ?? this.#dummy) ?? []
    if (hash === undefined) throw new Error('a stored password hash is not an scrypt PHC string')
    const cost = { ln: Number(ln), r: Number(r), p: Number(p) }
    const expected = Buffer.from(hash, 'base64')
    const found = await this.#derive(password, Buffer.from(salt!, 'base64'), cost)
    const isRight = found.length === expected.length && timingSafeEqual(found, expected) && phc !== undefined
    return { isRight, isOutdated: work(cost) < work(this.#cost) }
  }

  async #derive(password: string, salt: Buffer, { ln, r, p }: ScryptCost): Promise<Buffer> {
    if (this.#running < MAX_HASHES) this.#running++
    else if (this.#waiting.length < MAX_HASH_QUEUE) await new Promise<void>(resolve => this.#waiting.push(resolve))
    else throw new Failure('hashes-busy', `${MAX_HASH_QUEUE} wait`)
    try {
      const N = 2 ** ln
      return await new Promise((resolve, reject) => {
        scrypt(password.normalize('NFC'), salt, HASH_BYTES, { N, r, p, maxmem: 256 * N * r }, (error, hash) =>
          error === null ? resolve(hash) : reject(error))
      })
    } finally {
      // The place goes straight to the one who waits longest, if there is one.
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }
}

function work({ ln, r, p }: ScryptCost): number { return 2 ** ln * r * p }

function format({ ln, r, p }: ScryptCost, salt: Buffer, hash: Buffer): string {
  const base64 = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '')
  return `$scrypt$ln=${ln},r=${r},p=${p}$${base64(salt)}$${base64(hash)}`
}
