import { parseArgs } from 'node:util'
import { OPERATIONS, OWN_OPERATIONS } from './contract.ts'
import {
  coreSettings,
  withNames,
  type CoreSettings,
  type Setting,
  type SettingsTable,
  type StorageSettings
} from './core-settings.ts'
import { Failure } from './errors.ts'
import * as parts from './parts.ts'
import type { Part } from './part.ts'

export const PARTS: readonly Part[] = Object.values(parts)

type Intersection<U> = (U extends unknown ? (one: U) => void : never) extends (all: infer I) => void
  ? I
  : never
type SettingsOf<P> = P extends Part<infer S> ? S : never

/** The settings of the core and of all parts. */
export type Settings = CoreSettings & Intersection<SettingsOf<(typeof parts)[keyof typeof parts]>>

export type ServiceSettings = Settings & { readonly isProduction: boolean }

export const JOURNALS: NonNullable<Part['journals']> = Object.assign(
  {},
  ...PARTS.map(({ journals }) => journals)
)

/** Reading, `--help` and the documents' table come from this table. */
export const SETTINGS: SettingsTable<Settings> = withNames(
  Object.assign(
    coreSettings(
      JOURNALS,
      Object.assign({}, OPERATIONS, OWN_OPERATIONS, ...PARTS.map(({ abilities }) => abilities))
    ),
    ...PARTS.map(({ settings }) => settings)
  )
)

/** Throws `setting-invalid`. */
export function readSettings(args: readonly string[], env: Variables): ServiceSettings {
  const flags = readFlags(SETTINGS, args)
  const settings = {
    ...readValues(SETTINGS, flags, env),
    isProduction: env['NODE_ENV'] === 'production'
  }
  validateCombinations(settings)
  const { variable, flag } = SETTINGS.auth
  const isProtected = !settings.isProduction || flags[flag] || env[variable]
  assertNoneMissing([...(isProtected ? [] : [AUTH_MISSING]), ...transportMissing(settings)])
  return settings
}

// A mistyped name would leave every entry open behind the proxy.
const AUTH_MISSING = 'AUTH=bearer, or AUTH=none on purpose'

/** For an embedder's options. Throws `setting-invalid`. */
export function checkAuthGiven(isProduction: boolean, isGiven: boolean): void {
  assertNoneMissing(isProduction && !isGiven ? [AUTH_MISSING] : [])
}

/** Throws `setting-invalid`. */
export function validateCombinations(settings: StorageSettings & Partial<CoreSettings>): void {
  const { tlsCert, tlsKey } = settings
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw new Failure('setting-invalid', 'TLS_CERT and TLS_KEY go together')
  }
  for (const part of PARTS) {
    const fault = part.check?.(settings)
    if (fault !== undefined) throw new Failure('setting-invalid', fault)
  }
}

/** Throws `setting-invalid` if production would refuse every request for lack of HTTPS. */
export function checkTransport(settings: ServiceSettings): void {
  assertNoneMissing(transportMissing(settings))
}

function transportMissing({ tlsCert, isProduction, trustProxy }: ServiceSettings): string[] {
  const lacksTls = isProduction && tlsCert === undefined && trustProxy === undefined
  return lacksTls ? ['TLS_CERT and TLS_KEY, or a proxy in TRUST_PROXY'] : []
}

function assertNoneMissing(missing: readonly string[]): void {
  if (missing.length > 0)
    throw new Failure('setting-invalid', `NODE_ENV=production needs ${missing.join('; and ')}`)
}

export type Variables = { readonly [name: string]: string | undefined }

/** Flags win over variables. */
function readFlags<S>(table: SettingsTable<S>, args: readonly string[]): Variables {
  const flags = Object.values<Setting<unknown>>(table).map(({ flag }) => flag)
  const options = Object.fromEntries(flags.map(flag => [flag, { type: 'string' as const }]))
  const { values, tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true })
  const seen = new Set<string>()
  for (const token of tokens) {
    if (token.kind !== 'option' || !Object.hasOwn(options, token.name)) {
      const given = args[token.index]!.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?').split('=')[0]!
      const meant = nearest(
        given,
        flags.map(flag => `--${flag}`)
      )
      const hint = meant === undefined ? '--help lists them' : `did you mean ${meant}?`
      throw new Failure('setting-invalid', `there is no flag '${given}'; ${hint}`)
    }
    const { name, value, inlineValue } = token
    if (seen.has(name)) throw new Failure('setting-invalid', `--${name} is given twice`)
    seen.add(name)
    if (value === undefined || (!inlineValue && value.startsWith('-'))) {
      throw new Failure('setting-invalid', `--${name} needs a value`)
    }
  }
  return values as Variables
}

/** The known word within a slip: a letter changed, added, left out, or swapped. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const slips = withoutOne(word)
  return known.find(one => withoutOne(one).some(rest => slips.includes(rest)))
}

/** Two words that share a result differ by a slip. */
function withoutOne(word: string): readonly string[] {
  return [word, ...Array.from(word, (_, i) => word.slice(0, i) + word.slice(i + 1))]
}

/** `nameOf`: what an error calls a setting. Throws `setting-invalid`. */
export function readValues<S>(
  table: SettingsTable<S>,
  flags: Variables,
  env: Variables,
  nameOf: (name: string, flag: string) => string = (_, flag) => `--${flag}`
): S {
  const read = ([name, setting]: [string, Setting<unknown>]): [string, unknown] => {
    const flag = flags[setting.flag]
    const text = flag ?? (env[setting.variable] || undefined)
    if (text === undefined) return [name, setting.fallback]
    try {
      return [name, setting.parse(text)]
    } catch (error) {
      const source = flag === undefined ? setting.variable : nameOf(name, setting.flag)
      throw new Failure('setting-invalid', `${source} must be ${(error as Error).message}`)
    }
  }
  return Object.fromEntries(
    Object.entries(table as { [name: string]: Setting<unknown> }).map(read)
  ) as S
}

export function settingsHelp<S>(table: SettingsTable<S>): string {
  return Object.values<Setting<unknown>>(table)
    .map(({ flag, value, variable, shown, help }) =>
      `  ${`--${flag} ${value}`.padEnd(28)} ${help} ${variable}, default ${shown}.`.replaceAll(
        '`',
        ''
      )
    )
    .join('\n')
}
