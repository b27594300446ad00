/** Opening the journal in etcd. */
import { disk } from '../../disk/files.ts'
import { Failure } from '../../errors.ts'
import type { Apply, DurableJournal, JournalOptions } from '../../journal/journal.ts'
import { readKeyFile } from '../../journal/keys.ts'
import { etcdAccess } from './access.ts'
import { openEtcdJournal } from './etcd-journal.ts'
import type { EtcdSettings } from './etcd-settings.ts'

/** Opens the journal. Rejects with `key-missing`: the instances share a key, which is made once. */
export async function openFromSettings(
  settings: EtcdSettings, options: JournalOptions, apply: Apply
): Promise<DurableJournal> {
  const { etcdPrefix: prefix, staleReads } = settings
  const keys = readKeyFile(disk, options.keyFile)
  if (keys === undefined) {
    const why = 'the instances share one, which admin.js init --journal file makes'
    throw new Failure('key-missing', `${options.keyFile}; ${why}`)
  }
  const access = etcdAccess(settings, disk)
  return openEtcdJournal({ ...options, files: disk, access, prefix, keys, staleReads }, apply)
}
