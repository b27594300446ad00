/**
 * What a journal is to the store: events in order, each durable and applied before `append` resolves. It does not know
 * what an event means, and keeps no queue.
 */
import type { Buffer } from 'node:buffer'
import type { FileJournal } from './file-journal.ts'

/** An event to be recorded: its data is any JSON value. */
export interface Event {
  readonly type: string
  /** The id of the user who caused it; null for none: in the open configuration, or by the operator or embedder. */
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

/**
 * The types of the journal's own records. `begun`: it is new. `continued`: a journal before
 * ended so. `rewritten`: the same of the one that this one was written from; it is the first line, and all that belongs
 * to it ends with `whole`. What lacks that is damaged: such a file gets its name only when all of it is there.
 */
export const BEGUN = 'journal.begun'
export const CONTINUED = 'journal.continued'
export const REWRITTEN = 'journal.rewritten'
export const WHOLE = 'journal.whole'

/** What a `continued` or `rewritten` record says of the journal before. */
export interface Continued {
  readonly why: 're-encrypted' | 'compacted' | 'salvaged' | 'repaired'
  /** Its last line's hash, how many records it had, and when the last one was recorded, if there was one. */
  readonly head: string
  readonly records: number
  readonly time: string | null
  /**
   * Of one that was salvaged: its file, the archive that took the place of its checkpoint, how many lines were opened,
   * which are lost (the first 1,000 places).
   */
  readonly source?: string
  readonly archive?: string
  readonly opened?: number
  readonly lost?: readonly LostLines[]
}

/** Lines that could not be opened; `to` is null for the newest, of which it is not known how many there were. */
export interface LostLines {
  readonly from: number
  readonly to: number | null
  /** How many bytes are where they should be. */
  readonly bytes: number
}

/** The types of records that name the end of a journal before. */
export const CONTINUATIONS: ReadonlySet<string> = new Set([CONTINUED, REWRITTEN])

/** Takes each record once, in order; throws where one contradicts those before it. */
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
  /** Since when, in milliseconds since 1970, the newest write has failed for want of room; undefined: it has not. */
  readonly fullSince?: number | undefined
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
  /** Whether it was made when it was opened; undefined: it is in no process yet. */
  readonly isNew?: boolean
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
  /** Whether a new one is made on purpose, though a key is there already, or others share it. */
  readonly mayCreate?: boolean | undefined
  /** Gets the share of it that is read, 0 to 1; 1 at the end. */
  readonly onProgress?: (share: number) => void
}

/** A journal, whatever it is kept in. */
export interface Journal {
  /** How many events one append may have. */
  readonly maxRecords: number
  /** How many bytes of JSON an append may have before its last event. */
  readonly maxBytes: number
  readonly maxEventBytes: number
  /** The key of entries' tags, 32 bytes: the same for all who share the journal, also after a rotation. */
  readonly tagKey: Buffer
  /**
   * Calls `decide` when it is its turn, makes the events that it gives durable after the newest record, and applies
   * them; resolves then. Where others write too, it is called again once records of others that came first are applied,
   * and nothing of what it gave before is or will be recorded. Never called while another call is under way. Rejects
   * with `write-failed` or `journal-refused`, which concern this batch alone, or with a failure that the next batch
   * would meet as well.
   */
  append(decide: () => readonly EncodedEvent[]): Promise<void>
  /**
   * Where others write too: resolves once every record is applied that was acknowledged when this was called, unless
   * the operator allows stale reads. Rejects with `journal-unreachable` or `journal-failed`.
   */
  readonly catchUp?: () => Promise<void>
  status(): Status
  /** Releases everything that it holds. Not to be called while an append is under way. */
  close(): Promise<void>
}

export interface Rotated {
  /** The name of the newest key. */
  readonly key: string
  /** Whether it seals from now on. */
  readonly seals: boolean
}

/** Where a journal ends, and when its newest record was made. */
export interface End {
  readonly records: number
  readonly head: string
  /** The length of all whole lines. */
  readonly goodBytes: number
  readonly time: string | null
}

/** A journal that outlives its process. */
export interface DurableJournal extends Journal {
  location(): JournalLocation
  /** The journal in a file itself, for what replaces its file or its keys; undefined if it is in none. */
  readonly file?: FileJournal
  /** Where others share it: makes a new key, or has all seal with the one that was made. */
  rotateKey?(): Promise<Rotated>
}
