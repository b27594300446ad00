/** What a command of the operator's program is, and what it may use. */
import type { StorageSettings } from '../core-settings.ts'
import type { Files, FileStat } from '../journal/files.ts'
import type { JournalLocation, JournalRecord, Status } from '../journal/journal.ts'
import type { Recovered } from '../journal/recover.ts'
import type { State } from '../store/state.ts'
import type { Body, OperationName, Result } from './operation.ts'
import type { Terminal } from './terminal.ts'

/** Ends a command: something asked for does not exist, or cannot be done. The program's exit code is 1. */
export class OperatorError extends Error {}

/** Ends a command: it was called in a wrong way. The program's exit code is 2. */
export class UsageError extends Error {}

/** A command line, taken apart. */
export interface Arguments {
  readonly positionals: readonly string[]
  readonly flags: { readonly [name: string]: string | boolean | readonly string[] | undefined }
}

/** Where a journal is, and what is known of it: without a service, its length is all there is. */
export type JournalStatus = JournalLocation & Partial<Status> & {
  /** The file that has this length, if it is in one: a compaction puts another in its place. */
  readonly file?: FileStat
}

/** Takes each record, the state before it, and its line as it is in the file. */
export type OnRecord = (record: JournalRecord, state: State, text: string) => void

/** A journal that was read to its end and found whole. */
export interface JournalRead extends Pick<Recovered, 'records' | 'head' | 'goodBytes' | 'tornBytes'> {
  readonly state: State
}

/** The way to a store, which is reached when it is first asked for something. */
export interface Reached {
  readonly settings: StorageSettings
  /** Asks the process that holds the lock, or takes it. Rejects with an `OperatorError` with its message. */
  ask<N extends OperationName>(operation: N, body: Body<N>): Promise<Result<N>>
  /**
   * The status of the process that holds the lock, asked for once; undefined if none answers, for whatever reason: who
   * must know that there is none takes the lock. Opens nothing.
   */
  look(): Promise<Result<'status'> | undefined>
  /** Whether this process has the lock, since asking found that no other one had it. */
  readonly hasLock: boolean
  /** Where the journal is. */
  status(): Promise<JournalStatus>
  /**
   * Takes the lock for work on the folder's files, which no service may have meanwhile; rejects with an `OperatorError`
   * if a service has it.
   */
  alone<T>(work: () => Promise<T>): Promise<T>
  /** Throws an `OperatorError` if the folder is another user's. */
  assertOwner(): void
  readonly files: Files
  /** Reads the journal up to where it is acknowledged, verifying all of it, and changes nothing. */
  read(status: JournalStatus, onRecord?: OnRecord): Promise<JournalRead>
  close(): Promise<void>
}

/** What a command works with. */
export interface Context extends Arguments {
  readonly terminal: Terminal
  /** The running service or, where none runs, the folder opened for this command. */
  readonly store: Reached
}

/** An option of a command; `value` names what follows it, in brackets where it may be missing; undefined: nothing. */
export interface Option {
  readonly value?: string
  /** Whether it may be given several times; its values are a list. */
  readonly repeats?: boolean
  readonly help: string
}

/** A command: `name` is its words, `positionals` the names of what follows; `[NAME]`, at the end, may be missing. */
export interface Command {
  readonly name: string
  readonly positionals?: readonly string[]
  readonly options?: { readonly [flag: string]: Option }
  readonly help: string
  /** Command lines without the program, for the help. */
  readonly examples?: readonly string[]
  /** The journals with which the list of commands shows it; undefined: all. */
  readonly journals?: readonly string[]
  /** Where the journal is that it works on, whatever the settings say. Throws a `UsageError`. */
  journal?(flags: Arguments['flags']): string
  /** Whether it makes what does not exist yet. */
  readonly mayCreate?: boolean
  /** Whether it may be the first command on a folder, outside production. */
  readonly mayBegin?: boolean
  /** Gives the program's exit code, if that is not 0. */
  run(context: Context): Promise<number | void>
}
