/**
 * What a journal is to the store: events in order, each durable and applied before `append` resolves. It does not know
 * what an event means, and keeps no queue. The simplest one, `JOURNAL=memory`, is here.
 */
import type { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { MAX_COMMIT_BYTES, MAX_COMMIT_RECORDS, MAX_EVENT_BYTES } from '../limits.ts'
import type { FileJournal } from './file-journal.ts'
import { FIRST_HASH } from './line.ts'

/** An event to be recorded: its data is any JSON value. */
export interface Event {
  readonly type: string
  /** The id of the user who caused it; null in the open configuration, and for the operator and embedders. */
  readonly by: number | null
  readonly data: unknown
}

/** An event on its way to the journal: its data also as the JSON text that is sealed. */
export interface EncodedEvent extends Event {
  readonly json: string
}

/** An event with its position in the journal. */
export interface JournalRecord extends Event {
  /** Counts from 1 without gaps. */
  readonly seq: number
  /** When it was recorded, ISO 8601 in UTC with milliseconds. */
  readonly time: string
}

/** The types of the journal's own records: it is new; it was written from another one; all of that is here. */
export const BEGUN = 'journal.begun'
export const REWRITTEN = 'journal.rewritten'
export const WHOLE = 'journal.whole'

/** Takes each record once, in order; throws if one contradicts those before it. */
export type Apply = (record: JournalRecord) => void

export interface Status {
  /** Why it takes no more writes; undefined while it does. */
  readonly fault: string | undefined
  /** Whether it may take some again without a restart. */
  readonly mayHeal?: boolean
  /** How much of what others wrote is read, in percent, while that is why. */
  readonly readPercent?: number | undefined
  /** Whether others may have written what is not read here. */
  readonly mayLack?: boolean
  /** Since when, in milliseconds since 1970, writes have failed for want of room; undefined: the newest has not. */
  readonly fullSince?: number | undefined
  readonly records: number
  /** The last line's hash, which covers everything up to it. */
  readonly head: string
}

export interface JournalLocation {
  /** A file, or what it is called elsewhere. */
  readonly path: string
  readonly keyFile: string
  /** The length of the file; 0 without one. */
  readonly bytes: number
  /** The servers that hold it; undefined for a file. */
  readonly endpoints?: readonly string[]
  /** Whether it was made when it was opened; undefined: no process has opened it. */
  readonly isNew?: boolean
}

/** The options of every durable journal. */
export interface JournalOptions {
  readonly keyFile: string
  /** The wall clock, milliseconds since 1970. */
  readonly wallMs: () => number
  /** Cryptographically random bytes. */
  readonly random: (bytes: number) => Buffer
  /** Gets messages for the operator. */
  readonly warn: (line: string) => void
  /** Whether a new one is made on purpose, though a key is there already, or others share it. */
  readonly mayCreate?: boolean | undefined
  /** Gets the share of it that is read, 0 to 1; 1 at the end. */
  readonly onProgress?: (share: number) => void
}

/** A journal, whatever it is kept in. */
export interface Journal {
  /** What one append may have: events, bytes of JSON before its last event, bytes of one event. */
  readonly maxRecords: number
  readonly maxBytes: number
  readonly maxEventBytes: number
  /** The key of entries' tags, 32 bytes: the same for all who share the journal, also after a rotation. */
  readonly tagKey: Buffer
  /**
   * Calls `decide` when it is its turn, makes the events that it gives durable after the newest record, and applies
   * them. If others have written first, their records are applied, and `decide` is called again; nothing of what it
   * gave before is or will be recorded. Never called while another call is under way. Rejects with `write-failed` or
   * `journal-refused`, which concern this batch alone, or with a failure that the next batch would meet as well.
   */
  append(decide: () => readonly EncodedEvent[]): Promise<void>
  /**
   * Of a journal that others write: resolves once every record is applied that was acknowledged before this call,
   * or, unless `mustBeNewest`, at once if the operator allows stale reads. Rejects with `journal-unreachable` or
   * `journal-failed`.
   */
  readonly catchUp?: (mustBeNewest?: boolean) => Promise<void>
  status(): Status
  /** Releases all that it holds. Not to be called while an append is under way. */
  close(): Promise<void>
}

/** A journal that outlives its process. */
export interface DurableJournal extends Journal {
  location(): JournalLocation
  /** The journal in a file itself, for what replaces its file or its keys; undefined if it is in none. */
  readonly file?: FileJournal
  /** Of one that others share: makes a new key, or has all seal with the one that was made. */
  rotateKey?(): Promise<{ readonly key: string, readonly seals: boolean }>
}

/** Where a journal ends, and when its newest record was made. */
export interface End {
  readonly records: number
  readonly head: string
  /** The length of all whole lines. */
  readonly goodBytes: number
  readonly time: string | null
}

const TAG_KEY_BYTES = 32

/** Opens an empty journal that keeps nothing; its records have no lines, so its head never moves. */
export function openMemoryJournal(wallMs: () => number, apply: Apply): Journal {
  let records = 0
  return {
    maxRecords: MAX_COMMIT_RECORDS, maxBytes: MAX_COMMIT_BYTES, maxEventBytes: MAX_EVENT_BYTES,
    tagKey: randomBytes(TAG_KEY_BYTES),
    append: async decide => {
      const time = new Date(wallMs()).toISOString()
      for (const { type, by, data } of decide()) apply({ seq: ++records, time, type, by, data })
    },
    status: () => ({ fault: undefined, records, head: FIRST_HASH }),
    close: async () => {}
  }
}
