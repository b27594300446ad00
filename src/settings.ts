/** All settings and their combinations. */
import {
  coreSettings, withNames, type CoreSettings, type SettingsTable, type StorageSettings
} from './core-settings.ts'
import { readFlags, readValues, type Variables } from './read-settings.ts'
import { OPERATIONS } from './contract.ts'
import { workingFolder } from './journal/files.ts'
import { Failure } from './errors.ts'
import * as parts from './parts.ts'
import type { Part } from './part.ts'

export const PARTS: readonly Part[] = Object.values(parts)

type Intersection<U> = (U extends unknown ? (one: U) => void : never) extends (all: infer I) => void ? I : never
type SettingsOf<P> = P extends Part<infer S> ? S : never

/** The settings of the core and of all parts. */
export type Settings = CoreSettings & Intersection<SettingsOf<typeof parts[keyof typeof parts]>>

export type ServiceSettings = Settings & { readonly isProduction: boolean }

export const JOURNALS: NonNullable<Part['journals']> = Object.assign({}, ...PARTS.map(({ journals }) => journals))

/** Reading, `--help` and the documents' table come from this table. */
export const SETTINGS: SettingsTable<Settings> = withNames(Object.assign(
  coreSettings(JOURNALS, Object.assign({}, OPERATIONS, ...PARTS.map(({ abilities }) => abilities))),
  ...PARTS.map(({ settings }) => settings)
))

/** Throws `setting-invalid`. */
export function readSettings(args: readonly string[], env: Variables): ServiceSettings {
  const flags = readFlags(SETTINGS, args)
  const settings = { ...readValues(SETTINGS, flags, env), isProduction: env['NODE_ENV'] === 'production' }
  validateCombinations(settings)
  const { variable, flag } = SETTINGS.auth
  // A mistyped variable would leave every entry open behind the proxy.
  const isOpenByDefault = settings.isProduction && !flags[flag] && !env[variable]
  checkProduction(settings, isOpenByDefault ? [`${variable}=bearer, or ${variable}=none on purpose`] : [])
  return settings
}

/** Throws `setting-invalid`. */
export function validateCombinations(settings: StorageSettings & Partial<CoreSettings>): void {
  const { dataDir, keyFile = dataDir, journal, tlsCert, tlsKey } = settings
  const relative = [['DATA_DIR', dataDir], ['KEY_FILE', keyFile]].find(([, path]) => !path!.startsWith('/'))
  if (relative !== undefined && journal !== 'memory' && workingFolder() === undefined) {
    const why = 'the working folder was removed, or its name is not UTF-8'
    throw new Failure('setting-invalid', `${relative[0]} must be an absolute path: ${why}`)
  }
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw new Failure('setting-invalid', 'TLS_CERT and TLS_KEY go together')
  }
  for (const part of PARTS) {
    const fault = part.check?.(settings)
    if (fault !== undefined) throw new Failure('setting-invalid', fault)
  }
}

/** Throws `setting-invalid` if production would refuse every request for lack of HTTPS. */
export function checkTransport(settings: ServiceSettings): void { checkProduction(settings, []) }

function checkProduction({ tlsCert, isProduction, trustProxy }: ServiceSettings, missing: readonly string[]): void {
  const lacksTls = isProduction && tlsCert === undefined && trustProxy === undefined
  const all = [...missing, ...lacksTls ? ['TLS_CERT and TLS_KEY, or a proxy in TRUST_PROXY'] : []]
  if (all.length > 0) throw new Failure('setting-invalid', `NODE_ENV=production needs ${all.join('; and ')}`)
}
