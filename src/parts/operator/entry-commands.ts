/** The commands on entries: what the page offers, at a terminal. */
import { TEXTS } from '../../contract.ts'
import { randomInt } from 'node:crypto'
import { ENTRY_FIELDS, type Entry } from '../../store/entry.ts'
import type { Events } from '../../store/events.ts'
import { changesIn } from '../../store/extra-commands.ts'
import type { CommittedState } from '../../store/state.ts'
import {
  OperatorError, UsageError, type Command, type Context, type OnRecord, type Option
} from '../command.ts'
import { ARCHIVE, withArchives } from './archives.ts'

/** Shown instead of a password that was not asked for. */
export const HIDDEN = '********'
/** The flag that shows passwords. */
export const REVEAL: { readonly reveal: Option } = { reveal: { help: 'show passwords' } }

const SYSTEM = { system: { value: 'S', help: 'the system that the password is for' } }
const USER = { user: { value: 'U', help: 'the user name there' } }
const PASSWORD = {
  'password-stdin': { help: 'take the password from the first line of standard input' },
  generate: { value: '[LENGTH]', help: 'generate a password, of 20 characters unless LENGTH is given' }
}
const GENERATED = { least: 8, most: 1024, fallback: 20 }
/** Without those that are easily confused, such as l and 1. */
const LETTERS = 'abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789!#$%&*+-=?@_'
const UNKNOWN = TEXTS.unknownId

function idOf({ positionals: [text] }: Context): number {
  if (text === undefined || !/^[1-9][0-9]{0,14}$/.test(text)) throw new UsageError('ID must be a positive integer')
  return Number(text)
}

/** The active entries, or all. */
export async function entriesOf({ store }: Context, activeOnly: boolean): Promise<readonly Entry[]> {
  const { state: { entries } } = await store.read(await store.status())
  const all = Array.from(entries.entries(), ([, entry]) => entry)
  return activeOnly ? all.filter(({ status }) => status === 1) : all
}

/** An entry of the running service, or of the folder. */
async function entryOf(context: Context, id: number): Promise<Entry> {
  const { store } = context
  if (await store.look() !== undefined) {
    return (await store.ask('GET', `/api/getPassword/${id}`)).passwords
  }
  const entry = (await store.read(await store.status())).state.entries.get(id)
  if (entry === undefined) throw new OperatorError(UNKNOWN)
  return entry
}

/** A password that was typed, taken from standard input, or generated. */
async function passwordOf({ flags, terminal }: Context): Promise<string> {
  const { generate } = flags
  if (generate === undefined) return terminal.newSecret(flags['password-stdin'] === true)
  const length = generate === true ? GENERATED.fallback : Number(generate)
  if (!(length >= GENERATED.least && length <= GENERATED.most)) {
    throw new UsageError(`--generate must be a length from ${GENERATED.least} to ${GENERATED.most}`)
  }
  return Array.from({ length }, () => LETTERS[randomInt(LETTERS.length)]).join('')
}

/** Who caused a record; `-` is the operator, or anybody in the open configuration. */
export function authorOf(state: CommittedState, by: number | null): string {
  // Of a removed user a compaction keeps the number alone.
  return by === null ? '-' : state.users.get(by)?.email || String(by)
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

async function get(context: Context): Promise<void> {
  const { flags, terminal } = context
  const id = idOf(context)
  const field = flags['field'] ?? (flags['clip'] === true ? 'password' : undefined)
  const name = ENTRY_FIELDS.find(one => one === field)
  if (field !== undefined && name === undefined) throw new UsageError(`--field must be ${ENTRY_FIELDS.join(', ')}`)
  const reveals = name === 'password' || (name === undefined && flags['reveal'] === true)
  const found = await entryOf(context, id)
  if (reveals) await recordDisclosure(context, { command: 'entry get', entries: 1, id })
  const entry = reveals ? found : { ...found, password: HIDDEN }
  if (name === undefined) {
    const { sistema, usuario, password, status } = entry
    terminal.show(entry, `sistema   ${sistema}`, `usuario   ${usuario}`, `password  ${password}`,
      `status    ${status === 1 ? 'active' : 'deleted'}`)
  } else if (flags['clip'] === true) {
    terminal.clip(entry[name])
    terminal.show({ id, copied: name }, `entry ${id}: ${name} is in the clipboard, if the terminal allows that`)
  } else terminal.show({ [name]: entry[name] }, entry[name])
}

/** Asks for a change of an entry, and says what came of it. */
async function change(context: Context, path: string, body?: object): Promise<void> {
  const { message, id = idOf(context) } = await context.store.ask('POST', path, body)
  context.terminal.show({ id, message }, `entry ${id}: ${message}`)
}

async function add(context: Context): Promise<void> {
  const { system: sistema, user: usuario } = context.flags
  if (sistema === undefined || usuario === undefined) throw new UsageError('give --system S and --user U')
  await change(context, '/operator/entries/add', { sistema, usuario, password: await passwordOf(context) })
}

async function edit(context: Context): Promise<void> {
  const { flags } = context
  const id = idOf(context)
  const setsPassword = ['password', 'password-stdin', 'generate'].some(flag => flags[flag] !== undefined)
  const password = setsPassword ? await passwordOf(context) : undefined
  const body = { sistema: flags['system'], usuario: flags['user'], password }
  if (Object.values(body).every(value => value === undefined)) {
    throw new UsageError('give what is to change: --system, --user, or --password')
  }
  await change(context, `/api/updatePassword/${id}`, body)
}

async function history(context: Context): Promise<void> {
  const { store, flags, terminal } = context
  const id = idOf(context)
  const reveals = flags['reveal'] === true
  if (reveals) await recordDisclosure(context, { command: 'entry history', entries: 1, id })
  const lines: Parameters<typeof terminal.show>[] = []
  const take: OnRecord = (record, state) => {
    const { time, type, by } = record
    const changes = changesIn(record, id)
    if (changes === undefined) return
    const { password, sistema, usuario } = { ...state.entries.get(id), ...changes }
    const values = { password: reveals ? password : HIDDEN, sistema, usuario }
    const author = authorOf(state, by)
    lines.push([{ time, by: author, type, ...values }, `${time} ${author} ${type} ${JSON.stringify(values)}`])
  }
  let isKnown = false
  for (const status of await withArchives(context, await store.status())) {
    isKnown = (await store.read(status, take)).state.entries.get(id) !== undefined
  }
  if (!isKnown) throw new OperatorError(UNKNOWN) // also where it was purged since
  for (const line of lines) terminal.show(...line)
}

async function purge(context: Context): Promise<void> {
  const { flags, terminal } = context
  const id = idOf(context)
  await entryOf(context, id)
  await terminal.confirm(`Entry ${id} is gone for good, and its id is never given again.`, flags['yes'] === true)
  await change(context, '/operator/entries/purge', { id })
}

/** `entry …`. */
export const COMMANDS: readonly Command[] = [
  {
    name: 'entry list', positionals: ['[FILTER]'],
    help: 'lists the active entries, or those whose system or user contains FILTER; no passwords',
    run: async context => {
      const filter = context.positionals[0]?.toLowerCase() ?? ''
      const entries = await entriesOf(context, true)
      context.terminal.list(entries.map(({ id, sistema, usuario }) => ({ id, sistema, usuario }))
        .filter(({ sistema, usuario }) => [sistema, usuario].some(text => text.toLowerCase().includes(filter))))
    }
  },
  {
    name: 'entry get', positionals: ['ID'],
    options: {
      field: { value: 'F', help: 'print this alone: password, sistema or usuario' },
      clip: { help: 'put it into the clipboard of the terminal instead (OSC 52)' }, ...REVEAL
    },
    help: 'prints an entry; its password with --reveal or --field password, which is recorded',
    run: get
  },
  {
    name: 'entry add', options: { ...SYSTEM, ...USER, ...PASSWORD },
    help: 'makes an entry, whose password it asks for',
    run: add
  },
  {
    name: 'entry edit', positionals: ['ID'],
    options: { ...SYSTEM, ...USER, password: { help: 'ask for a new password' }, ...PASSWORD },
    help: 'changes an entry',
    run: edit
  },
  {
    name: 'entry delete', positionals: ['ID'],
    help: 'marks an entry as deleted; nothing is removed',
    run: context => change(context, `/api/deletePassword/${idOf(context)}`)
  },
  {
    name: 'entry restore', positionals: ['ID'],
    help: 'makes a deleted entry active again',
    run: context => change(context, '/operator/entries/restore', { id: idOf(context) })
  },
  {
    name: 'entry purge', positionals: ['ID'], options: { yes: { help: 'do not ask whether that is meant' } },
    help: 'makes an entry unknown for good; journal compact then leaves every value out that it ever had',
    run: purge
  },
  {
    name: 'entry history', positionals: ['ID'], options: { ...REVEAL, ...ARCHIVE },
    help: 'prints every value that an entry ever had, when it got it, and by whom',
    run: history
  }
]
