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

/** Exit code 1: what was asked for does not exist, or cannot be done. */
export class OperatorError extends Error {}

/** Exit code 3: the journal is not what it was. */
export class LossError extends OperatorError {}

/** Exit code 2: the command line is wrong. */
export class UsageError extends Error {}

export interface Arguments {
  readonly positionals: readonly string[]
  readonly flags: { readonly [name: string]: string | boolean | undefined }
}

/** Without a service, only place and length of the journal are known. */
export type JournalStatus = JournalLocation &
  Partial<Status> & {
    /** The file that has this length: a compaction replaces it. */
    readonly file?: FileStat | undefined
  }

/** `state`: before the record. `text`: its line. */
export type OnRecord = (record: JournalRecord, state: State, text: string) => void

export interface JournalRead extends Pick<
  Recovered,
  'records' | 'head' | 'goodBytes' | 'tornBytes'
> {
  readonly state: State
}

/** Opened at the first question. */
export interface Reached {
  readonly settings: StorageSettings
  readonly ending: Ending
  /**
   * Asks the lock's holder, or takes the lock. Rejects with the holder's message as an
   * `OperatorError`.
   */
  ask<N extends OperationName>(operation: N, body: RequestBody<N>): Promise<Result<N>>
  /** Undefined is no proof that nobody has the lock. */
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

/** `value`: the name of the value, if there is one. */
export interface Option {
  readonly value?: string
  readonly help: string
}

/**
 * If there is no journal. `refuse`: a mistyped folder must not become a store. `begin`: a file is
 * made, as by a service's first start, but no shared journal. `create`: either is made (`init`).
 */
export type IfMissing = 'refuse' | 'begin' | 'create'

/** `[NAME]`, the last positional, is optional. */
export interface OperatorCommand {
  readonly name: string
  readonly positionals?: readonly string[]
  readonly options?: { readonly [flag: string]: Option }
  readonly help: string
  readonly examples?: readonly string[]
  /** The journals for which the overview lists it. Undefined: all. */
  readonly journals?: readonly string[]
  /** The journal, whatever the settings say. Throws a `UsageError`. */
  journal?(flags: Arguments['flags']): string
  readonly ifMissing?: Exclude<IfMissing, 'refuse'>
  /** Gives the exit code; undefined: 0. */
  run(context: Context): Promise<number | void>
}
