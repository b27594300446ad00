/** The commands on the journal, its keys, and the history that it holds. */
import { disk } from '../journal/files.ts'
import type { JournalRecord } from '../journal/journal.ts'
import { copyFile } from '../journal/recover.ts'
import type { EntryChanges, Facts } from '../store/record.ts'
import type { CommittedState } from '../store/state.ts'
import { keyPrefix } from '../values.ts'
import type { Command, Context } from './command.ts'
import { saveLines } from './copy.ts'
import { readAll, statusOf, type Status } from './read.ts'
import { Misuse, Refusal } from './refusal.ts'
import { makeFile } from './target.ts'

const REVEAL = { reveal: { help: 'show passwords' } }
const HIDDEN = '********'

/** A record's data as a person reads it, without what must not be seen. */
function shown(record: JournalRecord, reveal: boolean): string {
  return JSON.stringify(record.data, (name, value) => {
    const isSecret = (name === 'password' && !reveal) || name === 'passwordHash'
    return isSecret ? HIDDEN : value
  })
}

/** What a record says of an entry; undefined where it is about something else. */
function changesOf({ type, data }: JournalRecord, id: number): EntryChanges | undefined {
  if (type === 'entries.imported') {
    const { first, entries } = data as Facts['entries.imported']
    return entries[id - first]
  }
  return type.startsWith('entry.') && (data as { id: number }).id === id ? data as EntryChanges : undefined
}

function whoWas(state: CommittedState, by: number | null): string {
  return by === null ? '-' : state.users.get(by)?.email ?? String(by)
}

function idOf({ positionals: [text] }: Context): number {
  if (text === undefined || !/^[1-9][0-9]{0,14}$/.test(text)) throw new Misuse('ID must be a positive integer')
  return Number(text)
}

function targetOf(given: string | boolean | undefined, isInEtcd: boolean): string | undefined {
  if (!isInEtcd && given !== undefined) throw new Misuse('--to-prefix is for a journal in etcd')
  if (isInEtcd && given === undefined) throw new Misuse('in etcd key rewrite needs --to-prefix, such as /pes-2')
  try {
    return given === undefined ? undefined : keyPrefix(String(given))
  } catch (error) {
    throw new Misuse(`--to-prefix must be ${(error as Error).message}`)
  }
}

/** Asks for something that takes long and shows how far it is. */
async function askSlowly(context: Context, path: string, body: object): Promise<any> {
  const look = async (): Promise<void> => {
    const status: Status | undefined = await context.store.look('/operator/status')
    if (status?.progress !== undefined) context.terminal.progress('rewriting the journal', status.progress)
  }
  const timer = setInterval(() => void look(), 200)
  try {
    return await context.store.ask('POST', path, body)
  } finally {
    clearInterval(timer)
    context.terminal.progress('', 1)
  }
}

/** `init`, `journal …`, `entry …` and `key …`. */
export const JOURNAL_COMMANDS: readonly Command[] = [
  {
    name: 'init', mayCreate: true,
    help: 'makes the data folder, the key and the journal, if they do not stand yet',
    run: async context => {
      const { path, keyFile } = await statusOf(context)
      context.terminal.print(`journal ${path}`)
      context.terminal.print(`key     ${keyFile}`)
    }
  },
  {
    name: 'journal verify',
    help: 'checks every hash and every seal',
    run: async context => {
      const status = await statusOf(context)
      const { records, head, state } = await readAll(context, () => {}, status)
      state.entries.check()
      context.terminal.print(`records ${records}`)
      context.terminal.print(`entries ${state.entries.size} (${state.entries.active} active)`)
      context.terminal.print(`head    ${head}`)
      if (status.fault !== undefined) throw new Refusal(`the service takes no more changes: ${status.fault}`)
    }
  },
  {
    name: 'journal show', options: REVEAL,
    help: 'prints a line a record: number, time, who, what',
    run: async context => {
      await readAll(context, (record, state) => {
        const data = shown(record, context.flags['reveal'] === true)
        context.terminal.print(`${record.seq} ${record.time} ${whoWas(state, record.by)} ${record.type} ${data}`)
      })
    }
  },
  {
    name: 'journal backup', positionals: ['FILE'],
    help: 'copies the journal, verified; to restore, put the copy back',
    run: async context => {
      const status = await statusOf(context)
      const onProgress = (reached: number): void => context.terminal.progress('copying', reached / status.bytes)
      const { records, head } = await makeFile(context.positionals[0]!, async part => {
        if (status.endpoints !== undefined) {
          await saveLines(context, part, status)
          return status
        }
        copyFile(disk, status.path, part, 0, status.bytes, onProgress)
        return readAll(context, () => {}, { ...status, path: part })
      })
      context.terminal.print(`${records} records, head ${head}`)
    }
  },
  {
    name: 'entry history', positionals: ['ID'], options: REVEAL,
    help: 'prints every value that an entry ever had, when it got it, and by whom',
    run: async context => {
      const id = idOf(context)
      let found = false
      await readAll(context, (record, state) => {
        const changes = changesOf(record, id)
        if (changes === undefined) return
        found = true
        const { password, sistema, usuario } = { ...state.entries.get(id), ...changes }
        const values = { password: context.flags['reveal'] === true ? password : HIDDEN, sistema, usuario }
        const what = `${record.type} ${JSON.stringify(values)}`
        context.terminal.print(`${record.time} ${whoWas(state, record.by)} ${what}`)
      })
      if (!found) throw new Refusal('there is no entry with this id')
    }
  },
  {
    name: 'entry restore', positionals: ['ID'],
    help: 'makes a deleted entry active again',
    run: async context => {
      const id = idOf(context)
      await context.store.ask('POST', '/operator/entries/restore', { id })
      context.terminal.print(`entry ${id}: active`)
    }
  },
  {
    name: 'key rotate',
    help: 'makes a new key, which seals from now on; old lines stay readable',
    run: async context => {
      const { key, seals } = await context.store.ask('POST', '/operator/key/rotate')
      if (seals === true) { context.terminal.print(`key ${key} seals from now on`); return }
      const { keyFile } = await statusOf(context)
      context.terminal.print(`key ${key} is in ${keyFile}, and does not seal yet`)
      context.terminal.print('copy that file to every other instance, then run key rotate again')
    }
  },
  {
    name: 'key rewrite',
    options: { 'to-prefix': { value: 'PREFIX', help: 'in etcd, where the new lines go; nothing may be there' } },
    help: 'seals the whole journal anew with the newest key, so that older keys can be destroyed',
    run: async context => {
      const { path, endpoints } = await statusOf(context)
      const to = targetOf(context.flags['to-prefix'], endpoints !== undefined)
      const { unneeded, head } = await askSlowly(context, '/operator/key/rewrite', { to })
      context.terminal.print(`head ${head}`)
      if (to !== undefined) {
        context.terminal.print(`the journal is in ${to}; set ETCD_PREFIX to that for every instance and restart it`)
        context.terminal.print(`then remove the old lines: etcdctl del ${path}/0 ${path}/1`)
      }
      for (const key of unneeded) context.terminal.print(`key ${key} is no longer needed by this journal`)
    }
  }
]
