/** The commands that move the journal between a folder and etcd, and end one in etcd. */
import { UsageError, type Arguments, type Command } from '../command.ts'

/** Where a copy comes from. */
function sourceOf({ to }: Arguments['flags']): 'file' | 'etcd' {
  if (to !== 'etcd' && to !== 'file') throw new UsageError('--to must be etcd or file')
  return to === 'etcd' ? 'file' : 'etcd'
}

/** So that one host becomes several, and several one. */
export const COMMANDS: readonly Command[] = [
  {
    name: 'journal copy', journals: ['etcd'],
    options: { to: { value: 'WHERE', help: 'etcd, from the folder; file, into it from etcd' } },
    help: 'copies the whole journal, verified, to where none is yet; one in etcd takes no changes from then on',
    journal: sourceOf,
    run: async context => {
      const { copyToEtcd, copyToFile } = await import('./copy.ts')
      await (sourceOf(context.flags) === 'file' ? copyToEtcd : copyToFile)(context)
    }
  },
  {
    name: 'journal reopen', journals: ['etcd'],
    help: 'lets instances write again to a journal in etcd that a copy to a file has closed',
    journal: () => 'etcd',
    run: async context => { await (await import('./copy.ts')).reopen(context) }
  },
  {
    name: 'journal remove', journals: ['etcd'], positionals: ['PREFIX'],
    options: {
      from: { value: 'WHERE', help: 'etcd' },
      yes: { help: 'do not ask whether it is to go' }
    },
    help: 'removes a journal from etcd that was closed by a copy to a file, with everything that belongs to it',
    journal: ({ from }) => {
      if (from !== 'etcd') throw new UsageError('--from must be etcd')
      return from
    },
    run: async context => { await (await import('./copy.ts')).remove(context) }
  }
]
