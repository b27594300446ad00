/** The journal in etcd, which several instances share. */
import type { Part } from '../part.ts'
import { ETCD_SETTINGS, settingsFault, type EtcdSettings } from './etcd-settings.ts'

export const etcd: Part<EtcdSettings> = {
  settings: ETCD_SETTINGS,
  check: settingsFault,
  journals: {
    etcd: {
      help: '`etcd`, which several instances share',
      open: async (settings, options, apply) => {
        const { openFromSettings } = await import('./open-etcd.ts')
        return openFromSettings(settings, options, apply)
      },
      read: async (settings, from) => {
        const { readEtcdJournal } = await import('./copy-command.ts')
        return readEtcdJournal(settings, from)
      }
    }
  },
  commands: async () => (await import('./copy-command.ts')).COPY_COMMANDS
}
