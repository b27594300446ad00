/** The commands on the journal and its keys. */
import { basename, dirname, resolve } from 'node:path'
import { FIRST_HASH } from '../../journal/line.ts'
import { readKeyFile } from '../../journal/keys.ts'
import { isJustBegun, isPartOf, removeLeftovers } from '../../journal/begin.ts'
import { locationOf, secondName } from '../../journal/folder.ts'
import type { JournalRecord } from '../../journal/journal.ts'
import { Failure } from '../../errors.ts'
import { counted } from '../../log.ts'
import {
  OperatorError, type Command, type Context, type JournalStatus, type OnRecord
} from '../command.ts'
import { saveJournal } from '../saved-journal.ts'
import { before, earlierEnd, fileStatus, notedHead, type EarlierEnd } from './journal-files.ts'
import { backupToOutput } from './backup-output.ts'
import { checkState } from './check.ts'
import { piecesOf } from './salvage-lines.ts'
import { Salvaging } from './salvage-state.ts'
import { authorOf, HIDDEN, recordDisclosure, REVEAL } from './entry-commands.ts'
import { sealingKey } from './key-list.ts'

/** A record's data for a person to read, without secrets. */
function shown({ data }: JournalRecord, reveals: boolean): string {
  return JSON.stringify(data, (name, value) =>
    (name === 'password' && !reveals) || name === 'passwordHash' ? HIDDEN : value)
}

/** The journal, or the copy of it that was named. */
async function statusOf({ store, positionals: [file] }: Context): Promise<JournalStatus> {
  return file === undefined ? store.status() : fileStatus({ store }, file)
}

/** Sends a request that takes long, and shows its progress. */
async function askSlowly(context: Context, what: string, path: string, body: object): Promise<any> {
  const look = async (): Promise<void> => {
    const status = await context.store.look()
    if (status?.progress !== undefined) context.terminal.progress(what, status.progress)
  }
  const timer = setInterval(() => void look(), 200)
  try {
    return await context.store.ask('POST', path, body)
  } finally {
    clearInterval(timer)
    context.terminal.progress('', 1)
  }
}

function noLongerNeeded(key: string): string { return `key ${key} is no longer needed by this journal` }

/** A refusal of a damaged journal, with how many lines of it can be opened all the same. */
function withOpenable({ store }: Context, { path, keyFile, endpoints }: JournalStatus, error: unknown): unknown {
  const keys = endpoints === undefined ? readKeyFile(store.files, keyFile) : undefined
  if (!(error instanceof Failure) || error.code !== 'journal-damaged' || keys === undefined) return error
  const made = new Salvaging(keys)
  for (const piece of piecesOf(store.files, path, () => {})) made.take(piece)
  const what = `${error.message.replace(/^[^:]*: /, '')}; ${made.opened} of its ${made.last} lines can be opened`
  return new Failure('journal-damaged', what, { cause: error })
}

async function verify(context: Context): Promise<void> {
  const { store, terminal, flags } = context
  const head = notedHead(flags)
  const status = await statusOf(context)
  let noted = head === FIRST_HASH ? 0 : undefined
  const ends: EarlierEnd[] = []
  const look: OnRecord = (record, _state, text) => {
    if (head !== undefined && text.endsWith(`"hash":"${head}"}`)) noted = record.seq
    const end = earlierEnd(record)
    if (end !== undefined) ends.push(end)
  }
  const { records, head: newest, tornBytes, state } = await store.read(status, look)
    .catch(error => { throw withOpenable(context, status, error) })
  checkState(state)
  const { count, active } = state.entries
  const endOf = noted === undefined ? ends.find(end => end.head === head) : undefined
  const result = {
    records, entries: count, active, head: newest, tornBytes,
    ...head !== undefined && { noted: noted === undefined ? null : { record: noted }, endOf }
  }
  const torn = `${tornBytes} bytes of an unfinished last write follow, which the next start moves aside`
  terminal.show(result, [
    `records ${records}`, `entries ${count} (${active} active)`, `head    ${newest}`,
    ...tornBytes > 0 ? [`torn    ${torn}`] : [],
    ...noted === undefined ? [] : [`noted   at record ${noted}`],
    ...endOf === undefined ? [] : [`noted   at record ${endOf.records}, the last one ${before(endOf)}`]
  ])
  if (head !== undefined && noted === undefined && endOf === undefined) {
    const why = 'it was replaced or tampered with, or is another one'
    const [last] = ends
    const older = last && `; a head from ${before(last)} that was not its end is in what was kept of that time alone`
    throw new Failure('head-unknown', `${why}${older ?? ''}`)
  }
  if (status.fault !== undefined) throw new OperatorError(`the service takes no more changes: ${status.fault}`)
}

async function show(context: Context): Promise<void> {
  const { store, flags, terminal } = context
  const reveals = flags['reveal'] === true
  if (reveals) {
    const { state } = await store.read(await statusOf(context))
    const disclosure = { command: 'journal show', entries: state.entries.count }
    await recordDisclosure(context, disclosure, context.positionals.length > 0)
  }
  let sealing: string | undefined
  await store.read(await statusOf(context), (record, state, text) => {
    const { seq, time, type } = record
    const data = shown(record, reveals)
    const by = authorOf(state, record)
    const key = sealingKey(text)
    const rotation = key === (sealing ?? key) ? [] : [`key ${key} seals from here on`]
    sealing = key
    terminal.show({ seq, time, by, type, key, data: JSON.parse(data) },
      [...rotation, `${seq} ${time} ${by ?? '-'} ${type} ${data}`])
  })
}

/** Puts a copy where no journal is, or an empty one. */
async function restore({ store, positionals: [file = ''], terminal }: Context): Promise<void> {
  const status = fileStatus({ store }, file)
  const { path } = locationOf(store.settings)
  const { records, head, tornBytes } = await store.alone(async () => {
    secondName(store.files, path)
    const target = store.files.real(path)
    const old = store.files.stat(target)
    const isEmpty = old === undefined || old.bytes === 0 || isJustBegun(store.files, target)
    if (!isEmpty) throw new OperatorError(`${target} holds a journal; move it away first`)
    const source = store.files.real(status.path)
    if (isPartOf(target, basename(source)) && dirname(source) === store.files.real(dirname(target))) {
      throw new OperatorError(`${source} is what a killed command has left, and would be removed; give it another name`)
    }
    removeLeftovers(store.files, target)
    return saveJournal(store, target, status, {
      replaces: old,
      confirm: ({ records }) => { if (records === 0) throw new OperatorError(`${status.path} holds no record`) }
    })
  })
  if (tornBytes > 0) {
    terminal.warn(`${status.path} ends with ${tornBytes} bytes of a line that is cut off, which were left out; the ` +
      'records behind it, if there were any, are lost: a file of journal backup that ends so was cut short')
  }
  terminal.show({ path, records, head, tornBytes }, `${path}: ${counted(records, 'record')}, head ${head}`)
}

/** `init`, `journal …` and `key …`. */
export const COMMANDS: readonly Command[] = [
  {
    name: 'init', mayCreate: true,
    help: 'makes the data folder, the key and the journal, if they do not exist yet',
    run: async ({ store, terminal }) => {
      const { pid, isNew, path, keyFile, records } = await store.ask('GET', '/operator/status')
      const made = pid === process.pid && isNew // by this run, not by the service or by another one that was faster
      const done = made ? 'made, empty' : `found, ${counted(records, 'record')}`
      terminal.show({ path, keyFile, records, made }, [`journal ${path} (${done})`, `key     ${keyFile}`])
    }
  },
  {
    name: 'journal verify', positionals: ['[FILE]'],
    options: { head: { value: 'HEAD', help: 'also say where in the journal a noted head is' } },
    help: 'checks every hash and every seal, of the journal or of a copy; changes nothing',
    examples: ['journal verify', 'journal verify /mnt/backup/monday.jsonl'],
    run: verify
  },
  {
    name: 'journal show', positionals: ['[FILE]'], options: REVEAL,
    help: 'prints a line a record, of the journal or of a copy: number, time, who, what',
    run: show
  },
  {
    name: 'journal backup', positionals: ['FILE'],
    help: 'copies the journal, verified; - is standard output',
    examples: ['journal backup /mnt/backup/monday.jsonl', 'journal backup -'],
    run: async context => {
      const { store, positionals: [file = ''], terminal } = context
      if (file === '-') return backupToOutput(context)
      const { records, head } = await saveJournal(store, file, await store.status())
      terminal.show({ path: resolve(file), records, head }, `${counted(records, 'record')}, head ${head}`)
    }
  },
  {
    name: 'journal restore', positionals: ['FILE'],
    help: 'puts a copy into the data folder, verified, where no journal is; the service must not run',
    run: restore
  },
  {
    name: 'journal compact',
    options: {
      'drop-history': { help: 'do not keep the old journal as an archive' },
      yes: { help: 'do not ask whether the history is to go' }
    },
    help: 'writes the journal again without its history, which stays beside it as an archive',
    run: async context => {
      const { flags, store, terminal } = context
      terminal.noteJournal(await store.status())
      const drops = flags['drop-history'] === true
      const what = 'All former values, and who made which change, are then gone for good.'
      if (drops) await terminal.confirm(what, flags['yes'] === true)
      const compacted = await askSlowly(context, 'compacting the journal', '/operator/journal/compact',
        { keepsHistory: drops ? 0 : 1 })
      const { records, bytes, head, before, unneeded, archive } = compacted
      terminal.show(compacted, [
        `before  ${before.records} records, ${before.bytes} bytes, head ${before.head}`,
        `now     ${records} records, ${bytes} bytes, head ${head}`, `archive ${archive ?? 'not kept'}`,
        ...unneeded.map(noLongerNeeded)
      ])
    }
  },
  {
    name: 'key rotate',
    help: 'makes a new key, which seals from now on; old lines stay readable',
    run: async ({ store, terminal }) => {
      const status = await store.status()
      terminal.noteJournal(status)
      const { keyFile } = status
      const { key, seals } = await store.ask('POST', '/operator/key/rotate', {})
      // A service of the first version does not say it.
      const lines = seals !== false ? [`key ${key} seals from now on`] : [
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
      context.terminal.noteJournal(await context.store.status())
      const { unneeded, head } = await askSlowly(context, 're-encrypting the journal', '/operator/key/rewrite', {})
      context.terminal.show({ head, unneeded }, [`head ${head}`, ...unneeded.map(noLongerNeeded)])
    }
  }
]
