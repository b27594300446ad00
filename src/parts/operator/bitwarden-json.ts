/** Bitwarden's JSON, as its programs export it unencrypted. Cards, notes and identities have no password. */
import type { Buffer } from 'node:buffer'
import { OperatorError } from '../command.ts'
import type { Json } from '../../json/parse.ts'
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
  for (const { line, object: { name, login, deletedDate } } of items) {
    const uris = memberOf(login, 'uris')
    const foreign = {
      name: textOf(name), url: textOf(memberOf(Array.isArray(uris) ? uris[0] : null, 'uri')),
      usuario: textOf(memberOf(login, 'username')), password: textOf(memberOf(login, 'password'))
    }
    yield foreignRow(line, foreign, isOwn, textOf(deletedDate) !== '')
  }
}

function memberOf(value: Json | undefined, key: string): Json | undefined {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject ? (value as { readonly [key: string]: Json })[key] : undefined
}

function textOf(value: Json | undefined): string { return typeof value === 'string' ? value : '' }
