/** The core's settings: one table, from which reading, `--help` and the README's table come. */
import type { AddressSet } from '../http/address.ts'
import {
  LOGIN_LIMIT_REQUESTS, MAX_BODY_BYTES, MAX_BODY_SETTING_BYTES, RATE_LIMIT_REQUESTS
} from '../limits.ts'
import {
  abilities as abilityOfEach, addresses, exactOrigin, hostName, integer, list, listenAddress, minutes, nonEmpty,
  oneOf, onOrOff
} from './values.ts'

/** The settings, parsed. */
export interface CoreSettings {
  readonly host: string
  readonly port: number
  readonly dataDir: string
  /** Undefined: `journal.key` in the data folder. */
  readonly keyFile: string | undefined
  /** Requests a minute; 0 is off. */
  readonly rateLimit: number
  /** What a request with a token counts against. */
  readonly rateLimitBy: 'ip' | 'user'
  /** Logins a minute; 0 is off. */
  readonly loginLimit: number
  /** The open configuration, or the protected one. */
  readonly auth: 'none' | 'bearer'
  /** Undefined: tokens do not expire. */
  readonly tokenTtlMinutes: number | undefined
  /** The ability that an operation needs; an operation that is not named needs just a token. */
  readonly abilities: ReadonlyMap<string, string>
  readonly corsOrigins: ReadonlySet<string>
  readonly allowedHosts: ReadonlySet<string>
  readonly trustProxy: AddressSet | undefined
  /** Files, PEM; both or none. */
  readonly tlsCert: string | undefined
  readonly tlsKey: string | undefined
  readonly maxBodyBytes: number
  readonly accessLog: boolean
  /** `file`, `memory`, or the name of a journal that a part offers. */
  readonly journal: string
}

/** The settings that say where the journal is. */
export type StorageSettings = Pick<CoreSettings, 'dataDir' | 'keyFile' | 'journal'>

/** A table of settings by their names in the program. */
export type SettingsTable<S> = { readonly [K in keyof S]: Setting<S[K]> }

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
  /** Whether the operator's program has no use for it. */
  readonly serverOnly?: boolean
  /** Gives the value; throws an `Error` that says what a value must be. */
  readonly parse: (text: string) => T
}

/** What parts add to the values of the core's settings. */
export interface Additions {
  /** Journals besides `file` and `memory`: what each is, by its name. */
  readonly journals: { readonly [name: string]: string }
  /** The ability that each operation asks for by default. */
  readonly abilities: { readonly [operation: string]: string }
}

/** The data folder unless a setting names another. */
export const DEFAULT_DATA_DIR = 'data'

/** The core's table. */
export const coreSettings = ({ journals, abilities }: Additions): SettingsTable<CoreSettings> => {
  const defaultAbilities = Object.entries(abilities).map(pair => pair.join('='))
  return {
    host: {
      variable: 'HOST', flag: 'host', value: 'ADDRESS', fallback: '127.0.0.1', shown: '`127.0.0.1`',
      help: 'The address to listen on.', parse: listenAddress
    },
    port: {
      variable: 'PORT', flag: 'port', value: 'N', fallback: 3000, shown: '`3000`',
      help: 'The port to listen on; 0 takes a free one.', parse: integer(0, 65535)
    },
    dataDir: {
      variable: 'DATA_DIR', flag: 'data', value: 'FOLDER', fallback: DEFAULT_DATA_DIR,
      shown: '`data` in the working folder',
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
      help: 'What a request counts against: the client address, or with `user` the user of its token.',
      parse: oneOf('ip', 'user')
    },
    loginLimit: {
      variable: 'LOGIN_LIMIT', flag: 'login-limit', value: 'N', fallback: LOGIN_LIMIT_REQUESTS, shown: '`6`',
      help: 'Logins that a client may try in a minute; 0 is off.', parse: integer(0, 1_000_000)
    },
    auth: {
      variable: 'AUTH', flag: 'auth', value: 'KIND', fallback: 'none', shown: '`none`',
      help: 'Who may use the service: `none`, anyone who reaches it; `bearer`, anyone with a token.',
      parse: oneOf('none', 'bearer')
    },
    tokenTtlMinutes: {
      variable: 'TOKEN_TTL_MINUTES', flag: 'token-ttl-minutes', value: 'N', fallback: undefined, shown: 'none',
      help: 'The lifetime of a token from a login, in minutes, fractions allowed; none: until it is revoked.',
      parse: minutes
    },
    abilities: {
      variable: 'ABILITIES', flag: 'abilities', value: 'OP=ABILITY,…', fallback: new Map(Object.entries(abilities)),
      shown: `\`${defaultAbilities.join(', ')}\``,
      help: 'The ability that a token needs for an operation; one that is not named needs any token.',
      parse: abilityOfEach(Object.keys(abilities))
    },
    corsOrigins: {
      variable: 'CORS_ORIGINS', flag: 'cors-origins', value: 'ORIGIN,…', fallback: new Set(), shown: 'none',
      help: 'Origins whose pages may use the service, exactly as a browser sends them.',
      parse: text => new Set(list(text).map(exactOrigin))
    },
    allowedHosts: {
      variable: 'ALLOWED_HOSTS', flag: 'allowed-hosts', value: 'NAME,…', fallback: new Set(), shown: 'none',
      help: 'Host names besides `localhost` and IP addresses that requests may name in `Host`.',
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
      help: ['Where records are kept: `file`', ...Object.values(journals),
        'or `memory`, which keeps nothing beyond the process.'].join('; '),
      parse: oneOf('file', 'memory', ...Object.keys(journals))
    }
  }
}
