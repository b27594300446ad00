/** The settings: one table, from which parsing, `--help` and the README's table come. A flag beats its variable. */
import { parseArgs } from 'node:util'
import { Failure } from './errors.ts'
import { parseAddressSet, type AddressSet } from './http/address.ts'
import { MAX_BODY_BYTES, MAX_BODY_SETTING_BYTES, RATE_LIMIT_REQUESTS } from './limits.ts'

/** The settings, parsed. */
export interface Settings {
  readonly host: string
  readonly port: number
  readonly dataDir: string
  /** Undefined: `journal.key` in the data folder. */
  readonly keyFile: string | undefined
  /** Requests a minute; 0 is off. */
  readonly rateLimit: number
  readonly allowedHosts: ReadonlySet<string>
  readonly trustProxy: AddressSet | undefined
  readonly maxBodyBytes: number
  readonly journal: 'file' | 'memory'
}

interface Setting<T> {
  readonly variable: string
  readonly flag: string
  /** What the flag's value is called in `--help`. */
  readonly value: string
  readonly fallback: T
  /** The default as a person reads it. */
  readonly shown: string
  readonly help: string
  /** Gives the value; throws an `Error` that says what a value must be. */
  readonly parse: (text: string) => T
}

/** The table. */
export const SETTINGS: { readonly [K in keyof Settings]: Setting<Settings[K]> } = {
  host: {
    variable: 'HOST', flag: 'host', value: 'ADDRESS', fallback: '127.0.0.1', shown: '`127.0.0.1`',
    help: 'The address to listen on.', parse: nonEmpty
  },
  port: {
    variable: 'PORT', flag: 'port', value: 'N', fallback: 3000, shown: '`3000`',
    help: 'The port to listen on; 0 takes a free one.', parse: integer(0, 65535)
  },
  dataDir: {
    variable: 'DATA_DIR', flag: 'data', value: 'FOLDER', fallback: 'data', shown: '`data` in the working folder',
    help: 'The folder of the journal.', parse: nonEmpty
  },
  keyFile: {
    variable: 'KEY_FILE', flag: 'key-file', value: 'FILE', fallback: undefined,
    shown: '`journal.key` in the data folder', help: 'The file of the keys that seal the journal.', parse: nonEmpty
  },
  rateLimit: {
    variable: 'RATE_LIMIT', flag: 'rate-limit', value: 'N', fallback: RATE_LIMIT_REQUESTS, shown: '`60`',
    help: 'Requests under `/api` that a client may make in a minute; 0 is off.', parse: integer(0, 1_000_000)
  },
  allowedHosts: {
    variable: 'ALLOWED_HOSTS', flag: 'allowed-hosts', value: 'NAME,…', fallback: new Set(), shown: 'none',
    help: 'Names besides IP addresses and `localhost` that requests may call the service by.',
    parse: text => new Set(list(text).map(hostName))
  },
  trustProxy: {
    variable: 'TRUST_PROXY', flag: 'trust-proxy', value: 'ADDRESS,…', fallback: undefined, shown: 'none',
    help: 'Addresses or CIDR ranges of proxies whose `X-Forwarded-For` counts.',
    parse: text => parseAddressSet(list(text)) ?? fail('IP addresses or CIDR ranges, separated by commas')
  },
  maxBodyBytes: {
    variable: 'MAX_BODY_BYTES', flag: 'max-body-bytes', value: 'N', fallback: MAX_BODY_BYTES, shown: '`65536`',
    help: 'The size that a request body may have, in bytes.', parse: integer(1, MAX_BODY_SETTING_BYTES)
  },
  journal: {
    variable: 'JOURNAL', flag: 'journal', value: 'KIND', fallback: 'file', shown: '`file`',
    help: 'Where records are kept: `file`, or `memory`, which keeps nothing beyond the process.',
    parse: text => text === 'file' || text === 'memory' ? text : fail('file or memory')
  }
}

/** Reads settings from flags and variables; an empty variable counts as unset. Throws `setting-invalid`, naming one. */
export function readSettings(args: readonly string[], env: { readonly [name: string]: string | undefined }): Settings {
  const flags = readFlags(args)
  const read = ([name, setting]: [string, Setting<unknown>]): [string, unknown] => {
    const flag = flags[setting.flag]
    const text = flag ?? (env[setting.variable] || undefined)
    if (text === undefined) return [name, setting.fallback]
    try {
      return [name, setting.parse(text)]
    } catch (error) {
      const source = flag === undefined ? setting.variable : `--${setting.flag}`
      throw new Failure('setting-invalid', `${source} must be ${(error as Error).message}`)
    }
  }
  return Object.fromEntries(Object.entries(SETTINGS).map(read)) as unknown as Settings
}

function readFlags(args: readonly string[]): { readonly [flag: string]: string | undefined } {
  const options = Object.fromEntries(Object.values(SETTINGS).map(({ flag }) => [flag, { type: 'string' as const }]))
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values
  } catch (error) {
    throw new Failure('setting-invalid', (error as Error).message.split('\n')[0]!)
  }
}

/** A line a setting, for `--help`. */
export function settingsHelp(): string {
  return Object.values(SETTINGS)
    .map(({ flag, value, variable, shown, help }) =>
      `  ${`--${flag} ${value}`.padEnd(28)} ${help} ${variable}, default ${shown}.`.replaceAll('`', ''))
    .join('\n')
}

/** The table of the README. */
export function settingsTable(): string {
  const rows = Object.values(SETTINGS).map(({ variable, flag, shown, help }) =>
    `| \`${variable}\` | \`--${flag}\` | ${shown} | ${help} |`)
  return ['| variable | flag | default | what it sets |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

function fail(mustBe: string): never { throw new Error(mustBe) }

function nonEmpty(text: string): string { return text === '' ? fail('given') : text }

function integer(least: number, most: number): (text: string) => number {
  return text => {
    const value = /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : -1
    return value >= least && value <= most ? value : fail(`a whole number from ${least} to ${most}`)
  }
}

function list(text: string): string[] {
  return text.split(',').map(item => item.trim()).filter(item => item !== '')
}

function hostName(text: string): string {
  return /^[A-Za-z0-9.-]+(:[0-9]+)?$/.test(text) ? text.toLowerCase() : fail('host names, separated by commas')
}
