/** Bitwarden's unencrypted JSON export. */
import type { Json, JsonObject } from '../../../http/json.ts'
import { OperatorError } from '../../../command.ts'
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
/** Members that an entry has no place for. */
const DROPPED: { readonly [member: string]: string } = {
  fields: 'other field',
  passwordHistory: 'former password',
  archivedDate: 'archived'
}
const DROPPED_OF_LOGIN: { readonly [member: string]: string } = { fido2Credentials: 'passkey' }

/** Some versions leave `encrypted` out. Each item has a number as its type. */
export function isBitwarden(file: JsonObject): boolean {
  const items = file.get('items')
  if (file.has('encrypted')) return file.get('encrypted') === true || items !== undefined
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

function rowOf(
  { line, object }: Numbered,
  folders: ReadonlyMap<Json, string>,
  marks: { readonly isOwn: boolean; readonly keepsGroups: boolean }
): Row {
  // A value of another type is refused: a password in it would be lost.
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
  const has = (value: Json | undefined, key: string): boolean => {
    const found = member(value, key)
    return found !== null && found !== '' && !(Array.isArray(found) && found.length === 0)
  }
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
    ...Object.keys(DROPPED)
      .filter(key => has(object, key))
      .map(key => DROPPED[key]!),
    ...Object.keys(DROPPED_OF_LOGIN)
      .filter(key => has(login, key))
      .map(key => DROPPED_OF_LOGIN[key]!),
    // A folder that has no name in the file.
    ...(ids.some(id => !folders.has(id)) ? ['folder'] : [])
  ]
  return foreignRow(line, foreign, dropped, {
    ...marks,
    isDeleted: text(object, 'deletedDate') !== ''
  })
}
