/** How etcd is reached. */
import { Failure, systemCode } from '../../errors.ts'
import type { EtcdAccess } from './etcd-client.ts'
import type { Files } from '../../disk/files.ts'
import type { EtcdSettings } from './etcd-settings.ts'

/** How etcd is reached. Throws `setting-invalid` where a file that the settings name cannot be read. */
export function etcdAccess(settings: EtcdSettings, files: Files): EtcdAccess {
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
