/** The commands that rewrite the journal, and those on its keys. */
import { dirname, join } from 'node:path'
import { disk } from '../../../journal/files.ts'
import { isArchive } from '../../../journal/folder.ts'
import { readKeyFile } from '../../../journal/keys.ts'
import { OperatorError, type Command, type Context } from '../../../command.ts'
import { sealingKeys } from '../commands/journal-files.ts'
import type { OperationName, Result } from '../../operation.ts'

type Slow = Extract<OperationName, 'compactJournal' | 'rewriteJournal' | 'repairJournal'>

async function askSlowly<N extends Slow>(
  { store, terminal }: Context, what: string, ask: () => Promise<Result<N>>
): Promise<Result<N>> {
  const look = async (): Promise<void> => {
    const status = await store.look().catch(() => undefined)
    if (status?.progress !== undefined) terminal.progress(what, status.progress)
  }
  const timer = setInterval(() => void look(), 200)
  try {
    return await ask()
  } finally {
    clearInterval(timer)
    terminal.progress('', 1)
  }
}

function keepAgain(keyFile: string): string { return `copy ${keyFile} again to where you keep it` }

function noLongerNeeded(key: string): string {
  return `key ${key} is no longer needed by this journal; archives and backups may need it`
}

async function compact(context: Context, drops: boolean): Promise<void> {
  const { store, terminal } = context
  const compacted = await askSlowly(context, 'compacting the journal', () =>
    store.ask('compactJournal', { keepsHistory: drops ? 0 : 1 }))
  const { records, bytes, head, before, unneeded, archive } = compacted
  terminal.show(compacted, [
    `before  ${before.records} records, ${before.bytes} bytes, head ${before.head}`,
    `now     ${records} records, ${bytes} bytes, head ${head}`, `archive ${archive ?? 'not kept'}`,
    ...unneeded.map(noLongerNeeded)
  ])
}

async function repair(context: Context): Promise<void> {
  const { store, terminal } = context
  const running = await store.look()
  if (running === undefined) {
    throw new OperatorError('no service has the lock of this folder. If one still runs whose folder was emptied, ' +
      'stop it by SIGTERM, never kill -9: it leaves journal.rescued-TIME.jsonl for journal restore. If none runs, ' +
      'restore a backup (journal restore), or save what can still be read (journal salvage)')
  }
  terminal.noteJournal(running)
  const repaired = await askSlowly(context, 'writing the journal again', () => store.ask('repairJournal', {}))
  const { path, records, head, archive } = repaired
  terminal.show(repaired, [
    `${path}: ${records} records, head ${head}; changes go on`,
    'lost     the former values of entries, and who was shown passwords',
    ...archive === null ? []
      : [`aside    ${archive} is the file that had this name before; it may be damaged, and is no archive`],
    keepAgain(running.keyFile)
  ])
}

/** `line` counts in the key file; `since` is the first record's time. */
interface ListedKey {
  readonly key: string
  readonly line: number
  readonly since: string | null
  readonly records: number
  readonly needed: string
}

async function listKeys({ store, terminal }: Context): Promise<void> {
  const status = await store.status()
  const names = readKeyFile(disk, status.keyFile)?.names
  if (names === undefined) throw new OperatorError(`there is no key file ${status.keyFile}; is KEY_FILE right?`)
  const sealed = new Map<string, { readonly since: string, records: number }>()
  await store.read(status, ({ time }, _state, text) => {
    const key = sealingKeys(text)[0]!
    const known = sealed.get(key)
    if (known === undefined) sealed.set(key, { since: time, records: 1 })
    else known.records++
  })
  const archives = status.endpoints !== undefined ? [] : disk.list(dirname(status.path))
    .filter(isArchive)
    .map(name => ({ name, keys: sealingKeys(disk.read(join(dirname(status.path), name)).toString('latin1')) }))
  const keys = names.map((key, i): ListedKey => {
    const { since = null, records = 0 } = sealed.get(key) ?? {}
    const ofArchive = archives.find(({ keys }) => keys.includes(key))?.name
    const isNewest = i === names.length - 1
    const byArchive = ofArchive === undefined ? 'no' : `by ${ofArchive}`
    const needed = records > 0 ? 'yes' : byArchive
    return { key, line: i + 1, since, records, needed: isNewest ? 'newest' : needed }
  })
  terminal.list(keys, 'no keys')
}

export const COMMANDS: readonly Command[] = [
  {
    name: 'journal compact',
    options: {
      'drop-history': { help: 'do not keep the old journal as an archive' },
      yes: { help: 'do not ask for confirmation' }
    },
    help: 'writes the journal again without its history, which stays beside it as an archive',
    run: async context => {
      const { flags, store, terminal } = context
      terminal.noteJournal(await store.status())
      const drops = flags['drop-history'] === true
      const what = 'All former values, and who made which change, are then permanently deleted.'
      if (drops) await terminal.confirm(what, flags['yes'] === true)
      await compact(context, drops)
    }
  },
  {
    name: 'journal repair',
    help: 'has the running service write its journal again from memory: for a file that is damaged, replaced or gone',
    run: repair
  },
  {
    name: 'key list',
    help: 'lists the keys in the order of the key file: since when each key sealed, and what needs it',
    run: listKeys
  },
  {
    name: 'key rotate',
    help: 'makes a new key, which seals from now on; old lines stay readable',
    run: async ({ store, terminal }) => {
      const status = await store.status()
      terminal.noteJournal(status)
      const { keyFile } = status
      const { key, seals } = await store.ask('rotateKey', {})
      const lines = seals ? [`key ${key} seals from now on`, keepAgain(keyFile)] : [
        `key ${key} is in ${keyFile}, and does not seal yet`,
        'copy that file to every other instance, then run key rotate again'
      ]
      terminal.show({ key, keyFile, seals }, lines)
    }
  },
  {
    name: 'key rewrite',
    help: 're-encrypts the whole journal with the newest key, so that older keys can be destroyed',
    run: async context => {
      const { store, terminal } = context
      const status = await store.status()
      terminal.noteJournal(status)
      const { unneeded, head } = await askSlowly(context, 're-encrypting the journal', () =>
        store.ask('rewriteJournal', {}))
      terminal.show({ head, unneeded }, [`head ${head}`, ...unneeded.map(noLongerNeeded), keepAgain(status.keyFile)])
    }
  }
]
