/** The settings of the journal in etcd. */
import type { SettingsTable, StorageSettings } from '../../config/core-settings.ts'
import { fail, list, nonEmpty, onOrOff } from '../../config/values.ts'
import { isLoopback } from '../../http/address.ts'

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

/** Says which settings do not go together. */
export function settingsFault(settings: EtcdSettings & StorageSettings): string | undefined {
  const { journal, etcdEndpoints, etcdUser, etcdPasswordFile, etcdCert, etcdKey, etcdPlainHttp } = settings
  const isOpen = etcdEndpoints.map(endpoint => new URL(endpoint)).find(({ protocol, hostname }) =>
    protocol === 'http:' && hostname !== 'localhost' && !isLoopback(hostname.replace(/^\[|\]$/g, '')))
  const faults: readonly (readonly [isFault: boolean, why: string])[] = [
    [journal === 'etcd' && etcdEndpoints.length === 0, 'JOURNAL=etcd needs ETCD_ENDPOINTS'],
    [(etcdUser === undefined) !== (etcdPasswordFile === undefined), 'ETCD_USER and ETCD_PASSWORD_FILE go together'],
    [(etcdCert === undefined) !== (etcdKey === undefined), 'ETCD_CERT and ETCD_KEY go together'],
    [isOpen !== undefined && !etcdPlainHttp,
      `ETCD_ENDPOINTS has ${isOpen?.origin} without TLS, which ETCD_PLAIN_HTTP=on would allow`]
  ]
  return faults.find(([isFault]) => isFault)?.[1]
}

/** Origins of servers, one or more: a scheme, a host, perhaps a port, and nothing else. */
function serverOrigins(text: string): string[] {
  const items = list(text)
  const isOrigin = (item: string): boolean => /^https?:\/\/[^/?#@]+\/?$/.test(item) && URL.canParse(item)
  if (items.length === 0 || !items.every(isOrigin)) fail('addresses such as https://10.0.0.1:2379, separated by commas')
  return items.map(item => new URL(item).origin)
}

/** The beginning of a key, without the slash that follows it; no key below it looks like a record of another one. */
function keyPrefix(text: string): string {
  const isPrefix = /^(?!.*\/(?![1-9A-Za-z]))[\x21-\x7e]{1,200}$/.test(text)
  return isPrefix ? text : fail('printable ASCII, with a letter or 1 to 9 after each slash')
}

export const ETCD_SETTINGS: SettingsTable<EtcdSettings> = {
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
    help: 'The user to log in to etcd as.', parse: nonEmpty
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
    variable: 'STALE_READS', flag: 'stale-reads', value: 'on|off', fallback: false, shown: '`off`', serverOnly: true,
    help: 'Whether reads are answered, with what was known last, while etcd does not answer.',
    parse: onOrOff
  }
}
