/** Lists of ids in records. They name each id, whatever the state was. */
import { Buffer } from 'node:buffer'

/**
 * Ascending. A part is an id; all ids from a first to a last; or a first, and base64 with a bit for
 * each id from there.
 */
export type Ids = readonly IdsPart[]
type IdsPart =
  number | readonly [first: number, last: number] | readonly [first: number, bits: string]

/** Ids that one bitmap can hold. */
const WINDOW_IDS = 8192
/** Of the JSON of one list. */
const MAX_CHARACTERS = 32 * 1024

/** In lists of bounded length; `ids` ascend. */
export function idLists(ids: readonly number[]): Ids[] {
  const lists: IdsPart[][] = []
  let list: IdsPart[] = []
  let characters = 0
  for (let from = 0, to = 0; from < ids.length; from = to) {
    const end = ids[from]! + WINDOW_IDS
    while (to < ids.length && ids[to]! < end) to++
    for (const part of shortest(ids, from, to)) {
      const last = list.at(-1)
      if (joins(last, part)) {
        list[list.length - 1] = [firstOf(last!), lastOf(part)]
        continue
      }
      characters += JSON.stringify(part).length + 1
      if (characters > MAX_CHARACTERS && list.length > 0) {
        lists.push(list)
        list = []
        characters = JSON.stringify(part).length + 1
      }
      list.push(part)
    }
  }
  if (list.length > 0) lists.push(list)
  return lists
}

export function eachId(ids: Ids, take: (id: number) => void): void {
  for (const part of ids) {
    if (typeof part === 'number') {
      take(part)
      continue
    }
    const [first, rest] = part
    if (typeof rest === 'number') {
      for (let id = first; id <= rest; id++) take(id)
      continue
    }
    const bits = Buffer.from(rest, 'base64')
    for (let at = 0; at < bits.length * 8; at++)
      if ((bits[at >> 3]! & (1 << (at & 7))) !== 0) take(first + at)
  }
}

/** 0 for an empty list. */
export function lastIn(ids: Ids): number {
  let last = 0
  eachId(ids.slice(-1), id => (last = id))
  return last
}

/** The shortest parts for the ids from `from` to before `to`. */
function shortest(ids: readonly number[], from: number, to: number): readonly IdsPart[] {
  const runs: [first: number, last: number][] = []
  for (let at = from; at < to; at++) {
    const id = ids[at]!
    const run = runs.at(-1)
    if (run?.[1] === id - 1) run[1] = id
    else runs.push([id, id])
  }
  const parts = runs.map(([first, last]) => (first === last ? first : ([first, last] as const)))
  if (runs.length < 3) return parts
  const first = ids[from]!
  const bits = Buffer.alloc(((ids[to - 1]! - first) >> 3) + 1)
  for (let at = from; at < to; at++) bits[(ids[at]! - first) >> 3]! |= 1 << ((ids[at]! - first) & 7)
  const bitmap = [first, bits.toString('base64')] as const
  return JSON.stringify(parts).length <= JSON.stringify([bitmap]).length ? parts : [bitmap]
}

function joins(last: IdsPart | undefined, next: IdsPart): boolean {
  const areRuns = last !== undefined && !isBitmap(last) && !isBitmap(next)
  return areRuns && lastOf(last) + 1 === firstOf(next)
}

function isBitmap(part: IdsPart): boolean {
  return typeof part === 'object' && typeof part[1] === 'string'
}

function firstOf(part: IdsPart): number {
  return typeof part === 'number' ? part : part[0]
}

function lastOf(part: IdsPart): number {
  return typeof part === 'number' ? part : (part[1] as number)
}
