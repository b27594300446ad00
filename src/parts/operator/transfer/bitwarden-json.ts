import type { Json, JsonObject } from '../../../http/json.ts'
import { OperatorError } from '../../commands/command.ts'
import { GENERATOR } from './export-formats.ts'
import { foreignRow, type Row, type Source } from './import-row.ts'
import { itemsOf, type Numbered } from './json-objects.ts'

/** By Bitwarden's item type. */
const KINDS: { readonly [type: number]: string } = {
  2: 'note',
  3: 'card',
  4: 'identity',
  5: 'SSH key'
}
/** Members that are read, and those that nobody has typed. */
const KNOWN: { readonly [of in 'item' | 'login' | 'uri']: ReadonlySet<string> } = {
  item: new Set(
    (
      'id organizationId folderId collectionIds type reprompt favorite name notes login ' +
      'secureNote creationDate revisionDate deletedDate object key edit viewPassword ' +
      'organizationUseTotp permissions'
    ).split(' ')
  ),
  login: new Set('uris username password totp passwordRevisionDate autofillOnPageLoad'.split(' ')),
  uri: new Set(['uri', 'match', 'uriChecksum'])
}
/** Members that an entry has no place for. */
const DROPPED: { readonly [member: string]: string } = {
  fields: 'other field',
  passwordHistory: 'former password',
  archivedDate: 'archived',
  card: 'card',
  identity: 'identity',
  sshKey: 'SSH key',
  attachments: 'attachment',
  fido2Credentials: 'passkey'
}

/** By members that only Bitwarden writes; some versions leave `encrypted` out. */
export function isBitwarden(file: JsonObject): boolean {
  const items = file.get('items')
  if (file.get('encrypted') === true)
    return ['encKeyValidation_DO_NOT_EDIT', 'passwordProtected', 'items'].some(one => file.has(one))
  if (file.has('encrypted')) return items !== undefined
  return (
    Array.isArray(items) &&
    items.every(item => item instanceof Map && typeof item.get('type') === 'number')
  )
}

/** Throws an `OperatorError` if the file is encrypted or malformed. */
export function bitwardenSource(file: JsonObject, keepsGroups: boolean): Source {
  const items = file.get('items')
  if (file.get('encrypted') === true) {
    throw new OperatorError(
      'this export of Bitwarden is encrypted; export it again as .json, not as .json (Encrypted)'
    )
  }
  if (!Array.isArray(items))
    throw new OperatorError('items has an unknown form; export it from Bitwarden again')
  const isOwn = file.get('generator') === GENERATOR
  const folders = new Map([...namesIn(file.get('folders')), ...namesIn(file.get('collections'))])
  const rows = function* (): Generator<Row, void, void> {
    for (const item of itemsOf(items)) yield rowOf(item, folders, { isOwn, keepsGroups })
  }
  return { format: 'Bitwarden', unit: 'item', never: 'attachments', rows: rows() }
}

/** By id; a list of another form has no names. */
function namesIn(list: Json | undefined): readonly (readonly [id: Json, name: string])[] {
  return (Array.isArray(list) ? (list as readonly Json[]) : []).flatMap(one => {
    const name = one instanceof Map ? one.get('name') : undefined
    return typeof name === 'string' ? [[(one as JsonObject).get('id') ?? null, name] as const] : []
  })
}

function isEmpty(value: Json): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0)
}

function rowOf(
  { line, object }: Numbered,
  folders: ReadonlyMap<Json, string>,
  marks: { readonly isOwn: boolean; readonly keepsGroups: boolean }
): Row {
  // A value of another type could hold a password, so it is refused.
  const wrong = (key: string): OperatorError =>
    new OperatorError(`item ${line}: ${key} has an unknown form`)
  const member = (value: Json | undefined, key: string): Json => {
    if (value === undefined || value === null) return null
    if (!(value instanceof Map)) throw wrong(`the object around ${key}`)
    return value.get(key) ?? null
  }
  const text = (value: Json | undefined, key: string): string => {
    const found = member(value, key) ?? ''
    if (typeof found !== 'string') throw wrong(key)
    return found
  }
  const list = (value: Json | undefined, key: string): readonly Json[] => {
    const found = member(value, key) ?? []
    if (!Array.isArray(found)) throw wrong(key)
    return found
  }
  const lostOf = (of: keyof typeof KNOWN, value: Json | undefined): readonly string[] =>
    (value instanceof Map ? [...value] : [])
      .filter(([key, held]) => !KNOWN[of].has(key) && !isEmpty(held))
      .map(([key]) => (Object.hasOwn(DROPPED, key) ? DROPPED[key]! : 'other member'))
  const login = object.get('login')
  const ids = [member(object, 'folderId'), ...list(object, 'collectionIds')].filter(
    id => id !== null
  )
  const foreign = {
    name: text(object, 'name'),
    urls: list(login, 'uris').map(one => text(one, 'uri')),
    usuario: text(login, 'username'),
    password: text(login, 'password'),
    notas: text(object, 'notes'),
    otp: text(login, 'totp'),
    groups: ids.map(id => folders.get(id) ?? '')
  }
  const type = KINDS[Number(object.get('type'))]
  const dropped = [
    ...(type === undefined ? [] : [type]),
    ...lostOf('item', object),
    ...lostOf('login', login),
    ...list(login, 'uris').flatMap(one => lostOf('uri', one)),
    // A folder without a name in the file.
    ...(ids.some(id => !folders.has(id)) ? ['folder'] : [])
  ]
  return foreignRow(line, foreign, dropped, {
    ...marks,
    isDeleted: text(object, 'deletedDate') !== ''
  })
}
