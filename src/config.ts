/** Reading settings: from flags and variables, of which a flag beats its variable, or from an embedder's options. */
import { parseArgs } from 'node:util'
import { Failure } from './errors.ts'
import { checkPlace } from './place.ts'
import { SETTINGS, type Setting, type Settings } from './settings.ts'

/** The settings, and whether `NODE_ENV` is `production`. */
export interface ServiceSettings extends Settings {
  readonly isProduction: boolean
}

/** Variables by name. */
export type Variables = { readonly [name: string]: string | undefined }

/**
 * Reads settings from flags and variables; an empty variable counts as unset. Throws `setting-invalid`, naming the
 * one that is malformed or does not go with another.
 */
export function readSettings(args: readonly string[], env: Variables): ServiceSettings {
  const isProduction = env['NODE_ENV'] === 'production'
  const settings = agreeing({ ...readTable(SETTINGS, readFlags(args), env), isProduction })
  checkTransport(settings)
  return settings
}

/** The settings as an embedder gives them: numbers and booleans as such, everything else as its variable holds it. */
export type Options = {
  readonly [K in keyof Settings]?: NonNullable<Settings[K]> extends string | number | boolean
    ? Settings[K] | undefined
    : string | undefined
}

/** Reads settings from options; throws `setting-invalid` as `readSettings` does, and for a name that is none. */
export function readOptions(options: Options, isProduction: boolean): ServiceSettings {
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  const flags = given.map(([name, value]) => {
    if (!Object.hasOwn(SETTINGS, name)) throw new Failure('setting-invalid', `${name} is not a setting`)
    const text = typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value)
    return [SETTINGS[name as keyof Settings].flag, text]
  })
  return agreeing({ ...readTable(SETTINGS, Object.fromEntries(flags), {}, name => name), isProduction })
}

/** Settings that go with each other. */
function agreeing(settings: ServiceSettings): ServiceSettings {
  const { tlsCert, tlsKey } = settings
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw new Failure('setting-invalid', 'TLS_CERT and TLS_KEY go together')
  }
  checkPlace(settings)
  return settings
}

/** Throws `setting-invalid` where it would listen and then refuse everybody, for nobody could come by HTTPS. */
export function checkTransport({ tlsCert, isProduction, trustProxy }: ServiceSettings): void {
  if (isProduction && tlsCert === undefined && trustProxy === undefined) {
    throw new Failure('setting-invalid', 'NODE_ENV=production needs TLS_CERT and TLS_KEY, or a proxy in TRUST_PROXY')
  }
}

/** Reads the settings of a part of the table; `calls` says what a malformed flag is called by whoever gave it. */
export function readTable<K extends keyof Settings>(
  table: { readonly [N in K]: Setting<Settings[N]> }, flags: Variables, env: Variables,
  calls: (name: string, flag: string) => string = (_, flag) => `--${flag}`
): { readonly [N in K]: Settings[N] } {
  const read = ([name, setting]: [string, Setting<unknown>]): [string, unknown] => {
    const flag = flags[setting.flag]
    const text = flag ?? (env[setting.variable] || undefined)
    if (text === undefined) return [name, setting.fallback]
    try {
      return [name, setting.parse(text)]
    } catch (error) {
      const source = flag === undefined ? setting.variable : calls(name, setting.flag)
      throw new Failure('setting-invalid', `${source} must be ${(error as Error).message}`)
    }
  }
  return Object.fromEntries(Object.entries<Setting<unknown>>(table).map(read)) as { [N in K]: Settings[N] }
}

function readFlags(args: readonly string[]): Variables {
  const options = Object.fromEntries(Object.values(SETTINGS).map(({ flag }) => [flag, { type: 'string' as const }]))
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values
  } catch (error) {
    const line = (error as Error).message.split('\n')[0]!
    throw new Failure('setting-invalid', line.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?'))
  }
}

/** A line a setting, for `--help`. */
export function settingsHelp(table: { readonly [name: string]: Setting<unknown> } = SETTINGS): string {
  return Object.values(table)
    .map(({ flag, value, variable, shown, help }) =>
      `  ${`--${flag} ${value}`.padEnd(28)} ${help} ${variable}, default ${shown}.`.replaceAll('`', ''))
    .join('\n')
}
