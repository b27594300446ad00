/** Whether a state agrees with itself: asked after every test. */
import { createHash } from 'node:crypto'
import { answered, ENTRY_FIELDS, entryText, FIELDS } from '../../src/entries/entry.ts'
import type { Entries } from '../../src/entries/entry-table.ts'
import { tokenId } from '../../src/rights/rights.ts'
import type { State } from '../../src/store/state.ts'

/** Throws an `Error` for a contradiction. */
export function checkState({ entries, users, tokens }: State): void {
  checkEntries(entries)
  for (const [hash, { user }] of tokens.entries()) {
    if ((users.get(user) ?? { isRemoved: true }).isRemoved) throw new Error(`token ${tokenId(hash)} belongs to no user`)
  }
}

function checkEntries(entries: Entries): void {
  const expected = createHash('sha256')
  let count = 0
  let active = 0
  for (const entry of entries.entries()) {
    const { id } = entry
    count++
    const text = JSON.stringify(answered(entry))
    const hasTexts = ENTRY_FIELDS.every(field => !FIELDS[field].isRequired || (entry[field] ?? '') !== '')
    const isWhole = hasTexts && entries.text(id) === text && entryText(entry) === text
    if (entries.grupo(id) !== entry.grupo) throw new Error(`entry ${id} counts as one of another group`)
    if (!isWhole) throw new Error(`entry ${id} is not whole`)
    if (entry.status === 1) expected.update(`${active++ === 0 ? '[' : ','}${text}`)
  }
  if (count !== entries.count) throw new Error(`there are ${count} entries, and not ${entries.count}`)
  if (active !== entries.active) throw new Error(`${active} entries are active, and not ${entries.active}`)
  const list = createHash('sha256')
  list.update(entries.list() ?? '')
  if (active > 0) expected.update(']')
  if (list.digest('hex') !== expected.digest('hex')) throw new Error('the list is out of date')
}
