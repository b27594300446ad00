/** A command line: which command is meant, its flags, and the help on them. */
import { basename } from 'node:path'
import { settingsHelp } from '../../config/read.ts'
import type { Setting } from '../../config/core-settings.ts'
import { PARTS, STORAGE_SETTINGS } from '../../settings.ts'
import { UsageError, type Arguments, type Command, type Option } from '../command.ts'

type Table = { readonly [name: string]: Setting<unknown> }

/** What the program is called. */
const PROGRAM: string = basename(process.argv[1] ?? '').startsWith('password-entry')
  ? basename(process.argv[1]!) : 'node dist/admin.js'

const HELP: Option = { help: 'explain the command' }
const JSON_RESULT: Option = { help: 'print the result as JSON' }

/** The settings that are shown: where the journal is, and of parts with journals those that are chosen. */
function settingsFor({ journal: moves }: Command, journal: string | undefined): Table {
  // A command that moves a journal may need the settings of either place.
  const others = moves !== undefined ? []
    : PARTS.filter(({ journals = {} }) => Object.keys(journals).some(name => name !== journal))
  const hidden = new Set(others.flatMap(({ settings }) => Object.keys(settings)))
  return Object.fromEntries(Object.entries<Setting<unknown>>(STORAGE_SETTINGS).filter(([name]) => !hidden.has(name)))
}

function withSettings(command: Command, settings: Table): { readonly [flag: string]: Option } {
  const flags = Object.values(settings).map(({ flag, value, help }) => [flag, { value, help }])
  return { ...command.options, json: JSON_RESULT, help: HELP, ...Object.fromEntries(flags) }
}

/** Every option that a command takes, also those that all of them have. */
function optionsOf(command: Command): { readonly [flag: string]: Option } {
  return withSettings(command, STORAGE_SETTINGS)
}

/** Those that are worth showing where the journal is in this place. */
export function shownOptionsOf(command: Command, journal: string | undefined): { readonly [flag: string]: Option } {
  return withSettings(command, settingsFor(command, journal))
}

/** The command that the first words name. Throws a `UsageError` that suggests one. */
export function findCommand(commands: readonly Command[], words: readonly string[]): Command {
  const found = commands.find(({ name }) => name.split(' ').every((word, i) => words[i] === word))
  if (found !== undefined) return found
  if (words[0]?.startsWith('-') === true) {
    throw new UsageError(`flags come after the command; ${PROGRAM} --help lists the commands`)
  }
  const [group = '', second = ''] = words.filter(word => !word.startsWith('-'))
  const names = commands.map(({ name }) => name)
  const inGroup = commands.filter(({ name }) => name.startsWith(`${group} `))
  const meant = inGroup.length === 0 ? nearest(`${group} ${second}`.trim(), names) ?? nearest(group, groupsOf(names))
    : nearest(`${group} ${second}`, names)
  if (meant !== undefined) throw new UsageError(`there is no such command; did you mean ${meant}?`)
  if (inGroup.length > 0) throw new UsageError(`${group} needs one of: ${inGroup.map(secondWord).join(', ')}`)
  throw new UsageError(`there is no such command; ${PROGRAM} --help lists them`)
}

function groupsOf(names: readonly string[]): readonly string[] { return names.map(name => name.split(' ')[0]!) }

const secondWord = ({ name }: Command): string => name.split(' ')[1]!

/** Parses the words after a command. Throws a `UsageError`. */
export function parse(command: Command, words: readonly string[]): Arguments {
  const options = optionsOf(command)
  const flags: { [flag: string]: string | boolean | readonly string[] } = {}
  const positionals: string[] = []
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!
    if (word === '--') { positionals.push(...words.slice(i + 1)); break }
    if (word === '-h') { flags['help'] = true; continue }
    if (!word.startsWith('--')) {
      if (word.startsWith('-') && word !== '-') {
        throw new UsageError(`flags begin with two dashes; ${flagsHint(command)}`)
      }
      positionals.push(word)
      continue
    }
    const [flag = '', inline] = splitOnce(word.slice(2))
    const option = Object.hasOwn(options, flag) ? options[flag]! : undefined
    if (option === undefined) throw unknownFlag(command, flag, Object.keys(options))
    if (option.value === undefined) {
      if (inline !== undefined) throw new UsageError(`--${flag} takes no value`)
      flags[flag] = true
    } else if (option.value.startsWith('[')) {
      flags[flag] = inline ?? (/^\d+$/.test(words[i + 1] ?? '') ? words[++i]! : true)
    } else {
      const value = inline ?? words[++i]
      if (value === undefined || (inline === undefined && value.startsWith('--'))) {
        throw new UsageError(`--${flag} needs a value: --${flag} ${option.value}`)
      }
      flags[flag] = option.repeats === true ? [...(flags[flag] ?? []) as readonly string[], value] : value
    }
  }
  const expected = command.positionals ?? []
  const least = expected.filter(one => !one.startsWith('[')).length
  const isWhole = positionals.length >= least && positionals.length <= expected.length
  if (!isWhole && flags['help'] !== true) throw new UsageError(usage(command))
  return { positionals, flags }
}

function splitOnce(text: string): readonly [string, string | undefined] {
  const at = text.indexOf('=')
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

function flagsHint({ name }: Command): string { return `${PROGRAM} ${name} --help lists them` }

function unknownFlag(command: Command, flag: string, known: readonly string[]): UsageError {
  const meant = nearest(flag, known)
  const hint = meant === undefined ? flagsHint(command) : `did you mean --${meant}?`
  return new UsageError(`${command.name} has no such flag; ${hint}`)
}

/** The most similar known word, if at most 3 letters, and two of every five, differ. */
function nearest(word: string, known: readonly string[]): string | undefined {
  const [best] = [...new Set(known)].map(one => ({ one, distance: distanceOf(word, one) }))
    .sort((a, b) => a.distance - b.distance)
  return best !== undefined && word !== '' && best.distance <= Math.min(3, word.length * 0.4) ? best.one : undefined
}

/** The edit distance: letters to change, add, remove, or swap with the next one (Damerau-Levenshtein). */
function distanceOf(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= Math.min(a.length, 40); i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row[j] = Math.min(row[j - 1]! + 1, rows[i - 1]![j]! + 1, rows[i - 1]![j - 1]! + (isSame ? 0 : 1),
        isSwapped ? rows[i - 2]![j - 2]! + 1 : Infinity)
    }
    rows.push(row)
  }
  return rows.at(-1)!.at(-1)!
}

function usage({ name, positionals = [] }: Command): string {
  return ['usage:', PROGRAM, name, ...positionals, '[options]'].join(' ')
}

/** The help on a command. */
export function helpOf(command: Command, journal: string | undefined): string {
  const settings = settingsFor(command, journal)
  const options = Object.entries({ ...command.options, json: JSON_RESULT })
    .map(([flag, { value, help }]) => `  ${`--${flag}${value === undefined ? '' : ` ${value}`}`.padEnd(28)} ${help}\n`)
  return `${usage(command)}\n\n${command.help}\n\n${options.join('')}${settingsHelp(settings)}\n`
}

/** The list of all commands, or of those of a group. */
export function overview(commands: readonly Command[], group?: string): string {
  const shown = commands.filter(({ name }) => group === undefined || name.startsWith(`${group} `))
  const lines = shown.map(({ name, help }) => `  ${name.padEnd(16)} ${help}\n`)
  const head = `usage: ${PROGRAM} ${group === undefined ? '' : `${group} `}COMMAND\n\n${lines.join('')}\n`
  return `${head}${PROGRAM} help COMMAND explains one.\n`
}
