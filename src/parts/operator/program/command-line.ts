/** The command line: command, flags, and their help. */
import { parseArgs } from 'node:util'
import {
  fail,
  type Setting,
  type SettingsTable,
  type StorageSettings
} from '../../../core-settings.ts'
import { JOURNALS, nearest, PARTS, SETTINGS, settingsHelp } from '../../../settings.ts'
import {
  UsageError,
  type Arguments,
  type OperatorCommand,
  type Option
} from '../../commands/command.ts'
import { EXIT_CODES, MEANINGS } from '../../commands/exit-codes.ts'

type Table = { readonly [name: string]: Setting<unknown> }

/** As it can be called from any folder. */
const PROGRAM: string = `node ${process.argv[1]}`

const JOURNAL: Setting<string> = {
  ...SETTINGS.journal,
  help: `${[
    'Where records are kept: `file`',
    ...Object.values(JOURNALS).map(({ help }) => help)
  ].join('; ')}.`,
  parse: text =>
    text === 'memory'
      ? fail('a place that this program can reach; only the service reaches its memory')
      : SETTINGS.journal.parse(text)
}

/** This program needs no other settings. */
export const STORAGE_SETTINGS: SettingsTable<StorageSettings> = {
  dataDir: SETTINGS.dataDir,
  keyFile: SETTINGS.keyFile,
  journal: JOURNAL,
  ...Object.fromEntries(
    Object.entries<Setting<unknown>>(SETTINGS).filter(
      ([name, { serverOnly }]) =>
        serverOnly !== true &&
        PARTS.some(({ journals, settings }) => journals !== undefined && name in settings)
    )
  )
}

const POSITIONALS: { readonly [name: string]: string } = {
  'ENTRY': 'an id, or the whole name of a system, whatever its case and accents',
  'FILTER': 'a part of the system, user name or address, whatever its case and accents',
  'EMAIL': 'the address of a user',
  'USER|ENTRY':
    'the address of a user, also of a removed one, or #NUMBER; or an entry, as entry get takes it'
}

const JSON_RESULT: Option = { help: 'print the result as JSON' }

function settingsFor({ journal: moves }: OperatorCommand, journal: string | undefined): Table {
  // A command that moves a journal may need the settings of either place.
  const others =
    moves !== undefined
      ? []
      : PARTS.filter(({ journals = {} }) => Object.keys(journals).some(name => name !== journal))
  const hidden = new Set(others.flatMap(({ settings }) => Object.keys(settings)))
  return Object.fromEntries(
    Object.entries<Setting<unknown>>(STORAGE_SETTINGS).filter(([name]) => !hidden.has(name))
  )
}

function optionsOf(
  command: OperatorCommand,
  settings: Table = STORAGE_SETTINGS
): { readonly [flag: string]: Option } {
  const flags = Object.values(settings).map(({ flag, value, help }) => [flag, { value, help }])
  return {
    ...command.options,
    json: JSON_RESULT,
    help: { help: 'explain the command' },
    ...Object.fromEntries(flags)
  }
}

/** By the names of commands in other programs. */
const HABITS: { readonly [word: string]: string } = {
  ls: 'entry list',
  list: 'entry list',
  search: 'entry list',
  find: 'entry list',
  grep: 'entry list',
  get: 'entry get',
  show: 'entry get',
  cat: 'entry get',
  cp: 'entry get',
  copy: 'entry get',
  pass: 'entry get',
  add: 'entry add',
  insert: 'entry add',
  new: 'entry add',
  create: 'entry add',
  generate: 'entry add',
  edit: 'entry edit',
  set: 'entry edit',
  update: 'entry edit',
  mv: 'entry edit',
  rm: 'entry delete',
  delete: 'entry delete',
  remove: 'entry delete',
  undelete: 'entry restore',
  purge: 'entry purge',
  history: 'entry history',
  log: 'journal show',
  passwd: 'user password',
  backup: 'journal backup',
  restore: 'journal restore',
  verify: 'journal verify',
  check: 'journal verify',
  compact: 'journal compact',
  repair: 'journal rescue',
  rescue: 'journal rescue',
  salvage: 'journal salvage',
  rotate: 'key rotate',
  users: 'user list',
  tokens: 'token list'
}

/** Flags may stand before the command. */
export function flagsLast(
  commands: readonly OperatorCommand[],
  words: readonly string[]
): readonly string[] {
  const options = commands.flatMap(command => Object.entries(optionsOf(command)))
  let at = 0
  while (words[at]?.startsWith('--') === true) {
    const flag = words[at]!.slice(2)
    at += options.some(([name, { value }]) => name === flag && value !== undefined) ? 2 : 1
  }
  return [...words.slice(at), ...words.slice(0, at)]
}

/** Throws a `UsageError` that suggests one. */
export function findCommand(
  commands: readonly OperatorCommand[],
  words: readonly string[]
): OperatorCommand {
  const found = commands.find(({ name }) => name.split(' ').every((word, i) => words[i] === word))
  if (found !== undefined) return found
  const [group = '', second = ''] = words.filter(word => !word.startsWith('-'))
  const names = commands.map(({ name }) => name)
  const inGroup = names
    .filter(name => name.startsWith(`${group} `))
    .map(name => name.split(' ')[1]!)
  const ofEntry = group === 'entry' && Object.hasOwn(HABITS, second) ? HABITS[second] : undefined
  const habit = Object.hasOwn(HABITS, group) ? HABITS[group] : ofEntry
  const meant =
    nearest(`${group} ${second}`.trim(), names) ??
    habit ??
    (inGroup.length === 0
      ? nearest(
          group,
          names.map(name => name.split(' ')[0]!)
        )
      : undefined)
  if (meant !== undefined) throw new UsageError(`there is no such command; did you mean ${meant}?`)
  if (inGroup.length > 0) throw new UsageError(`${group} needs one of: ${inGroup.join(', ')}`)
  throw new UsageError(`there is no such command; ${PROGRAM} --help lists them`)
}

function flagsIn(words: readonly string[]): readonly string[] {
  return words.includes('--') ? words.slice(0, words.indexOf('--')) : words
}

export function asksForHelp(words: readonly string[]): boolean {
  return flagsIn(words).includes('--help') || flagsIn(words).includes('-h')
}

export function asksForJson(words: readonly string[]): boolean {
  return flagsIn(words).includes('--json')
}

/** Throws a `UsageError`. */
export function parse(command: OperatorCommand, words: readonly string[]): Arguments {
  const { flags, positionals, given } = parsed(command, words)
  const twice = given.find((name, i) => given.indexOf(name) !== i)
  if (twice !== undefined) throw new UsageError(`--${twice} is given twice`)
  for (const [name, value] of Object.entries(flags)) {
    if (typeof value === 'string') assertUtf8(`--${name}`, value)
  }
  for (const [i, text] of positionals.entries()) {
    const name = command.positionals?.[i]?.replace(/[[\]]/g, '') ?? 'a word'
    // Older versions took addresses that are not UTF-8. Their users can still be changed and
    // removed.
    if (name !== 'EMAIL' || command.name === 'user add') assertUtf8(name, text)
  }
  assertCount(command, positionals.length)
  return { positionals, flags }
}

interface ParsedArguments extends Arguments {
  readonly given: readonly string[]
}

/** Its errors repeat no value: it may be a password. */
function parsed(command: OperatorCommand, words: readonly string[]): ParsedArguments {
  const options = optionsOf(command)
  const config = Object.entries(options).map(([flag, { value }]) => [
    flag,
    { type: value === undefined ? ('boolean' as const) : ('string' as const) }
  ])
  try {
    const { values, positionals, tokens } = parseArgs({
      args: [...words],
      options: Object.fromEntries(config),
      allowPositionals: true,
      tokens: true
    })
    const given = tokens.flatMap(token => (token.kind === 'option' ? [token.name] : []))
    return { positionals, flags: values as Arguments['flags'], given }
  } catch (error) {
    const [, name = ''] = /'--([^'= ]*)/.exec((error as Error).message) ?? []
    if (name === '') throw new UsageError(`flags begin with two dashes; ${flagsHint(command)}`)
    const option = Object.hasOwn(options, name) ? options[name]! : undefined
    if (option === undefined) throw unknownFlag(command, name, Object.keys(options))
    if (option.value === undefined) throw new UsageError(`--${name} takes no value`)
    const dashed = `if it begins with a dash, --${name}=-VALUE`
    throw new UsageError(`--${name} needs a value: --${name} ${option.value}; ${dashed}`)
  }
}

/** Node reads bytes that are not UTF-8 as U+FFFD. */
function assertUtf8(name: string, word: string): void {
  if (word.includes('\uFFFD'))
    throw new UsageError(`${name} must be UTF-8 without U+FFFD: type it so`)
}

/** Its errors repeat no word: it may be a password. */
function assertCount(command: OperatorCommand, given: number): void {
  const { name, positionals: expected = [] } = command
  const missing = expected.slice(given).find(one => !one.startsWith('['))
  if (missing !== undefined) throw new UsageError(`${missing} is missing; ${usage(command)}`)
  if (given <= expected.length) return
  const takes =
    expected.length === 0
      ? 'flags alone'
      : `${expected.join(' ')}, and a text with spaces needs quotes`
  throw new UsageError(`too many words: ${name} takes ${takes}; ${usage(command)}`)
}

function flagsHint({ name }: OperatorCommand): string {
  return `${PROGRAM} ${name} --help lists them`
}

function unknownFlag(command: OperatorCommand, flag: string, known: readonly string[]): UsageError {
  const meant = nearest(flag, known)
  const hint = meant === undefined ? flagsHint(command) : `did you mean --${meant}?`
  return new UsageError(`${command.name} has no such flag; ${hint}`)
}

function usage({ name, positionals = [] }: OperatorCommand): string {
  return ['usage:', PROGRAM, name, ...positionals, '[options]'].join(' ')
}

export function helpOf(command: OperatorCommand, journal: string | undefined): string {
  const { positionals = [], examples = [] } = command
  const line = (name: string, text: string): string => `  ${name.padEnd(28)} ${text}\n`
  const words = positionals
    .map(name => name.replace(/[[\]]/g, ''))
    .flatMap(name => (POSITIONALS[name] === undefined ? [] : [line(name, POSITIONALS[name])]))
  const options = Object.entries({ ...command.options, json: JSON_RESULT }).map(
    ([flag, { value, help }]) => line(`--${flag}${value === undefined ? '' : ` ${value}`}`, help)
  )
  const settings = `${settingsHelp(settingsFor(command, journal))}\n`
  const shown = examples.map(example => `  ${PROGRAM} ${example}\n`)
  return [
    `${usage(command)}\n\n${command.help}\n`,
    words.join(''),
    `Options:\n${options.join('')}`,
    `Settings:\n${settings}`,
    shown.length === 0 ? '' : `Examples:\n${shown.join('')}`,
    `${EXIT_CODES}\n`
  ]
    .filter(text => text !== '')
    .join('\n')
}

/** As data. */
export function describe({
  name,
  positionals = [],
  help,
  options,
  examples = []
}: OperatorCommand): object {
  return {
    name,
    positionals,
    help,
    options: { ...options, json: JSON_RESULT },
    examples,
    exitCodes: MEANINGS
  }
}

/** In this order: everyday commands first. */
const GROUPS: readonly (readonly [title: string, ...firstWords: readonly string[]])[] = [
  ['Entries', 'entry', 'import', 'export'],
  ['Users and tokens', 'user', 'token', 'audit'],
  ['The journal and its keys', 'init', 'journal', 'key']
]

export function overview(
  commands: readonly OperatorCommand[],
  group?: string,
  journal: string = 'file'
): readonly [data: object, text: string] {
  const shown = commands.filter(
    ({ name, journals = [journal] }) =>
      journals.includes(journal) && (group === undefined || name.startsWith(`${group} `))
  )
  const grouped = new Set(GROUPS.flat())
  const others = new Set(
    shown.map(({ name }) => name.split(' ')[0]!).filter(first => !grouped.has(first))
  )
  const blocks = [...GROUPS, ['Other parts', ...others] as const].map(([title, ...firstWords]) => {
    const lines = firstWords
      .flatMap(first => shown.filter(({ name }) => name.split(' ')[0] === first))
      .map(({ name, help }) => `  ${name.padEnd(16)} ${help}\n`)
    return lines.length === 0 ? '' : `${title}\n${lines.join('')}\n`
  })
  const words = group === undefined ? 'COMMAND' : `${group} COMMAND`
  const head = `usage: ${PROGRAM} ${words}\n\n${blocks.join('')}`
  const text = `${head}${PROGRAM} help COMMAND explains one, with examples.\n${EXIT_CODES}\n`
  const data = { commands: shown.map(({ name, help }) => ({ name, help })), exitCodes: MEANINGS }
  return [data, text]
}
