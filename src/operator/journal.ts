/** The commands on the journal, its keys, and the history that it holds. */
import { dirname, resolve } from 'node:path'
import { disk } from '../journal/files.ts'
import type { Committed } from '../journal/journal.ts'
import type { JournalLocation } from '../journal/file.ts'
import { readKeyFile } from '../journal/keys.ts'
import { copyFile, readInSteps, type Recovered } from '../journal/recover.ts'
import type { EntryChanges } from '../store/record.ts'
import { apply, emptyState, type CommittedState } from '../store/state.ts'
import { Misuse, Refusal, type Command, type Context } from './command.ts'

const REVEAL = { reveal: { help: 'show passwords' } }
const HIDDEN = '********'

interface Status extends JournalLocation {
  /** Why the service takes no more changes. */
  readonly fault?: string
  readonly records: number
  readonly head: string
  readonly progress: number
}

/**
 * Reads the journal as it stands now, verifying all of it, and hands on every record with the state before it. The
 * file is read here and not by the service, which has others to serve; what the service has acknowledged is in it.
 */
async function readAll(
  context: Context, onRecord: (record: Committed, state: CommittedState) => void, status?: Status
): Promise<Recovered & { readonly state: CommittedState }> {
  const { bytes, path, keyFile } = status ?? await statusOf(context)
  const keys = readKeyFile(disk, keyFile)
  if (keys === undefined) throw new Refusal(`there is no key file ${keyFile}`)
  const state = emptyState()
  const each = (record: Committed): void => {
    onRecord(record, state)
    apply(state, record.type, record.data)
  }
  const steps = readInSteps(disk, path, keys, each, bytes)
  let shown = 0
  for (;;) {
    const step = steps.next()
    if (step.done === true) {
      context.terminal.progress('', 1)
      if (step.value.goodBytes !== bytes) throw new Refusal(`${path} ends before its last record`)
      return { ...step.value, state }
    }
    if (step.value - shown > bytes / 100) context.terminal.progress('reading the journal', (shown = step.value) / bytes)
  }
}

async function statusOf(context: Context): Promise<Status> {
  return await context.store.ask('GET', '/operator/status')
}

/** A record's data as a person reads it, without what must not be seen. */
function shown(record: Committed, reveal: boolean): string {
  const data = Object.entries(record.data as object).map(([name, value]) => {
    const isSecret = (name === 'password' && !reveal) || name === 'passwordHash'
    return [name, isSecret ? HIDDEN : value]
  })
  return JSON.stringify(Object.fromEntries(data))
}

function whoWas(state: CommittedState, by: number | null): string {
  return by === null ? '-' : state.users.get(by)?.email ?? String(by)
}

function idOf({ positionals: [text] }: Context): number {
  if (text === undefined || !/^[1-9][0-9]{0,14}$/.test(text)) throw new Misuse('ID must be a positive integer')
  return Number(text)
}

/** Asks for something that takes long and shows how far it is. */
async function askSlowly(context: Context, path: string): Promise<any> {
  const look = async (): Promise<void> => {
    const status: Status | undefined = await context.store.look('/operator/status')
    if (status?.progress !== undefined) context.terminal.progress('rewriting the journal', status.progress)
  }
  const timer = setInterval(() => void look(), 200)
  try {
    return await context.store.ask('POST', path)
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
      const target = resolve(context.positionals[0]!)
      const part = `${target}.part` // it gets its name once it is whole and verified
      if (disk.facts(target) !== undefined) throw new Refusal(`${target} stands already`)
      if (disk.facts(part) !== undefined) disk.remove(part)
      const onProgress = (reached: number): void => context.terminal.progress('copying', reached / status.bytes)
      copyFile(disk, status.path, part, 0, status.bytes, onProgress)
      try {
        const { records, head } = await readAll(context, () => {}, { ...status, path: part })
        disk.rename(part, target)
        disk.syncFolder(dirname(target))
        context.terminal.print(`${records} records, head ${head}`)
      } catch (error) {
        if (disk.facts(part) !== undefined) disk.remove(part)
        throw error
      }
    }
  },
  {
    name: 'entry history', positionals: ['ID'], options: REVEAL,
    help: 'prints every value that an entry ever had, when it got it, and by whom',
    run: async context => {
      const id = idOf(context)
      let found = false
      await readAll(context, (record, state) => {
        if (!record.type.startsWith('entry.') || (record.data as { id: number }).id !== id) return
        found = true
        const { password, sistema, usuario } = { ...state.entries.get(id), ...record.data as EntryChanges }
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
    run: async ({ store, terminal }) => {
      const { key } = await store.ask('POST', '/operator/key/rotate')
      terminal.print(`key ${key} seals from now on`)
    }
  },
  {
    name: 'key rewrite',
    help: 'seals the whole journal anew with the newest key, so that older keys can be destroyed',
    run: async context => {
      const { unneeded, head } = await askSlowly(context, '/operator/key/rewrite')
      context.terminal.print(`head ${head}`)
      for (const key of unneeded) context.terminal.print(`key ${key} is no longer needed by this journal`)
    }
  }
]
