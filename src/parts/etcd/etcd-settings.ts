import {
  fail,
  parseList,
  parseNonEmpty,
  parseSwitch,
  setting,
  type SettingRows,
  type StorageSettings
} from '../../core-settings.ts'
import { isLoopback } from '../../http/client.ts'

export interface EtcdSettings {
  readonly etcdEndpoints: readonly string[]
  readonly etcdPrefix: string
  readonly etcdUser: string | undefined
  readonly etcdPasswordFile: string | undefined
  readonly etcdCa: string | undefined
  readonly etcdCert: string | undefined
  readonly etcdKey: string | undefined
  readonly etcdPlainHttp: boolean
  readonly staleReads: boolean
}

export function settingsFault(settings: EtcdSettings & StorageSettings): string | undefined {
  const { journal, etcdEndpoints, etcdUser, etcdPasswordFile, etcdCert, etcdKey, etcdPlainHttp } =
    settings
  const withoutTls = etcdEndpoints
    .map(endpoint => new URL(endpoint))
    .find(
      ({ protocol, hostname }) =>
        protocol === 'http:' &&
        hostname !== 'localhost' &&
        !isLoopback(hostname.replace(/^\[|\]$/g, ''))
    )
  const faults: readonly (readonly [isFault: boolean, why: string])[] = [
    [journal === 'etcd' && etcdEndpoints.length === 0, 'JOURNAL=etcd needs ETCD_ENDPOINTS'],
    [
      (etcdUser === undefined) !== (etcdPasswordFile === undefined),
      'ETCD_USER and ETCD_PASSWORD_FILE go together'
    ],
    [(etcdCert === undefined) !== (etcdKey === undefined), 'ETCD_CERT and ETCD_KEY go together'],
    [
      withoutTls !== undefined && !etcdPlainHttp,
      `ETCD_ENDPOINTS has ${withoutTls?.origin} without TLS, which ETCD_PLAIN_HTTP=on would allow`
    ]
  ]
  return faults.find(([isFault]) => isFault)?.[1]
}

function serverOrigins(text: string): string[] {
  const items = parseList(text)
  const isOrigin = (item: string): boolean =>
    /^https?:\/\/[^/?#@]+\/?$/.test(item) && URL.canParse(item)
  if (items.length === 0 || !items.every(isOrigin))
    fail('addresses such as https://10.0.0.1:2379, separated by commas')
  return items.map(item => new URL(item).origin)
}

/** No key below a prefix looks like a key of another prefix. */
function keyPrefix(text: string): string {
  const isPrefix = /^(?!.*\/(?![1-9A-Za-z]))(?!.*\.turn(\/|$))[\x21-\x7e]{1,200}$/.test(text)
  return isPrefix
    ? text
    : fail('printable ASCII, with a letter or 1 to 9 after each slash, no part ending in .turn')
}

export const ETCD_SETTINGS: SettingRows<EtcdSettings> = {
  etcdEndpoints: setting(
    'URL,…',
    [],
    serverOrigins,
    'The members of the etcd cluster, each as an address such as `https://10.0.0.1:2379`.'
  ),
  etcdPrefix: setting(
    'PREFIX',
    '/pes',
    keyPrefix,
    'The prefix of all keys of the journal in etcd.'
  ),
  etcdUser: setting('NAME', undefined, parseNonEmpty, 'The user to log in to etcd as.'),
  etcdPasswordFile: setting(
    'FILE',
    undefined,
    parseNonEmpty,
    'The file with the password of that user, on its first line.'
  ),
  etcdCa: setting('FILE', undefined, parseNonEmpty, 'The authorities that vouch for etcd, PEM.', {
    shown: 'those that Node knows'
  }),
  etcdCert: setting('FILE', undefined, parseNonEmpty, 'The certificate to show to etcd, PEM.'),
  etcdKey: setting('FILE', undefined, parseNonEmpty, 'The private key of that certificate, PEM.'),
  etcdPlainHttp: setting(
    'on|off',
    false,
    parseSwitch,
    'Whether etcd on another machine may be reached without TLS.'
  ),
  staleReads: setting(
    'on|off',
    false,
    parseSwitch,
    'Whether reads are answered, with what was known last, while etcd does not answer.',
    { serverOnly: true }
  )
}
