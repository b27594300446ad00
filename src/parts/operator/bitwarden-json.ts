/** Bitwarden's JSON, as its programs export it unencrypted. Cards, notes and identities have no password. */
import type { Buffer } from 'node:buffer'
import { OperatorError } from '../command.ts'
import type { Json } from '../../http/json.ts'
import { GENERATOR } from './export-formats.ts'
import { foreignRow, type Row, type Source } from './import-row.ts'
import { membersOf, readObjects, readValue, type Numbered } from './json-objects.ts'

/** Reads a file of Bitwarden; undefined where it is another one. Throws an `OperatorError`. */
export function bitwardenSource(bytes: Buffer): Source | undefined {
  const members = membersOf(bytes)
  if (members?.get('encrypted') === undefined) return undefined
  const items = members.get('items')
  const values = new Map([...members].filter(([, place]) => place !== items)
    .map(([key, place]) => [key, readValue(bytes, place)]))
  if (values.get('encrypted') !== false || items === undefined) {
    throw new OperatorError('this export of Bitwarden is encrypted; export it again as .json, not as .json (Encrypted)')
  }
  return { format: 'Bitwarden', rows: rowsOf(readObjects(bytes, items.at), values.get('generator') === GENERATOR) }
}

function * rowsOf(items: Iterable<Numbered>, isOwn: boolean): Generator<Row, void, void> {
  for (const { line, object } of items) {
    // What stands where a text should is refused: a password in it would be lost.
    const wrong = (key: string): OperatorError => new OperatorError(`line ${line}: ${key} is not what Bitwarden writes`)
    const member = (value: Json | undefined, key: string): Json => {
      if (value === undefined || value === null) return null
      if (!(value instanceof Map)) throw wrong(`what should hold ${key}`)
      return value.get(key) ?? null
    }
    const text = (value: Json | undefined, key: string): string => {
      const found = member(value, key) ?? ''
      if (typeof found !== 'string') throw wrong(key)
      return found
    }
    const login = object.get('login')
    const uris = member(login, 'uris')
    const foreign = {
      name: text(object, 'name'), url: Array.isArray(uris) ? text(uris[0], 'uri') : '',
      usuario: text(login, 'username'), password: text(login, 'password')
    }
    yield foreignRow(line, foreign, isOwn, text(object, 'deletedDate') !== '')
  }
}
