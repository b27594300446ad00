import { UsageError, type OperatorCommand } from '../commands/command.ts'

function run(name: 'copyToEtcd' | 'close' | 'reopen' | 'remove'): OperatorCommand['run'] {
  return async context => (await import('./copy.ts'))[name](context)
}

export const COMMANDS: readonly OperatorCommand[] = [
  {
    name: 'journal copy',
    journals: ['etcd'],
    options: { to: { value: 'WHERE', help: 'etcd' } },
    help:
      'copies the journal of the folder, verified, into etcd, where none is yet; ' +
      'journal backup goes the other way',
    journal: ({ to }) => {
      if (to === 'etcd') return 'file'
      throw new UsageError(
        '--to must be etcd; from etcd into a file: journal close, then journal backup FILE'
      )
    },
    run: run('copyToEtcd')
  },
  {
    name: 'journal close',
    journals: ['etcd'],
    help: 'has a journal in etcd take no changes, until journal reopen; instances go on reading',
    journal: () => 'etcd',
    run: run('close')
  },
  {
    name: 'journal reopen',
    journals: ['etcd'],
    help: 'lets instances write again to a journal in etcd that was closed',
    journal: () => 'etcd',
    run: run('reopen')
  },
  {
    name: 'journal remove',
    journals: ['etcd'],
    positionals: ['PREFIX'],
    options: {
      from: { value: 'WHERE', help: 'etcd' },
      head: {
        value: 'HEAD',
        help: 'of a backup: if the journal still ends so, it need not be closed'
      },
      yes: { help: 'do not ask for confirmation' }
    },
    help: 'removes a journal from etcd that was closed, with everything that belongs to it',
    journal: ({ from }) => {
      if (from !== 'etcd') throw new UsageError('--from must be etcd')
      return from
    },
    run: run('remove')
  }
]
