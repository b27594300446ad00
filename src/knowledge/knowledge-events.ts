/** The events of what is known, and their effects; `knowledge.…` are kept by a compaction. */
import type { KeptFormer } from './former-knowers.ts'
import type {
  Kept,
  KeptChange,
  KeptKnower,
  KeptPage,
  Knower,
  Knowledge,
  KnowledgeTable,
  List
} from './knowledge.ts'
import { HOST, type User } from '../rights/rights.ts'

export interface KnowledgeEvents {
  /** Before the answer: either `ids` or `list`. */
  'passwords.told': {
    readonly operation: string
    readonly ids?: readonly number[] | undefined
    readonly list?: List | undefined
  }
  /**
   * An operator's command. Without `id` and `list`, all entries. With `fields`, these and not the
   * password.
   */
  'entries.disclosed': {
    readonly command: string
    readonly entries: number
    readonly id?: number | undefined
    readonly list?: List | undefined
    readonly fields?: readonly string[] | undefined
  }
  'recording.begun': {}
  'recording.ended': {}
  /** Before it, reads may be missing. */
  'recording.gap': { readonly why: 'restored' | 'salvaged' | 'unrecorded' }
  'knowledge.kept': Kept
  'knowledge.knowers': { readonly knowers: readonly KeptKnower[] }
  'knowledge.changes': { readonly first: number; readonly changes: readonly KeptChange[] }
  'knowledge.pages': { readonly pages: readonly KeptPage[] }
  'knowledge.former': { readonly passwords: readonly KeptFormer[] }
  /** Of removed users who still know something. */
  'knowledge.addresses': { readonly users: readonly Pick<User, 'id' | 'email' | 'name'>[] }
}

interface Tables {
  readonly knowledge: KnowledgeTable
  readonly users: Map<number, User>
}

interface EventType<D> {
  readonly fields: readonly (keyof D)[]
  readonly rows?: readonly [list: string, fields: readonly string[]]
  readonly reduce: (tables: Tables, data: D, timeMs: number, by: number | null) => void
}

/** An operator's account name in a record's data, or an empty text. */
export const OPERATOR = 'operator'

export function operatorNamed(name: string): string {
  return name === '' ? 'operator' : `operator:${name}`
}

/** Undefined for an embedder's process, and in the open configuration. */
export function namedIn(data: object, by: number | null): Knower | undefined {
  if (by !== null) return by
  const { [OPERATOR]: name } = data as { readonly [OPERATOR]?: string }
  return name === undefined ? undefined : operatorNamed(name)
}

/** Whoever made a change; in the open configuration nobody is named. */
export function authorOf(
  { recording }: KnowledgeTable,
  data: object,
  by: number | null
): Knower | undefined {
  return namedIn(data, by) ?? (recording === 'begun' ? HOST : undefined)
}

/** Drafts take no kept events. */
const whole = ({ knowledge }: Tables): Knowledge => knowledge as Knowledge

export const KNOWLEDGE_TYPES: {
  readonly [T in keyof KnowledgeEvents]: EventType<KnowledgeEvents[T]>
} = {
  'passwords.told': {
    fields: ['operation', 'ids', 'list'],
    reduce: ({ knowledge }, { ids, list, ...data }, _timeMs, by) =>
      knowledge.tell(namedIn(data, by) ?? HOST, list === undefined ? ids! : { list })
  },
  'entries.disclosed': {
    fields: ['command', 'entries', 'id', 'list', 'fields'],
    reduce: ({ knowledge }, { id, list = 'all', fields, ...data }, _timeMs, by) => {
      if (fields === undefined) knowledge.tell(namedIn(data, by) ?? OPERATOR, id ?? { list })
    }
  },
  'recording.begun': {
    fields: [],
    reduce: ({ knowledge }, _data, timeMs) => knowledge.record('begun', timeMs)
  },
  'recording.ended': {
    fields: [],
    reduce: ({ knowledge }, _data, timeMs) => knowledge.record('ended', timeMs)
  },
  'recording.gap': {
    fields: ['why'],
    reduce: ({ knowledge }, _data, timeMs) => knowledge.record('gap', timeMs)
  },
  'knowledge.kept': {
    fields: ['changes', 'recent', 'recording', 'unrecordedBefore'],
    reduce: (tables, kept) => whole(tables).restore(kept)
  },
  'knowledge.knowers': {
    fields: ['knowers'],
    rows: ['knowers', ['place', 'knower', 'lists']],
    reduce: (tables, { knowers }) => whole(tables).restoreKnowers(knowers)
  },
  'knowledge.changes': {
    fields: ['first', 'changes'],
    reduce: (tables, { first, changes }) => whole(tables).restoreChanges(first, changes)
  },
  'knowledge.pages': {
    fields: ['pages'],
    rows: ['pages', ['place', 'page', 'bits']],
    reduce: (tables, { pages }) => whole(tables).restorePages(pages)
  },
  'knowledge.former': {
    fields: ['passwords'],
    reduce: (tables, { passwords }) => whole(tables).former.restore(passwords)
  },
  'knowledge.addresses': {
    fields: ['users'],
    rows: ['users', ['id', 'email', 'name']],
    reduce: ({ users }, { users: removed }) => {
      for (const { id, email, name } of removed) {
        const user = users.get(id)
        if (user === undefined) throw new Error(`id ${id} does not exist`)
        users.set(id, { ...user, email, name })
      }
    }
  }
}

/** Whether a draft must know of it. */
export function isOfKnowledge(type: string): boolean {
  return /^(passwords|recording)\./.test(type)
}
