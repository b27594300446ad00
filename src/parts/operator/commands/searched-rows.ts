/** The rows of `entry list`, outside of the heap, which may lack the room. */
import { FIELDS, SECRET_FIELDS, type EntryField } from '../../../entries/entry.ts'
import type { Unrecorded } from '../../../knowledge/exposure.ts'
import { Column } from '../../../store/column.ts'
import type { Context } from '../../commands/command.ts'
import { Texts } from '../../commands/texts.ts'
import { foundEntries } from './find-entry.ts'
import { userName } from './who-knows.ts'

const OPTIONAL_SECRETS = SECRET_FIELDS.filter(field => !FIELDS[field].isRequired)

export interface SearchedRows {
  /** As JSON. */
  readonly rows: Texts
  readonly order: Uint32Array
  /** By name, those whom `exposedTo` of a row means. */
  readonly lists: readonly (readonly string[])[]
  readonly secrets: ReadonlySet<EntryField>
  readonly unrecorded: Unrecorded
}

export async function searchedRows(
  context: Context,
  asked: Parameters<typeof foundEntries>[1]
): Promise<SearchedRows> {
  const rows = new Texts()
  const same = new Column()
  const lists = new Map<string, { readonly at: number; readonly names: readonly string[] }>()
  const secrets = new Set<EntryField>()
  const unrecorded: { [before: string]: number[] } = {}
  for await (const [entry, { lists: ofSlice, users }] of foundEntries(context, asked)) {
    const { id, exposedTo, unrecordedBefore: before, sameAs } = entry
    if (before !== undefined) (unrecorded[before] ??= []).push(id)
    const ids = exposedTo === undefined ? [] : ofSlice[exposedTo]!
    // Others may know it, but nobody is named: only JSON can say that.
    if (asked.isExposed === true && ids.length === 0 && context.flags['json'] !== true) continue
    const key = ids.join()
    const known = lists.get(key) ?? {
      at: lists.size,
      names: ids.map(id => userName(users.find(({ user }) => user.id === id)!))
    }
    lists.set(key, known)
    for (const field of OPTIONAL_SECRETS) if (entry[field] !== undefined) secrets.add(field)
    const row = { ...entry, ...(exposedTo !== undefined && { exposedTo: known.at }) }
    if (sameAs !== undefined) same.set(rows.length, sameAs)
    rows.push(JSON.stringify(row))
  }
  return {
    rows,
    order: Uint32Array.from({ length: rows.length }, (_, row) => row).sort(
      (a, b) => same.get(a) - same.get(b) || a - b
    ),
    lists: [...lists.values()].map(({ names }) => names),
    secrets,
    unrecorded
  }
}
