/** The commands that rewrite the journal, and those on its keys. */
import { randomBytes } from 'node:crypto'
import { dirname, join } from 'node:path'
import { disk, piecesOf, withFile } from '../../../journal/files.ts'
import { isArchive, locationOf, openJournalFile } from '../../../journal/folder.ts'
import { neededKeys } from '../../../journal/keys.ts'
import { emptyState } from '../../../slices.ts'
import type { State } from '../../../store/state.ts'
import { OperatorError, type OperatorCommand, type Context } from '../../commands/command.ts'
import { sealingKeys } from '../commands/journal-files.ts'
import { ENTERED_AGAIN } from '../commands/who-knows.ts'
import { rescue } from './rescue-command.ts'
import { compact, reencrypt, type Offline } from './rewrite.ts'

/** How often the work reads the journal, beside the start that follows it. */
const READINGS = { 'compaction': 2, 're-encryption': 4 } as const

/**
 * If a service has the journal, says for how long it has to be stopped. Only early: the lock of
 * `offline` decides.
 */
async function assertStopped(
  { store, terminal }: Context,
  what: keyof typeof READINGS
): Promise<void> {
  const status = await store.status()
  terminal.noteJournal(status)
  if (status.endpoints !== undefined) {
    const how =
      'stop all instances, copy it to a file, do it there, and copy that to another ETCD_PREFIX'
    throw new OperatorError(`a journal in etcd is not written again where it is; ${how}`)
  }
  const running = await store.look()
  if (running === undefined) return
  const seconds = (ms: number): string => `${Math.max(0.1, ms / 1000).toFixed(1)} s`
  throw new OperatorError(
    `process ${running.pid} has this journal: stop the service, run the command again, and ` +
      `start the service. A ${what} takes about ${seconds(running.readMs * READINGS[what])}, ` +
      `since the last start has read the journal in ${seconds(running.readMs)}`
  )
}

/** Under the lock, with the journal open as a start opens it. `state` gives its state once, and holds it no more. */
function offline<T>(
  { store, terminal }: Context,
  what: keyof typeof READINGS,
  work: (offline: Offline, state: () => State) => Promise<T>
): Promise<T> {
  return store.alone(async lock => {
    const { files, settings } = store
    let held: State | undefined = emptyState()
    const letGo = (): State => {
      const state = held!
      held = undefined
      return state
    }
    const journal = openJournalFile(
      {
        files,
        ...locationOf(settings),
        lock,
        mustExist: true,
        wallMs: Date.now,
        random: randomBytes,
        warn: line => terminal.warn(line),
        onProgress: share => terminal.progress('reading the journal', share)
      },
      record => held!.apply(record)
    )
    try {
      const offline = {
        journal,
        onProgress: (share: number) => terminal.progress(what, share),
        ending: store.ending
      }
      return await work(offline, letGo)
    } finally {
      await journal.close()
    }
  })
}

function keepAgain(keyFile: string): string {
  return `copy ${keyFile} again to where you keep it`
}

function noLongerNeeded(key: string): string {
  return `key ${key} is no longer needed by this journal; archives and backups may need it`
}

async function runCompaction(context: Context): Promise<void> {
  const { flags, terminal } = context
  const drops = flags['drop-history'] === true
  await assertStopped(context, 'compaction')
  const what = 'This permanently deletes all former values, and who made which change.'
  if (drops) await terminal.confirm(what, flags['yes'] === true)
  let names = false
  const compacted = await offline(context, 'compaction', (journal, letGo) => {
    const state = letGo()
    names = state.knowledge.recording !== undefined
    return compact(journal, state, !drops)
  })
  const { records, bytes, head, before, unneeded, archive } = compacted
  terminal.show({ ...compacted, forgetsFormer: names }, [
    `before  ${before.records} records, ${before.bytes} bytes, head ${before.head}`,
    `now     ${records} records, ${bytes} bytes, head ${head}`,
    `archive ${archive ?? 'not kept'}`,
    ...unneeded.map(noLongerNeeded),
    ...(names ? [ENTERED_AGAIN] : [])
  ])
}

/** An archive may be larger than a text can be. */
function keysIn(path: string): ReadonlySet<string> {
  const found = new Set<string>()
  let rest = ''
  withFile(disk, disk.openToRead(path), file => {
    for (const piece of piecesOf(disk, file, 0)) {
      const text = rest + piece.toString('latin1')
      for (const key of sealingKeys(text)) found.add(key)
      rest = text.slice(-KEY_CHARACTERS)
    }
  })
  return found
}

/** More than a line has from its key's name to `sealed`. */
const KEY_CHARACTERS = 40

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
  const { names } = neededKeys(disk, status.keyFile, status.path)
  const sealed = new Map<string, { readonly since: string; records: number }>()
  await store.read(status, ({ time }, _state, text) => {
    const key = sealingKeys(text)[0]!
    const known = sealed.get(key)
    if (known === undefined) sealed.set(key, { since: time, records: 1 })
    else known.records++
  })
  const archives =
    status.endpoints !== undefined
      ? []
      : disk
          .list(dirname(status.path))
          .filter(isArchive)
          .map(name => ({ name, keys: keysIn(join(dirname(status.path), name)) }))
  const keys = names.map((key, i): ListedKey => {
    const { since = null, records = 0 } = sealed.get(key) ?? {}
    const ofArchive = archives.find(({ keys }) => keys.has(key))?.name
    const isNewest = i === names.length - 1
    const byArchive = ofArchive === undefined ? 'no' : `by ${ofArchive}`
    // "no" is what the operator destroys a key by: every archive beside the journal was searched
    // for it.
    const needed = records > 0 ? 'yes' : byArchive
    return { key, line: i + 1, since, records, needed: isNewest ? 'newest' : needed }
  })
  terminal.list(keys, 'no keys')
}

export const COMMANDS: readonly OperatorCommand[] = [
  {
    name: 'journal compact',
    options: {
      'drop-history': { help: 'do not keep the old journal as an archive' },
      'yes': { help: 'do not ask for confirmation' }
    },
    help: 'writes the journal again without its history, which an archive keeps; needs the service stopped',
    run: runCompaction
  },
  {
    name: 'journal rescue',
    positionals: ['FILE'],
    options: {
      keys: {
        value: 'FILE',
        help: 'also write the keys of the service, if its key file lacks them'
      }
    },
    help: 'writes what a running service holds whose journal is damaged, replaced or gone, into a new journal, FILE',
    examples: [
      'journal rescue /mnt/usb/rescued.jsonl',
      'journal rescue /mnt/usb/rescued.jsonl --keys /mnt/usb/keys'
    ],
    run: rescue
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
      const lines = seals
        ? [`key ${key} seals from now on`, keepAgain(keyFile)]
        : [
            `key ${key} is in ${keyFile}, and does not seal yet`,
            'copy that file to every other instance, then run key rotate again'
          ]
      terminal.show({ key, keyFile, seals }, lines)
    }
  },
  {
    name: 'key rewrite',
    help: 're-encrypts the journal with the newest key, to destroy older keys; needs the service stopped',
    run: async context => {
      const { store, terminal } = context
      await assertStopped(context, 're-encryption')
      const { unneeded, head } = await offline(context, 're-encryption', reencrypt)
      const { keyFile } = locationOf(store.settings)
      terminal.show({ head, unneeded }, [
        `head ${head}`,
        ...unneeded.map(noLongerNeeded),
        keepAgain(keyFile)
      ])
    }
  }
]
