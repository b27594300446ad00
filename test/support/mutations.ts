/** Bytes that have gone wrong: seeded mutations of valid ones, and how many of them a run tries. */
import { Buffer } from 'node:buffer'
import type { Random } from './random.ts'

/** How many cases a test of random input tries: the variable of that name, or else what fits into `npm test`. */
export function countFromEnv(fallback: number, name: string = 'COUNT'): number {
  const given = process.env[name]
  if (given === undefined || given === '') return fallback
  if (!/^[1-9]\d{0,8}$/.test(given)) throw new RangeError(`${name} must be a whole number above 0`)
  return Number(given)
}

type Mutation = (bytes: Buffer, random: Random, others: readonly Buffer[]) => Buffer

function replaced(bytes: Buffer, start: number, end: number, by: Buffer | string): Buffer {
  return Buffer.concat([bytes.subarray(0, start), Buffer.from(by), bytes.subarray(end)])
}

function part(bytes: Buffer, random: Random): [start: number, end: number] {
  const start = random.int(bytes.length + 1)
  const most = random.next() < 0.8 ? 16 : bytes.length
  return [start, Math.min(bytes.length, start + random.int(most + 1))]
}

function linesOf(bytes: Buffer): string[] { return bytes.toString('latin1').split(/(?<=\n)/) }

const flip: Mutation = (bytes, random) => {
  const copy = Buffer.from(bytes)
  const at = random.int(bytes.length)
  if (bytes.length > 0) copy[at] = copy[at]! ^ (1 << random.int(8))
  return copy
}

const remove: Mutation = (bytes, random) => replaced(bytes, ...part(bytes, random), '')

const insert: Mutation = (bytes, random) => {
  const at = random.int(bytes.length + 1)
  return replaced(bytes, at, at, random.bytes(1 + random.int(8)))
}

const duplicate: Mutation = (bytes, random) => {
  const [start, end] = part(bytes, random)
  return replaced(bytes, end, end, bytes.subarray(start, end))
}

const truncate: Mutation = (bytes, random) => bytes.subarray(0, random.int(bytes.length + 1))

const splice: Mutation = (bytes, random, others) => {
  const other = random.pick(others)
  return replaced(bytes, ...part(bytes, random), other.subarray(...part(other, random)))
}

const exchangeTails: Mutation = (bytes, random, others) => {
  const other = random.pick(others)
  return Buffer.concat([bytes.subarray(0, random.int(bytes.length + 1)), other.subarray(random.int(other.length + 1))])
}

/** Takes a line away or none, and puts some in its place: none, or one of these or of others, once or twice. */
const changeLines: Mutation = (bytes, random, others) => {
  const lines = linesOf(bytes)
  const line = random.pick(random.pick([lines, linesOf(random.pick(others))]))
  lines.splice(random.int(lines.length + 1), random.int(2), ...Array<string>(random.int(3)).fill(line))
  return Buffer.from(lines.join(''), 'latin1')
}

const TOKENS = [
  '\r', '\n', '\r\n', '\r\n\r\n', '\n\n', '\0', ' ', '\t', '\r\n ', ':', ';', ',', '"', '\\', '{', '}', '[', ']', '%00',
  '%2f', '..', '?', '#', '0', '-1', '9999999999999999999', '0x10', '1e9', '\xff', '\xc3\xb1', '\ufffd', '\u2028',
  '\\ud800', 'null', 'true', '__proto__', 'constructor'
]

const insertToken: Mutation = (bytes, random) => {
  const at = random.int(bytes.length + 1)
  return replaced(bytes, at, at, random.pick(TOKENS))
}

const insertLong: Mutation = (bytes, random) => {
  const at = random.int(bytes.length + 1)
  const long = random.pick(['a', '0', ' ', '[', '\0', 'é', 'a,', 'X: y\r\n']).repeat(random.int(6_000))
  return replaced(bytes, at, at, long)
}

const MUTATIONS: readonly Mutation[] = [
  flip, remove, insert, duplicate, truncate, splice, exchangeTails, changeLines, changeLines, changeLines,
  insertToken, insertToken
]

/** One to four mutations after each other; now and then one that makes it long. `others`: what may be mixed in. */
export function mutate(bytes: Buffer, random: Random, others: readonly Buffer[]): Buffer {
  let mutated = random.next() < 0.03 ? insertLong(bytes, random, others) : bytes
  const most = random.pick([1, 1, 2, 4])
  for (let rest = 1 + random.int(most); rest > 0; rest--) mutated = random.pick(MUTATIONS)(mutated, random, others)
  return mutated
}
