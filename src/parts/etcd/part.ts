/** The journal in etcd, which several instances share. */
import type { Part } from '../../part.ts'
import { ETCD_SETTINGS, settingsFault, type EtcdSettings } from './etcd-settings.ts'

export const etcd: Part<EtcdSettings> = {
  settings: ETCD_SETTINGS,
  check: settingsFault,
  journals: {
    etcd: {
      help: '`etcd`, which several instances share',
      open: async (...given) => (await import('./etcd-journal.ts')).openEtcdJournal(...given),
      read: async (settings, from) => (await import('./copy.ts')).readEtcd(settings, from)
    }
  },
  commands: async () => (await import('./copy-command.ts')).COMMANDS
}
