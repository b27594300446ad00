import { eitherOf } from '../../../core-settings.ts'
import type { JournalRecord } from '../../../journal/journal.ts'
import { counted } from '../../../log.ts'
import {
  ENTRY_FIELDS,
  FIELDS,
  fieldsOf,
  OPEN_FIELDS,
  SECRET_FIELDS,
  type EntryChanges,
  type EntryFields
} from '../../../entries/entry.ts'
import type { State } from '../../../store/state.ts'
import { changesIn } from '../../../entries/entry-events.ts'
import { operatorIn } from '../../../knowledge/knowledge-events.ts'
import {
  UsageError,
  type OperatorCommand,
  type Context,
  type Option
} from '../../commands/command.ts'
import { made } from '../../commands/terminal.ts'
import { UNCHANGED, type Changed, type Listed, type Named } from '../../commands/operation.ts'
import { ENTRY, FIELD_WORDS, findId, givenId, nameOf, WHICH } from './find-entry.ts'
import { FIELD_FLAGS, givenFields, otpOf, PASSWORD, passwordOf } from './given-fields.ts'
import { searchedRows } from './searched-rows.ts'
import { knewIt, othersMayKnow, someOf } from './who-knows.ts'

export const HIDDEN = '********'
export const REVEAL: { readonly reveal: Option } = { reveal: { help: 'show passwords' } }

/** A value of `--field` that is no field: it is made of a secret. */
const CODE = 'code'
const WORDS = [...Object.values(FIELD_WORDS), CODE]
const CLIP = {
  clip: {
    help: 'put it into the clipboard of the terminal (OSC 52), and clear that after 45 seconds'
  }
}
const CLEAR_AFTER_SECONDS = 45
const IS_SO = ': it is so already'

/** Null in the open configuration. */
export function authorOf(state: State, record: Pick<JournalRecord, 'by' | 'data'>): string | null {
  const { by } = record
  // A compaction keeps only the number of a removed user.
  return by === null ? (operatorIn(record) ?? null) : state.users.get(by)?.email || String(by)
}

function clips({ flags, terminal }: Context): boolean {
  if (flags['clip'] === true) terminal.assertClip()
  return flags['clip'] === true
}

async function copy(
  { terminal, store }: Context,
  entry: Named,
  name: string,
  text: string
): Promise<void> {
  const till = `for ${CLEAR_AFTER_SECONDS} seconds, or until this is ended with Ctrl-C`
  const { id, sistema, usuario } = entry
  await terminal.clip(text, CLEAR_AFTER_SECONDS, async () => {
    terminal.show(
      { id, sistema, usuario, copied: name, clearsAfterSeconds: CLEAR_AFTER_SECONDS },
      `${nameOf(entry)}: the ${name} is in the clipboard, if the terminal allows that, ${till}`
    )
    await store.close() // nobody waits for the lock meanwhile
  })
}

async function list(context: Context): Promise<number> {
  const {
    flags,
    positionals: [text],
    store,
    terminal
  } = context
  const isReused = flags['reused'] === true
  const isExposed = flags['exposed'] === true
  const oldDays = flags['old'] === undefined ? undefined : Number(flags['old'])
  if (!/^\d{1,4}$/.test(String(flags['old'] ?? 0)))
    throw new UsageError('--old must be a number of days')
  for (const flag of ['reused', 'exposed']) {
    if (flags[flag] === true && flags['deleted'] === true)
      throw new UsageError(`--${flag} and --deleted do not go together`)
  }
  const kept = flags['deleted'] === true ? 'deleted' : 'active'
  // What a deleted entry's password opens may still exist.
  const among = isExposed && !isReused ? 'all' : kept
  const { rows, order, lists, secrets, unrecorded } = await searchedRows(context, {
    text,
    among,
    oldDays,
    isReused,
    isExposed
  })
  await store.close()
  const isJson = flags['json'] === true
  const shownOf = (row: number): object => {
    const { exposedTo, unrecordedBefore, ...one } = JSON.parse(rows.at(row)) as Listed
    const known = exposedTo === undefined ? undefined : lists[exposedTo]!
    if (isJson)
      return {
        ...one,
        ...(unrecordedBefore !== undefined && { unrecordedBefore }),
        ...(known && { exposed: known.length, exposedTo: known })
      }
    return {
      ...one,
      ...(known && { exposedTo: someOf(known) }),
      ...(one.changed === null && { changed: 'not known' }),
      ...Object.fromEntries(
        [...secrets].map(field => [field, one[field] === undefined ? undefined : 'yes'])
      )
    }
  }
  const such =
    text === undefined && oldDays === undefined && !isReused && !isExposed ? '' : ' like that'
  const words = { ...FIELD_WORDS, sameAs: 'same as', exposedTo: 'known by' }
  const kind = among === 'all' ? '' : `${among} `
  terminal.list(made(order, shownOf), `no ${kind}entries${such}`, words)
  const others = othersMayKnow(unrecorded)
  for (const line of others) terminal.warn(line)
  return others.length === 0 ? 0 : 1 // 0 says that the list lacks nobody
}

async function get(context: Context): Promise<void> {
  const { flags, terminal } = context
  const isCopied = clips(context)
  const field = flags['field'] ?? (isCopied ? 'password' : undefined)
  if (field === CODE) return code(context, isCopied)
  const name = ENTRY_FIELDS.find(one => one === field || FIELD_WORDS[one] === field)
  if (field !== undefined && name === undefined) {
    throw new UsageError(`--field must be ${eitherOf(WORDS)}`)
  }
  const reveals = name === undefined ? flags['reveal'] === true : SECRET_FIELDS.includes(name)
  const id = await findId(context, 'active', 'shows')
  const command = reveals ? 'entry get' : undefined
  const entry = await context.store.ask('getEntry', { id, command, field: name })
  await context.store.close()
  if (name !== undefined && isCopied) return copy(context, entry, name, entry[name] ?? '')
  if (name !== undefined) {
    const { sistema, usuario } = entry
    return terminal.showText(
      { id, sistema, usuario, [name]: entry[name] ?? null },
      entry[name] ?? ''
    )
  }
  const lines = [...OPEN_FIELDS, ...SECRET_FIELDS]
    .filter(field => entry[field] !== undefined)
    .map(field => `${FIELDS[field].flag.padEnd(9)} ${entry[field]}`)
  terminal.show(entry, [
    `id        ${id}`,
    ...lines,
    `status    ${entry.status === 1 ? 'active' : 'deleted'}`
  ])
}

/** Not recorded: a code tells no secret. */
async function code(context: Context, isCopied: boolean): Promise<void> {
  const { store, terminal } = context
  const id = await findId(context, 'active', 'shows')
  const found = await store.ask('getCode', { id })
  await store.close()
  if (isCopied) return copy(context, found, CODE, found.code)
  terminal.showText(found, found.code)
  if (context.flags['json'] !== true) terminal.note(`valid for ${counted(found.seconds, 'second')}`)
}

async function change(
  { store, terminal }: Context,
  id: number,
  becomes: string,
  operation: 'deleteEntry' | 'restoreEntry'
): Promise<void> {
  const { isChanged, ...entry } = await store.ask(operation, { id })
  const done = isChanged ? becomes : UNCHANGED
  terminal.show({ ...entry, done }, `${nameOf(entry)} ${done}${isChanged ? '' : IS_SO}`)
}

async function put(
  context: Context,
  becomes: string,
  password: string | undefined,
  send: () => Promise<Named & Partial<Changed>>
): Promise<void> {
  const { flags, terminal } = context
  const isCopied = clips(context)
  const reveals = flags['reveal'] === true
  if (password === undefined && (reveals || isCopied)) {
    throw new UsageError(
      '--reveal and --clip show a new password; add --password or --generate, or leave them out'
    )
  }
  const { isChanged = true, ...entry } = await send()
  const done = isChanged ? becomes : UNCHANGED
  const isShown = password !== undefined && (reveals || isCopied)
  const lines = isShown && reveals ? [`password  ${password}`] : []
  terminal.show({ ...entry, done, ...(isShown && reveals && { password }) }, [
    `${nameOf(entry)} ${done}${isChanged ? '' : IS_SO}`,
    ...lines
  ])
  if (isShown && isCopied) await copy(context, entry, 'password', password)
}

async function add(context: Context): Promise<void> {
  const given = await givenFields(context)
  const required = OPEN_FIELDS.filter(field => FIELDS[field].isRequired)
  if (required.some(field => given[field] === undefined)) {
    const flags = required.map(field => `--${FIELDS[field].flag} ${FIELDS[field].value}`)
    throw new UsageError(`give ${flags.join(' and ')}`)
  }
  const password = await passwordOf(context, 'the new entry')
  const otp = await otpOf(context, 'the new entry')
  await put(context, 'created', password, () =>
    context.store.ask('addEntry', { ...given, password, ...otp } as EntryFields)
  )
}

/** Without a flag, the password changes. */
async function edit(context: Context): Promise<void> {
  const { flags, store } = context
  const given = await givenFields(context)
  const setsPassword =
    (ENTRY_FIELDS.every(field => given[field] === undefined) && flags['otp'] !== true) ||
    ['password', 'password-stdin', 'generate'].some(flag => flags[flag] !== undefined)
  const id = await findId(context, 'active', 'changes')
  // before a password is typed
  const found = await store.ask('getEntry', { id, command: undefined })
  await store.close() // a service may start while it is
  const password = setsPassword ? await passwordOf(context, nameOf(found)) : undefined
  const otp = await otpOf(context, nameOf(found))
  await put(context, 'changed', password, () =>
    store.ask('editEntry', { id, ...given, password, ...otp })
  )
}

async function history(context: Context): Promise<void> {
  const { store, flags, terminal } = context
  const id = await findId(context, 'all', 'shows')
  const reveals = flags['reveal'] === true
  await store.ask('getEntry', { id, command: undefined }) // fails if it is purged
  // What is set later is not shown.
  const status = await store.status()
  await store.close() // nobody waits for the lock meanwhile
  const eachChange = (
    look: (fields: EntryChanges, record: JournalRecord, state: State) => void
  ): Promise<unknown> =>
    store.read(status, (record, state) => {
      const changes = changesIn(record, id)
      if (changes !== undefined) look({ ...state.entries.get(id), ...changes }, record, state)
    })
  if (reveals) {
    // Read twice: what is shown is recorded first, and a history may be longer than memory.
    const passwords = new Set<string>()
    await eachChange(({ password }) => {
      if (password !== undefined) passwords.add(password)
    })
    await store.ask('disclose', { command: 'entry history', id, former: [...passwords] })
    await store.close()
  }
  await eachChange((fields, record, state) => {
    const secrets = SECRET_FIELDS.filter(field => fields[field] !== undefined)
    const hidden = Object.fromEntries(secrets.map(field => [field, HIDDEN]))
    const values = fieldsOf(reveals ? fields : { ...fields, ...hidden })
    const { time, type } = record
    const by = authorOf(state, record)
    const line = `${time} ${by ?? '-'} ${type} ${JSON.stringify(values)}`
    terminal.show({ time, by, type, ...values }, line)
  })
}

async function purge(context: Context): Promise<void> {
  const { flags, positionals, terminal, store } = context
  const id = givenId(positionals[0]!, 'entry list and entry list --deleted show the ids')
  const found = await store.ask('getEntry', { id, command: undefined })
  await store.close() // nobody waits for the lock meanwhile
  const what = `This permanently deletes ${nameOf(found)}. Its id is never given again.`
  await terminal.confirm(what, flags['yes'] === true)
  const entry = await store.ask('purgeEntry', { id })
  terminal.show({ ...entry, done: 'purged' }, [
    `${nameOf(entry)} permanently deleted`,
    ...knewIt(entry.exposedTo, entry.unrecordedBefore),
    'its old values leave the file with: journal compact --drop-history'
  ])
}

export const COMMANDS: readonly OperatorCommand[] = [
  {
    name: 'entry list',
    positionals: ['[FILTER]'],
    options: {
      deleted: { help: 'those that were deleted instead' },
      old: {
        value: 'DAYS',
        help: 'those whose password was set more than DAYS ago, or nobody knows when'
      },
      reused: { help: 'those whose password another active entry has, too' },
      exposed: {
        help:
          'those, deleted ones too, whose password somebody knows who may not be told it any ' +
          'more; exit code 1 if others may know some'
      }
    },
    help:
      'lists the active entries, or those whose system, user or address contains ' +
      'FILTER; no secrets',
    examples: [
      'entry list git',
      'entry list --deleted',
      'entry list --old 365',
      'entry list --exposed'
    ],
    run: list
  },
  {
    name: 'entry get',
    positionals: ENTRY,
    options: {
      ...WHICH,
      field: { value: 'F', help: `print this alone: ${WORDS.join(', ')}` },
      ...REVEAL,
      ...CLIP
    },
    help: 'prints an entry; its password with --reveal or --field password, which is recorded',
    examples: [
      'entry get github',
      'entry get 3 --clip',
      'entry get 3 --field password',
      'entry get github --field code'
    ],
    run: get
  },
  {
    name: 'entry add',
    options: { ...FIELD_FLAGS, ...PASSWORD, ...REVEAL, ...CLIP },
    help: 'makes an entry, whose password it asks for or generates',
    examples: [
      'entry add --system github --user ana',
      'entry add --system github --user ana --generate --clip'
    ],
    run: add
  },
  {
    name: 'entry edit',
    positionals: ENTRY,
    options: {
      ...WHICH,
      ...FIELD_FLAGS,
      password: { help: 'ask for a new password, also with --system or --user' },
      ...PASSWORD,
      ...REVEAL,
      ...CLIP
    },
    help:
      'changes an entry: its password, which it asks for or generates, unless another field ' +
      'is given',
    examples: [
      'entry edit github',
      'entry edit 3 --user bea',
      'entry edit 3 --generate --reveal',
      'entry edit 3 --otp'
    ],
    run: edit
  },
  {
    name: 'entry delete',
    positionals: ENTRY,
    options: WHICH,
    help: 'marks an entry as deleted; nothing is removed',
    examples: [
      'entry delete 3',
      'entry delete github --of-user ana',
      'entry delete --of-system 12'
    ],
    run: async context => {
      const id = await findId(context, 'active', 'changes')
      await change(context, id, 'deleted', 'deleteEntry')
    }
  },
  {
    name: 'entry restore',
    positionals: ENTRY,
    options: WHICH,
    help: 'makes a deleted entry active again',
    examples: ['entry restore 3', 'entry restore github'],
    run: async context => {
      const id = await findId(context, 'deleted', 'changes')
      await change(context, id, 'restored', 'restoreEntry')
    }
  },
  {
    name: 'entry purge',
    positionals: ['ID'],
    options: { yes: { help: 'do not ask for confirmation' } },
    help:
      'permanently deletes an entry; its old values leave the file with journal compact ' +
      '--drop-history',
    examples: ['entry purge 3'],
    run: purge
  },
  {
    name: 'entry history',
    positionals: ENTRY,
    options: { ...WHICH, ...REVEAL },
    help: 'prints every value that an entry ever had, with its time and its author',
    examples: ['entry history github --reveal'],
    run: history
  }
]
