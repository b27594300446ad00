/** What a command is, and what it may use. */
import type { StorageSettings } from '../../core-settings.ts'
import type { Files, FileStat } from '../../journal/files.ts'
import type { JournalLocation, JournalRecord, Status } from '../../journal/journal.ts'
import type { Lock } from '../../journal/lock.ts'
import type { Recovered } from '../../journal/recover.ts'
import type { State } from '../../store/state.ts'
import type { RequestBody, OperationName, Result } from './operation.ts'
import type { Ending } from './signals.ts'
import type { Terminal } from './terminal.ts'

/** Something asked for does not exist or cannot be done. Exit code 1. */
export class OperatorError extends Error {}

/** The journal is not what it was. Exit code 3. */
export class LossError extends OperatorError {}

/** The command line is wrong. Exit code 2. */
export class UsageError extends Error {}

export interface Arguments {
  readonly positionals: readonly string[]
  readonly flags: { readonly [name: string]: string | boolean | undefined }
}

/** Without a service, only a journal's place and length are known. */
export type JournalStatus = JournalLocation &
  Partial<Status> & {
    /** The file of this length: a compaction replaces it. */
    readonly file?: FileStat | undefined
  }

/** Takes a record, the state before it, and its line. */
export type OnRecord = (record: JournalRecord, state: State, text: string) => void

export interface JournalRead extends Pick<
  Recovered,
  'records' | 'head' | 'goodBytes' | 'tornBytes'
> {
  readonly state: State
}

/** The way to a store, opened at the first question. */
export interface Reached {
  readonly settings: StorageSettings
  readonly ending: Ending
  /**
   * Asks the lock's holder, or takes the lock. Rejects with the holder's message as an
   * `OperatorError`.
   */
  ask<N extends OperationName>(operation: N, body: RequestBody<N>): Promise<Result<N>>
  /**
   * The lock holder's status. Undefined does not prove that there is no holder: only the lock does.
   */
  look(): Promise<Result<'status'> | undefined>
  readonly hasLock: boolean
  status(): Promise<JournalStatus>
  /** Works under the lock. Rejects with an `OperatorError` if a service has it. */
  alone<T>(work: (lock: Lock) => Promise<T>): Promise<T>
  /** As `ask`, for an answer that comes piece by piece. */
  receive(
    operation: 'rescueJournal',
    body: RequestBody<'rescueJournal'>,
    take: (piece: string) => void
  ): Promise<void>
  /** Throws an `OperatorError` if the folder is another user's. */
  assertOwner(): void
  readonly files: Files
  /** Reads and verifies up to the acknowledged end. */
  read(status: JournalStatus, onRecord?: OnRecord): Promise<JournalRead>
  close(): Promise<void>
}

export interface Context extends Arguments {
  readonly terminal: Terminal
  readonly store: Reached
}

/** `value` names the value; undefined: there is none. */
export interface Option {
  readonly value?: string
  readonly help: string
}

/**
 * What happens if there is no journal. `refuse`: a mistyped folder must not become a store.
 * `begin`: a file is made, as at a service's first start, but no journal that several services
 * share. `create`: either is made (`init`).
 */
export type IfMissing = 'refuse' | 'begin' | 'create'

/** `[NAME]`, the last positional, is optional. */
export interface OperatorCommand {
  readonly name: string
  readonly positionals?: readonly string[]
  readonly options?: { readonly [flag: string]: Option }
  readonly help: string
  readonly examples?: readonly string[]
  /** The journals for which the overview lists it; undefined: all. */
  readonly journals?: readonly string[]
  /** The journal, whatever the settings say. Throws a `UsageError`. */
  journal?(flags: Arguments['flags']): string
  readonly ifMissing?: Exclude<IfMissing, 'refuse'>
  /** Gives the exit code; undefined: 0. */
  run(context: Context): Promise<number | void>
}
