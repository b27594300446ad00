/** The settings: one table, from which parsing, `--help` and the README's table come. A flag beats its variable. */
import { parseArgs } from 'node:util'
import { Failure } from './errors.ts'
import { OPERATIONS } from './api/entries.ts'
import type { Audience } from './api/health.ts'
import type { AddressSet } from './http/address.ts'
import {
  LOGIN_LIMIT_REQUESTS, MAX_BODY_BYTES, MAX_BODY_SETTING_BYTES, RATE_LIMIT_REQUESTS
} from './limits.ts'
import { checkPlace, ETCD_SETTINGS, type EtcdSettings } from './place.ts'
import {
  addresses, exactOrigin, fail, hostName, integer, list, listenAddress, minutes, nonEmpty, oneOf, onOrOff
} from './values.ts'

/** The settings, parsed. */
export interface Settings extends EtcdSettings {
  readonly host: string
  readonly port: number
  readonly dataDir: string
  /** Undefined: `journal.key` in the data folder. */
  readonly keyFile: string | undefined
  /** Requests a minute; 0 is off. */
  readonly rateLimit: number
  /** Whom a request with a token counts against. */
  readonly rateLimitBy: 'ip' | 'user'
  /** Logins a minute; 0 is off. */
  readonly loginLimit: number
  /** The open configuration, or the protected one. */
  readonly auth: 'none' | 'bearer'
  /** Undefined: tokens do not expire. */
  readonly tokenTtlMinutes: number | undefined
  /** The ability that an operation needs; one that is not named needs just a token. */
  readonly abilities: ReadonlyMap<string, string>
  readonly corsOrigins: ReadonlySet<string>
  readonly allowedHosts: ReadonlySet<string>
  readonly trustProxy: AddressSet | undefined
  /** Files, PEM; both or none. */
  readonly tlsCert: string | undefined
  readonly tlsKey: string | undefined
  readonly maxBodyBytes: number
  readonly accessLog: boolean
  readonly journal: 'file' | 'memory' | 'etcd'
  /** Who may ask for `/healthz`, and who for `/metrics`. */
  readonly health: Audience
  readonly metrics: Audience
  /** Whether the page is served. */
  readonly page: boolean
}

/** The settings, and whether `NODE_ENV` is `production`. */
export interface Environment extends Settings {
  readonly isProduction: boolean
}

const DEFAULT_ABILITIES = 'listPassword=password:read,getPassword=password:read,' +
  'createPassword=password:create,updatePassword=password:update,deletePassword=password:delete'

/** How one setting is named, read and explained. */
export interface Setting<T> {
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
    help: 'The address to listen on.', parse: listenAddress
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
  rateLimitBy: {
    variable: 'RATE_LIMIT_BY', flag: 'rate-limit-by', value: 'KEY', fallback: 'ip', shown: '`ip`',
    help: 'Whom a request counts against: its address, or, with `user`, the user of its token.',
    parse: oneOf('ip', 'user')
  },
  loginLimit: {
    variable: 'LOGIN_LIMIT', flag: 'login-limit', value: 'N', fallback: LOGIN_LIMIT_REQUESTS, shown: '`6`',
    help: 'Logins that a client may try in a minute; 0 is off.', parse: integer(0, 1_000_000)
  },
  auth: {
    variable: 'AUTH', flag: 'auth', value: 'KIND', fallback: 'none', shown: '`none`',
    help: 'Who may use the service: `none`, everybody who reaches it; `bearer`, whoever has a token.',
    parse: oneOf('none', 'bearer')
  },
  tokenTtlMinutes: {
    variable: 'TOKEN_TTL_MINUTES', flag: 'token-ttl-minutes', value: 'N', fallback: undefined, shown: 'none',
    help: 'How long a token lives that a login issues, in minutes, fractions allowed; none: until it is revoked.',
    parse: minutes
  },
  abilities: {
    variable: 'ABILITIES', flag: 'abilities', value: 'OP=ABILITY,…', fallback: parseAbilities(DEFAULT_ABILITIES),
    shown: `\`${DEFAULT_ABILITIES.replaceAll(',', ', ')}\``,
    help: 'The ability that a token needs for an operation; one that is not named needs any token.',
    parse: parseAbilities
  },
  corsOrigins: {
    variable: 'CORS_ORIGINS', flag: 'cors-origins', value: 'ORIGIN,…', fallback: new Set(), shown: 'none',
    help: 'Origins whose pages may use the service, exactly as a browser sends them.',
    parse: text => new Set(list(text).map(exactOrigin))
  },
  allowedHosts: {
    variable: 'ALLOWED_HOSTS', flag: 'allowed-hosts', value: 'NAME,…', fallback: new Set(), shown: 'none',
    help: 'Names besides IP addresses and `localhost` that requests may call the service by.',
    parse: text => new Set(list(text).map(hostName))
  },
  trustProxy: {
    variable: 'TRUST_PROXY', flag: 'trust-proxy', value: 'ADDRESS,…', fallback: undefined, shown: 'none',
    help: 'Addresses or CIDR ranges of proxies whose `X-Forwarded-For` counts.',
    parse: addresses
  },
  tlsCert: {
    variable: 'TLS_CERT', flag: 'tls-cert', value: 'FILE', fallback: undefined, shown: 'none',
    help: 'The certificate chain to serve HTTPS with, PEM; reloaded when it changes.', parse: nonEmpty
  },
  tlsKey: {
    variable: 'TLS_KEY', flag: 'tls-key', value: 'FILE', fallback: undefined, shown: 'none',
    help: 'The private key of the certificate, PEM.', parse: nonEmpty
  },
  maxBodyBytes: {
    variable: 'MAX_BODY_BYTES', flag: 'max-body-bytes', value: 'N', fallback: MAX_BODY_BYTES, shown: '`65536`',
    help: 'The size that a request body may have, in bytes.', parse: integer(1, MAX_BODY_SETTING_BYTES)
  },
  accessLog: {
    variable: 'ACCESS_LOG', flag: 'access-log', value: 'on|off', fallback: false, shown: '`off`',
    help: 'Whether each request is logged to standard output, a JSON line each.',
    parse: onOrOff
  },
  journal: {
    variable: 'JOURNAL', flag: 'journal', value: 'KIND', fallback: 'file', shown: '`file`',
    help: 'Where records are kept: `file`; `etcd`, which several instances share; or `memory`, which keeps nothing ' +
      'beyond the process.',
    parse: oneOf('file', 'memory', 'etcd')
  },
  ...ETCD_SETTINGS,
  health: {
    variable: 'HEALTH', flag: 'health', value: 'WHO', fallback: 'local', shown: '`local`',
    help: 'Who may ask for `/healthz`: `local`, this machine and whoever has a token; `public`, everybody; `off`.',
    parse: oneOf('local', 'public', 'off')
  },
  metrics: {
    variable: 'METRICS', flag: 'metrics', value: 'WHO', fallback: 'local', shown: '`local`',
    help: 'Who may ask for `/metrics`; as `HEALTH`.', parse: oneOf('local', 'public', 'off')
  },
  page: {
    variable: 'PAGE', flag: 'page', value: 'on|off', fallback: true, shown: '`on`',
    help: 'Whether there is a page for people at `/`.', parse: onOrOff
  }
}

/** Variables by name. */
export type Variables = { readonly [name: string]: string | undefined }

/**
 * Reads settings from flags and variables; an empty variable counts as unset. Throws `setting-invalid`, naming the
 * one that is malformed or does not go with another.
 */
export function readSettings(args: readonly string[], env: Variables): Environment {
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
export function readOptions(options: Options, isProduction: boolean): Environment {
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  const flags = given.map(([name, value]) => {
    if (!Object.hasOwn(SETTINGS, name)) throw new Failure('setting-invalid', `${name} is not a setting`)
    const text = typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value)
    return [SETTINGS[name as keyof Settings].flag, text]
  })
  return agreeing({ ...readTable(SETTINGS, Object.fromEntries(flags), {}), isProduction })
}

/** Settings that go with each other. */
function agreeing(settings: Environment): Environment {
  const { tlsCert, tlsKey } = settings
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw new Failure('setting-invalid', 'TLS_CERT and TLS_KEY go together')
  }
  checkPlace(settings)
  return settings
}

/** Throws `setting-invalid` where it would listen and then refuse everybody, for nobody could come by HTTPS. */
export function checkTransport({ tlsCert, isProduction, trustProxy }: Environment): void {
  if (isProduction && tlsCert === undefined && trustProxy === undefined) {
    throw new Failure('setting-invalid', 'NODE_ENV=production needs TLS_CERT and TLS_KEY, or a proxy in TRUST_PROXY')
  }
}

/** Reads the settings of a part of the table. */
export function readTable<K extends keyof Settings>(
  table: { readonly [N in K]: Setting<Settings[N]> }, flags: Variables, env: Variables
): { readonly [N in K]: Settings[N] } {
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

function parseAbilities(text: string): ReadonlyMap<string, string> {
  const abilities = new Map<string, string>()
  for (const pair of list(text)) {
    const [operation = '', ability = '', ...rest] = pair.split('=')
    if (!OPERATIONS.includes(operation)) fail(`operations out of ${OPERATIONS.join(', ')}, each with =ability`)
    if (abilities.has(operation)) fail('operation=ability pairs, each operation once')
    if (rest.length > 0 || !/^[A-Za-z0-9:._-]+$/.test(ability)) fail('operation=ability pairs')
    abilities.set(operation, ability)
  }
  return abilities
}
