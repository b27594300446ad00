/** `import` and `export`. */
import type { Buffer } from 'node:buffer'
import { resolve } from 'node:path'
import { eitherOf } from '../../setting-values.ts'
import { disk } from '../../journal/files.ts'
import { MAX_ENTRY_BYTES } from '../../limits.ts'
import { counted } from '../../log.ts'
import { rowOf, type EntryRow } from '../../store/entry.ts'
import { importedBytes } from './operator-changes.ts'
import { OperatorError, UsageError, type Command, type Context } from '../command.ts'
import { makeFile } from '../saved-journal.ts'
import { ofFile } from '../system-error.ts'
import { CHECKPOINT_RECORD_ROWS } from './checkpoint.ts'
import { recordDisclosure } from './entry-commands.ts'
import { entriesOf } from './find-entry.ts'
import { MAX_IMPORT_BYTES } from './import-routes.ts'
import type { Source } from './import-row.ts'

/** After how many bytes of entries another part of an import begins. */
const IMPORT_PART_BYTES = 128 * 1024
/** Most of what other programs write into theirs is not imported. */
const MAX_IMPORT_FILE_BYTES = 64 * 1024 * 1024

/** What an import will do. */
interface Plan {
  readonly rows: { readonly line: number, readonly entry: EntryRow }[]
  /** The lines of rows that are no entry, and of duplicates. */
  readonly skipped: number[]
  readonly duplicates: number[]
  /** The lines with something that is not kept, by its kind. */
  readonly notKept: Map<string, number[]>
}

/** How many lines a report names. */
const NAMED_LINES = 20

/** `known`: the keys of the entries that exist; those of the file are added to them. */
function planOf({ rows, unit }: Source, known: Set<string>, keepsDuplicates: boolean): Plan {
  const plan: Plan = { rows: [], skipped: [], duplicates: [], notKept: new Map() }
  let bytes = 0
  for (const { line, entry, isOwn, dropped } of rows) {
    for (const kind of new Set(dropped)) {
      const lines = plan.notKept.get(kind)
      if (lines === undefined) plan.notKept.set(kind, [line])
      else lines.push(line)
    }
    if (entry === undefined) { plan.skipped.push(line); continue }
    const key = keyOf(entry)
    if (known.has(key)) {
      plan.duplicates.push(line)
      if (!keepsDuplicates) continue
    }
    if (!isOwn) known.add(key)
    const entryBytes = importedBytes(entry)
    if (entryBytes > MAX_ENTRY_BYTES) {
      throw new OperatorError(`${unit} ${line}: an entry may have ${MAX_ENTRY_BYTES} bytes; nothing was imported`)
    }
    bytes += entryBytes
    if (bytes > MAX_IMPORT_BYTES) {
      throw new OperatorError(`${unit} ${line}: up to here it is more than one import can take; split the file`)
    }
    plan.rows.push({ line, entry })
  }
  return plan
}

/** What makes two entries duplicates of each other. */
function keyOf(entry: EntryRow): string { return JSON.stringify(rowOf(entry)) }

/** Sends entries to the store, which makes all of them or none; gives the id of the first. */
async function send({ store, terminal }: Context, rows: Plan['rows']): Promise<number> {
  const { id } = await store.ask('POST', '/operator/import/begin', {})
  for (let done = 0; done < rows.length;) {
    const entries: EntryRow[] = []
    for (let bytes = 0; bytes < IMPORT_PART_BYTES && done < rows.length; done++) {
      const { entry } = rows[done]!
      bytes += importedBytes(entry)
      entries.push(entry)
    }
    await store.ask('POST', '/operator/import/add', { id, entries })
    terminal.progress('importing', done / rows.length)
  }
  return (await store.ask('POST', '/operator/import/commit', { id })).first
}

function named(lines: readonly number[], unit: string): string {
  const { length } = lines
  if (length === 0) return '0'
  const more = length > NAMED_LINES ? ` and ${length - NAMED_LINES} more` : ''
  return `${length} (${unit}${length === 1 ? '' : 's'} ${lines.slice(0, NAMED_LINES).join(', ')}${more})`
}

function readFile(path: string): Buffer {
  const bytes = disk.stat(path)?.bytes ?? 0
  if (bytes > MAX_IMPORT_FILE_BYTES) {
    throw new OperatorError(`${path} is larger than ${MAX_IMPORT_FILE_BYTES} bytes; split it`)
  }
  try {
    return disk.read(path)
  } catch (error) {
    throw ofFile(error, path)
  }
}

/** Which ids the entries have that were made, the first of which is known; nothing where none were made. */
function idsFrom(first: number | undefined, count: number): string {
  if (first === undefined) return ''
  return count === 1 ? `, id ${first}` : `, ids ${first} to ${first + count - 1}`
}

async function importFile(context: Context): Promise<void> {
  const { flags, terminal, positionals: [file = ''] } = context
  const { readSource } = await import('./import-formats.ts')
  const source = readSource(file === '-' ? await terminal.readInput(MAX_IMPORT_FILE_BYTES) : readFile(resolve(file)))
  const known = new Set((await entriesOf(context, 'all')).map(keyOf))
  const keeps = flags['keep-duplicates'] === true
  const { rows, skipped, duplicates, notKept } = planOf(source, known, keeps)
  const { format, unit, never } = source
  const isTrial = flags['dry-run'] === true
  const first = isTrial || rows.length === 0 ? undefined : await send(context, rows)
  const tried = !isTrial ? [] : rows.map(({ line, entry: { sistema, usuario, status } }) =>
    `${unit} ${line}: ${sistema} ${usuario}${status === 0 ? ' (deleted)' : ''}`)
  const result = {
    format, noEntry: skipped.length, duplicates: duplicates.length, notKept: Object.fromEntries(notKept), never,
    made: isTrial ? 0 : rows.length, wouldMake: isTrial ? rows.length : undefined, first
  }
  terminal.show(result, [
    ...tried,
    `format       ${format}`,
    `no entry     ${named(skipped, unit)}`,
    `duplicates   ${named(duplicates, unit)}${keeps ? ', kept' : ''}`,
    ...[...notKept].map(([kind, lines]) => `not kept     ${kind}: ${named(lines, unit)}`),
    `${isTrial ? 'would make  ' : 'made        '} ${rows.length}${idsFrom(first, rows.length)}`,
    ...never === undefined ? []
      : [`beware       such a file never contains ${never}; look there before you delete the vault`],
    ...first === undefined || rows.length <= CHECKPOINT_RECORD_ROWS ? []
      : ['next         journal compact stores them in small records, of which damage costs less than of one large one']
  ])
}

async function exportFile(context: Context): Promise<void> {
  const { flags, terminal } = context
  const { output } = flags as { readonly output?: string }
  const { formatOf, textsOf, WRITERS } = await import('./export-formats.ts')
  const format = typeof flags['format'] === 'string' ? flags['format'] : formatOf(output ?? '')
  const writer = Object.hasOwn(WRITERS, format) ? WRITERS[format]! : undefined
  if (writer === undefined) throw new UsageError(`--format must be ${eitherOf(Object.keys(WRITERS))}`)
  if (output === undefined) throw new UsageError('give --output FILE, or --output - for standard output')
  if (output === '-' && terminal.showsResults) throw new UsageError('standard output is a terminal; use --output FILE')
  await terminal.confirm('The export holds every password in plain text.', flags['yes'] === true)
  const entries = await entriesOf(context,
    writer.activeOnly === true || flags['active'] === true ? 'active' : 'all')
  const write = async (put: (text: string) => void): Promise<void> => {
    await recordDisclosure(context, { command: 'export', entries: entries.length })
    for (const text of textsOf(entries, writer)) put(text)
  }
  if (output === '-') return write(text => terminal.pass(text))
  await makeFile(output, file => write(text => file.write(text)))
  const path = resolve(output)
  const written = counted(entries.length, 'entry', 'entries')
  terminal.show({ path, format, entries: entries.length }, `${path}: ${written} as ${format}, in plain text`)
}

/** `import` and `export`. */
export const COMMANDS: readonly Command[] = [
  {
    name: 'import', positionals: ['FILE'],
    options: {
      'dry-run': { help: 'say what would be made, and make nothing' },
      'keep-duplicates': { help: 'also make entries that exist already' }
    },
    help: 'makes entries, all or none, from what a browser, a password manager or export wrote; - is standard input',
    examples: ['import export.csv --dry-run', 'import export.csv'],
    run: importFile
  },
  {
    name: 'export',
    options: {
      format: {
        value: 'F', help: 'jsonl, csv, or bitwarden (JSON) for other programs; without it, as the name of FILE says'
      },
      active: { help: 'leave deleted entries out; bitwarden has no place for them anyway' },
      output: { value: 'FILE', help: 'the file to make; - is standard output' },
      yes: { help: 'do not ask for confirmation' }
    },
    help: 'writes every entry, deleted ones too, in plain text; is recorded',
    examples: ['export --output entries.csv', 'export --output - --format jsonl --yes'],
    run: exportFile
  }
]
