/** The settings: one table, from which parsing, `--help` and the README's table come. */
import type { Audience } from './api/health.ts'
import type { AddressSet } from './http/address.ts'
import {
  LOGIN_LIMIT_REQUESTS, MAX_BODY_BYTES, MAX_BODY_SETTING_BYTES, RATE_LIMIT_REQUESTS
} from './limits.ts'
import {
  abilities, addresses, exactOrigin, hostName, integer, keyPrefix, list, listenAddress, minutes, nonEmpty, oneOf,
  onOrOff, serverOrigins
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

/** The settings of a journal in etcd. */
export interface EtcdSettings {
  /** Origins; none without etcd. */
  readonly etcdEndpoints: readonly string[]
  readonly etcdPrefix: string
  readonly etcdUser: string | undefined
  /** Files, as all that follow. */
  readonly etcdPasswordFile: string | undefined
  readonly etcdCa: string | undefined
  readonly etcdCert: string | undefined
  readonly etcdKey: string | undefined
  readonly etcdPlainHttp: boolean
  readonly staleReads: boolean
}

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

const DEFAULT_ABILITIES = 'listPassword=password:read,getPassword=password:read,' +
  'createPassword=password:create,updatePassword=password:update,deletePassword=password:delete'

/** The part of the table that is about etcd. */
export const ETCD_SETTINGS: { readonly [K in keyof EtcdSettings]: Setting<EtcdSettings[K]> } = {
  etcdEndpoints: {
    variable: 'ETCD_ENDPOINTS', flag: 'etcd-endpoints', value: 'URL,…', fallback: [], shown: 'none',
    help: 'The members of the etcd cluster, each as an address such as `https://10.0.0.1:2379`.',
    parse: serverOrigins
  },
  etcdPrefix: {
    variable: 'ETCD_PREFIX', flag: 'etcd-prefix', value: 'PREFIX', fallback: '/pes', shown: '`/pes`',
    help: 'What the keys of the journal begin with in etcd.', parse: keyPrefix
  },
  etcdUser: {
    variable: 'ETCD_USER', flag: 'etcd-user', value: 'NAME', fallback: undefined, shown: 'none',
    help: 'The user to be for etcd.', parse: nonEmpty
  },
  etcdPasswordFile: {
    variable: 'ETCD_PASSWORD_FILE', flag: 'etcd-password-file', value: 'FILE', fallback: undefined, shown: 'none',
    help: 'The file with the password of that user, on its first line.', parse: nonEmpty
  },
  etcdCa: {
    variable: 'ETCD_CA', flag: 'etcd-ca', value: 'FILE', fallback: undefined, shown: 'those that Node knows',
    help: 'The authorities that vouch for etcd, PEM.', parse: nonEmpty
  },
  etcdCert: {
    variable: 'ETCD_CERT', flag: 'etcd-cert', value: 'FILE', fallback: undefined, shown: 'none',
    help: 'The certificate to show to etcd, PEM.', parse: nonEmpty
  },
  etcdKey: {
    variable: 'ETCD_KEY', flag: 'etcd-key', value: 'FILE', fallback: undefined, shown: 'none',
    help: 'The private key of that certificate, PEM.', parse: nonEmpty
  },
  etcdPlainHttp: {
    variable: 'ETCD_PLAIN_HTTP', flag: 'etcd-plain-http', value: 'on|off', fallback: false, shown: '`off`',
    help: 'Whether etcd on another machine may be reached without TLS.',
    parse: onOrOff
  },
  staleReads: {
    variable: 'STALE_READS', flag: 'stale-reads', value: 'on|off', fallback: false, shown: '`off`',
    help: 'Whether reads are answered, with what was known last, while etcd does not answer.',
    parse: onOrOff
  }
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
    variable: 'ABILITIES', flag: 'abilities', value: 'OP=ABILITY,…', fallback: abilities(DEFAULT_ABILITIES),
    shown: `\`${DEFAULT_ABILITIES.replaceAll(',', ', ')}\``,
    help: 'The ability that a token needs for an operation; one that is not named needs any token.',
    parse: abilities
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
