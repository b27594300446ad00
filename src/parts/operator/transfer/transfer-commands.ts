import { Buffer } from 'node:buffer'
import { resolve } from 'node:path'
import { eitherOf } from '../../../core-settings.ts'
import { MAX_ENTRY_BYTES, MAX_IMPORT_BYTES } from '../../../limits.ts'
import { counted } from '../../../log.ts'
import { FIELDS } from '../../../entries/entry.ts'
import {
  OperatorError,
  UsageError,
  type OperatorCommand,
  type Context
} from '../../commands/command.ts'
import type { Imported, ImportedGroup, ImportRow } from '../../commands/operation.ts'
import { makeFile } from '../rewriting/saved-journal.ts'
import { breath } from '../../commands/signals.ts'
import { Texts } from '../../commands/texts.ts'
import { Column } from '../../../store/column.ts'
import { readGiven } from '../system-error.ts'
import { CHECKPOINT_RECORD_ROWS } from '../rewriting/checkpoint.ts'
import { entriesOf } from '../commands/find-entry.ts'
import type { Source } from './import-row.ts'

/** Larger than an import: most of what other programs write is not imported. */
const MAX_IMPORT_FILE_BYTES = 64 * 1024 * 1024

const IS_OWN_BYTES = ',"isOwn":false'.length

const NAMED_LINES = 20

/** `skipped` and `notKept` hold line numbers. */
interface Read {
  /** As JSON. */
  readonly rows: Texts
  readonly lines: Column
  readonly hasGroups: boolean
  readonly skipped: number[]
  readonly notKept: Map<string, number[]>
}

function readRows({ rows, unit }: Source): Read {
  const read = {
    rows: new Texts(),
    lines: new Column(),
    hasGroups: false,
    skipped: [] as number[],
    notKept: new Map<string, number[]>()
  }
  let bytes = 0
  for (const { line, entry, isOwn, dropped } of rows) {
    for (const kind of new Set(dropped)) {
      const lines = read.notKept.get(kind)
      if (lines === undefined) read.notKept.set(kind, [line])
      else lines.push(line)
    }
    if (entry === undefined) {
      read.skipped.push(line)
      continue
    }
    const own = Buffer.byteLength(JSON.stringify(entry)) + 1
    bytes += own + IS_OWN_BYTES
    if (own > MAX_ENTRY_BYTES) {
      throw new OperatorError(
        `${unit} ${line}: an entry may have ${MAX_ENTRY_BYTES} bytes; nothing was imported`
      )
    }
    if (bytes > MAX_IMPORT_BYTES) {
      const most = `more than one import can take (${MAX_IMPORT_BYTES} bytes)`
      throw new OperatorError(`${unit} ${line}: up to here it is ${most}; split the file`)
    }
    read.lines.set(read.rows.length, line)
    read.rows.push(JSON.stringify({ ...entry, isOwn }))
    read.hasGroups ||= entry.grupo !== undefined
  }
  return read
}

function named(lines: readonly number[], unit: string): string {
  const { length } = lines
  if (length === 0) return '0'
  const more = length > NAMED_LINES ? ` and ${length - NAMED_LINES} more` : ''
  return (
    `${length} (${unit}${length === 1 ? '' : 's'} ` +
    `${lines.slice(0, NAMED_LINES).join(', ')}${more})`
  )
}

function idsFrom(first: number | undefined, count: number): string {
  if (first === undefined) return ''
  return count === 1 ? `, id ${first}` : `, ids ${first} to ${first + count - 1}`
}

/** `seenBy`: through a list of groups; who has no list sees every entry. */
function groupLine({ name, entries, isNew, seenBy }: ImportedGroup): string {
  const { length } = seenBy
  const more = length > NAMED_LINES ? ` and ${length - NAMED_LINES} more` : ''
  const lists =
    length === 0
      ? 'no list of groups'
      : `the list of ${seenBy.slice(0, NAMED_LINES).join(', ')}${more}`
  return (
    `group        ${name}${isNew ? ' (new)' : ''}: ${counted(entries, 'entry', 'entries')}, ` +
    `in ${lists}`
  )
}

async function importFile(context: Context): Promise<void> {
  const {
    flags,
    terminal,
    positionals: [file = '']
  } = context
  const { readSource } = await import('./import-formats.ts')
  const bytes =
    file === '-'
      ? await terminal.readInput(MAX_IMPORT_FILE_BYTES)
      : readGiven(resolve(file), MAX_IMPORT_FILE_BYTES)
  const source = readSource(bytes, flags['no-groups'] !== true)
  const { rows, lines, hasGroups, skipped, notKept } = readRows(source)
  const places = Uint32Array.from({ length: rows.length }, (_, place) => place)
  const rowAt = (place: number): ImportRow => JSON.parse(rows.at(place)) as ImportRow
  const keepsDuplicates = flags['keep-duplicates'] === true
  const isTrial = flags['dry-run'] === true
  const ask = (isTrial: boolean): Promise<Imported> =>
    context.store.ask('importEntries', {
      rows: Array.from(places, rowAt),
      keepsDuplicates,
      isTrial
    })
  // First: who has a group in a list sees its entries at once.
  if (hasGroups) terminal.say((await ask(true)).groups.map(groupLine))
  const answer = await ask(isTrial)
  const { duplicates } = answer
  if (isTrial) {
    const isLeftOut = new Set(keepsDuplicates ? [] : duplicates)
    for (const place of places) {
      if (isLeftOut.has(place)) continue
      const { sistema, usuario, status } = rowAt(place)
      const end = status === 0 ? ' (deleted)' : ''
      terminal.say([`${source.unit} ${lines.get(place)}: ${sistema} ${usuario}${end}`])
    }
  }
  const duplicateLines = duplicates.map(place => lines.get(place))
  report(terminal, source, { skipped, notKept, duplicateLines, keepsDuplicates, isTrial }, answer)
}

interface ImportSummary extends Pick<Read, 'skipped' | 'notKept'> {
  readonly duplicateLines: readonly number[]
  readonly keepsDuplicates: boolean
  readonly isTrial: boolean
}

function report(
  terminal: Context['terminal'],
  { format, unit, never, bin }: Source,
  { skipped, notKept, duplicateLines, keepsDuplicates, isTrial }: ImportSummary,
  { duplicates, groups, made, first }: Imported
): void {
  const result = {
    format,
    noEntry: skipped.length,
    duplicates: duplicates.length,
    notKept: Object.fromEntries(notKept),
    groups,
    never,
    bin,
    made: isTrial ? 0 : made,
    wouldMake: isTrial ? made : undefined,
    first
  }
  terminal.show(result, [
    `format       ${format}`,
    `no entry     ${named(skipped, unit)}`,
    `duplicates   ${named(duplicateLines, unit)}${keepsDuplicates ? ', kept' : ''}`,
    ...[...notKept].map(([kind, lines]) => `not kept     ${kind}: ${named(lines, unit)}`),
    `${isTrial ? 'would make  ' : 'made        '} ${made}${idsFrom(first, made)}`,
    ...(never === undefined
      ? []
      : [
          `beware       such a file never contains ${never}; look there before you delete the vault`
        ]),
    ...(bin === undefined ? [] : [`beware       ${bin}`]),
    ...(first === undefined || made <= CHECKPOINT_RECORD_ROWS
      ? []
      : [
          'next         journal compact stores them in small records, of which damage costs less ' +
            'than of one large one'
        ])
  ])
}

async function exportFile(context: Context): Promise<void> {
  const { flags, terminal } = context
  const { output } = flags as { readonly output?: string }
  const { formatOf, textsOf, WRITERS } = await import('./export-formats.ts')
  const format = typeof flags['format'] === 'string' ? flags['format'] : formatOf(output ?? '')
  const writer = Object.hasOwn(WRITERS, format) ? WRITERS[format]! : undefined
  if (writer === undefined)
    throw new UsageError(`--format must be ${eitherOf(Object.keys(WRITERS))}`)
  if (output === undefined)
    throw new UsageError('give --output FILE, or --output - for standard output')
  if (output === '-' && terminal.showsResults)
    throw new UsageError('standard output is a terminal; use --output FILE')
  // Before it is recorded that the operator is shown everything.
  if (output !== '-' && context.store.files.stat(resolve(output)) !== undefined)
    throw new OperatorError(`${resolve(output)} exists already`)
  await terminal.confirm('The export holds every password in plain text.', flags['yes'] === true)
  const among = writer.activeOnly === true ? 'active' : 'all'
  const entries = await entriesOf(context, among, 'export')
  await context.store.close()
  const write = async (put: (text: string) => void): Promise<void> => {
    for (const text of textsOf(entries, writer)) {
      put(text)
      await breath()
    }
  }
  if (output === '-') return terminal.passFile(write)
  await makeFile(context.store.ending, output, file => write(text => file.write(text)))
  const path = resolve(output)
  const lacking = (writer.lacks ?? [])
    .map(field => [field, entries.filter(entry => entry[field]).length] as const)
    .filter(([, count]) => count > 0)
  terminal.show(
    { path, format, entries: entries.length, notWritten: Object.fromEntries(lacking) },
    [
      `${path}: ${counted(entries.length, 'entry', 'entries')} as ${format}, in plain text`,
      ...lacking.map(([field, count]) => `not written: ${FIELDS[field].help}: ${count}`)
    ]
  )
}

export const COMMANDS: readonly OperatorCommand[] = [
  {
    name: 'import',
    positionals: ['FILE'],
    options: {
      'dry-run': { help: 'say what would be made, and make nothing' },
      'keep-duplicates': { help: 'also make entries that exist already' },
      'no-groups': {
        help: 'put no entry into a group; without it, folders and vaults become groups'
      }
    },
    help:
      'makes entries, all or none, from what a browser, a password manager or export wrote; ' +
      '- is standard input',
    examples: ['import export.csv --dry-run', 'import export.csv'],
    run: importFile
  },
  {
    name: 'export',
    options: {
      format: {
        value: 'F',
        help:
          'jsonl, csv, or bitwarden (JSON, active entries alone); without it, ' +
          'as the name of FILE says'
      },
      output: { value: 'FILE', help: 'the file to make; - is standard output' },
      yes: { help: 'do not ask for confirmation' }
    },
    help: 'writes every entry, deleted ones too, in plain text; is recorded',
    examples: ['export --output entries.csv', 'export --output - --format jsonl --yes'],
    run: exportFile
  }
]
