/** Who was told which password, as a client saw it: every byte that it was sent, and what it asked for. */
import { Defect, type Exchange } from './client.ts'

/** As they stand in a request or an answer: the nth password, and the user name that goes with it. */
export const passwordOf = (n: number): string => `PW${n}Z`
export const usuarioOf = (password: string): string => password.replace('PW', 'U')
export const passwordBy = (usuario: string): string => usuario.replace('U', 'PW')
const passwordsIn = (text: string): string[] => [...new Set(text.match(/PW\d+Z/g))]

/** What a journal may know; of who has a password since its last compaction. Keys are texts with blanks between. */
export interface Knowledge {
  /** Who has it, from an answer, from a history, or since they set it: `WHO PASSWORD`. */
  readonly has: Set<string>
  /** Who was told the password of an entry: `WHO ID PASSWORD`. */
  readonly told: Set<string>
  readonly set: Set<string>
  /** Who may have been told, since an answer was cut off: `WHO PASSWORD`. */
  readonly cut: Set<string>
  /** By entry, all passwords that it may have had. */
  readonly of: Map<number, Set<string>>
  /** What may have been read unrecorded. */
  unrecorded: Set<string>
  /** Those that were seen to be present. */
  readonly ever: Set<string>
}

export const emptyKnowledge = (): Knowledge => ({ has: new Set(), told: new Set(), set: new Set(), cut: new Set(),
  of: new Map(), unrecorded: new Set(), ever: new Set() })

export interface Asked {
  /** Undefined: nobody is named. */
  readonly who: string | undefined
  readonly operation: string
  /** 0: a list. */
  readonly id: number
  /** The password that it sets. */
  readonly sets?: string | undefined
}

/** A row of `audit`. */
export interface Row { readonly id: number, readonly who: string, readonly how: 'read' | 'equal',
  readonly status: 'active' | 'deleted' }

export interface Shown { readonly id: number, readonly password: string }

const keyOf = (...parts: readonly (string | number)[]): string => parts.join(' ')

export function mayHave({ of }: Knowledge, id: number, password: string): void {
  of.set(id, (of.get(id) ?? new Set()).add(password))
}

/** A compaction: who knew a value that no entry has is forgotten. */
export function forget(knows: Knowledge, present: ReadonlySet<string | undefined>): void {
  const { has, set, told, cut, unrecorded, ever } = knows
  for (const keys of [has, set, told, cut, unrecorded, ever]) {
    for (const key of keys) if (!present.has(key.split(' ').at(-1)!)) keys.delete(key)
  }
}

/** `mayHaveFailed`: also without an answer it may have been recorded. `young`: what was made last. */
export function answered(knows: Knowledge, asked: Asked, { status, text, isWhole, json }: Exchange,
  mayHaveFailed: boolean, young: readonly string[]): void {
  const { who, operation, id, sets } = asked
  const isUnknown = !isWhole || (mayHaveFailed && status! >= 500)
  if (sets !== undefined && id > 0) mayHave(knows, id, sets)
  if (who === undefined) return
  const found = passwordsIn(text.slice(text.indexOf('\r\n\r\n')))
  for (const password of found) knows.has.add(keyOf(who, password))
  const rows = Array.isArray(json) ? json : [json?.passwords, json?.password].filter(one => one?.id !== undefined)
  for (const row of rows) if (row.password !== undefined) knows.told.add(keyOf(who, row.id, row.password))
  if (operation === 'formerPassword') for (const password of found) knows.told.add(keyOf(who, id, password))
  if (sets !== undefined && (status === 200 || isUnknown)) knows.set.add(keyOf(who, sets))
  if (sets !== undefined && status === 200) knows.has.add(keyOf(who, sets))
  if (isUnknown) mayHaveBeenTold(knows, who, id, young)
}

/** An answer that was cut off, or a command that names more than it has shown; 0: any entry. */
export function mayHaveBeenTold({ cut, of }: Knowledge, who: string, id: number, young: readonly string[]): void {
  const of1 = id === 0 ? [...of.values()].flatMap(all => [...all]) : of.get(id) ?? []
  for (const password of [...of1, ...young]) cut.add(keyOf(who, password))
}

/** Records may be lost, and entries older: whoever was told a value that is lost may be named for an older one. */
export function salvaged({ told, of, cut }: Knowledge): void {
  for (const key of told) {
    const [who = '', id] = key.split(' ')
    for (const password of of.get(Number(id)) ?? []) cut.add(keyOf(who, password))
  }
}

/** What a command has shown. */
export function wasShown({ has, told }: Knowledge, who: string, entries: readonly Shown[]): void {
  for (const { id, password } of entries) {
    has.add(keyOf(who, password))
    told.add(keyOf(who, id, password))
  }
}

export function hasSet(knows: Knowledge, who: string, id: number, password: string): void {
  knows.set.add(keyOf(who, password))
  knows.has.add(keyOf(who, password))
  if (id > 0) mayHave(knows, id, password)
}

/** Whoever has a present password is named, or it is said that others may know it, and nobody else is named. */
export function judge(knows: Knowledge, people: Iterable<string>, present: ReadonlyMap<number, string>,
  rows: readonly Row[], unrecorded: ReadonlySet<number>, isRecording: boolean): void {
  const { has, set, told, cut, ever } = knows
  for (const [id, password] of present) {
    mayHave(knows, id, password)
    ever.add(password)
    const named = new Map(rows.filter(row => row.id === id).map(({ who, how }) => [personIn(who), how]))
    const isUnrecorded = !isRecording || knows.unrecorded.has(password)
    if (isUnrecorded !== unrecorded.has(id)) {
      throw new Defect(`it is ${isUnrecorded ? 'not ' : ''}said that reads were not recorded: ${id}, ${password}`)
    }
    for (const who of people) {
      if (has.has(keyOf(who, password)) && !named.has(who) && !isUnrecorded) {
        throw new Defect(`somebody is missing: ${who} has ${id}, ${password}`)
      }
    }
    for (const [who, how] of named) {
      const may = set.has(keyOf(who, password)) || cut.has(keyOf(who, password)) || who.startsWith('#') ||
        (how === 'read' ? told.has(keyOf(who, id, password)) : has.has(keyOf(who, password)))
      if (!may) throw new Defect(`somebody is named who was not told: ${who} ${how} ${id}, ${password}`)
    }
  }
}

/** A removed user is the same person. */
export const personIn = (who: string): string => who.replace(/ \(removed\)$/, '')
