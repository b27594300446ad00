import type { Entries } from '../entries/entry-table.ts'
import type { JournalRecord } from '../journal/journal.ts'
import { HOST, type User } from '../rights/rights.ts'
import { known, OPERATOR, type Slice, type Tables } from '../store/events.ts'
import type { Ids } from './ids.ts'
import {
  Knowledge,
  type KeptKnower,
  type KeptRecording,
  type Knower,
  type KnowledgeTable,
  type Recording
} from './knowledge.ts'

/** Of builds before 1.1.0: the active entries, those of some groups, or all. */
type List = 'active' | 'all' | readonly string[]

export interface KnowledgeEvents {
  /**
   * Before the answer. `password`: a former value. Builds before 1.1.0 wrote `ids` or `list`
   * instead.
   */
  'passwords.told': {
    readonly operation: string
    readonly entryIds?: Ids | undefined
    readonly password?: string | undefined
    readonly ids?: readonly number[] | undefined
    readonly list?: List | undefined
  }
  /**
   * An operator's command. With `fields`, these and not the password; `former`: passwords that the
   * entries had; `everything`: all that the journal has. Builds before 1.1.0 wrote `id`, `list`, or
   * neither for all entries.
   */
  'entries.disclosed': {
    readonly command: string
    readonly entries: number
    readonly entryIds?: Ids | undefined
    readonly former?: readonly string[] | undefined
    readonly everything?: true | undefined
    readonly fields?: readonly string[] | undefined
    readonly id?: number | undefined
    readonly list?: List | undefined
  }
  'recording.begun': {}
  'recording.ended': {}
  /** Before it, reads may be missing. */
  'recording.gap': { readonly why: 'restored' | 'salvaged' | 'unrecorded' }
  /** Kept by a compaction, this one last. */
  'recording.kept': KeptRecording
  'knowers.kept': { readonly knowers: readonly KeptKnower[] }
  /** Of removed users who still know something. */
  'knowledge.addresses': { readonly users: readonly Pick<User, 'id' | 'email' | 'name'>[] }
  /** Kept by compactions of builds before 1.1.0: read as a gap. */
  'knowledge.kept': {
    readonly recording?: Recording
    readonly unrecordedBefore?: unknown
    readonly changes?: unknown
    readonly recent?: unknown
  }
  'knowledge.knowers': { readonly knowers?: unknown }
  'knowledge.changes': { readonly first?: unknown; readonly changes?: unknown }
  'knowledge.pages': { readonly pages?: unknown }
  'knowledge.former': { readonly passwords?: unknown }
}

function operatorNamed(name: string): string {
  return name === '' ? 'operator' : `operator:${name}`
}

/** The operator who made the record. */
export function operatorIn({ data }: Pick<JournalRecord, 'data'>): string | undefined {
  const { [OPERATOR]: name } = data as { readonly [OPERATOR]?: string }
  return name === undefined ? undefined : operatorNamed(name)
}

/** Undefined for an embedder's process, and in the open configuration. */
export function namedIn(data: object, by: number | null): Knower | undefined {
  return by ?? operatorIn({ data })
}

/** In the open configuration, the author of a change is not named. */
export function authorOf(
  { recording }: KnowledgeTable,
  data: object,
  by: number | null
): Knower | undefined {
  return namedIn(data, by) ?? (recording === 'begun' ? HOST : undefined)
}

/** Drafts take no kept events. */
function whole({ knowledge }: Tables): Knowledge {
  if (!(knowledge instanceof Knowledge)) throw new Error('a draft takes no kept event')
  return knowledge
}

const nothing = (): void => {}

function listed(tables: Tables, list: List): readonly number[] {
  const entries = tables.entries as Entries
  return entries
    .changedSince(0)
    .filter(id => (list === 'all' ? entries.has(id) : entries.isActive(id)))
    .filter(id => typeof list === 'string' || list.includes(entries.grupo(id) ?? ''))
}

export const KNOWLEDGE_EVENTS: Slice<KnowledgeEvents> = {
  isInDrafts: true,
  changesRights: false,
  types: {
    'passwords.told': {
      fields: ['operation', 'entryIds', 'password', 'ids', 'list'],
      reduce: (tables, { entryIds, password, ids, list, ...data }, _timeMs, by) => {
        const knower = namedIn(data, by) ?? HOST
        if (password !== undefined) tables.knowledge.tellFormer(knower, password)
        else tables.knowledge.tell(knower, entryIds ?? ids ?? listed(tables, list!))
      }
    },
    'entries.disclosed': {
      fields: ['command', 'entries', 'entryIds', 'former', 'everything', 'fields', 'id', 'list'],
      reduce: (tables, data) => {
        const { knowledge } = tables
        const { entryIds, former = [], everything, fields, id, list = 'all', ...rest } = data
        if (fields !== undefined) return
        const knower = namedIn(rest, null) ?? OPERATOR
        for (const password of former) knowledge.tellFormer(knower, password)
        if (everything) knowledge.tellAll(knower)
        else knowledge.tell(knower, entryIds ?? (id === undefined ? listed(tables, list) : [id]))
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
    'recording.kept': {
      fields: ['recording', 'unrecordedBefore'],
      reduce: (tables, kept) => whole(tables).restoreRecording(kept)
    },
    'knowers.kept': {
      fields: ['knowers'],
      rows: ['knowers', ['knower', 'ids', 'equal', 'time']],
      reduce: (tables, { knowers }) => {
        for (const { knower, ids = [], equal = [], time } of knowers) {
          whole(tables).tell(knower, ids)
          whole(tables).tellEqual(knower, equal, time === undefined ? undefined : Date.parse(time))
        }
      }
    },
    'knowledge.addresses': {
      fields: ['users'],
      rows: ['users', ['id', 'email', 'name']],
      reduce: (tables, { users: removed }) => {
        whole(tables)
        const { users } = tables
        for (const { id, email, name } of removed) {
          users.set(id, { ...known(users, id), email, name })
        }
      }
    },
    'knowledge.kept': {
      fields: ['changes', 'recent', 'recording', 'unrecordedBefore'],
      reduce: (tables, { recording }, timeMs) => {
        const knowledge = whole(tables)
        knowledge.recording = recording
        if (recording === 'begun') knowledge.record('gap', timeMs)
        knowledge.hasLostKept = true
      }
    },
    'knowledge.knowers': { fields: ['knowers'], reduce: nothing },
    'knowledge.changes': { fields: ['first', 'changes'], reduce: nothing },
    'knowledge.pages': { fields: ['pages'], reduce: nothing },
    'knowledge.former': { fields: ['passwords'], reduce: nothing }
  }
}
