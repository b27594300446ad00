/** Bitwarden's unencrypted JSON export. */
import type { Json, JsonObject } from '../../../http/json.ts'
import { OperatorError } from '../../../command.ts'
import { GENERATOR } from './export-formats.ts'
import { foreignRow, type Row, type Source } from './import-row.ts'
import { itemsOf, type Numbered } from './json-objects.ts'

/** By Bitwarden's item type. */
const KINDS: { readonly [type: number]: string } = { 2: 'note', 3: 'card', 4: 'identity', 5: 'SSH key' }
/** Members that an entry has no place for. */
const DROPPED: { readonly [member: string]: string } = {
  fields: 'other field', passwordHistory: 'former password', folderId: 'folder', collectionIds: 'folder',
  archivedDate: 'archived'
}
const DROPPED_OF_LOGIN: { readonly [member: string]: string } = { totp: 'one-time code', fido2Credentials: 'passkey' }

/** Throws an `OperatorError` if the file is encrypted or malformed. */
export function bitwardenSource(file: JsonObject): Source {
  const items = file.get('items')
  if (file.get('encrypted') !== false || items === undefined) {
    throw new OperatorError('this export of Bitwarden is encrypted; export it again as .json, not as .json (Encrypted)')
  }
  if (!Array.isArray(items)) throw new OperatorError('items has an unknown form; export it from Bitwarden again')
  const isOwn = file.get('generator') === GENERATOR
  const rows = function * (): Generator<Row, void, void> { for (const item of itemsOf(items)) yield rowOf(item, isOwn) }
  return { format: 'Bitwarden', unit: 'item', never: 'attachments', rows: rows() }
}

function rowOf({ line, object }: Numbered, isOwn: boolean): Row {
  // A value of another type is refused: a password in it would be lost.
  const wrong = (key: string): OperatorError => new OperatorError(`item ${line}: ${key} has an unknown form`)
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
  const has = (value: Json | undefined, key: string): boolean => {
    const found = member(value, key)
    return found !== null && found !== '' && !(Array.isArray(found) && found.length === 0)
  }
  const login = object.get('login')
  const uris = member(login, 'uris')
  const addresses = Array.isArray(uris) ? uris : []
  const foreign = {
    name: text(object, 'name'), url: text(addresses[0], 'uri'), usuario: text(login, 'username'),
    password: text(login, 'password'), notas: text(object, 'notes')
  }
  const type = KINDS[Number(object.get('type'))]
  const dropped = [
    ...type === undefined ? [] : [type],
    ...Object.keys(DROPPED).filter(key => has(object, key)).map(key => DROPPED[key]!),
    ...Object.keys(DROPPED_OF_LOGIN).filter(key => has(login, key)).map(key => DROPPED_OF_LOGIN[key]!),
    ...addresses.length > 1 ? ['further address'] : []
  ]
  return foreignRow(line, foreign, dropped, { isOwn, isDeleted: text(object, 'deletedDate') !== '' })
}
