/**
 * What a journal is to its user: it orders changes and makes them durable. It does not know what a record means.
 *
 * A change is a decision: a function that is called when its turn comes, looks at the state as it will be by then,
 * and gives a record or nothing. Decisions whose turn comes together share one write. The user folds records into
 * its state only when it is told that they are committed; until then it keeps what the decisions of the same write
 * have to see of each other (`begin` says that a new write is being gathered, and that what was kept is void).
 */
import type { Buffer } from 'node:buffer'

/** A fact to be recorded, as the user gives it: its data is any JSON value. */
export interface Fact {
  readonly type: string
  /** The id of the user who caused it; null in the open configuration. */
  readonly by: number | null
  readonly data: unknown
}

/** A fact in its place in the journal. */
export interface JournalRecord extends Fact {
  /** Counts from 1 without gaps. */
  readonly seq: number
  /** When it was recorded, ISO 8601 in UTC with milliseconds. */
  readonly time: string
}

/** What a decision comes to: what its asker is told, and the fact to record where something changes. */
export interface Decided<T> {
  readonly outcome: T
  readonly fact?: Fact | undefined
}

/** Called when its turn comes. */
export type Decision<T> = () => Decided<T>

/** The state that a journal is read into. */
export interface Fold {
  /** A new write is being gathered: the state that decisions see is the committed one again. */
  begin(): void
  /** A record is durable. Called in order, once a record; throws when the record contradicts the state. */
  apply(record: JournalRecord): void
}

/** What can be asked of a journal at any time. */
export interface JournalHealth {
  /** Why it takes no more writes; undefined while it does. */
  readonly fault: string | undefined
  /** Whether it may take some again without a restart. */
  readonly mayHeal?: boolean
  readonly records: number
  /** Changes that wait for their turn. */
  readonly waiting: number
  /** The last line's hash: who has noted it can tell later whether anything up to there was changed. */
  readonly head: string
}

/** Where a journal is. */
export interface JournalLocation {
  /** A file, or the prefix of the keys in etcd. */
  readonly path: string
  readonly keyFile: string
  /** The length of the file; of a journal that is in none, 0. */
  readonly bytes: number
  /** The members of etcd; undefined for a file. */
  readonly endpoints?: readonly string[]
}

/** Called when a write begins; gives what is to be called when it is over, with whether it was made. */
export type WriteWatch = () => (isMade: boolean) => void

/** What every journal that keeps something is opened with. */
export interface JournalOptions {
  readonly keyFile: string
  readonly fold: Fold
  /** The wall clock, milliseconds since 1970. */
  readonly wallMs: () => number
  /** Bytes that nobody can foresee. */
  readonly random: (bytes: number) => Buffer
  /** Takes a line for the operator: a repaired tail, a latch, an outage, what the runtime does not allow. */
  readonly warn: (line: string) => void
  readonly onWrite?: WriteWatch | undefined
}

/** A journal, whatever it is kept in. */
export interface Journal {
  /**
   * Queues a decision. Resolves with its outcome once everything it could have seen is durable and its record, if it
   * gave one, is applied. Rejects with `write-failed`, `journal-latched`, `queue-full` or `journal-closed`, and with
   * whatever the decision threw; then nothing is recorded for it.
   */
  commit<T>(decision: Decision<T>): Promise<T>
  /**
   * Where others write the same journal: resolves once every record is applied that any of them had acknowledged when
   * this was called, and rejects with `journal-unreachable` or `journal-latched`. Undefined where nobody else writes.
   */
  readonly current?: () => Promise<void>
  health(): JournalHealth
  /** Waits for what was queued, then lets go of everything it holds. */
  close(): Promise<void>
}

/** What a rotation has come to. */
export interface Rotated {
  /** The name of the newest key. */
  readonly key: string
  /** Whether it seals from now on. */
  readonly seals: boolean
}

/** What a rewrite has come to. */
export interface Rewritten {
  /** The names of the keys that seal nothing any more. */
  readonly unneeded: readonly string[]
  /** The new lines' head. */
  readonly head: string
}

/** A journal that stays, and that an operator looks after. */
export interface DurableJournal extends Journal {
  /** Where it cannot be read at once: reads it; until then it is empty and takes nothing. Rejects as opening does. */
  readonly ready?: () => Promise<void>
  location(): JournalLocation
  /** Makes a new key, with which everything is sealed from now on, or from when all who share the journal have it. */
  rotateKey(): Promise<Rotated>
  /**
   * Seals every line anew with the newest key, so that older ones can be destroyed. Changes wait meanwhile, reads go
   * on. `onProgress` gets the share that is done, 0 to 1. When it fails, the old lines stand. In etcd the new lines go
   * to the prefix `to`, where nothing may be yet; changes are refused meanwhile, and reads as well afterwards.
   */
  rewrite(onProgress: (share: number) => void, to?: string): Promise<Rewritten>
}
