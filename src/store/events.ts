/** What events do to the state. A slice has the events of one subject. */
import type { LoginEvents, UserEvents } from '../accounts/user-events.ts'
import type { EntryEvents } from '../entries/entry-events.ts'
import type { EntryTable } from '../entries/entry-table.ts'
import { Failure } from '../errors.ts'
import type { EncodedEvent, Event } from '../journal/journal.ts'
import type { KnowledgeEvents } from '../knowledge/knowledge-events.ts'
import type { KnowledgeTable, Knower } from '../knowledge/knowledge.ts'
import type { GroupNames } from '../rights/groups.ts'
import type { Token, User } from '../rights/rights.ts'

/** `ms`: since 1970. `by`: undefined if nobody was named. */
export interface Deletion {
  readonly ms: number
  readonly by: Knower | undefined
}

export interface Tables {
  readonly entries: EntryTable
  readonly names: Pick<GroupNames, 'add'>
  /** Of deleted entries, if it is known. */
  readonly deletions: Map<number, Deletion>
  readonly knowledge: KnowledgeTable
  /** By id, from 1 without gaps. A removed user stays, without a password. */
  readonly users: Map<number, User>
  /** Without removed users. */
  readonly addresses: Map<string, number>
  /** By hash. */
  readonly tokens: Map<string, Token>
}

export type Reduce<D> = (tables: Tables, data: D, timeMs: number, by: number | null) => void

export interface EventType<D> {
  readonly fields: readonly (keyof D)[]
  /** The field that is a list, and the fields of its rows. */
  readonly rows?: readonly [list: string, fields: readonly string[]]
  /** Throws if the event contradicts earlier events. */
  readonly reduce: Reduce<D>
}

export interface Slice<E> {
  readonly types: { readonly [T in keyof E]: EventType<E[T]> }
  /** Whether later commands of a write see them. If not, their commands are alone in a write. */
  readonly isInDrafts: boolean
  /** Whether they change what users may do. */
  readonly changesRights: boolean
}

const CONTINUED = ['why', 'head', 'records', 'time', 'source', 'archive', 'opened', 'lost'] as const

interface JournalEvents {
  'journal.begun': {}
  /** `journal.rewritten` tells the end of its source, `journal.continued` an earlier end. */
  'journal.continued': { readonly [F in (typeof CONTINUED)[number]]?: unknown }
  'journal.rewritten': JournalEvents['journal.continued']
  /** Ends a copy of the journal before; `records` come before it. */
  'journal.whole': { readonly records: number }
}

const nothing = (): void => {}

export const JOURNAL_EVENTS: Slice<JournalEvents> = {
  isInDrafts: false,
  changesRights: false,
  types: {
    'journal.begun': { fields: [], reduce: nothing },
    'journal.continued': { fields: CONTINUED, reduce: nothing },
    'journal.rewritten': { fields: CONTINUED, reduce: nothing },
    'journal.whole': { fields: ['records'], reduce: nothing }
  }
}

export interface Events
  extends EntryEvents, UserEvents, LoginEvents, KnowledgeEvents, JournalEvents {}

export function event<T extends keyof Events>(
  type: T,
  by: number | null,
  data: Events[T]
): EncodedEvent {
  return { type, by, data, json: JSON.stringify(data) }
}

/** The data of any event may have it: an operator's account name, or an empty text. */
export const OPERATOR = 'operator'

interface KnownType extends Pick<Slice<unknown>, 'isInDrafts' | 'changesRights'> {
  readonly fields: ReadonlySet<string>
  readonly list: string | undefined
  readonly ofRows: ReadonlySet<string>
  readonly reduce: Reduce<unknown>
}

export class EventTypes {
  readonly #known = new Map<string, KnownType>()

  constructor(slices: readonly Slice<any>[]) {
    for (const { types, isInDrafts, changesRights } of slices) {
      for (const [type, { fields, rows, reduce }] of Object.entries<EventType<any>>(types)) {
        this.#known.set(type, {
          isInDrafts,
          changesRights,
          fields: new Set([...(fields as string[]), OPERATOR]),
          list: rows?.[0],
          ofRows: new Set(rows?.[1]),
          reduce
        })
      }
    }
  }

  get names(): readonly string[] {
    return [...this.#known.keys()]
  }

  /**
   * Throws `journal-newer` for an unknown type or field: the next compaction would silently drop
   * it.
   */
  assertKnown(type: string, data: unknown): asserts type is keyof Events {
    const { fields, list, ofRows } = this.#of(type)
    assertFields(type, data, fields)
    if (list === undefined) return
    for (const row of (data as { readonly [list: string]: readonly unknown[] })[list]!) {
      assertFields(type, row, ofRows)
    }
  }

  isInDrafts({ type }: Event): boolean {
    return this.#of(type).isInDrafts
  }

  changesRights({ type }: Event): boolean {
    return this.#of(type).changesRights
  }

  /** Nothing else changes the state or a draft. */
  reduce(tables: Tables, { type, data, by }: Event, timeMs: number): void {
    this.#of(type).reduce(tables, data, timeMs, by)
  }

  #of(type: string): KnownType {
    const known = this.#known.get(type)
    if (known !== undefined) return known
    throw new Failure('journal-newer', `this version does not know records of type ${type}`)
  }
}

function assertFields(type: string, data: unknown, known: ReadonlySet<string>): void {
  for (const field in data as object) {
    if (known.has(field)) continue
    throw new Failure(
      'journal-newer',
      `this version does not know each field of a record of type ${type}`
    )
  }
}

export interface Id {
  readonly id: number
}

export function assertNext(table: { readonly size: number }, id: number): void {
  if (id !== table.size + 1) throw new Error(`${id} is not the next id`)
}

export function known<V>(table: { get(id: number): V | undefined }, id: number): V {
  const value = table.get(id)
  if (value === undefined) throw new Error(`id ${id} does not exist`)
  return value
}
