import { READ_CHUNK_BYTES } from '../../../limits.ts'
import { ENTRY_FIELDS, type Entry, type EntryField } from '../../../entries/entry.ts'
import { csvRow } from './csv.ts'
import { OperatorError, UsageError } from '../../commands/command.ts'

export interface Writer {
  readonly head?: (entries: readonly Entry[]) => string
  /** Throws an `OperatorError` if the format cannot hold the entry. */
  readonly row: (entry: Entry) => string
  readonly between?: string
  readonly tail?: string
  /** Without a place for deleted entries. */
  readonly activeOnly?: boolean
  /** Without a place for these. */
  readonly lacks?: readonly EntryField[]
}

export const GENERATOR = 'password-entry-service'

const FIRST_COLUMNS: readonly (keyof Entry)[] = ['id', 'sistema', 'usuario', 'password']
export const OWN_HEADER: readonly (keyof Entry)[] = [
  ...FIRST_COLUMNS,
  ...ENTRY_FIELDS.filter(field => !FIRST_COLUMNS.includes(field)),
  'status'
]

const HALF = /\p{Surrogate}/u

/**
 * `jsonl`, which can hold any entry, by default. Throws a `UsageError` for `.json`: two formats use
 * it.
 */
export function formatOf(name: string): string {
  const ending = /\.([a-z]+)$/i.exec(name)?.[1]?.toLowerCase() ?? ''
  if (ending === 'json')
    throw new UsageError('a .json file may be --format bitwarden or --format jsonl; say which')
  return ending === 'csv' ? 'csv' : 'jsonl'
}

export const WRITERS: { readonly [format: string]: Writer } = {
  jsonl: { row: entry => `${JSON.stringify(entry)}\n` },
  csv: {
    head: () => csvRow(OWN_HEADER),
    row: entry => {
      assertWritable(entry)
      return csvRow(OWN_HEADER.map(column => String(entry[column] ?? '')))
    }
  },
  // Type 1 is a login. A folder's id is its name: importers look it up in the list of folders.
  bitwarden: {
    activeOnly: true,
    head: entries => {
      const names = new Set(entries.map(({ grupo }) => grupo).filter(name => name !== undefined))
      const folders = JSON.stringify([...names].map(name => ({ id: name, name })))
      return `{"encrypted":false,"generator":"${GENERATOR}","folders":${folders},"items":[\n`
    },
    row: entry => {
      const { sistema: name, usuario: username, password, url, notas, grupo, otp } = entry
      const uris = url ? [{ match: null, uri: url }] : []
      return JSON.stringify({
        organizationId: null,
        folderId: grupo ?? null,
        type: 1,
        reprompt: 0,
        name,
        notes: notas || null,
        favorite: false,
        login: { uris, username, password, totp: otp ?? null },
        collectionIds: null
      })
    },
    between: ',\n',
    tail: '\n]}\n'
  },
  // As Chrome writes it; Edge, Firefox and Safari read it, too.
  chrome: {
    activeOnly: true,
    lacks: ['grupo', 'otp'],
    head: () => csvRow(['name', 'url', 'username', 'password', 'note']),
    row: entry => {
      assertWritable(entry)
      return csvRow([
        entry.sistema,
        entry.url ?? '',
        entry.usuario,
        entry.password,
        entry.notas ?? ''
      ])
    }
  }
}

/** Throws an `OperatorError`: UTF-8 has no halves of surrogate pairs. */
function assertWritable(entry: Entry): void {
  if (ENTRY_FIELDS.every(field => !HALF.test(entry[field] ?? ''))) return
  throw new OperatorError(
    `entry ${entry.id} has a character that CSV cannot contain; use --format jsonl`
  )
}

export function* textsOf(
  entries: readonly Entry[],
  { head, row, between = '', tail = '' }: Writer
): Generator<string, void, void> {
  let piece = head?.(entries) ?? ''
  for (const [i, entry] of entries.entries()) {
    piece += `${i > 0 ? between : ''}${row(entry)}`
    if (piece.length < READ_CHUNK_BYTES) continue
    yield piece
    piece = ''
  }
  yield piece + tail
}
