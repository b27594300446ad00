/**
 * KeePass' XML, version 2, as KeePass and KeePassXC export it unencrypted: groups of entries in groups, each entry with
 * fields of text. Its former values (`History`) are not entries; what lies in the recycle bin is deleted.
 */
import { OperatorError } from '../command.ts'
import { GENERATOR } from './export-formats.ts'
import { foreignRow, type Row, type Source } from './import-row.ts'
import { XmlReader } from './xml.ts'

/** An entry that is being read: its fields by their keys, and the key of the one that is open. */
interface Open {
  readonly line: number
  readonly fields: Map<string, string>
  key: string | undefined
}

/** Reads a file of KeePass. Throws an `OperatorError`, with the line where there is one. */
export function keepassSource(text: string, unknown: OperatorError): Source {
  const root = /<([A-Za-z_][\w.-]*)/.exec(text)?.[1]
  if (root !== 'KeePassFile') throw unknown
  return { format: 'KeePass', rows: rowsOf(text) }
}

function * rowsOf(text: string): Generator<Row, void, void> {
  const path: string[] = []
  /** Of each group that is open, whether it is, or lies in, the recycle bin. */
  const inBin: boolean[] = []
  let bin = ''
  let isOwn = false
  let open: Open | undefined
  let content = ''
  for (const event of new XmlReader(text).events()) {
    if (event.kind === 'text') { content += event.text; continue }
    const [parent = '', grandparent = ''] = event.kind === 'open' ? path.slice(-1) : path.slice(-3, -1).reverse()
    if (event.kind === 'open') {
      const { name, line, attributes } = event
      if (parent === 'Key' || parent === 'Value') throw new OperatorError(`line ${line}: an element within a text`)
      path.push(name)
      content = ''
      if (name === 'Group') inBin.push(inBin.at(-1) ?? false)
      if (name === 'Entry' && parent === 'Group') open = { line, fields: new Map(), key: undefined }
      if (name === 'String' && open !== undefined) open.key = undefined
      if (name === 'Value' && attributes.get('Protected')?.toLowerCase() === 'true') {
        throw new OperatorError(`line ${line}: the password is encrypted; export the database as unencrypted XML`)
      }
      continue
    }
    const { name } = event
    path.pop()
    const field = parent === 'String' && grandparent === 'Entry' && !path.includes('History') ? open : undefined
    if (name === 'Generator' && parent === 'Meta') isOwn = content === GENERATOR
    else if (name === 'RecycleBinUUID' && parent === 'Meta') bin = content
    else if (name === 'UUID' && parent === 'Group' && content === bin && bin !== '') inBin[inBin.length - 1] = true
    else if (name === 'Key' && field !== undefined) setKey(field, content)
    else if (name === 'Value' && field !== undefined) setValue(field, content)
    else if (name === 'Group') inBin.pop()
    else if (name === 'Entry' && parent === 'Group' && open !== undefined) {
      yield rowOf(open, isOwn, inBin.at(-1) === true)
      open = undefined
    }
    content = ''
  }
}

function setKey(open: Open, key: string): void {
  if (open.key !== undefined) throw new OperatorError(`line ${open.line}: a field of this entry has two keys`)
  if (open.fields.has(key)) throw new OperatorError(`line ${open.line}: this entry has a field twice`)
  open.key = key
}

function setValue({ line, key, fields }: Open, value: string): void {
  if (key === undefined) throw new OperatorError(`line ${line}: a value in this entry stands before its key`)
  if (fields.has(key)) throw new OperatorError(`line ${line}: a field of this entry has two values`)
  fields.set(key, value)
}

function rowOf({ line, fields }: Open, isOwn: boolean, isDeleted: boolean): Row {
  const field = (key: string): string => fields.get(key) ?? ''
  const foreign = {
    name: field('Title'), url: field('URL'), usuario: field('UserName'), password: field('Password')
  }
  return foreignRow(line, foreign, isOwn, isDeleted)
}
