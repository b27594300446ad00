/** The commands that move the journal from a folder into etcd, and close, open and end one in etcd. */
import { UsageError, type Command } from '../command.ts'

export const COMMANDS: readonly Command[] = [
  {
    name: 'journal copy', journals: ['etcd'],
    options: { to: { value: 'WHERE', help: 'etcd' } },
    help: 'copies the whole journal of the folder, verified, into etcd, where none is yet; the other way is journal backup',
    journal: ({ to }) => {
      if (to === 'etcd') return 'file'
      throw new UsageError('--to must be etcd; from etcd into a file: journal close, then journal backup FILE')
    },
    run: async context => { await (await import('./copy.ts')).copyToEtcd(context) }
  },
  {
    name: 'journal close', journals: ['etcd'],
    help: 'has a journal in etcd take no changes, until journal reopen; instances go on reading',
    journal: () => 'etcd',
    run: async context => { await (await import('./copy.ts')).close(context) }
  },
  {
    name: 'journal reopen', journals: ['etcd'],
    help: 'lets instances write again to a journal in etcd that was closed',
    journal: () => 'etcd',
    run: async context => { await (await import('./copy.ts')).reopen(context) }
  },
  {
    name: 'journal remove', journals: ['etcd'], positionals: ['PREFIX'],
    options: {
      from: { value: 'WHERE', help: 'etcd' },
      head: { value: 'HEAD', help: 'of a backup: if the journal still ends so, it need not be closed' },
      yes: { help: 'do not ask whether it is to go' }
    },
    help: 'removes a journal from etcd that was closed, with everything that belongs to it',
    journal: ({ from }) => {
      if (from !== 'etcd') throw new UsageError('--from must be etcd')
      return from
    },
    run: async context => { await (await import('./copy.ts')).remove(context) }
  }
]
