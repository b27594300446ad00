/**
 * Randomness that can be had again: a generator from a seed, so that a test which failed once fails once more with
 * `SEED=n`. mulberry32: 32 bits of state, one addition and two multiplications a number. Not for secrets.
 */
import { Buffer } from 'node:buffer'
import { randomInt } from 'node:crypto'
import type { TestContext } from 'node:test'

export interface Random {
  /** A number from 0 up to, not including, 1. */
  next(): number
  /** An integer from 0 up to, not including, `n`. */
  int(n: number): number
  /** One of the items, which must not be none; each is as likely as another. */
  pick<T>(items: readonly T[]): T
  bytes(n: number): Buffer
}

/** The stream of a seed, an integer from 0 to 2^32 - 1. */
export function seeded(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (n: number): number => Math.floor(next() * n)
  return {
    next,
    int,
    pick: <T>(items: readonly T[]): T => {
      if (items.length === 0) throw new RangeError('there is nothing to pick from')
      return items[int(items.length)] as T
    },
    bytes: n => Buffer.from(Array.from({ length: n }, () => int(256)))
  }
}

/** The seed that the variable SEED names, or else a new one. A test prints it, so that it can be given again. */
export function seedFromEnv(): number {
  const given = process.env['SEED']
  if (given === undefined || given === '') return randomInt(2 ** 32)
  const seed = Number(given)
  if (!/^\d+$/.test(given) || seed >= 2 ** 32) throw new RangeError('SEED must be an integer from 0 to 2^32 - 1')
  return seed
}

export function randomOf(t: Pick<TestContext, 'diagnostic'>): Random {
  const seed = seedFromEnv()
  t.diagnostic(`SEED=${seed}`)
  return seeded(seed)
}
