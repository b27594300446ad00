/** Reading settings from an embedder's options. */
import { Failure } from '../errors.ts'
import type { SettingsTable } from './core-settings.ts'
import { readValues } from './read.ts'

/** The settings as an embedder gives them: numbers and booleans as such, everything else as its variable holds it. */
export type OptionsOf<S> = {
  readonly [K in keyof S]?: NonNullable<S[K]> extends string | number | boolean ? S[K] | undefined : string | undefined
}

/** Reads an embedder's options; throws `setting-invalid`, also for an unknown name. */
export function readOptions<S>(table: SettingsTable<S>, options: OptionsOf<S>): S {
  const flags: { [flag: string]: string } = {}
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue
    if (!Object.hasOwn(table as object, name)) throw new Failure('setting-invalid', `${name} is not a setting`)
    if (!['string', 'number', 'boolean'].includes(typeof value)) {
      throw new Failure('setting-invalid', `${name} must be a text, a number, true or false`)
    }
    flags[table[name as keyof S].flag] = typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value)
  }
  return readValues(table, flags, {}, name => name)
}
