/**
 * The history of an entry, read back from the journal a piece at a time, so that other requests are answered
 * meanwhile.
 */
import { disk } from '../../disk/files.ts'
import type { DurableJournal, JournalRecord } from '../../journal/journal.ts'
import { readKeyFile } from '../../journal/keys.ts'
import { readInSteps } from '../../journal/recover.ts'
import type { EntryFields, Events } from '../../store/events.ts'

/** How long reading may take, with others served in between. */
const MAX_READ_MS = 10_000
/** A longer journal is not read for this. */
const MAX_READ_BYTES = 512 * 1024 * 1024
/** The newest changes of an entry that are given. */
const MAX_CHANGES = 500

/** A change of an entry: when, by which user, and the fields that it set. */
export interface Change {
  readonly time: string
  /** The id of the user; null for the operator, and in the open configuration. */
  readonly by: number | null
  /** `kept`: what the entry was when the journal was compacted; what came before is in an archive. */
  readonly change: 'created' | 'updated' | 'deleted' | 'restored' | 'kept'
  readonly fields: Partial<EntryFields>
}

/** Reads histories, one at a time. */
export class HistoryReader {
  readonly #journal: DurableJournal
  readonly #nowMs: () => number
  #isReading = false

  constructor(journal: DurableJournal, nowMs: () => number) {
    this.#journal = journal
    this.#nowMs = nowMs
  }

  /**
   * The changes of an entry, newest first; undefined while another history is read, or where it would take too long.
   */
  async read(id: number): Promise<readonly Change[] | undefined> {
    const { path, keyFile, bytes } = this.#journal.location()
    const keys = readKeyFile(disk, keyFile)
    if (this.#isReading || bytes > MAX_READ_BYTES || keys === undefined) return undefined
    this.#isReading = true
    try {
      const endMs = this.#nowMs() + MAX_READ_MS
      const changes: Change[] = []
      const take = (record: JournalRecord): void => {
        const change = changeOf(record, id)
        if (change !== undefined && changes.push(change) > MAX_CHANGES) changes.shift()
      }
      for (const _ of readInSteps(disk, path, keys, take, bytes)) {
        await new Promise(resolve => setImmediate(resolve))
        if (this.#nowMs() > endMs) return undefined
      }
      return changes.reverse()
    } finally {
      this.#isReading = false
    }
  }
}

function changeOf({ time, by, type, data }: JournalRecord, id: number): Change | undefined {
  if (type === 'entries.imported' || type === 'entries.kept') {
    const { first, entries } = data as Events['entries.kept']
    const entry = entries[id - first] ?? undefined
    return entry && { time, by, change: type === 'entries.kept' ? 'kept' : 'created', fields: fieldsOf(entry) }
  }
  const change = CHANGES[type]
  if (change === undefined || (data as { readonly id: number }).id !== id) return undefined
  return { time, by, change, fields: fieldsOf(data as Partial<EntryFields>) }
}

const CHANGES: { readonly [type: string]: Change['change'] | undefined } = {
  'entry.created': 'created', 'entry.updated': 'updated', 'entry.deleted': 'deleted', 'entry.restored': 'restored'
}

function fieldsOf({ password, sistema, usuario }: Partial<EntryFields>): Partial<EntryFields> {
  return {
    ...password !== undefined && { password }, ...sistema !== undefined && { sistema },
    ...usuario !== undefined && { usuario }
  }
}
