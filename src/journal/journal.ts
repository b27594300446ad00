/**
 * A journal as the store sees it: events in order, each durable and applied before `append`
 * resolves. The journal in memory (`JOURNAL=memory`) is here, too.
 */
import type { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { MAX_COMMIT_BYTES, MAX_COMMIT_RECORDS, MAX_EVENT_BYTES } from '../limits.ts'
import type { Keyring } from './keys.ts'
import { FIRST_HASH } from './line.ts'

export interface Event {
  readonly type: string
  /** Null in the open configuration, for the operator, and for the host of an embedded service. */
  readonly by: number | null
  readonly data: unknown
}

/** `json` is sealed. */
export interface EncodedEvent extends Event {
  readonly json: string
}

export interface JournalRecord extends Event {
  /** From 1 without gaps. */
  readonly seq: number
  /** ISO 8601, UTC, milliseconds. */
  readonly time: string
}

/** Of the journal itself: it is new; it was written from another one; all of that is here. */
export const BEGUN = 'journal.begun'
export const REWRITTEN = 'journal.rewritten'
export const WHOLE = 'journal.whole'

/** Throws if a record contradicts earlier records. */
export type Apply = (record: JournalRecord) => void

export interface Status {
  readonly fault: string | undefined
  /** Whether it may recover without a restart. */
  readonly mayHeal?: boolean
  /** In percent, while records of others are being read. */
  readonly readPercent?: number | undefined
  /** Whether records of others may be missing here. */
  readonly mayLack?: boolean
  /** Milliseconds since 1970. */
  readonly fullSince?: number | undefined
  readonly records: number
  /** The hash of the last line, which covers all lines. */
  readonly head: string
}

export interface JournalLocation {
  readonly path: string
  readonly keyFile: string
  /** By a host: `keyFile` is not what it uses. */
  readonly areKeysGiven?: boolean
  /** 0 without a file. */
  readonly bytes: number
  /** Undefined for a file. */
  readonly endpoints?: readonly string[]
  readonly isNew?: boolean
}

export interface JournalOptions {
  readonly keyFile: string
  /** Given by a host: the key file is neither read nor made. */
  readonly keys?: Keyring | undefined
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  readonly random: (bytes: number) => Buffer
  readonly warn: (line: string) => void
  /** Makes a journal even if a key exists, or if others share the journal. */
  readonly mayCreate?: boolean | undefined
  /** From 0 to 1; 1 at the end. */
  readonly onProgress?: (share: number) => void
}

export interface Journal {
  /** Of an append: most events, bytes of JSON before the last event, and bytes of an event. */
  readonly maxRecords: number
  readonly maxBytes: number
  readonly maxEventBytes: number
  /**
   * 32 bytes in hexadecimal, the same for all who share the journal, and after a rotation. It may
   * change before the first record of a shared journal, when no entry has a tag yet.
   */
  readonly tagKey: string
  /**
   * Makes the events of `decide` durable, and applies them. If records of others came first,
   * applies those and calls `decide` again: the earlier events are never recorded. Call it when no
   * other call is under way. Rejects with `write-failed` or `journal-refused`, which concern this
   * batch alone, or with a failure that the next batch would meet, too.
   */
  append(decide: () => readonly EncodedEvent[]): Promise<void>
  /**
   * Resolves once all records that were acknowledged before are applied. If stale reads are
   * allowed, resolves at once, unless `mustBeNewest`. Rejects with `journal-unreachable` or
   * `journal-failed`. Only a shared journal has it.
   */
  readonly catchUp?: (mustBeNewest?: boolean) => Promise<void>
  status(): Status
  /** Not during an append. */
  close(): Promise<void>
}

export interface DurableJournal extends Journal {
  readonly keys?: Keyring
  location(): JournalLocation
  /** For a shared journal: makes a key, or has all seal with it. */
  rotateKey?(): Promise<{ readonly key: string; readonly seals: boolean }>
}

export interface End {
  readonly records: number
  readonly head: string
  /** Of all whole lines. */
  readonly goodBytes: number
  readonly time: string | null
}

const TAG_KEY_BYTES = 32

/** Its head never moves, since it has no lines. */
export function openMemoryJournal(wallMs: () => number, apply: Apply): Journal {
  let records = 0
  return {
    maxRecords: MAX_COMMIT_RECORDS,
    maxBytes: MAX_COMMIT_BYTES,
    maxEventBytes: MAX_EVENT_BYTES,
    tagKey: randomBytes(TAG_KEY_BYTES).toString('hex'),
    append: async decide => {
      const time = new Date(wallMs()).toISOString()
      for (const { type, by, data } of decide()) apply({ seq: ++records, time, type, by, data })
    },
    status: () => ({ fault: undefined, records, head: FIRST_HASH }),
    close: async () => {}
  }
}
