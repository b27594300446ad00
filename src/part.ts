/**
 * What a part is: everything that the contract does not need. A part is a folder beside this file and one line in
 * `parts.ts`; without both, the program builds and serves the contract.
 */
import type { Route } from './http/route.ts'
import type { CoreSettings, SettingRows, StorageSettings } from './core-settings.ts'
import type { Apply, DurableJournal, JournalOptions } from './journal/journal.ts'
import type { KeyFinder } from './journal/keys.ts'
import type { Lock } from './journal/lock.ts'
import type { OnLine } from './journal/recover.ts'
import type { Log, Observer } from './log.ts'
import type { Accounts } from './store/accounts.ts'
import type { Store } from './store/store.ts'
import type { Command } from './parts/command.ts'

/** A part with settings of its own. */
export interface Part<S extends object = object> {
  readonly settings: SettingRows<S>
  /** Says which settings do not go together; undefined where all do. */
  check?(settings: S & StorageSettings): string | undefined
  /** Journals by the value of `JOURNAL` that chooses them. */
  readonly journals?: { readonly [name: string]: JournalKind<S> }
  /**
   * The ability that each operation of its routes asks for, or another operation that it asks the same as, unless
   * `ABILITIES` says otherwise.
   */
  readonly abilities?: { readonly [operation: string]: string }
  /** Called when the store is open, before any request is served. Everything else of the part is loaded here. */
  open?(context: PartContext<S>): Promise<OpenPart>
  /** What it adds to the operator's program. */
  commands?(): Promise<readonly Command[]>
}

/** A journal that a part offers. */
export interface JournalKind<S extends object> {
  /** What it is, for `--help`. */
  readonly help: string
  /** Gives it once every record was applied. */
  open(settings: S & StorageSettings, options: JournalOptions, apply: Apply): Promise<DurableJournal>
  /** Reads the first records of a journal, verifying each, for the operator; changes nothing. */
  read(settings: S & StorageSettings, from: JournalSource): Promise<{ readonly records: number, readonly head: string }>
}

/** What is read of a journal, and what takes it. */
export interface JournalSource {
  readonly path: string
  readonly records: number
  readonly keys: KeyFinder
  readonly apply: OnLine
  /** Takes the share that is done, 0 to 1. */
  readonly onProgress: (share: number) => void
}

/** What a part may use. */
export interface PartContext<S extends object> {
  readonly settings: S & CoreSettings & { readonly isProduction: boolean }
  readonly store: Store
  /** Users and tokens, in the protected configuration. */
  readonly accounts: Accounts | undefined
  /** Undefined for a journal in memory. */
  readonly journal: DurableJournal | undefined
  /** That of the data folder; a part may serve on its socket, which only the folder's owner can open. */
  readonly lock: Lock | undefined
  /** How long the start took to read it. */
  readonly readMs: number
  readonly log: Log
  /** The path below which an embedder serves this service; empty for the program. */
  readonly prefix: string
  /** Aborted when the service begins to stop, which need not wait for long work. */
  readonly stopping: AbortSignal
  /** Every route that is served; complete once all parts are open. */
  routes(): readonly Route[]
  /** How many connections and clients the listener and the rate limit hold now. */
  load(): { readonly connections: number, readonly rateLimitClients: number }
}

/** An open part. */
export interface OpenPart {
  readonly routes?: readonly Route[]
  /** What of it is named at the start: where a person finds it. */
  readonly place?: { readonly name: string, readonly path: string }
  readonly observer?: Observer
  /** Called before the journal is closed. */
  close?(): void | Promise<void>
}
