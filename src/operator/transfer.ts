/** The commands that bring entries in and out. */
import { resolve } from 'node:path'
import { createWhole, disk } from '../journal/files.ts'
import { IMPORT_PART_BYTES, MAX_IMPORT_BYTES } from '../limits.ts'
import { importedBytes, type Entry, type ImportedEntry } from '../store/record.ts'
import type { Command, Context } from './command.ts'
import { Misuse, Refusal } from './refusal.ts'
import { readSource, WRITERS, type Source, type Writer } from './formats.ts'
import { readAll } from './read.ts'
import { makeFile } from './target.ts'

/** What an import comes to. */
interface Plan {
  readonly rows: { readonly line: number, readonly entry: ImportedEntry }[]
  /** The lines of rows without a password, and of those that are an entry already. */
  readonly skipped: number[]
  readonly duplicates: number[]
}

/** How many lines a report names before it only counts. */
const NAMED_LINES = 20
/** How many entries an export writes at a time. */
const EXPORT_ENTRIES = 1_000

/** `known`: the keys of the entries that stand; those that the file adds to it come to be known as well. */
function planOf({ rows, isOwn }: Source, known: Set<string>, keepsDuplicates: boolean): Plan {
  const plan: Plan = { rows: [], skipped: [], duplicates: [] }
  let bytes = 0
  for (const { line, entry } of rows) {
    if (entry === undefined) { plan.skipped.push(line); continue }
    const key = keyOf(entry)
    if (known.has(key)) {
      plan.duplicates.push(line)
      if (!keepsDuplicates) continue
    }
    if (!isOwn) known.add(key)
    bytes += importedBytes(entry)
    if (bytes > MAX_IMPORT_BYTES) {
      throw new Refusal(`line ${line}: up to here it is more than one import can hold; split the file`)
    }
    plan.rows.push({ line, entry })
  }
  return plan
}

/** What makes two entries duplicates of each other. */
function keyOf({ password, sistema, usuario, status }: ImportedEntry): string {
  return JSON.stringify([status, sistema, usuario, password])
}

/** The entries as they stand, deleted ones too, ascending by id. */
async function standing(context: Context): Promise<readonly Entry[]> {
  const { state: { entries } } = await readAll(context, () => {})
  return Array.from({ length: entries.size }, (_, i) => entries.get(i + 1)!)
}

/** Sends entries to the store, which makes all of them or none; gives the id of the first. */
async function send({ store, terminal }: Context, rows: Plan['rows']): Promise<number> {
  const { id } = await store.ask('POST', '/operator/import/begin')
  for (let done = 0; done < rows.length;) {
    const entries: ImportedEntry[] = []
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

function named(lines: readonly number[]): string {
  if (lines.length === 0) return '0'
  const more = lines.length > NAMED_LINES ? ` and ${lines.length - NAMED_LINES} more` : ''
  return `${lines.length} (lines ${lines.slice(0, NAMED_LINES).join(', ')}${more})`
}

async function importFile(context: Context): Promise<void> {
  const { flags, terminal } = context
  const source = readSource(resolve(context.positionals[0]!))
  const known = new Set((await standing(context)).map(keyOf))
  const { rows, skipped, duplicates } = planOf(source, known, flags['keep-duplicates'] === true)
  const isTrial = flags['dry-run'] === true
  if (isTrial) {
    for (const { line, entry } of rows) {
      terminal.print(`line ${line}: ${entry.sistema} ${entry.usuario}${entry.status === 0 ? ' (deleted)' : ''}`)
    }
  }
  const first = isTrial || rows.length === 0 ? undefined : await send(context, rows)
  terminal.print(`format       ${source.format}`)
  terminal.print(`no password  ${named(skipped)}`)
  terminal.print(`duplicates   ${named(duplicates)}${flags['keep-duplicates'] === true ? ', kept' : ''}`)
  const ids = first === undefined ? '' : `, ids ${first} to ${first + rows.length - 1}`
  terminal.print(`${isTrial ? 'would make  ' : 'made        '} ${rows.length}${ids}`)
}

async function exportFile(context: Context): Promise<void> {
  const { flags, terminal } = context
  const { format = 'jsonl', output } = flags as { readonly format?: string, readonly output?: string }
  const writer = Object.hasOwn(WRITERS, format) ? WRITERS[format]! : undefined
  if (writer === undefined) throw new Misuse(`--format must be ${Object.keys(WRITERS).join(' or ')}`)
  if (output === undefined) throw new Misuse('give --output FILE, or --output - for standard output')
  if (output === '-' && terminal.showsResults) throw new Misuse('standard output is a terminal; use --output FILE')
  await terminal.confirm('The export holds every password in plain text.', flags['yes'] === true)
  if (output === '-') for (const text of textsOf(await standing(context), writer)) terminal.pass(text)
  else await makeFile(output, async part => createWhole(disk, part, textsOf(await standing(context), writer)))
}

/** What is written, in pieces of many entries. */
function * textsOf(entries: readonly Entry[], { head, row }: Writer): Generator<string, void, void> {
  yield head
  for (let at = 0; at < entries.length; at += EXPORT_ENTRIES) {
    yield entries.slice(at, at + EXPORT_ENTRIES).map(row).join('')
  }
}

/** `import` and `export`. */
export const TRANSFER_COMMANDS: readonly Command[] = [
  {
    name: 'import', positionals: ['FILE'],
    options: {
      'dry-run': { help: 'tell what would be made, and make nothing' },
      'keep-duplicates': { help: 'make entries that stand already a second time' }
    },
    help: 'makes entries, all or none, of what a browser, a password manager or export has written',
    run: importFile
  },
  {
    name: 'export',
    options: {
      format: { value: 'F', help: 'jsonl, the default, or csv' },
      output: { value: 'FILE', help: 'where to; - is standard output' },
      yes: { help: 'do not ask whether plain text is meant' }
    },
    help: 'writes every entry, deleted ones too, in plain text',
    run: exportFile
  }
]
