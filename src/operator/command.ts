/** What a command of the operator's program is, and what it may use. */
import type { Reached } from './reach.ts'
import type { Terminal } from './terminal.ts'

/** A command line, taken apart. */
interface Arguments {
  readonly positionals: readonly string[]
  readonly flags: { readonly [name: string]: string | boolean | undefined }
}

/** What a command works with. */
export interface Context extends Arguments {
  readonly terminal: Terminal
  /** The running service or, where none runs, the folder opened for this command. */
  readonly store: Reached
}

/** An option of a command; `value` names what follows it, undefined: nothing does. */
interface Option {
  readonly value?: string
  readonly help: string
}

/** A command: `name` is its words, `positionals` the names of what follows; `[NAME]`, at the end, may be missing. */
export interface Command {
  readonly name: string
  readonly positionals?: readonly string[]
  readonly options?: { readonly [flag: string]: Option }
  readonly help: string
  /** Where the journal is that it works on, whatever the settings say. Throws a `Misuse`. */
  journal?(flags: Arguments['flags']): 'file' | 'etcd'
  /** Whether it makes what does not stand yet. */
  readonly mayCreate?: boolean
  run(context: Context): Promise<void>
}
