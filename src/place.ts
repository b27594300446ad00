/** Where the journal is: whether the settings that say so go together, and how etcd is reached. */
import { Failure, systemCode } from './errors.ts'
import type { EtcdAccess } from './etcd/client.ts'
import { isLoopback } from './http/address.ts'
import type { Files } from './journal/files.ts'
import type { EtcdSettings, Settings } from './settings.ts'

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
