import { basename, dirname, extname, resolve } from 'node:path'
import type { Files } from '../../../journal/files.ts'
import { isPartOf, locationOf, removeLeftovers, secondName } from '../../../journal/folder.ts'
import { BEGUN, type JournalRecord } from '../../../journal/journal.ts'
import { readKeyFile } from '../../../journal/keys.ts'
import { Failure } from '../../../errors.ts'
import { counted } from '../../../log.ts'
import { SECRET_FIELDS } from '../../../entries/entry.ts'
import { event } from '../../../store/events.ts'
import {
  LossError,
  OperatorError,
  UsageError,
  type OperatorCommand,
  type Context,
  type JournalRead,
  type JournalStatus,
  type OnRecord
} from '../../commands/command.ts'
import { EXIT, type ExitCode } from '../../commands/exit-codes.ts'
import { copyLines, saveJournal } from '../rewriting/saved-journal.ts'
import {
  assertKept,
  assertNotPacked,
  fileStatus,
  leavingOut,
  NEXT_ID,
  nextIdOf,
  notedHead,
  sealingKeys
} from './journal-files.ts'
import { damageBeside, IN_MEMORY } from './check.ts'
import { openable } from '../salvage/salvage.ts'
import { authorOf, HIDDEN, REVEAL } from './entries-commands.ts'
import { ENTERED_AGAIN } from './who-knows.ts'

/** Of users: never shown. */
const OF_USERS = ['passwordHash', 'factor']

function shown({ data }: JournalRecord, reveals: boolean): string {
  const secrets: readonly string[] = [...SECRET_FIELDS, 'former']
  const hidden = reveals ? OF_USERS : [...OF_USERS, ...secrets]
  return JSON.stringify(data, (name, value) => (hidden.includes(name) ? HIDDEN : value))
}

/** Throws if the journal is not what its service has. */
async function statusOf({ store, positionals: [file] }: Context): Promise<JournalStatus> {
  if (file !== undefined) {
    const status = fileStatus({ store }, file)
    assertNotPacked(store.files, status.path)
    return status
  }
  const status = await store.status()
  const hasFailed = status.fault && status.mayHeal !== true && status.endpoints === undefined
  if (hasFailed)
    throw new OperatorError(`the journal takes no more changes: ${status.fault}; ${IN_MEMORY}`)
  return status
}

function withOpenable(
  { store }: Context,
  { path, keyFile, endpoints, records }: JournalStatus,
  error: unknown
): unknown {
  const keys = endpoints === undefined ? readKeyFile(store.files, keyFile) : undefined
  if (!(error instanceof Failure) || error.code !== 'journal-damaged' || keys === undefined)
    return error
  const {
    made: { opened, last }
  } = openable(store.files, path, keys)
  const more = `; ${opened} of its lines can be opened, up to record ${last}`
  if (records !== undefined) return damageBeside(error, more)
  return new Failure('journal-damaged', `${error.message.replace(/^[^:]*: /, '')}${more}`, {
    cause: error
  })
}

async function verify(context: Context): Promise<ExitCode> {
  const { store, terminal, flags } = context
  const head = notedHead(flags)
  const status = await statusOf(context)
  let noted: number | undefined
  const keys = new Set<string>()
  const look: OnRecord = (record, _state, text) => {
    if (head !== undefined && text.endsWith(`"hash":"${head}"}`)) noted = record.seq
    for (const key of sealingKeys(text)) keys.add(key)
  }
  const read = await store.read(status, look).catch(error => {
    throw withOpenable(context, status, error)
  })
  const { records, head: newest, tornBytes } = read
  const { count: entries, active } = read.state.entries
  const result = {
    records,
    entries,
    active,
    until: read.state.recorded || null,
    head: newest,
    tornBytes,
    keys: [...keys],
    ...(head !== undefined && { noted: noted === undefined ? null : { record: noted } })
  }
  terminal.show(result, [
    `records ${records}`,
    `entries ${entries} (${active} active)`,
    `until   ${result.until ?? 'no record'}`,
    `head    ${newest}`,
    `keys    ${result.keys.join(', ')}`,
    ...(noted === undefined ? [] : [`noted   at record ${noted}`]),
    ...(tornBytes === 0 ? [] : [`tail    ${tornBytes} bytes ${TAIL}`])
  ])
  if (head !== undefined && noted === undefined) {
    throw new LossError(
      'the noted head is nowhere in this journal: it was replaced or tampered with, ' +
        'or newest records are gone, or it is another journal, or it was written again since ' +
        '(then an archive or backup has the head)'
    )
  }
  // Last, since the journal itself is whole.
  if (status.fault) throw new OperatorError(`the service takes no more changes: ${status.fault}`)
  return tornBytes === 0 ? EXIT.done : EXIT.tail
}

const TAIL =
  'follow: a write that was never finished, or damage that looks the same. ' +
  'Only a head that was noted proves where the journal ended (--head HEAD). ' +
  'The next start moves the bytes to a file'

async function show(context: Context): Promise<void> {
  const {
    store,
    flags,
    terminal,
    positionals: [file]
  } = context
  const reveals = flags['reveal'] === true
  // Before it is recorded who is shown the journal: nothing is shown that is set later.
  const status = await statusOf(context)
  if (reveals && file !== undefined) {
    terminal.warn('this disclosure of passwords was not recorded: this is a copy of the journal')
  } else if (reveals) {
    await store.ask('disclose', { command: 'journal show' })
    await store.close()
  }
  await store.read(status, (record, state, text) => {
    const { seq, time, type } = record
    const data = shown(record, reveals)
    const by = authorOf(state, record)
    const [key] = sealingKeys(text)
    terminal.show(
      { seq, time, by, type, key, data: JSON.parse(data) },
      `${seq} ${time} ${by ?? '-'} ${type} ${data}`
    )
  })
}

/** Whether the copy's head proves that reads are recorded. `status`: from before the reading. */
async function headLines(
  { store }: Context,
  { records }: JournalStatus,
  file: string,
  { head, state: { knowledge } }: JournalRead
): Promise<readonly string[]> {
  if (knowledge.recording !== 'begun') return []
  // Without a service, only the journal's place and length were known.
  if (records !== undefined || (await store.look()) !== undefined)
    return [
      'a service has the journal: passwords may be read after this head, ' +
        'so it is not for journal restore --head'
    ]
  const name = file === '-' ? 'FILE' : file
  return [`until a service starts on it again: journal restore ${name} --head ${head}`]
}

/**
 * Damage may be found when lines are out already: only the exit code says that the copy is good.
 */
async function backupToOutput(context: Context): Promise<void> {
  const { store, terminal } = context
  if (terminal.showsResults)
    throw new UsageError('standard output is a terminal; name a FILE, or send it to a program')
  const status = await statusOf({ ...context, positionals: [] })
  const read = await terminal.passFile(put => copyLines(store, status, put))
  terminal.note(`${counted(read.records, 'record')}, head ${read.head}`)
  for (const line of await headLines(context, status, '-', read)) terminal.note(line)
}

async function backup(context: Context): Promise<void> {
  const {
    store,
    positionals: [file = ''],
    terminal,
    flags
  } = context
  if (file === '-') return backupToOutput(context)
  const ending = extname(file)
  const time = new Date().toISOString().replace(/[-:]|\.\d+/g, '')
  const name =
    flags['timestamp'] === true
      ? `${file.slice(0, file.length - ending.length)}-${time}${ending}`
      : file
  assertKept(store, resolve(name))
  if (store.files.stat(resolve(name)) !== undefined) {
    const isTimed = flags['timestamp'] === true
    const how = isTimed
      ? 'run the command again in a second'
      : '--timestamp adds the time to the name'
    throw new OperatorError(`${resolve(name)} exists already; ${how}`)
  }
  const status = await statusOf({ ...context, positionals: [] })
  const keys = new Set<string>()
  const onText = (text: string): void => {
    for (const key of sealingKeys(text)) keys.add(key)
  }
  const read = await saveJournal(store, name, status, { onText }).catch(error => {
    throw withOpenable(context, status, error)
  })
  const { records, head } = read
  const more = await headLines(context, status, resolve(name), read)
  terminal.show({ path: resolve(name), records, head, keys: [...keys], keyFile: status.keyFile }, [
    `${counted(records, 'record')}, head ${head}`,
    `it is read with the keys ${[...keys].join(', ')} of ${status.keyFile}: ` +
      'keep a copy of that file elsewhere',
    ...more
  ])
}

/** The records that a start writes to a new journal by itself. */
const lineOf = (seq: number, type: string): string =>
  `\\{"seq":${seq},"time":"[^"]+","type":"${type}",[^\n]{1,500}\\}\n`
const BEGUN_ONLY = new RegExp(`^${lineOf(1, BEGUN)}(${lineOf(2, 'recording.begun')})?$`)
const MAX_BEGUN_BYTES = 2_000

function isJustBegun(files: Files, path: string, bytes: number): boolean {
  return bytes < MAX_BEGUN_BYTES && BEGUN_ONLY.test(files.read(path).toString('latin1'))
}

/** **No journal that holds anything is replaced**: the operator moves it away. */
function replaceable(files: Files, path: string): ReturnType<Files['stat']> {
  secondName(files, path) // throws for a link, whose file another process may use
  const old = files.stat(path)
  const isEmpty = old === undefined || old.size === 0 || isJustBegun(files, path, old.size)
  if (!isEmpty) throw new OperatorError(`${path} holds a journal; move it away first`)
  return old
}

async function restore({
  store,
  positionals: [file = ''],
  terminal,
  flags
}: Context): Promise<void> {
  const status = fileStatus({ store }, file)
  const { path, keyFile } = locationOf(store.settings)
  const asked = {
    nextId: nextIdOf(flags),
    noted: notedHead(flags),
    keepsTokens: flags['keep-tokens'] === true
  }
  const restored = await putCopy(store, status, path, asked)
  const { records, head, tornBytes, state, tokensEnded, hasGap } = restored
  warnOfRestored(terminal, store, status.path, path, tornBytes)
  const users = [...state.users.values()]
    .filter(({ isRemoved }) => isRemoved !== true)
    .map(({ email }) => email)
  const asOf = state.recorded
  const nextId = Math.max(state.entries.size + 1, asked.nextId)
  const result = {
    ...{ path, keyFile, records, head, tornBytes, asOf, users, tokensEnded, nextId },
    ...(hasGap && { readsUnknownAfter: asOf }),
    forgetsFormer: hasGap
  }
  const isComplete = flags['next-id'] !== undefined || asked.noted !== undefined
  const when = (condition: boolean, ...lines: readonly string[]): readonly string[] =>
    condition ? lines : []
  terminal.show(result, [
    `${path}: ${counted(records, 'record')}, head ${head}`,
    `the next new entry gets id ${nextId}`,
    ...when(
      !isComplete,
      `if entries were made after this copy, their ids, from ${nextId} on, will be given again; ` +
        `to leave them out, move ${path} away and restore with --next-id N`
    ),
    ...when(
      users.length > 0,
      `users and tokens are as of ${asOf}: ${users.join(', ')}`,
      'remove those who have left: user remove EMAIL'
    ),
    ...when(
      tokensEnded > 0,
      `${counted(tokensEnded, 'token')} ended, since some may have been revoked by now; ` +
        '--keep-tokens keeps them'
    ),
    ...when(
      hasGap,
      `reads after ${asOf} are not known: others may know every password of this copy; ` +
        '--head HEAD, the head that the service said at its stop, shows that there are none',
      ENTERED_AGAIN
    )
  ])
}

interface Restoring {
  readonly nextId: number
  /** The head that the copy must end with. */
  readonly noted: string | undefined
  readonly keepsTokens: boolean
}

interface Restored extends JournalRead {
  readonly tokensEnded: number
  /** Whether others may have read passwords since the copy was made. */
  readonly hasGap: boolean
}

/** Under the lock, so that no service begins on the folder. */
async function putCopy(
  store: Context['store'],
  status: JournalStatus,
  path: string,
  { nextId, noted, keepsTokens }: Restoring
): Promise<Restored> {
  let tokensEnded = 0
  let hasGap = false
  const read = await store.alone(async () => {
    const old = replaceable(store.files, path)
    const source = store.files.real(status.path)
    if (isPartOf(path, basename(source)) && dirname(source) === store.files.real(dirname(path))) {
      throw new OperatorError(
        `${source} has the name of a killed command's left-over, and would be removed; rename it`
      )
    }
    assertNotPacked(store.files, status.path)
    removeLeftovers(store.files, path)
    return saveJournal(store, path, status, {
      replaces: old, // and no other file: one that came meanwhile stays
      more: ({ records, head, tornBytes, state: { tokens, entries, knowledge } }) => {
        if (noted !== undefined && (head !== noted || tornBytes > 0)) {
          throw new OperatorError(
            `${status.path} does not end with that head, and nothing was changed: ` +
              `its last whole line has the head ${head}, and ${counted(tornBytes, 'byte')} follow`
          )
        }
        if (records === 0) throw new OperatorError(`${status.path} holds no record`)
        // The copy lacks what was told later, unless the service ended with it.
        hasGap = knowledge.recording === 'begun' && noted === undefined
        // The copy lacks what was revoked later: so all tokens end.
        tokensEnded = keepsTokens ? 0 : tokens.size
        const users = new Set(keepsTokens ? [] : [...tokens.values()].map(({ user }) => user))
        return [
          ...[...users].map(user => event('tokens.revoked', null, { user })),
          ...leavingOut('entries', entries.size + 1, nextId - 1),
          ...(hasGap ? [event('recording.gap', null, { why: 'restored' })] : [])
        ]
      }
    })
  })
  return { ...read, tokensEnded, hasGap }
}

function warnOfRestored(
  terminal: Context['terminal'],
  store: Context['store'],
  copy: string,
  path: string,
  tornBytes: number
): void {
  if (tornBytes > 0) {
    terminal.warn(
      `${copy} ends with ${tornBytes} bytes of a line that is cut off. They were left out. ` +
        'If records came after them, these are lost. If journal backup made the file, ' +
        'it was cut short: use another copy'
    )
  }
  if (store.settings.journal !== 'file') {
    terminal.warn(
      `the journal is in the file ${path}, which no service with ` +
        `JOURNAL=${store.settings.journal} uses: journal copy --to etcd copies it there`
    )
  }
}

export const COMMANDS: readonly OperatorCommand[] = [
  {
    name: 'init',
    ifMissing: 'create',
    help: 'makes the data folder, the key and the journal, if they do not exist yet',
    run: async ({ store, terminal }) => {
      const { pid, isNew, path, keyFile, records } = await store.ask('status', {})
      const made = pid === process.pid && isNew === true // not by the service or a faster run
      const done = made ? 'made, empty' : `found, ${counted(records, 'record')}`
      terminal.show({ path, keyFile, records, made }, [
        `journal ${path} (${done})`,
        `key     ${keyFile}`
      ])
    }
  },
  {
    name: 'journal verify',
    positionals: ['[FILE]'],
    options: { head: { value: 'HEAD', help: 'also say where in the journal a noted head is' } },
    help: 'checks every hash and every seal, of the journal or of a copy; changes nothing',
    examples: ['journal verify', 'journal verify /mnt/backup/monday.jsonl'],
    run: verify
  },
  {
    name: 'journal show',
    positionals: ['[FILE]'],
    options: REVEAL,
    help: 'prints a line for each record of the journal, or of a copy: number, time, who, what',
    run: show
  },
  {
    name: 'journal backup',
    positionals: ['FILE'],
    options: { timestamp: { help: 'add the time to the name of FILE' } },
    help: 'copies the journal, verified; - is standard output',
    examples: ['journal backup /mnt/backup/journal.jsonl --timestamp', 'journal backup -'],
    run: backup
  },
  {
    name: 'journal restore',
    positionals: ['FILE'],
    options: {
      'keep-tokens': { help: 'keep the tokens, as when the journal moves to another host' },
      'head': {
        value: 'HEAD',
        help: 'the head that the service said at its stop, or journal rescue: no read is missing'
      },
      ...NEXT_ID
    },
    help:
      'verifies a copy and puts it into a data folder without a journal; ends all tokens; ' +
      'stop the service before',
    run: restore
  }
]
