/** The commands on entries: what the page offers, at a terminal. */
import { randomInt } from 'node:crypto'
import { eitherOf } from '../../setting-values.ts'
import type { JournalRecord } from '../../journal/journal.ts'
import { counted } from '../../log.ts'
import { ENTRY_FIELDS, FIELDS, fieldsOf, type Entry, type EntryChanges } from '../../store/entry.ts'
import type { Events } from '../../store/events.ts'
import { changesIn, operatorIn } from '../../store/changes.ts'
import type { State } from '../../store/state.ts'
import { UsageError, type Command, type Context, type OnRecord, type Option } from '../command.ts'
import { asking, entryOf, FIELD_WORDS, findId, idOf, listed } from './find-entry.ts'

/** Shown instead of a password that was not asked for. */
export const HIDDEN = '********'
/** The flag that shows passwords. */
export const REVEAL: { readonly reveal: Option } = { reveal: { help: 'show passwords' } }

/** The fields that a flag gives; a secret is asked for. */
const OPEN_FIELDS = ENTRY_FIELDS.filter(field => !FIELDS[field].isSecret)
const SECRETS = ENTRY_FIELDS.filter(field => FIELDS[field].isSecret)
const WORDS = Object.values(FIELD_WORDS).join(', ')
const FIELD_FLAGS = Object.fromEntries(OPEN_FIELDS.map(field =>
  [FIELDS[field].flag, { value: FIELDS[field].value, help: FIELDS[field].help }]))

/** The fields that the flags of a command give. Throws a `UsageError` for an empty one. */
function givenFields({ flags }: Context): EntryChanges {
  const empty = OPEN_FIELDS.find(field => flags[FIELDS[field].flag] === '')
  if (empty !== undefined) throw new UsageError(`--${FIELDS[empty].flag} is empty`)
  return Object.fromEntries(OPEN_FIELDS.map(field => [field, flags[FIELDS[field].flag]]))
}

/** An entry for a person, its secrets hidden unless they are to be shown. */
function shownFields(entry: EntryChanges, reveals: boolean): EntryChanges {
  const hidden = Object.fromEntries(SECRETS.map(field => [field, HIDDEN]))
  return fieldsOf(reveals ? entry : { ...entry, ...hidden })
}
const PASSWORD = {
  'password-stdin': { help: 'take the password from standard input, but for a line end after it' },
  generate: { value: '[LENGTH]', help: 'generate a password, of 20 characters unless LENGTH is given' }
}
const CLIP = {
  clip: { help: 'put it into the clipboard of the terminal (OSC 52), and wait to clear that' },
  'clear-after': { value: 'SECONDS', help: 'after how long --clip clears the clipboard, 45 without it; 0: never' }
}
const GENERATED = { least: 8, most: 1024, fallback: 20 }
const CLEAR_AFTER_SECONDS = 45
const MOST_CLEAR_AFTER_SECONDS = 3600
/** Without those that are easily confused, such as l and 1. */
const LETTERS = 'abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789!#$%&*+-=?@_'

/** A password that was typed, taken from standard input, or generated. */
async function passwordOf({ flags, terminal }: Context): Promise<string> {
  const { generate } = flags
  const isGiven = flags['password-stdin'] === true
  if (generate === undefined) return terminal.newSecret(isGiven)
  if (isGiven) throw new UsageError('--generate and --password-stdin do not go together; leave one of them out')
  const length = generate === true ? GENERATED.fallback : Number(generate)
  if (!(length >= GENERATED.least && length <= GENERATED.most)) {
    throw new UsageError(`--generate must be a length from ${GENERATED.least} to ${GENERATED.most}`)
  }
  return Array.from({ length }, () => LETTERS[randomInt(LETTERS.length)]).join('')
}

/** Who caused a record; null: anybody, in the open configuration. */
export function authorOf(state: State, record: Pick<JournalRecord, 'by' | 'data'>): string | null {
  const { by } = record
  // Of a removed user a compaction keeps the number alone.
  return by === null ? operatorIn(record) ?? null : state.users.get(by)?.email || String(by)
}

/** Where nothing can be written, a warning says that nothing was recorded; reading must stay possible there. */
export async function recordDisclosure(
  { store, terminal }: Context, disclosure: Events['entries.disclosed'], isCopy: boolean = false
): Promise<void> {
  try {
    if (isCopy) throw new Error('this is a copy of the journal')
    await store.ask('POST', '/operator/disclosures', disclosure)
  } catch (error) {
    terminal.warn(`this disclosure of passwords was not recorded: ${(error as Error).message}`)
  } finally {
    await store.close() // and so gives the lock back, where no service runs
  }
}

/** After how many seconds the clipboard is cleared; undefined where it is not used. 0: never. */
function clearAfterOf({ flags, terminal }: Context): number | undefined {
  const given = flags['clear-after'] ?? CLEAR_AFTER_SECONDS
  const seconds = Number(given)
  if (!/^\d+$/.test(String(given)) || seconds > MOST_CLEAR_AFTER_SECONDS) {
    throw new UsageError(`--clear-after must be a number of seconds from 0 to ${MOST_CLEAR_AFTER_SECONDS}`)
  }
  if (flags['clip'] !== true) {
    if (flags['clear-after'] !== undefined) throw new UsageError('--clear-after is for --clip, which is not given')
    return undefined
  }
  terminal.assertClip()
  return seconds
}

/** Copies a field of an entry, says how long it stays in the clipboard, and clears that when it is over. */
async function copy(
  { terminal, store }: Context, id: number, name: string, text: string, seconds: number
): Promise<void> {
  terminal.clip(text)
  const till = seconds === 0 ? 'until something else is copied'
    : `for ${counted(seconds, 'second')}, or until this is ended with Ctrl-C`
  terminal.show({ id, copied: name, clearsAfterSeconds: seconds },
    `entry ${id}: the ${name} is in the clipboard, if the terminal allows that, ${till}`)
  await store.close() // nobody waits for the lock meanwhile
  if (seconds > 0) await terminal.clearClip(seconds)
}

async function get(context: Context): Promise<void> {
  const { flags, terminal } = context
  const seconds = clearAfterOf(context)
  const field = flags['field'] ?? (seconds === undefined ? undefined : 'password')
  const name = ENTRY_FIELDS.find(one => one === field || FIELD_WORDS[one] === field)
  if (field !== undefined && name === undefined) {
    throw new UsageError(`--field must be ${eitherOf(Object.values(FIELD_WORDS))}`)
  }
  const reveals = name === 'password' || (name === undefined && flags['reveal'] === true)
  const id = await findId(context, 'active')
  const found = await entryOf(context, id)
  if (reveals) await recordDisclosure(context, { command: 'entry get', entries: 1, id })
  const entry = reveals ? found : { ...found, password: HIDDEN }
  if (name !== undefined && seconds !== undefined) return copy(context, id, name, entry[name] ?? '', seconds)
  if (name !== undefined) return terminal.showText({ [name]: entry[name] ?? null }, entry[name] ?? '')
  const lines = [...OPEN_FIELDS, ...SECRETS].filter(field => entry[field] !== undefined)
    .map(field => `${FIELDS[field].flag.padEnd(9)} ${entry[field]}`)
  terminal.show(entry, [`id        ${id}`, ...lines, `status    ${entry.status === 1 ? 'active' : 'deleted'}`])
}

/** Asks for a change of an entry, and says what was done. */
async function change(context: Context, id: number, done: string, path: string, body?: object): Promise<void> {
  await asking(id, context.store.ask('POST', path, body))
  context.terminal.show({ id, done }, `entry ${id} ${done}`)
}

/** Makes or changes an entry, and shows or copies the password that it has now where that is asked for. */
async function put(
  context: Context, command: string, done: string, password: string | undefined, send: () => Promise<number>
): Promise<void> {
  const { flags, terminal } = context
  const seconds = clearAfterOf(context)
  const reveals = flags['reveal'] === true
  if (password === undefined && (reveals || seconds !== undefined)) {
    throw new UsageError('--reveal and --clip show a new password, and none was asked for')
  }
  const id = await send()
  const isShown = password !== undefined && (reveals || seconds !== undefined)
  if (isShown) await recordDisclosure(context, { command, entries: 1, id })
  const lines = isShown && reveals ? [`password  ${password}`] : []
  terminal.show({ id, done, ...isShown && reveals && { password } }, [`entry ${id} ${done}`, ...lines])
  if (isShown && seconds !== undefined) await copy(context, id, 'password', password, seconds)
}

async function add(context: Context): Promise<void> {
  const given = givenFields(context)
  const required = OPEN_FIELDS.filter(field => FIELDS[field].isRequired)
  if (required.some(field => given[field] === undefined)) {
    const flags = required.map(field => `--${FIELDS[field].flag} ${FIELDS[field].value}`)
    throw new UsageError(`give ${flags.join(' and ')}`)
  }
  const password = await passwordOf(context)
  await put(context, 'entry add', 'created', password, async () =>
    (await context.store.ask('POST', '/operator/entries/add', { ...given, password })).id)
}

/** Without a flag that says what is to change it is the password. */
async function edit(context: Context): Promise<void> {
  const { flags, store } = context
  const given = givenFields(context)
  const setsPassword = OPEN_FIELDS.every(field => given[field] === undefined) ||
    ['password', 'password-stdin', 'generate'].some(flag => flags[flag] !== undefined)
  const id = await findId(context, 'active')
  await entryOf(context, id) // before a password is typed
  const password = setsPassword ? await passwordOf(context) : undefined
  await put(context, 'entry edit', 'changed', password, async () => {
    await asking(id, store.ask('POST', `/api/updatePassword/${id}`, { ...given, password }))
    return id
  })
}

async function history(context: Context): Promise<void> {
  const { store, flags, terminal } = context
  const id = await findId(context, 'all')
  await entryOf(context, id) // of one that was purged since, nothing is shown
  const reveals = flags['reveal'] === true
  if (reveals) await recordDisclosure(context, { command: 'entry history', entries: 1, id })
  const take: OnRecord = (record, state) => {
    const { time, type } = record
    const changes = changesIn(record, id)
    if (changes === undefined) return
    const values = shownFields({ ...state.entries.get(id), ...changes }, reveals)
    const by = authorOf(state, record)
    terminal.show({ time, by, type, ...values }, `${time} ${by ?? '-'} ${type} ${JSON.stringify(values)}`)
  }
  await store.read(await store.status(), take)
}

async function purge(context: Context): Promise<void> {
  const { flags, terminal } = context
  const id = idOf(context)
  const { sistema, usuario }: Entry = await entryOf(context, id)
  const what = `Entry ${id} (${sistema}, ${usuario}) is permanently deleted, and its id is never given again.`
  await terminal.confirm(what, flags['yes'] === true)
  await change(context, id, 'purged', '/operator/entries/purge', { id })
}

const ENTRY = ['ENTRY']

/** `entry …`. */
export const COMMANDS: readonly Command[] = [
  {
    name: 'entry list', positionals: ['[FILTER]'], options: { deleted: { help: 'those that were deleted instead' } },
    help: 'lists the active entries, or those whose system or user contains FILTER; no passwords',
    examples: ['entry list git', 'entry list --deleted'],
    run: async context => {
      const among = context.flags['deleted'] === true ? 'deleted' : 'active'
      const [filter] = context.positionals
      const such = filter === undefined ? '' : ' that contain this'
      context.terminal.list(await listed(context, among, filter), `no ${among} entries${such}`, FIELD_WORDS)
    }
  },
  {
    name: 'entry get', positionals: ENTRY,
    options: { field: { value: 'F', help: `print this alone: ${WORDS}` }, ...REVEAL, ...CLIP },
    help: 'prints an entry; its password with --reveal or --field password, which is recorded',
    examples: ['entry get github', 'entry get 3 --clip', 'entry get 3 --field password'],
    run: get
  },
  {
    name: 'entry add', options: { ...FIELD_FLAGS, ...PASSWORD, ...REVEAL, ...CLIP },
    help: 'makes an entry, whose password it asks for or generates',
    examples: ['entry add --system github --user ana', 'entry add --system github --user ana --generate --clip'],
    run: add
  },
  {
    name: 'entry edit', positionals: ENTRY,
    options: {
      ...FIELD_FLAGS, password: { help: 'ask for a new password, also with --system or --user' }, ...PASSWORD,
      ...REVEAL, ...CLIP
    },
    help: 'changes an entry: its password, which it asks for or generates, unless --system or --user is given',
    examples: ['entry edit github', 'entry edit 3 --user bea', 'entry edit 3 --generate 32 --reveal'],
    run: edit
  },
  {
    name: 'entry delete', positionals: ENTRY,
    help: 'marks an entry as deleted; nothing is removed',
    examples: ['entry delete 3'],
    run: async context => {
      const id = await findId(context, 'active')
      await change(context, id, 'deleted', `/api/deletePassword/${id}`)
    }
  },
  {
    name: 'entry restore', positionals: ENTRY,
    help: 'makes a deleted entry active again',
    examples: ['entry restore 3'],
    run: async context => {
      const id = await findId(context, 'deleted')
      await change(context, id, 'restored', '/operator/entries/restore', { id })
    }
  },
  {
    name: 'entry purge', positionals: ['ID'], options: { yes: { help: 'do not ask whether that is meant' } },
    help: 'permanently deletes an entry; its old values leave the file with journal compact --drop-history',
    examples: ['entry purge 3'],
    run: purge
  },
  {
    name: 'entry history', positionals: ENTRY, options: REVEAL,
    help: 'prints every value that an entry ever had, when it got it, and by whom',
    examples: ['entry history github --reveal'],
    run: history
  }
]
