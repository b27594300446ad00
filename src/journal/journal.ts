/**
 * What a journal is to the store: events in order, each durable before `append` resolves. It does not know what an
 * event means, keeps no queue, and calls nothing but, where others write too, the `apply` that it was opened with.
 */
import type { Buffer } from 'node:buffer'

/** An event to be recorded: its data is any JSON value. */
export interface Event {
  readonly type: string
  /** The id of the user who caused it; null in the open configuration. */
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

/** The type of the records that a journal begins with which came from another one: one for each before it. */
export const CONTINUED = 'journal.continued'

/** What such a record says of the journal before. */
export interface Continued {
  readonly why: 're-encrypted' | 'compacted'
  /** Its last line's hash, how many records it had, and when the last one was recorded, if there was one. */
  readonly head: string
  readonly records: number
  readonly time: string | null
}

/** Takes each record once, in order; throws where one contradicts those before it. */
export type Apply = (record: JournalRecord) => void

export interface JournalHealth {
  /** Why it takes no more writes; undefined while it does. */
  readonly fault: string | undefined
  /** Whether it may take some again without a restart. */
  readonly mayHeal?: boolean
  readonly records: number
  /** The last line's hash, which covers everything up to it. */
  readonly head: string
}

export interface JournalLocation {
  /** A file, or what it is called where it is in none. */
  readonly path: string
  readonly keyFile: string
  /** The length of the file; 0 without one. */
  readonly bytes: number
  /** The servers that hold it; undefined for a file. */
  readonly endpoints?: readonly string[]
}

/** The options of every durable journal. */
export interface JournalOptions {
  readonly keyFile: string
  /** The wall clock, milliseconds since 1970. */
  readonly wallMs: () => number
  /** Cryptographically random bytes. */
  readonly random: (bytes: number) => Buffer
  /** Gets messages for the operator: a repaired tail, a failure, an outage, what the runtime does not allow. */
  readonly warn: (line: string) => void
  /** Whether a journal is made where there is none; a file is in any case. */
  readonly mayCreate?: boolean | undefined
  /** Gets the share of it that is read, 0 to 1; 1 at the end. */
  readonly onProgress?: (share: number) => void
}

/** A journal, whatever it is kept in. */
export interface Journal {
  /** How many events one append may have. */
  readonly maxBatchRecords: number
  /** How many bytes of JSON an append may have before its last event. */
  readonly maxBatchBytes: number
  readonly maxEventBytes: number
  /**
   * Makes events durable after the newest record; resolves once all are. Never called while another call is under way.
   * Resolves with the records that the caller has yet to apply, or with 'raced': records of others came first and were
   * applied meanwhile, and nothing of this batch is or will be recorded. Rejects with `write-failed` or `journal-
   * refused`, which concern this batch alone, or with a failure that the next batch would meet as well. Without events
   * it writes nothing, and is not called where `catchUp` is.
   */
  append(events: readonly EncodedEvent[]): Promise<readonly JournalRecord[] | 'raced'>
  /**
   * Where others write too: resolves once every record is applied that was acknowledged when this was called. Rejects
   * with `journal-unreachable` or `journal-failed`.
   */
  readonly catchUp?: () => Promise<void>
  /** The same for a read, which need not wait where the operator allows stale ones. */
  readonly readBarrier?: () => Promise<void>
  health(): JournalHealth
  /** Releases everything that it holds. Not to be called while an append is under way. */
  close(): Promise<void>
}

export interface Rotated {
  /** The name of the newest key. */
  readonly key: string
  /** Whether it seals from now on. */
  readonly seals: boolean
}

/** The state as a compaction writes it, and the check of what was written. */
export interface Checkpoint {
  /** Events that make the same state from nothing. */
  readonly events: Iterable<Event>
  readonly share: () => number
  /** Takes each record as it reads back. */
  readonly apply: Apply
  /** Throws, at one of its steps, unless these made the same state. */
  compare(): Iterable<void>
}

/** How a journal is written again. */
export interface Rewrite {
  /** What takes the place of all records (a compaction); undefined: they are sealed again with the newest key. */
  readonly checkpoint?: Checkpoint
  /** Whether the journal before a compaction stays as an archive. */
  readonly keepsHistory?: boolean
  /** Gets the share that is done, 0 to 1. */
  readonly onProgress: (share: number) => void
  readonly signal: AbortSignal
}

/** What a journal is once it was written again. */
export interface Rewritten {
  readonly records: number
  readonly head: string
  readonly bytes: number
  /** Of the journal before. */
  readonly before: { readonly records: number, readonly head: string, readonly bytes: number }
  /** The names of the keys that the journal no longer needs; an archive may. */
  readonly unneeded: readonly string[]
  /** The file that the journal before is kept in. */
  readonly archive: string | undefined
}

/** A durable journal, with its operator's functions. */
export interface DurableJournal extends Journal {
  location(): JournalLocation
  /**
   * Makes a new key, with which everything is sealed from now on, or from when all who share the journal have it. Not
   * to be called while an append is under way, unless others write too; so is `rewrite`.
   */
  rotateKey(): Promise<Rotated>
  /** Makes another journal of it, so that older keys or the history can be destroyed. If it fails, this one stays. */
  rewrite(rewrite: Rewrite): Promise<Rewritten>
}
