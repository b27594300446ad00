/**
 * Reads an entry's history from the journal a piece at a time; other requests are answered in
 * between.
 */
import { disk } from '../../journal/files.ts'
import type { DurableJournal, JournalRecord } from '../../journal/journal.ts'
import { readInSteps } from '../../journal/recover.ts'
import { ENTRY_FIELDS, fieldsOf, type EntryChanges } from '../../entries/entry.ts'
import { sees, type Groups } from '../../rights/rights.ts'
import { changesIn } from '../../entries/entry-events.ts'
import { operatorIn } from '../../knowledge/knowledge-events.ts'

const MAX_READ_MS = 10_000
const MAX_READ_BYTES = 512 * 1024 * 1024
/** The newest changes, and what is kept while reading. */
const MAX_CHANGES = 500
const MAX_CHANGES_CHARACTERS = 2 * 1024 * 1024

export interface Change {
  /** From 1, the oldest of this entry: a record's number would tell of other entries. */
  readonly version: number
  readonly time: string
  /** A user's id, or a text for the operator; null in the open configuration. */
  readonly by: number | string | null
  /**
   * `kept`: at a compaction; earlier changes are in an archive. `unseen`: while the entry was out
   * of sight.
   */
  readonly change: 'created' | 'updated' | 'deleted' | 'restored' | 'kept' | 'unseen'
  /** Unanswered fields, too: their names may be said. */
  readonly fields: EntryChanges
}

/** Undefined while another history is read, or if reading would take too long. */
export function historyReader(
  journal: DurableJournal,
  nowMs: () => number = () => performance.now()
): (id: number, groups?: Groups) => Promise<readonly Change[] | undefined> {
  let isReading = false
  return async (id, groups) => {
    const { keys } = journal
    const { path, bytes } = journal.location()
    if (isReading || bytes > MAX_READ_BYTES || keys === undefined) return undefined
    isReading = true
    try {
      const endMs = nowMs() + MAX_READ_MS
      const changes: Change[] = []
      const inSight = seenBy(groups)
      let characters = 0
      let version = 0
      const take = (record: JournalRecord): void => {
        const made = changeOf(record, id)
        if (made === undefined) return
        const change = inSight({ version: ++version, ...made })
        changes.push(change)
        characters += lengthOf(change)
        while (
          changes.length > MAX_CHANGES ||
          (characters > MAX_CHANGES_CHARACTERS && changes.length > 1)
        ) {
          characters -= lengthOf(changes.shift()!)
        }
      }
      for (const _ of readInSteps(disk, path, keys, take, bytes)) {
        await new Promise(resolve => setImmediate(resolve))
        if (nowMs() > endMs) return undefined
      }
      return changes.reverse()
    } finally {
      isReading = false
    }
  }
}

/** For all changes of an entry, the oldest first. */
function seenBy(groups: Groups): (change: Change) => Change {
  let state: EntryChanges = {}
  let isSeen = false
  return change => {
    if (groups === undefined) return change
    const wasSeen = isSeen
    state = fieldsOf({ ...state, ...change.fields })
    isSeen = sees(groups, state.grupo)
    if (!isSeen)
      return { version: change.version, time: change.time, by: null, change: 'unseen', fields: {} }
    return wasSeen ? change : { ...change, fields: state }
  }
}

function lengthOf({ fields }: Change): number {
  return Object.values(fields).reduce((sum, text = '') => sum + text.length, 0)
}

const CHANGES: { readonly [type: string]: Change['change'] } = {
  'entry.created': 'created',
  'entry.updated': 'updated',
  'entry.deleted': 'deleted',
  'entry.restored': 'restored',
  'entries.imported': 'created',
  'entries.kept': 'kept',
  'fields.created': 'created',
  'fields.updated': 'updated',
  'fields.imported': 'created',
  'fields.kept': 'kept'
}

function changeOf(record: JournalRecord, id: number): Omit<Change, 'version'> | undefined {
  const { time, by, type } = record
  const set = changesIn(record, id)
  const change = CHANGES[type]
  if (set === undefined || change === undefined) return undefined
  const fields = ENTRY_FIELDS.filter(field => set[field] !== undefined).map(field => [
    field,
    set[field]
  ])
  return { time, by: by ?? operatorIn(record) ?? null, change, fields: Object.fromEntries(fields) }
}
