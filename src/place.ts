/** Where the journal is: the settings that say so, whether they go together, and how etcd is reached. */
import { Failure, systemCode } from './errors.ts'
import type { Setting, Settings } from './config.ts'
import type { EtcdAccess } from './etcd/client.ts'
import { isLoopback } from './http/address.ts'
import type { Files } from './journal/files.ts'
import { keyPrefix, nonEmpty, onOrOff, serverOrigins } from './values.ts'

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

/** Their part of the table. */
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

/** The settings that say where the journal is. */
export type PlaceSettings = Pick<Settings, 'dataDir' | 'keyFile' | 'journal'> & EtcdSettings

/** Throws `setting-invalid` where those settings do not go together. */
export function checkPlace(settings: PlaceSettings): void {
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
  const fault = faults.find(([isFault]) => isFault)
  if (fault !== undefined) throw new Failure('setting-invalid', fault[1])
}

/** How etcd is reached. Throws `setting-invalid` where a file that the settings name cannot be read. */
export function etcdAccess(settings: PlaceSettings, files: Files): EtcdAccess {
  const { etcdEndpoints: endpoints, etcdUser: name, etcdPasswordFile, etcdCa, etcdCert, etcdKey } = settings
  const read = (path: string | undefined): ReturnType<Files['read']> | undefined => {
    try {
      return path === undefined ? undefined : files.read(path)
    } catch (error) {
      throw new Failure('setting-invalid', `${path}: ${systemCode(error)}`, { cause: error })
    }
  }
  const password = read(etcdPasswordFile)?.toString().split(/\r?\n/)[0]
  const user = name === undefined || password === undefined ? undefined : { name, password }
  return { endpoints, user, ca: read(etcdCa), cert: read(etcdCert), key: read(etcdKey) }
}
