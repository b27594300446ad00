/**
 * A part: a folder in `parts`, and a line in `parts.ts`. Without its parts, the program serves
 * the contract.
 */
import type { IncomingMessage } from './http/listener.ts'
import type { Route } from './http/router.ts'
import type {
  CoreSettings,
  DefaultAbilities,
  SettingRows,
  StorageSettings
} from './core-settings.ts'
import type { Apply, DurableJournal, JournalOptions } from './journal/journal.ts'
import type { KeyFinder } from './journal/keys.ts'
import type { Lock } from './journal/lock.ts'
import type { OnLine } from './journal/recover.ts'
import type { Log, Observer } from './log.ts'
import type { Accounts } from './accounts/accounts.ts'
import type { Store } from './store/store.ts'
import type { OperatorCommand } from './parts/commands/command.ts'

export interface Part<S extends object = object> {
  readonly settings: SettingRows<S>
  /** Why these settings do not go together. */
  check?(settings: S & StorageSettings & Partial<CoreSettings>): string | undefined
  /** By value of `JOURNAL`. */
  readonly journals?: { readonly [name: string]: JournalKind<S> }
  readonly abilities?: DefaultAbilities
  /** Before any request is served; loads the rest of the part. */
  open?(context: PartContext<S>): Promise<OpenPart>
  commands?(): Promise<readonly OperatorCommand[]>
}

export interface JournalKind<S extends object> {
  /** For `--help`. */
  readonly help: string
  /** Resolves once every record was applied. */
  open(
    settings: S & StorageSettings,
    options: JournalOptions,
    apply: Apply
  ): Promise<DurableJournal>
  /** For the operator: verifies the first records, and changes nothing. */
  read(
    settings: S & StorageSettings,
    from: JournalSource
  ): Promise<{ readonly records: number; readonly head: string }>
}

export interface JournalSource {
  readonly path: string
  readonly records: number
  readonly keys: KeyFinder
  readonly apply: OnLine
  /** `share`: from 0 to 1. */
  readonly onProgress: (share: number) => void
}

export interface Load {
  readonly connections: number
  readonly rateLimitClients: number
  readonly lostLines: number
  /** Of the certificate file, in milliseconds since 1970; undefined without HTTPS. */
  readonly certificateEndMs: number | undefined
}

export interface PartContext<S extends object> {
  readonly settings: S & CoreSettings & { readonly isProduction: boolean }
  readonly store: Store
  /** Undefined in the open configuration. */
  readonly accounts: Accounts | undefined
  /** Undefined for a journal in memory. */
  readonly journal: DurableJournal | undefined
  /** A part may serve on its socket, which only the owner of the folder can open. */
  readonly lock: Lock | undefined
  readonly readMs: number
  readonly log: Log
  /** The user for whom an embedder vouches; undefined if it vouches for none. */
  readonly vouchedFor: ((request: IncomingMessage) => string | undefined) | undefined
  /** The path below which an embedder serves; empty for the program. */
  readonly prefix: string
  /** Complete once all parts are open. */
  routes(): readonly Route[]
  load(): Load
}

export interface OpenPart {
  readonly routes?: readonly Route[]
  /** For an embedder's calls; also routes that the settings leave out. */
  hosted?(): Promise<readonly Route[]>
  readonly place?: { readonly name: string; readonly path: string }
  readonly observer?: Observer
  lostLines?(): number
  /** Called before the journal is closed. */
  close?(): void | Promise<void>
}
