/** The command that copies the journal between a folder and etcd. */
import { UsageError, type Arguments, type Command } from '../command.ts'

/** Where a copy comes from. */
function sourceOf({ to }: Arguments['flags']): 'file' | 'etcd' {
  if (to !== 'etcd' && to !== 'file') throw new UsageError('--to must be etcd or file')
  return to === 'etcd' ? 'file' : 'etcd'
}

/** So that one host becomes several, and several one. */
export const COPY: Command = {
  name: 'journal copy', options: { to: { value: 'WHERE', help: 'etcd, from the folder; file, into it from etcd' } },
  help: 'copies the whole journal, verified, to where none is yet; no instance may run meanwhile',
  journal: sourceOf,
  run: async context => {
    const { copyToEtcd, copyToFile } = await import('./copy.ts')
    await (sourceOf(context.flags) === 'file' ? copyToEtcd : copyToFile)(context)
  }
}
