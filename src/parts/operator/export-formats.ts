/** How entries are written for other programs, and for this one. */
import { randomBytes } from 'node:crypto'
import { READ_CHUNK_BYTES } from '../../limits.ts'
import { ENTRY_FIELDS, type Entry } from '../../store/entry.ts'
import { csvRow } from './csv.ts'
import { OperatorError, UsageError } from '../command.ts'

/** A format: the text before the entries, of each, between two, and after the last. */
export interface Writer {
  readonly head?: string
  /** The text of an entry; throws an `OperatorError` for one that cannot be written so. */
  readonly row: (entry: Entry) => string
  readonly between?: string
  readonly tail?: string
  /** Whether it has no place for deleted entries. */
  readonly activeOnly?: boolean
}

/** What this program calls itself in files of other programs' formats. */
export const GENERATOR = 'password-entry-service'

/** The columns of this program's own CSV. */
const FIRST_COLUMNS: readonly (keyof Entry)[] = ['id', 'sistema', 'usuario', 'password']
export const OWN_HEADER: readonly (keyof Entry)[] =
  [...FIRST_COLUMNS, ...ENTRY_FIELDS.filter(field => !FIRST_COLUMNS.includes(field)), 'status']

/** Refuses an entry with characters that a format has no way to write. */
function assertHolds(format: string, hasNoPlace: RegExp, entry: Entry): void {
  if (!ENTRY_FIELDS.some(field => hasNoPlace.test(entry[field] ?? ''))) return
  throw new OperatorError(`entry ${entry.id} has a character that ${format} cannot contain; use --format jsonl`)
}

const HALF = /\p{Surrogate}/u
/** XML 1.0 §2.2; a carriage return would come back as a line feed (§2.11) if it were not escaped. */
const NOT_XML = /[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u

function xml(text: string): string {
  return text.replace(/[&<>\r\n\t]/g, character => `&#${character.charCodeAt(0)};`)
}

const uuid = (): string => `<UUID>${randomBytes(16).toString('base64')}</UUID>`
const field = (key: string, value: string): string => `<String><Key>${key}</Key><Value>${xml(value)}</Value></String>`

const BY_ENDING: { readonly [ending: string]: string } = { csv: 'csv', xml: 'keepassxc' }

/** The format that a file's name asks for; a name that says nothing is given the one that can hold any entry. */
export function formatOf(name: string): string {
  const ending = /\.([a-z]+)$/i.exec(name)?.[1]?.toLowerCase() ?? ''
  if (ending === 'json') throw new UsageError('a .json file may be --format bitwarden or --format jsonl; say which')
  return BY_ENDING[ending] ?? 'jsonl'
}

/** The formats of an export by their names. */
export const WRITERS: { readonly [format: string]: Writer } = {
  jsonl: { row: entry => `${JSON.stringify(entry)}\n` },
  csv: {
    head: csvRow(OWN_HEADER),
    row: entry => {
      assertHolds('CSV', HALF, entry)
      return csvRow(OWN_HEADER.map(column => String(entry[column] ?? '')))
    }
  },
  // KeePass' own XML, which KeePassXC imports as it is; its CSV would have to be mapped by hand there.
  keepassxc: {
    activeOnly: true,
    head: '<?xml version="1.0" encoding="UTF-8"?>\n' +
      `<KeePassFile><Meta><Generator>${GENERATOR}</Generator></Meta><Root><Group>${uuid()}<Name>Root</Name>\n`,
    row: entry => {
      assertHolds('XML', NOT_XML, entry)
      const { sistema, usuario, password } = entry
      const fields = field('Title', sistema) + field('UserName', usuario) + field('Password', password)
      return `<Entry>${uuid()}${fields}</Entry>\n`
    },
    tail: '</Group></Root></KeePassFile>\n'
  },
  // Bitwarden's unencrypted JSON; type 1 is a login.
  bitwarden: {
    activeOnly: true,
    head: `{"encrypted":false,"generator":"${GENERATOR}","folders":[],"items":[\n`,
    row: ({ sistema: name, usuario: username, password }) => JSON.stringify({
      organizationId: null, folderId: null, type: 1, reprompt: 0, name, notes: null, favorite: false,
      login: { uris: [], username, password, totp: null }, collectionIds: null
    }),
    between: ',\n',
    tail: '\n]}\n'
  }
}

/** What is written of entries, in pieces that are short however long these are. */
export function * textsOf(
  entries: readonly Entry[], { head = '', row, between = '', tail = '' }: Writer
): Generator<string, void, void> {
  let piece = head
  for (const [i, entry] of entries.entries()) {
    piece += `${i > 0 ? between : ''}${row(entry)}`
    if (piece.length < READ_CHUNK_BYTES) continue
    yield piece
    piece = ''
  }
  yield piece + tail
}
